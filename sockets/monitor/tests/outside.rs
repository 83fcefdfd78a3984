// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons for which sockets of a process with the library are in the kernel, found without its
//! report. This process passes for one: it maps a file with the library's name.

mod harness;

use freeport_monitor::{Options, why};
use freeport_sockets_proto::message::{Reply, Request};
use harness::{Running, connection, eventually};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// One test at a time: a child that another test starts briefly has all descriptors.
static TURN: Mutex<()> = Mutex::new(());

/// Maps a file with the library's name, for the lifetime of the process.
fn seem_preloaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libfreeport_preload.so");
    std::fs::write(&path, [0; 4096]).unwrap();
    let file = File::open(path).unwrap();
    let (none, kind) = (std::ptr::null_mut(), libc::MAP_PRIVATE);
    // SAFETY: a new mapping, which is not accessed.
    let start = unsafe { libc::mmap(none, 4096, libc::PROT_READ, kind, file.as_raw_fd(), 0) };
    assert_ne!(start, libc::MAP_FAILED);
}

#[test]
fn what_is_not_claimed_is_young_or_shared_or_kept_by_the_library() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    seem_preloaded();
    let running = Running::new(Options::default());
    let (control, pid) = (running.control(), std::process::id() as i32);
    let (mut client, mut server) = connection("127.0.0.1:0");
    let number = client.as_raw_fd();
    let reported = || {
        let reported = why(&control, pid, number);
        assert_eq!(reported["state"], "kernel", "{reported}");
        (reported["reason"].as_str().unwrap().to_owned(), reported["text"].to_string())
    };
    assert_eq!(reported().0, "Young");

    let shown = client.as_fd().try_clone_to_owned().unwrap();
    let mut child = Command::new("sleep").arg("600").stdin(Stdio::from(shown)).spawn().unwrap();
    let (reason, text) = reported();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reason == "Shared" && text.contains(&child.id().to_string()), "{reason}: {text}");

    client.write_all(&[7; 40_000]).unwrap();
    server.read_exact(&mut [0; 40_000]).unwrap();
    let (reason, text) = reported();
    // If processes may not inspect each other, it looks young.
    assert!(reason == "NoCalls" || reason == "Young", "{reason}: {text}");
    assert!(reason == "Young" || text.contains("has claimed nothing"), "{text}");

    // Once its process is a member, it could have reported the reason.
    let member = running.location.connect().unwrap();
    let hello = Request::Hello { version: freeport_sockets_proto::VERSION, membarrier: true };
    freeport_monitor::socket::send(member.as_fd(), &hello.encode(), &[]).unwrap();
    eventually("it is a member", || control.stats().unwrap()["members"] == 1);
    let (reason, _) = reported();
    assert!(reason == "Untold" || reason == "Young", "{reason}");

    drop(server);
    assert_eq!(reported().0, "NotConnected");
}

#[test]
fn without_a_monitor_that_is_the_reason() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    seem_preloaded();
    let mut running = Running::new(Options::default());
    let (client, _server) = connection("127.0.0.1:0");
    let control = running.control();
    running.end();
    let reported = why(&control, std::process::id() as i32, client.as_raw_fd());
    assert_eq!(reported["reason"], "NoMonitor");
    assert!(reported["text"].as_str().unwrap().contains("freeport node"), "{reported}");
}

#[test]
fn a_refusal_for_a_peer_that_is_fine_stays_what_it_is() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    seem_preloaded();
    let running = Running::new(Options::default());
    let (member, ends) = (running.member(), connection("127.0.0.1:0"));
    let claim = Request::Claim { token: 1, descriptor: 3, inherited: false }.encode();
    freeport_monitor::socket::send(member.socket.as_fd(), &claim, &[ends.0.as_fd()]).unwrap();
    assert!(matches!(member.hear().reply, Reply::Refused { token: 1, .. }));
    let reported = why(&running.control(), std::process::id() as i32, ends.0.as_raw_fd());
    assert_eq!(reported["state"], "refused");
    assert!(reported["text"].as_str().unwrap().contains("has hardly used its end"), "{reported}");
}
