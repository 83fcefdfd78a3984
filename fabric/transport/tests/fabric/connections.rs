// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams and messages between two threads and between two processes arrive as they were sent, for
//! all sizes, waiting policies and ways to end.

use crate::support::{Player, bytes};
use fastrand::Rng;
use freeport_fabric::Error;
use freeport_fabric::shm::{Connection, MessageConnection, Options};
use freeport_fabric::wait::Waiting;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

/// Length of a stream over a ring of this capacity.
fn total(capacity_max: usize) -> usize {
    if capacity_max == 64 { 20_000 } else { 300_000 }
}

/// Waiting policies of the sides of a test.
const POLICIES: [Waiting; 3] =
    [Waiting { spins: 50, yields: 50, timeout: None }, Waiting::SLEEP, Waiting::YIELD];

/// The part of the second process.
pub fn play(part: &str, stream: UnixStream) {
    let (kind, seed) = part.split_once(' ').expect("a kind and a seed");
    let seed = seed.parse().expect("a number");
    if kind == "bytes" {
        let mut connection = Connection::accept(stream, &options(seed)).expect("an offer");
        assert_ne!(connection.peer_pid(), std::process::id() as i32);
        let total = total(options(seed).capacity_max);
        read_stream(&mut connection, total, seed + 100);
        write_stream(&mut connection, total, seed + 200);
    } else {
        let accepted = MessageConnection::accept(stream, &options(seed));
        let mut connection = accepted.expect("an offer");
        receive_messages(&mut connection);
        send_messages(&mut connection);
    }
}

fn options(seed: u64) -> Options {
    let sizes = [(64, 64), (64, 1 << 16), (4096, 4096), (4096, 1 << 18), (1 << 16, 1 << 16)];
    let (capacity, capacity_max) = sizes[seed as usize % sizes.len()];
    let waiting = POLICIES[seed as usize % POLICIES.len()];
    let membarrier = seed % 4 != 3;
    Options { capacity, capacity_max, waiting, membarrier, ..Options::default() }
}

fn write_stream(connection: &mut Connection, total: usize, seed: u64) {
    let (mut random, mut sent) = (Rng::with_seed(seed), 0);
    while sent < total {
        let length = random.usize(1..20_000).min(total - sent);
        connection.write_all(&bytes(sent, length)).expect("the peer reads");
        sent += length;
        pause(&mut random);
    }
    connection.shutdown().expect("an honest peer");
    assert!(matches!(connection.write(b"more"), Err(Error::ShutDown)));
}

fn read_stream(connection: &mut Connection, total: usize, seed: u64) {
    let (mut random, mut got) = (Rng::with_seed(seed), 0);
    let mut buffer = vec![0; 30_000];
    loop {
        let room = random.usize(1..buffer.len());
        let count = connection.read(&mut buffer[..room]).expect("the peer writes");
        if count == 0 {
            break;
        }
        assert_eq!(buffer[..count], bytes(got, count));
        got += count;
        pause(&mut random);
    }
    assert_eq!(got, total);
    assert_eq!(connection.read(&mut buffer).expect("the end stays"), 0);
}

/// Pauses so that the other side sometimes finds nothing to read, or no room.
fn pause(random: &mut Rng) {
    match random.u8(..) {
        0..8 => thread::sleep(Duration::from_micros(random.u64(..500))),
        8..32 => thread::yield_now(),
        _ => {}
    }
}

#[test]
fn a_stream_goes_both_ways_between_two_threads() {
    for seed in 0..15 {
        let (mut here, mut there) = Connection::pair(&options(seed)).expect("a connection");
        let total = total(options(seed).capacity_max);
        let second = thread::spawn(move || {
            read_stream(&mut there, total, seed);
            write_stream(&mut there, total, seed + 1);
        });
        write_stream(&mut here, total, seed + 2);
        read_stream(&mut here, total, seed + 3);
        second.join().expect("the other thread is content");
        assert_eq!(here.is_fenced(), seed % 4 == 3);
    }
}

#[test]
fn a_stream_goes_both_ways_between_two_processes() {
    for seed in 0..8 {
        let (player, stream) = Player::start(&format!("connections bytes {seed}"));
        let mut connection = Connection::connect(stream, &options(seed)).expect("an answer");
        assert_eq!(connection.peer_pid(), player.pid());
        let total = total(options(seed).capacity_max);
        write_stream(&mut connection, total, seed);
        read_stream(&mut connection, total, seed + 50);
        player.ends_well();
    }
}

