// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One of two processes is killed at any point: the other one detects it, and no resource leaks.

use crate::support::Player;
use fastrand::Rng;
use freeport_fabric::Error;
use freeport_fabric::shm::{Connection, Options};
use freeport_fabric::wait::Waiting;
use freeport_testbed::{process, wait_until};
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The part of the second process, until it is killed.
pub fn play(part: &str, stream: UnixStream) {
    if part == "leaves nothing" {
        return many_are_killed();
    }
    if part == "leaves an heir" {
        // The heir inherits the socket, which is standard input of both, and outlives this process.
        let heir = Command::new("sh").args(["-c", "exec 3<&0; sleep 3 &"]).status();
        assert!(heir.expect("a shell").success());
    }
    let options = Options { waiting: Waiting::SLEEP, ..Options::default() };
    let mut connection = Connection::accept(stream, &options).expect("an offer");
    let mut buffer = [0; 1000];
    loop {
        if part != "echoes" {
            thread::park();
            continue;
        }
        let count = connection.read(&mut buffer).expect("the other side outlives this one");
        connection.write_all(&buffer[..count]).expect("the other side outlives this one");
    }
}

fn start(part: &str) -> (Player, Connection) {
    let (player, stream) = Player::start(&format!("death {part}"));
    let options = Options { capacity: 4096, capacity_max: 1 << 16, ..Options::default() };
    let options = Options { waiting: Waiting::SLEEP, ..options };
    let connection = Connection::connect(stream, &options).expect("an answer");
    (player, connection)
}

/// Returns the numbers of segments and descriptors of this process.
fn holdings() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").expect("the maps of this process");
    let segments = maps.lines().filter(|line| line.contains("freeport-segment")).count();
    (segments, fs::read_dir("/proc/self/fd").expect("its descriptors").count())
}

/// A peer is killed while this side sleeps in a read or in a write.
fn notices(part: &str, writes: bool) {
    let (mut player, mut connection) = start(part);
    let (tell, reported) = mpsc::channel();
    let sleeper = thread::spawn(move || {
        // SAFETY: the call takes no arguments and cannot fail.
        tell.send(unsafe { libc::gettid() }).expect("the receiver is alive");
        if writes {
            loop {
                if let Err(error) = connection.write(&[0; 1000]) {
                    break error;
                }
            }
        } else {
            connection.read(&mut [0; 1000]).expect_err("it never writes")
        }
    });
    let thread = reported.recv().expect("the thread sends its id");
    wait_until("this side sleeps", || process::sleeps(thread));
    player.kill();
    wait_until("the sleeper wakes up", || sleeper.is_finished());
    let error = sleeper.join().expect("it ends well");
    assert!(matches!(error, Error::PeerDied { pid } if pid == player.pid()), "{part}: {error}");
}

#[test]
fn a_peer_that_is_killed_is_noticed_by_a_sleeper() {
    for (part, writes) in
        [("stands still", false), ("stands still", true), ("leaves an heir", false)]
    {
        (0..5).for_each(|_| notices(part, writes));
    }
}

#[test]
fn a_peer_that_is_killed_anywhere_is_an_error_and_leaves_nothing() {
    // In a process of its own, where no other test opens anything.
    Player::start("death leaves nothing").0.ends_well();
}

fn many_are_killed() {
    let mut random = Rng::with_seed(11);
    // Resources that a first connection creates permanently are not counted.
    drop(start("echoes"));
    let before = holdings();
    for round in 0..30 {
        let (mut player, mut connection) = start("echoes");
        let patience = Duration::from_micros(random.u64(..3000));
        let killer = thread::spawn(move || {
            thread::sleep(patience);
            player.kill();
        });
        let mut buffer = vec![0; 5000];
        let error = loop {
            let length = random.usize(1..2000);
            let written = connection.write_all(&buffer[..length]);
            let done = written.and_then(|()| connection.read(&mut buffer));
            match done {
                Ok(count) => assert!(count > 0, "round {round}: an end never written"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::PeerDied { .. }), "round {round}: {error}");
        assert!(!connection.peer_is_alive().expect("a look"));
        killer.join().expect("the killer is content");
    }
    assert_eq!(holdings(), before, "segments mapped, descriptors open");
}
