// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Access to a running monitor: the modes of its files, and the capabilities that it keeps.

use crate::monitor::{Monitor, is_root};
use freeport_monitor::confinement::{NEEDED, Rights};
use freeport_testbed::{skip, wait_until};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

const NOBODY: u32 = 65_534;

#[test]
fn a_monitor_of_root_lets_others_reach_its_socket_alone() {
    if !is_root() {
        return skip("only root has a monitor of root's");
    }
    let monitor = Monitor::new(None).expect("it runs");
    assert_eq!(monitor.mode(""), 0o755);
    assert_eq!(monitor.mode("monitor.sock"), 0o666);
    assert_eq!(monitor.mode("monitor.sock.lock"), 0o600);
}

#[test]
fn a_monitor_of_a_user_lets_nobody_in() {
    let Some(monitor) = Monitor::new(is_root().then_some(NOBODY)) else {
        return skip("another user cannot reach the command");
    };
    assert_eq!(monitor.mode(""), 0o700);
    assert_eq!(monitor.mode("monitor.sock"), 0o600);
    assert_eq!(monitor.mode("monitor.sock.lock"), 0o600);
}

/// Capabilities of a running monitor, from `/proc`.
fn rights(monitor: &Monitor) -> Rights {
    // An answer means that the confinement is in place.
    monitor.reported(&["sockets", "stats"]);
    Rights::of(monitor.process.id()).unwrap()
}

#[test]
fn a_monitor_of_root_keeps_what_it_needs_alone() {
    if !is_root() {
        return skip("only root has a monitor of root's");
    }
    let monitor = Monitor::new(None).expect("it runs");
    let here = Rights::of(std::process::id()).unwrap();
    let needed = NEEDED.iter().fold(0_u64, |set, it| set | 1 << it.number);
    let kept = rights(&monitor);
    if monitor.log().contains("does not need: seccomp") {
        return skip("this kernel filters no system calls");
    }
    assert_eq!(kept.effective, here.effective & needed);
    assert_eq!(kept.bounding, here.bounding & needed);
    assert!(kept.no_new_privileges && kept.is_filtered, "{kept:?}: {}", monitor.log());
    assert_eq!(monitor.log().lines().count(), 1, "{}", monitor.log());
}

#[test]
fn a_monitor_of_a_user_has_nothing_to_keep() {
    let Some(monitor) = Monitor::new(is_root().then_some(NOBODY)) else {
        return skip("another user cannot reach the command");
    };
    let confined = || {
        let kept = Rights::of(monitor.process.id()).unwrap();
        kept.effective == 0 && kept.no_new_privileges && kept.is_filtered
    };
    wait_until("it is confined, or cannot be", || {
        confined() || monitor.log().contains("does not need")
    });
    if monitor.log().contains("does not need: seccomp") {
        return skip("this kernel filters no system calls");
    }
    assert!(confined(), "{}", monitor.log());
}

/// The log is readable only by its user, even if another file was there before.
#[test]
fn a_log_in_the_background_is_for_its_user() {
    let base = tempfile::tempdir().unwrap();
    let socket = base.path().join("monitor.sock");
    let log = base.path().join("monitor.sock.log");
    let freeport = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(words).env("FREEPORT_MONITOR", &socket).env_remove("LD_PRELOAD");
        command.output().unwrap()
    };
    let end = || {
        let pid = fs::read_to_string(base.path().join("monitor.sock.lock")).unwrap();
        // SAFETY: no memory is passed; the process was started by this test.
        unsafe { libc::kill(pid.trim().parse().unwrap(), libc::SIGTERM) };
        wait_until("the monitor ends", || !socket.exists());
    };
    for before in [None, Some(0o644)] {
        if let Some(mode) = before {
            fs::set_permissions(&log, Permissions::from_mode(mode)).unwrap();
        }
        assert!(freeport(&["node", "--background"]).status.success());
        assert_eq!(fs::metadata(&log).unwrap().mode() & 0o7777, 0o600);
        end();
    }
    fs::remove_file(&log).unwrap();
    let kept = base.path().join("kept");
    fs::write(&kept, "kept").unwrap();
    std::os::unix::fs::symlink(&kept, &log).unwrap();
    assert!(!freeport(&["node", "--background"]).status.success());
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
}

#[test]
fn doctor_says_what_a_monitor_needs_and_what_it_has_kept() {
    let monitor = Monitor::new(None).expect("it runs");
    let rights = rights(&monitor);
    let reported: serde_json::Value =
        serde_json::from_str(&monitor.reported(&["doctor", "--json"])).unwrap();
    let checks = reported["checks"].as_array().unwrap();
    let check = checks.iter().find(|it| it["name"] == "monitor").expect("it is looked at");
    let seen = check["seen"].as_str().unwrap();
    let pid = monitor.process.id();
    assert!(seen.contains(&format!("process {pid} has ")), "{seen}");
    assert_eq!(seen.contains("no filter"), !rights.is_filtered, "{seen}");
    let here = Rights::of(std::process::id()).unwrap();
    let is_held = is_root() && here.has(NEEDED[0]);
    assert_eq!(seen.contains("SYS_PTRACE, held"), is_held, "{seen}");
}
