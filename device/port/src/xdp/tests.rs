// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports on real interfaces: pairs of virtual ones in the tests' own namespaces, with a raw socket
//! or another port as the peer.

use super::*;
use crate::bpf::AttachMode;
use crate::conformance::{self, plain};
use crate::memory::{Captured, Generator};
use crate::namespace::Namespace;
use crate::port::{BATCH, Batch, Frame, Frames, HEADROOM, Receive, Transmit};
use crate::tests::far_end::{Counted, PATIENCE, RawSocket, ip, quiet_namespace, ready};
use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// An Ethernet header: the shortest frame that the kernel takes.
const SHORTEST: usize = 14;
const RING_FRAMES: u32 = 512;

/// Creates two pairs of interfaces, `a0` to `a1` and `b0` to `b1`, up, with this MTU.
fn pairs(namespace: &Namespace, mtu: usize) {
    let make = || {
        for pair in ["a", "b"] {
            ip(&format!("link add {pair}0 mtu {mtu} type veth peer name {pair}1 mtu {mtu}"));
            ip(&format!("link set {pair}0 up"));
            ip(&format!("link set {pair}1 up"));
        }
    };
    namespace.with(make).expect("the thread starts");
}

fn within<T>(namespace: &Namespace, work: impl FnOnce() -> T) -> T {
    namespace.with(work).expect("the thread starts")
}

fn options(interface: &str) -> XdpOptions {
    XdpOptions { ring_frames: RING_FRAMES, ..interface.parse().expect("a port") }
}

fn open(namespace: &Namespace, interfaces: &[&str]) -> Vec<XdpPort> {
    let options: Vec<XdpOptions> = interfaces.iter().map(|name| options(name)).collect();
    within(namespace, || XdpPort::open_all(&options)).expect("it can be opened")
}

#[test]
fn the_receiver_conforms() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 9_400);
    conformance::check_receiver_from(SHORTEST, |trace| {
        let port = open(&namespace, &["a0"]).pop().expect("one port");
        let far = within(&namespace, || RawSocket::on("a1"));
        trace.iter().for_each(|item| far.send(&item.bytes));
        Counted::new(port.split().0, far, trace)
    });
}

#[test]
fn the_transmitter_conforms() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 9_400);
    let far = RefCell::new(None);
    let make = || {
        let port = open(&namespace, &["a0"]).pop().expect("one port");
        *far.borrow_mut() = Some(within(&namespace, || RawSocket::on("a1")));
        port.split().1
    };
    conformance::check_transmitter_from(SHORTEST, make, |port| {
        let far = far.borrow();
        let far = far.as_ref().expect("it was made");
        let (mut frames, since) = (vec![], Instant::now());
        while (frames.len() as u64) < port.sent().copied {
            frames.extend(far.incoming());
            assert!(since.elapsed() < PATIENCE, "{} frames came", frames.len());
        }
        let captured = plain(&frames).into_iter().map(|it| Captured {
            bytes: it.bytes,
            original_length: it.original_length,
            timestamp_ns: it.timestamp_ns,
        });
        captured.collect()
    });
}

#[test]
fn a_port_tells_how_it_works() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let ports = open(&namespace, &["a0", "b0/0"]);
    let mode = ports[0].mode();
    assert_eq!((mode.place, mode.queues.as_slice()), (AttachMode::Native, &[0][..]));
    let text = ports[1].mode().to_string();
    assert!(text.starts_with("xdp:b0/0: native, "), "{text}");
    assert!(text.ends_with("memory shared by 2 ports"), "{text}");
}

/// Makes frames of these lengths, each with different contents.
fn frames_of(lengths: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    let frame = |(at, length): (usize, usize)| (0..length).map(|k| (k * 7 + at) as u8).collect();
    lengths.enumerate().map(frame).collect()
}

