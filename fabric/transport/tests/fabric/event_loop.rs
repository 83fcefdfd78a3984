// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections of a program with an event loop: it waits for descriptors, and never blocks in a
//! call.

use crate::support::bytes;
use fastrand::Rng;
use freeport_fabric::endpoint::Transfer;
use freeport_fabric::shm::{Connection, Options, ShmEndpoint};
use freeport_fabric::{Completion, Endpoint, Error};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// Length of each stream.
const TOTAL: usize = 200_000;
/// Time after which a test is considered to hang.
const PATIENCE_MS: i32 = 60_000;

/// Waits until one of the descriptors is readable.
fn wait(connections: &[&Connection]) {
    let entry = |connection: &&Connection| libc::pollfd {
        fd: connection.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<_> = connections.iter().map(entry).collect();
    // SAFETY: the array has this number of entries.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as u64, PATIENCE_MS) };
    assert!(ready > 0, "no doorbell rings");
}

/// Writes with pauses, waiting for room in the kernel.
fn write(mut connection: Connection, seed: u64) {
    let (mut random, mut sent) = (Rng::with_seed(seed), 0);
    while sent < TOTAL {
        let length = random.usize(1..3000).min(TOTAL - sent);
        match connection.try_write(&bytes(sent, length)) {
            Ok(count) => sent += count,
            Err(Error::WouldBlock) => {
                if connection.arm(true).expect("the reader is here") {
                    wait(&[&connection]);
                }
            }
            Err(error) => panic!("{error}"),
        }
        if random.u8(..) < 10 {
            thread::sleep(Duration::from_micros(random.u64(..300)));
        }
    }
}

#[test]
fn a_loop_over_several_connections_misses_nothing() {
    let options = Options::with_capacity(1024);
    let mut sources = vec![];
    let mut writers = vec![];
    for seed in 0..3 {
        let (here, there) = Connection::pair(&options).expect("a connection");
        sources.push((here, 0));
        writers.push(thread::spawn(move || write(there, seed)));
    }
    let mut buffer = [0; 700];
    while !sources.is_empty() {
        let mut may_sleep = true;
        sources.retain_mut(|(connection, got)| match connection.try_read(&mut buffer) {
            Ok(0) => {
                assert_eq!(*got, TOTAL);
                false
            }
            Ok(count) => {
                assert_eq!(buffer[..count], bytes(*got, count));
                *got += count;
                may_sleep = false;
                true
            }
            Err(Error::WouldBlock) => true,
            Err(error) => panic!("{error}"),
        });
        for (connection, _) in &mut sources {
            may_sleep = may_sleep && connection.arm(false).expect("the writer is honest");
        }
        if may_sleep && !sources.is_empty() {
            wait(&sources.iter().map(|(connection, _)| connection).collect::<Vec<_>>());
        }
    }
    writers.into_iter().for_each(|writer| writer.join().expect("the writer is content"));
}

/// No step waits, since each has its message already.
#[test]
fn an_endpoint_begins_in_steps_of_one_thread() {
    let options = Options::with_capacity(1024);
    let (here, there) = UnixStream::pair().expect("a pair");
    let offered = ShmEndpoint::offer(here, &options).expect("a socket");
    let second = ShmEndpoint::accept(there, &options).expect("an offer");
    let first = offered.finish().expect("an answer");
    let (mine, theirs) =
        (first.register(64).expect("memory"), second.register(64).expect("memory"));
    let target = first.import(second.export(&theirs).expect("a key")).expect("memory");
    let transfer =
        Transfer { here: &mine, here_at: 0, there: &target, there_at: 0, bytes: 8, token: 1 };
    first.write_with_data(transfer, 5).expect("room");
    assert_eq!(second.poll().expect("an honest peer"), Some(Completion::Arrived { data: 5 }));
    drop(first);
    assert!(!second.peer_is_alive().expect("a look"));
    // A side that has hung up gives no answer.
    let (here, there) = UnixStream::pair().expect("a pair");
    let offered = ShmEndpoint::offer(here, &options).expect("a socket");
    drop(there);
    offered.finish().expect_err("nobody answers");
}
