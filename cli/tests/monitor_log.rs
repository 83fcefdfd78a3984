// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor's log under a flood: it says a little of that, how much it has left out, and goes on
//! to say what happens else.

use crate::monitor::Monitor;
use freeport_monitor::socket;
use freeport_testbed::wait_until;
use serde_json::Value;
use std::os::fd::AsFd;

/// More than are logged at once, of all users together.
const FLOOD: u64 = 2000;

#[test]
fn a_flood_is_counted_and_does_not_silence_the_log() {
    let mut monitor = Monitor::new(None).expect("it runs");
    let dropped = || {
        let stats = monitor.told(&["sockets", "stats", "--json"]);
        let stats: Value = serde_json::from_str(&stats).unwrap();
        stats["members_dropped"]["Malformed"].as_u64().unwrap_or_default()
    };
    for count in 1..=FLOOD {
        let member = monitor.join();
        socket::send(member.as_fd(), b"garbage", &[]).unwrap();
        // Not more at once than may be connected.
        if count % 40 == 0 {
            wait_until("all are dropped", || dropped() == count);
        }
    }
    let lines = |what: &str| monitor.log().lines().filter(|it| it.contains(what)).count() as u64;
    let logged = lines("dropped: it sent a malformed message");
    assert!((1..FLOOD / 10).contains(&logged), "{logged}");
    // SAFETY: our own child, which nobody has waited for.
    unsafe { libc::kill(monitor.process.id() as i32, libc::SIGTERM) };
    wait_until("it ends", || monitor.process.try_wait().unwrap().is_some());
    let log = monitor.log();
    assert!(log.contains(&format!("{} lines were left out", FLOOD - logged)), "{log}");
    assert!(log.ends_with("ends: it was told to\n"), "{log}");
}