/// Receives until `count` frames have arrived, and passes each batch to `take`.
fn receive_each(port: &mut XdpReceiver, count: usize, mut take: impl FnMut(Batch<'_>)) {
    let (mut seen, since) = (0, Instant::now());
    while seen < count {
        let batch = port.receive(BATCH).expect("it is open");
        seen += batch.len();
        take(batch);
        assert!(since.elapsed() < PATIENCE, "{seen} of {count} frames came");
    }
}

/// Sends all frames, in as many calls as needed.
fn send_all(port: &mut XdpTransmitter, frames: Frames<'_>) {
    let (mut sent, since) = (0, Instant::now());
    while sent < frames.len() {
        sent += port.transmit(frames.behind(sent)).expect("it is open");
        assert!(since.elapsed() < PATIENCE, "{sent} of {} frames were sent", frames.len());
    }
}

/// Collects the frames that arrive at a raw socket, until there are `count`.
fn arrived(far: &RawSocket, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, since) = (vec![], Instant::now());
    while frames.len() < count {
        frames.extend(far.incoming());
        assert!(since.elapsed() < PATIENCE, "{} of {count} frames came", frames.len());
    }
    frames
}

/// Waits until everything that was sent is completed, and the receiver has its chunks back.
fn settle(receiver: &mut XdpReceiver, transmitters: &mut [&mut XdpTransmitter]) {
    let since = Instant::now();
    while receiver.given_away() > 0 || transmitters.iter().any(|it| it.outstanding() > 0) {
        for transmitter in transmitters.iter_mut() {
            assert!(transmitter.flush().expect("it is open"), "the kernel has taken everything");
        }
        assert!(receiver.receive(BATCH).expect("it is open").is_empty());
        assert!(since.elapsed() < PATIENCE, "{} chunks are not back", receiver.given_away());
    }
}

/// Forwards from one interface to the other, many times around the rings, without a copy of ours.
fn forward(mtu: usize, lengths: impl Iterator<Item = usize>) -> (XdpReceived, usize) {
    let Some(namespace) = quiet_namespace() else { return Default::default() };
    pairs(&namespace, mtu);
    let mut ports = open(&namespace, &["a0", "b0"]).into_iter().map(XdpPort::split);
    let (mut receiver, _) = ports.next().expect("two ports");
    let (_, mut transmitter) = ports.next().expect("two ports");
    let far = ["a1", "b1"].map(|name| within(&namespace, || RawSocket::on(name)));
    let frames = frames_of(lengths);
    for part in frames.chunks(50) {
        part.iter().for_each(|frame| far[0].send(frame));
        receive_each(&mut receiver, part.len(), |batch| {
            send_all(&mut transmitter, batch.as_frames());
        });
        assert!(arrived(&far[1], part.len()) == part, "they arrive as they were sent");
    }
    settle(&mut receiver, &mut [&mut transmitter]);
    let all = frames.len() as u64;
    let expected = XdpSent { in_place: all, ..XdpSent::default() };
    assert_eq!(transmitter.sent(), expected, "none was copied");
    assert_eq!((receiver.lost(), transmitter.lost()), (0, 0));
    (receiver.received(), frames.len())
}

#[test]
fn frames_go_from_interface_to_interface_without_a_copy() {
    let lengths = (0..6_000).map(|at| 60 + at * 31 % 1_455);
    let (received, count) = forward(1_500, lengths);
    assert_eq!(received, XdpReceived { in_place: count as u64, ..XdpReceived::default() });
}

#[test]
fn jumbo_frames_are_joined_and_then_go_without_a_copy() {
    let lengths = (60..=9_014).step_by(11).chain([9_014; 600]);
    let (received, count) = forward(9_000, lengths);
    assert_eq!(received.in_place + received.joined, count as u64);
    assert!(count == 0 || received.joined > 600 && received.in_place > 200, "{received:?}");
}

