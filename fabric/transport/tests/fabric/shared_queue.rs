// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A queue shared by many connections, between two processes and between two threads: messages
//! arrive in the order of each connection, under every waiting policy; and the peer may die.

use crate::support::Player;
use fastrand::Rng;
use freeport_fabric::Error;
use freeport_fabric::shm::{Options, SharedQueue};
use freeport_fabric::wait::Waiting;
use freeport_ring::shared_queue::{Connection, Event, Limits};
use freeport_testbed::{process, wait_until};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const CONNECTIONS: usize = 300;
const LIMITS: Limits = Limits { connections: [CONNECTIONS as u32, 1], window: 4 };
const MESSAGES: u64 = 6_000;

const POLICIES: [Waiting; 3] =
    [Waiting { spins: 50, yields: 50, timeout: None }, Waiting::SLEEP, Waiting::YIELD];

fn options(seed: u64) -> Options {
    let capacity = [256, 4096, 1 << 16][seed as usize % 3];
    let waiting = POLICIES[seed as usize / 3 % 3];
    let membarrier = seed % 4 != 3;
    Options { capacity, capacity_max: capacity, waiting, membarrier, ..Options::default() }
}

/// The part of the second process: echoes each message on its connection.
pub fn play(part: &str, stream: UnixStream) {
    let (kind, seed) = part.split_once(' ').expect("a kind and a seed");
    let options = options(seed.parse().expect("a number"));
    let mut queue = SharedQueue::accept(stream, &options, LIMITS).expect("an offer");
    if kind == "killed" {
        let own = queue.open().expect("there is room");
        queue.send(own, b"last").expect("the peer is there");
        loop {
            std::thread::park();
        }
    }
    answer(&mut queue);
}

fn answer(queue: &mut SharedQueue) {
    let mut events = [Event::default(); 32];
    let mut into = [0; 64];
    loop {
        let count = queue.poll(&mut events).expect("the peer is there");
        if count == 0 {
            return;
        }
        for event in &events[..count] {
            match queue.try_receive(event.connection, &mut into) {
                Ok(Some(length)) => {
                    queue.send(event.connection, &into[..length]).expect("the peer reads");
                }
                Ok(None) => queue.close(event.connection).expect("an honest peer"),
                Err(error) => assert!(error.is_would_block() && event.is_new, "{error}"),
            }
        }
    }
}

/// Sends to random connections, with up to a window of messages each, and reads the answers.
fn ask(queue: &mut SharedQueue, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let connections: Vec<Connection> =
        (0..CONNECTIONS).map(|_| queue.open().expect("there is room")).collect();
    assert!(matches!(queue.open(), Err(Error::TooMany { most: 300 })));
    let (mut sent, mut received) = (vec![0_u64; CONNECTIONS], vec![0_u64; CONNECTIONS]);
    let mut events = [Event::default(); 32];
    let mut left = MESSAGES;
    while left > 0 || sent != received {
        for _ in 0..random.u64(..64).min(left) {
            // A hint, which may be wrong.
            queue.will_send(connections[random.usize(..CONNECTIONS)]);
            let at = random.usize(..CONNECTIONS);
            // With more than that, both sides would wait for each other's windows.
            if sent[at] - received[at] < 2 {
                queue.send(connections[at], &sent[at].to_ne_bytes()).expect("the peer reads");
                sent[at] += 1;
                left -= 1;
            }
        }
        let count = match queue.try_poll(&mut events) {
            Err(error) if error.is_would_block() && left > 0 => continue,
            Err(error) if error.is_would_block() => queue.poll(&mut events),
            reported => reported,
        };
        for event in &events[..count.expect("the peer is there")] {
            let at = event.connection.number() as usize;
            let mut into = [0; 8];
            let length = queue.try_receive(event.connection, &mut into).expect("it was told of");
            assert_eq!((length, u64::from_ne_bytes(into)), (Some(8), received[at]), "in order");
            received[at] += 1;
        }
    }
    for connection in connections {
        queue.close(connection).expect("an honest peer");
        assert!(matches!(queue.send(connection, b"more"), Err(Error::NoConnection)));
    }
}

#[test]
fn answers_come_on_their_own_connections_from_another_process() {
    for seed in 0..9 {
        let (player, stream) = Player::start(&format!("shared_queue answers {seed}"));
        let mut queue = SharedQueue::connect(stream, &options(seed), LIMITS).expect("a peer");
        ask(&mut queue, seed);
        drop(queue);
        player.ends_well();
    }
}

#[test]
fn what_a_killed_process_has_sent_is_read_first() {
    let (mut player, stream) = Player::start("shared_queue killed 1");
    let mut queue = SharedQueue::connect(stream, &options(1), LIMITS).expect("a peer");
    let mut events = [Event::default(); 2];
    assert_eq!(queue.poll(&mut events).expect("it has opened"), 1);
    let connection = events[0].connection;
    assert_eq!(connection.number(), CONNECTIONS as u32, "the first number of the second side");
    // The peer has opened it, and sleeps only after it has sent.
    wait_until("it has sent", || process::all_sleep(player.pid()));
    player.kill();
    let mut into = [0; 8];
    assert_eq!(queue.receive(connection, &mut into).expect("it was sent"), Some(4));
    assert!(matches!(queue.receive(connection, &mut into), Err(Error::PeerDied { .. })));
}

#[test]
fn an_event_loop_is_woken_by_what_comes() {
    let options = Options::default();
    let (mut here, mut there) = SharedQueue::pair(&options, LIMITS).expect("a pair");
    assert!(here.arm().expect("an honest peer"), "nothing has come");
    let connection = there.open().expect("there is room");
    there.send(connection, b"here").expect("there is room");
    assert!(is_readable(&here));
    let mut events = [Event::default(); 2];
    assert_eq!(here.try_poll(&mut events).expect("it has come"), 1);
    assert!(!here.arm().expect("an honest peer"), "it is not read");
    let waiting = Waiting { timeout: Some(Duration::from_millis(1)), ..Waiting::SLEEP };
    here.set_waiting(waiting);
    assert_eq!(here.receive(connection, &mut [0; 8]).expect("it has come"), Some(4));
    assert!(matches!(here.receive(connection, &mut [0; 8]), Err(Error::TimedOut(_))));
}

fn is_readable(queue: &SharedQueue) -> bool {
    use std::os::fd::{AsFd, AsRawFd};
    let descriptor = queue.as_fd().as_raw_fd();
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one entry.
    unsafe { libc::poll(&mut entry, 1, 1000) == 1 }
}

#[test]
fn sides_with_other_limits_refuse_each_other() {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let other = Limits { window: 5, ..LIMITS };
    let thread = std::thread::spawn(move || {
        SharedQueue::accept(there, &Options::default(), other).map(|_| ())
    });
    let ours = SharedQueue::connect(here, &Options::default(), LIMITS).map(|_| ());
    let theirs = thread.join().expect("it ends");
    assert!(ours.is_err() && theirs.is_err(), "{ours:?} {theirs:?}");
    let nothing = Limits { window: 0, ..LIMITS };
    assert!(matches!(
        SharedQueue::pair(&Options::default(), nothing),
        Err(Error::Limits { window: 0, .. })
    ));
}
