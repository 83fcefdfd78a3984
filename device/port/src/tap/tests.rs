// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TAP ports on real interfaces: a raw socket on the kernel's side sends and receives the frames.

use super::*;
use crate::conformance::{self, plain};
use crate::memory::{Captured, Generator};
use crate::namespace::{Namespace, interface};
use crate::tests::far_end::{Counted, RawSocket, ip, quiet_namespace, ready};
use std::cell::RefCell;
use std::thread;
use std::time::Duration;

const NAME: &str = "fptap0";
/// Larger than any frame of a port, so that frames that are too long can also be sent.
const LARGE_MTU: &str = "9400";

fn options() -> TapOptions {
    NAME.parse().expect("a good name")
}

/// Pauses between two attempts and returns false.
fn waited() -> bool {
    thread::sleep(Duration::from_millis(5));
    false
}

/// Opens the port once its interface is free: a child process that another test starts at that
/// moment inherits the descriptors open here and holds them until it executes its own program, even
/// if the port is closed in the meantime.
fn opened() -> (TapReceiver, TapTransmitter) {
    for _ in 0..1_000 {
        match TapPort::open(&options()) {
            Err(PortError::Interface { source, .. })
                if source.kind() == io::ErrorKind::ResourceBusy =>
            {
                waited();
            }
            opened => return opened.expect("it can be made"),
        }
    }
    panic!("{NAME} stays in use by another process")
}

/// Opens the port, with room for long frames, and a raw socket on the kernel's side.
fn tap(namespace: &Namespace) -> (TapReceiver, TapTransmitter, RawSocket) {
    let all = namespace.with(|| {
        let (receiver, transmitter) = opened();
        ip(&format!("link set {NAME} mtu {LARGE_MTU}"));
        (receiver, transmitter, RawSocket::on(NAME))
    });
    all.expect("the thread starts")
}

#[test]
fn the_receiver_conforms() {
    let Some(namespace) = quiet_namespace() else { return };
    conformance::check_receiver_from(SHORTEST, |trace| {
        let (tap, _, other) = tap(&namespace);
        trace.iter().for_each(|item| other.send(&item.bytes));
        Counted::new(tap, other, trace)
    });
}

#[test]
fn the_transmitter_conforms() {
    let Some(namespace) = quiet_namespace() else { return };
    let socket = RefCell::new(None);
    let make = || {
        // The previous one is closed first, because it holds the interface.
        socket.borrow_mut().take();
        let (_, transmitter, other) = tap(&namespace);
        *socket.borrow_mut() = Some(other);
        transmitter
    };
    conformance::check_transmitter_from(SHORTEST, make, |_| {
        let frames = socket.borrow().as_ref().expect("it was made").incoming();
        let items = plain(&frames).into_iter();
        let captured = items.map(|it| Captured {
            bytes: it.bytes,
            original_length: it.original_length,
            timestamp_ns: it.timestamp_ns,
        });
        captured.collect()
    });
}

#[test]
fn a_frame_that_is_too_long_is_counted_and_not_cut() {
    let Some(namespace) = quiet_namespace() else { return };
    let (mut receiver, _transmitter, other) = tap(&namespace);
    for length in [MAX_FRAME + 1, 60, MAX_FRAME + 100, MAX_FRAME] {
        other.send(&vec![2; length]);
    }
    let batch = receiver.receive(BATCH).expect("it is open");
    let lengths: Vec<usize> = batch.frames().iter().map(|frame| frame.length).collect();
    assert_eq!(lengths, [60, MAX_FRAME]);
    assert_eq!(receiver.lost(), 2);
    assert!(receiver.receive(BATCH).expect("it is open").is_empty());
}

#[test]
fn poll_says_when_there_are_frames() {
    let Some(namespace) = quiet_namespace() else { return };
    let (mut receiver, transmitter, other) = tap(&namespace);
    assert_eq!(ready(receiver.readiness(), libc::POLLIN, 0), 0);
    other.send(&[2; 60]);
    assert_eq!(ready(receiver.readiness(), libc::POLLIN, 20_000), libc::POLLIN);
    assert_eq!(receiver.receive(BATCH).expect("it is open").len(), 1);
    assert_eq!(ready(receiver.readiness(), libc::POLLIN, 0), 0);
    assert_eq!(ready(transmitter.readiness(), libc::POLLOUT, 20_000), libc::POLLOUT);
}