#[test]
fn a_frame_may_be_sent_twice_and_with_more_in_front() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let mut ports = open(&namespace, &["a0", "b0"]).into_iter().map(XdpPort::split);
    let (mut receiver, mut back) = ports.next().expect("two ports");
    let (_, mut transmitter) = ports.next().expect("two ports");
    let far = ["a1", "b1"].map(|name| within(&namespace, || RawSocket::on(name)));
    let frames = frames_of((0..40).map(|at| 60 + at));
    let longer = |frame: &Vec<u8>| [&[9; 20][..], frame].concat();
    let longer: Vec<Vec<u8>> = frames.iter().map(longer).collect();
    for _ in 0..40 {
        frames.iter().for_each(|frame| far[0].send(frame));
        let mut twice = vec![];
        receive_each(&mut receiver, frames.len(), |mut batch| {
            for at in 0..batch.len() {
                batch.headroom_mut(at)[HEADROOM - 20..].fill(9);
            }
            let longer = |frame: &Frame| Frame {
                start: frame.start - 20,
                length: frame.length + 20,
                ..*frame
            };
            let moved: Vec<Frame> = batch.frames().iter().map(longer).collect();
            let moved = Frames::new(batch.memory(), &moved).expect("good frames");
            send_all(&mut transmitter, moved);
            send_all(&mut back, batch.as_frames());
            send_all(&mut transmitter, batch.as_frames());
            twice.extend(
                [moved, batch.as_frames()]
                    .iter()
                    .flat_map(|it| it.iter().map(|(_, bytes)| bytes.to_vec()).collect::<Vec<_>>()),
            );
        });
        assert!(arrived(&far[0], frames.len()) == frames, "they come back");
        assert!(arrived(&far[1], twice.len()) == twice, "they go on twice");
        let mut expected = [&longer[..], &frames[..]].concat();
        twice.sort();
        expected.sort();
        assert!(twice == expected);
    }
    settle(&mut receiver, &mut [&mut back, &mut transmitter]);
    assert_eq!((transmitter.sent().copied, back.sent().copied), (0, 0));
}

#[test]
fn a_full_port_takes_fewer_frames_and_loses_none() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let asked = XdpOptions { ring_frames: 64, ..options("a0") };
    let port = within(&namespace, || XdpPort::open(&asked)).expect("it can be opened");
    let (_, mut transmitter) = port.split();
    let far = within(&namespace, || RawSocket::on("a1"));
    within(&namespace, || ip("link set a0 down"));
    let frames = frames_of((0..200).map(|at| 60 + at));
    let mut source = Generator::once(&plain(&frames)).expect("good frames");
    let batch = source.receive(frames.len()).expect("memory does not fail");
    let all = batch.as_frames();
    assert_eq!(transmitter.transmit(all).expect("it is only down"), 64);
    assert_eq!(transmitter.transmit(all.behind(64)).expect("it is only down"), 0);
    assert!(!transmitter.flush().expect("it is only down"));
    within(&namespace, || ip("link set a0 up"));
    assert!(transmitter.flush().expect("it is up"));
    send_all(&mut transmitter, all.behind(64));
    assert!(arrived(&far, frames.len()) == frames, "they arrive in order");
    assert_eq!(transmitter.sent(), XdpSent { copied: 200, ..XdpSent::default() });
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let asked = XdpOptions { ring_frames: 64, ..options("a0") };
    let port = within(&namespace, || XdpPort::open(&asked)).expect("it can be opened");
    let (mut receiver, _) = port.split();
    let far = within(&namespace, || RawSocket::on("a1"));
    frames_of([60; 500].into_iter()).iter().for_each(|frame| far.send(frame));
    let (mut seen, since) = (0, Instant::now());
    while seen + receiver.lost() < 500 {
        seen += receiver.receive(BATCH).expect("it is open").len() as u64;
        assert!(since.elapsed() < PATIENCE, "{seen} came, {} were lost", receiver.lost());
    }
    assert!((64..500).contains(&seen), "{seen}");
    assert_eq!(seen + receiver.lost(), 500);
    far.send(&[2; 60]);
    receive_each(&mut receiver, 1, |_| {});
}

#[test]
fn all_queues_are_one_port() {
    let Some(namespace) = quiet_namespace() else { return };
    within(&namespace, || {
        ip("link add a0 numrxqueues 4 numtxqueues 4 type veth peer name a1 numrxqueues 4 \
            numtxqueues 4");
        ip("link set a0 up");
        ip("link set a1 up");
    });
    let mut ports = open(&namespace, &["a0/1", "a0/3"]);
    assert_eq!(ports.iter().map(|port| port.mode().queues[0]).collect::<Vec<_>>(), [1, 3]);
    drop(ports.drain(..));
    let port = open(&namespace, &["a0"]).pop().expect("one port");
    assert_eq!(port.mode().queues, [0, 1, 2, 3]);
    let (mut receiver, _) = port.split();
    let far = within(&namespace, || RawSocket::on("a1"));
    for round in 0..100 {
        let frames = frames_of((0..40).map(|at| 60 + round + at));
        frames.iter().for_each(|frame| far.send(frame));
        assert_eq!(ready(receiver.readiness(), libc::POLLIN, 60_000), libc::POLLIN);
        let mut seen = vec![];
        receive_each(&mut receiver, frames.len(), |batch| {
            seen.extend(batch.as_frames().iter().map(|(_, bytes)| bytes.to_vec()));
        });
        seen.sort();
        let mut frames = frames;
        frames.sort();
        assert!(seen == frames, "each comes once");
    }
}

