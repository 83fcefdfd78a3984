// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor's log under a flood: it has a few lines about the flood, the number of those left out,
//! and all other events. With a filter, events of the monitor stand beside it.

use crate::monitor::Monitor;
use freeport_monitor::socket;
use freeport_testbed::wait_until;
use serde_json::Value;
use std::os::fd::AsFd;

/// More events than the limit for all users together.
const FLOOD: u64 = 2000;

#[test]
fn a_flood_is_counted_and_does_not_silence_the_log() {
    let mut monitor = Monitor::new(None).expect("it runs");
    let dropped = || {
        let stats = monitor.reported(&["sockets", "stats", "--json"]);
        let stats: Value = serde_json::from_str(&stats).unwrap();
        stats["members_dropped"]["Malformed"].as_u64().unwrap_or_default()
    };
    for count in 1..=FLOOD {
        let member = monitor.join();
        socket::send(member.as_fd(), b"garbage", &[]).unwrap();
        // Fewer at once than the limit of connections.
        if count % 40 == 0 {
            wait_until("all are dropped", || dropped() == count);
        }
    }
    let lines = |what: &str| monitor.log().lines().filter(|it| it.contains(what)).count() as u64;
    let logged = lines("dropped: it sent a malformed message");
    assert!((1..FLOOD / 10).contains(&logged), "{logged}");
    // SAFETY: our own child, which has not been waited for.
    unsafe { libc::kill(monitor.process.id() as i32, libc::SIGTERM) };
    wait_until("it ends", || monitor.process.try_wait().unwrap().is_some());
    let log = monitor.log();
    assert!(log.contains(&format!("{} lines were left out", FLOOD - logged)), "{log}");
    assert!(log.ends_with("stops: a signal was received\n"), "{log}");
}

#[test]
fn events_are_reported_as_far_as_the_filter_says() {
    let usual = Monitor::new(None).expect("it runs");
    drop(usual.join());
    usual.reported(&["sockets", "stats"]);
    assert_eq!(usual.log().lines().count(), 1, "only its own log: {}", usual.log());
    let mut monitor = Monitor::after(&["env", "FREEPORT_LOG=info"]).expect("it runs");
    let member = monitor.join();
    let pid = std::process::id();
    wait_until("it registers", || monitor.log().contains("member registered"));
    drop(member);
    wait_until("it leaves", || monitor.log().contains("member left"));
    let log = monitor.log();
    let event = log.lines().find(|line| line.contains("member left")).expect("it is there");
    assert!(event.contains(&format!(" pid={pid} ")), "{log}");
    assert!(event.contains("INFO freeport_monitor::monitor: "), "{log}");
    assert!(log.starts_with("freeport node: listens at "), "its own log is as it was: {log}");
    assert!(!log.contains("DEBUG"), "{log}");
    // The filter of system calls does not stop it.
    assert!(monitor.process.try_wait().unwrap().is_none(), "{log}");
}

#[test]
fn events_are_objects_where_the_log_has_objects() {
    let more = "exec \"$@\" --json --log freeport_monitor=debug";
    let monitor = Monitor::after(&["sh", "-c", more, "sh"]).expect("it runs");
    drop(monitor.join());
    wait_until("it leaves", || monitor.log().contains("member left"));
    let objects: Vec<Value> = monitor.log().lines().map(|it| it.parse().unwrap()).collect();
    let of = |event: &str| objects.iter().find(|it| it["event"] == event).expect("it is there");
    assert_eq!(of("listening")["level"], Value::Null, "as it was");
    let left = of("member left");
    assert_eq!((&left["level"], &left["pid"]), (&"INFO".into(), &std::process::id().into()));
}