#[test]
fn what_the_interface_does_not_take_is_counted() {
    let Some(namespace) = quiet_namespace() else { return };
    let (_receiver, mut transmitter, other) = tap(&namespace);
    let mut send = |frames: &[Vec<u8>]| {
        let mut source = Generator::once(&plain(frames)).expect("good frames");
        let batch = source.receive(frames.len()).expect("memory does not fail");
        let accepted = transmitter.transmit(batch.as_frames()).expect("it is open");
        assert_eq!(accepted, frames.len());
        transmitter.lost()
    };
    assert_eq!(send(&[vec![2; 13], vec![2; 14]]), 1);
    assert_eq!(other.incoming().len(), 1);
    namespace.with(|| ip(&format!("link set {NAME} down"))).expect("the thread starts");
    assert_eq!(send(&[vec![2; 60], vec![2; 60]]), 3);
    namespace.with(|| ip(&format!("link set {NAME} up"))).expect("the thread starts");
    assert_eq!(send(&[vec![2; 60]]), 3);
    assert_eq!(other.incoming().len(), 1);
}

#[test]
fn an_interface_that_a_port_made_goes_with_it_and_others_stay() {
    let Some(namespace) = quiet_namespace() else { return };
    let work = || {
        drop(opened());
        let is_gone = || interface(NAME).is_err();
        assert!((0..1_000).any(|_| is_gone() || waited()), "it went with the port");
        ip(&format!("tuntap add mode tap name {NAME}"));
        for _ in 0..2 {
            drop(opened());
            interface(NAME).expect("it was there before the port");
        }
    };
    namespace.with(work).expect("the thread starts");
}

#[test]
fn a_port_in_use_or_of_another_kind_is_refused_with_advice() {
    let Some(namespace) = quiet_namespace() else { return };
    let work = || {
        let _first = TapPort::open(&options()).expect("it can be made");
        let error = TapPort::open(&options()).expect_err("it is open").to_string();
        assert!(error.contains(NAME) && error.contains("another process"), "{error}");
        ip("link add fpveth0 type veth peer name fpveth1");
        let veth = TapOptions { interface: "fpveth0".into(), namespace: None };
        let error = TapPort::open(&veth).expect_err("it is no TAP").to_string();
        assert!(error.contains("fpveth0") && error.contains("another kind"), "{error}");
    };
    namespace.with(work).expect("the thread starts");
    let nowhere = TapOptions { interface: NAME.into(), namespace: Some("fp-nobody".into()) };
    let error = TapPort::open(&nowhere).expect_err("no such namespace").to_string();
    assert!(error.contains("ip netns add fp-nobody"), "{error}");
}

#[test]
fn a_namespace_may_be_given_by_its_path() {
    let Some(namespace) = quiet_namespace() else { return };
    let path = namespace.path().display().to_string();
    let there = TapOptions { interface: NAME.into(), namespace: Some(path) };
    let _port = TapPort::open(&there).expect("it can be made there");
    assert!(interface(NAME).is_err(), "it is not here");
    namespace.with(|| interface(NAME)).expect("the thread starts").expect("but there");
}

#[test]
fn a_deleted_interface_is_told() {
    let Some(namespace) = quiet_namespace() else { return };
    let (mut receiver, mut transmitter, other) = tap(&namespace);
    other.send(&[2; 60]);
    assert_eq!(receiver.receive(1).expect("it is open").len(), 1);
    namespace.with(|| ip(&format!("link del {NAME}"))).expect("the thread starts");
    let error = receiver.receive(BATCH).expect_err("it is gone").to_string();
    assert!(error.contains(NAME) && error.contains("deleted"), "{error}");
    let frames = [Frame { start: 0, length: 60, ..Frame::default() }];
    let frames = Frames::new(&[2; 60], &frames).expect("good frames");
    transmitter.transmit(frames).expect_err("it is gone");
}

#[test]
fn names_are_checked() {
    let parsed = |text: &str| text.parse::<TapOptions>();
    let namespace = Some("blue".to_owned());
    let expected = TapOptions { interface: "t0".into(), namespace };
    assert_eq!(parsed("t0@blue"), Ok(expected));
    let by_path = parsed("t0@/proc/4711/ns/net").expect("a path is as good as a name");
    assert_eq!(by_path.namespace.as_deref(), Some("/proc/4711/ns/net"));
    assert_eq!(parsed("t0"), Ok(TapOptions { interface: "t0".into(), namespace: None }));
    for bad in ["", "a b", "tap%d", "sixteen-letters!", "a/b", "t0@", "@blue", "t0@../x", "a:b"] {
        assert!(parsed(bad).is_err(), "{bad}");
    }
}