#[test]
fn a_ring_that_is_full_grows_up_to_its_limit() {
    let options = Options { capacity: 4096, capacity_max: 1 << 16, ..Options::with_capacity(4096) };
    let (mut here, mut there) = Connection::pair(&options).expect("a connection");
    assert_eq!(here.capacity(), 4096);
    let reader = thread::spawn(move || read_stream(&mut there, 300_000, 1));
    write_stream(&mut here, 300_000, 2);
    reader.join().expect("the reader is content");
    assert_eq!(here.capacity(), 1 << 16);
}

#[test]
fn one_side_without_membarrier_makes_both_use_fences() {
    let (first, second) = UnixStream::pair().expect("a pair");
    let without = Options { membarrier: false, ..Options::default() };
    let second = thread::spawn(move || Connection::accept(second, &without).expect("an offer"));
    let first = Connection::connect(first, &Options::default()).expect("an answer");
    assert!(first.is_fenced() && second.join().expect("no panic").is_fenced());
}

#[test]
fn a_path_serves_as_well_as_a_pair() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a path");
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut connection = Connection::accept(stream, &Options::default()).expect("an offer");
        let mut buffer = [0; 8];
        let count = connection.read(&mut buffer).expect("a request");
        connection.write_all(&buffer[..count]).expect("the client reads");
    });
    let stream = UnixStream::connect(&path).expect("a server");
    let mut connection = Connection::connect(stream, &Options::default()).expect("an answer");
    connection.write_all(b"ping").expect("the server reads");
    let mut buffer = [0; 8];
    assert_eq!(connection.read(&mut buffer).expect("the answer"), 4);
    assert_eq!(connection.read(&mut buffer).expect("the end"), 0);
    assert!(matches!(connection.write(b"x"), Err(Error::Closed { .. })));
    server.join().expect("the server is content");
}

/// Makes message `number`: its length and bytes follow from the number.
fn message(number: usize, longest: usize) -> Vec<u8> {
    bytes(number, Rng::with_seed(number as u64).usize(0..=longest))
}

const MESSAGES: usize = 3_000;

fn send_messages(connection: &mut MessageConnection) {
    let longest = connection.message_max().min(3_000);
    let too_long = vec![0; connection.message_max() + 1];
    assert!(matches!(connection.send(&[&too_long]), Err(Error::TooLong { .. })));
    for number in 0..MESSAGES {
        let message = message(number, longest);
        let (front, back) = message.split_at(message.len() / 3);
        connection.send(&[front, back]).expect("the peer receives");
    }
    connection.shutdown().expect("an honest peer");
}

fn receive_messages(connection: &mut MessageConnection) {
    let longest = connection.message_max().min(3_000);
    let mut buffer = vec![0; longest];
    for number in 0..MESSAGES {
        let expected = message(number, longest);
        if number % 100 == 0 && !expected.is_empty() {
            let longer = connection.receive(&mut buffer[..expected.len() - 1]);
            assert!(matches!(longer, Err(Error::Longer { .. })), "{longer:?}");
        }
        let length = connection.receive(&mut buffer).expect("the peer sends");
        assert_eq!(length.map(|length| &buffer[..length]), Some(&expected[..]), "{number}");
    }
    assert_eq!(connection.receive(&mut buffer).expect("the end"), None);
}

#[test]
fn messages_go_both_ways_between_two_processes() {
    for seed in 0..8 {
        let (player, stream) = Player::start(&format!("connections messages {seed}"));
        let connection = MessageConnection::connect(stream, &options(seed));
        let mut connection = connection.expect("an answer");
        send_messages(&mut connection);
        receive_messages(&mut connection);
        player.ends_well();
    }
}

#[test]
fn who_does_not_wait_is_told_so() {
    let (mut here, mut there) = Connection::pair(&Options::with_capacity(64)).expect("a pair");
    assert!(matches!(there.try_read(&mut [0; 8]), Err(Error::WouldBlock)));
    let mut written = 0;
    let refused = loop {
        match here.try_write(&[7; 10]) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
    };
    assert!(refused.is_would_block() && written > 0);
    let timeout = Some(Duration::from_millis(3));
    here.set_waiting(Waiting { timeout, ..Waiting::SLEEP });
    assert!(matches!(here.write(b"x"), Err(Error::TimedOut(_))));
    assert!(matches!(here.read(&mut [0; 8]), Err(Error::TimedOut(_))));
    assert_eq!(here.wait_counts().sleeps, 2);
    let mut buffer = [0; 64];
    assert_eq!(there.try_read(&mut buffer).expect("what was written"), written);
    assert!(here.try_write(b"x").is_ok());
}