#[test]
fn halves_are_used_by_different_threads() {
    fn may_be_sent<T: Send>() {}
    may_be_sent::<XdpReceiver>();
    may_be_sent::<XdpTransmitter>();
}

#[test]
fn a_port_that_cannot_be_opened_says_why_and_what_to_do() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let refused = |names: &[&str]| {
        let options: Vec<XdpOptions> = names.iter().map(|name| options(name)).collect();
        within(&namespace, || XdpPort::open_all(&options)).expect_err("refused").to_string()
    };
    let cases: [(&[&str], &str, &str); 4] = [
        (&["nobody0"], "nobody0", "ip link"),
        (&["a0/7"], "a0/7", "queues 0 to 0"),
        (&["a0", "a0/0"], "a0/0", "use both halves"),
        (&["a0@fp-nobody"], "a0@fp-nobody", "ip netns list"),
    ];
    for (names, name, advice) in cases {
        let text = refused(names);
        assert!(text.contains(name) && text.contains(advice), "{text}");
    }
    let _first = open(&namespace, &["a0"]);
    let text = refused(&["a0"]);
    assert!(text.contains("a0") && text.contains("another process"), "{text}");
}

#[test]
fn an_interface_that_is_deleted_is_told() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let (mut receiver, mut transmitter) = open(&namespace, &["a0"]).remove(0).split();
    within(&namespace, || ip("link del a0"));
    let since = Instant::now();
    let error = loop {
        if let Err(error) = receiver.receive(BATCH) {
            break error.to_string();
        }
        assert!(since.elapsed() < PATIENCE, "no event arrives");
    };
    assert!(error.contains("a0") && error.contains("was removed"), "{error}");
    let frames = [Frame { start: 0, length: 60, ..Frame::default() }];
    let frames = Frames::new(&[2; 60], &frames).expect("good frames");
    transmitter.transmit(frames).expect_err("it is gone");
}

/// Name under which the test below runs the one that holds a port.
const HOLDER: &str = "port::xdp::tests::holds_a_port_until_it_is_killed";

/// Variable that is set for it.
const HOLDS: &str = "FREEPORT_TEST_HOLDS_A_PORT";

/// Part of the test below, in a process of its own; does nothing otherwise.
#[test]
fn holds_a_port_until_it_is_killed() {
    if std::env::var_os(HOLDS).is_none() {
        return;
    }
    let _port = XdpPort::open(&options("a0")).expect("it can be opened");
    println!("the port is open");
    // It is killed before it reads anything; if the parent test ends earlier, this one ends as
    // well.
    std::io::stdin().read_line(&mut String::new()).expect("it can be read");
}

#[test]
fn a_killed_process_leaves_the_interface_as_it_was() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let binary = std::env::current_exe().expect("this one runs");
    let mut holder = Command::new(binary);
    holder
        .args(["--exact", HOLDER, "--nocapture"])
        .env(HOLDS, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = within(&namespace, || holder.spawn()).expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("the port is open")));
    let sockets = ["a0", "a1"].map(|name| within(&namespace, || RawSocket::on(name)));
    sockets[1].send(&[2; 60]);
    assert_eq!(sockets[0].incoming().len(), 0, "the port has it");
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    let since = Instant::now();
    while sockets[0].incoming().is_empty() {
        sockets[1].send(&[2; 60]);
        assert!(since.elapsed() < PATIENCE, "nothing comes through to the network stack");
    }
    let (mut receiver, _) = open(&namespace, &["a0"]).remove(0).split();
    sockets[1].send(&[3; 60]);
    receive_each(&mut receiver, 1, |_| {});
}
