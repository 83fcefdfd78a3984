// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a running monitor lets others do: the modes of what it makes, and the rights that it keeps.

use freeport_testbed::{skip, wait_until};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65_534;

/// A monitor, and where it is; it ends with this.
struct Monitor {
    /// Where its folder is, which it makes itself.
    base: tempfile::TempDir,
    process: Child,
}

impl Monitor {
    /// Of this user, or of another one.
    fn new(user: Option<u32>) -> Option<Self> {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), Permissions::from_mode(0o1777)).unwrap();
        let log = File::create(base.path().join("log")).unwrap();
        // The modes are those that were asked for, and not what a mask has left of them.
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0; exec \"$0\" node", env!("CARGO_BIN_EXE_freeport")]);
        command.env("FREEPORT_MONITOR", socket(base.path())).env_remove("LD_PRELOAD");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let process = command.spawn().unwrap();
        let mut monitor = Self { base, process };
        wait_until("the monitor listens, or has ended", || {
            monitor.process.try_wait().unwrap().is_some() || monitor.log().contains("listens at")
        });
        let lives = monitor.process.try_wait().unwrap().is_none();
        lives.then_some(monitor)
    }

    /// What it has said.
    fn log(&self) -> String {
        fs::read_to_string(self.base.path().join("log")).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        let about = fs::symlink_metadata(self.base.path().join("made").join(name)).unwrap();
        about.mode() & 0o7777
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn socket(base: &Path) -> PathBuf {
    base.join("made/monitor.sock")
}

fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

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

/// The log is of this user alone, whatever there was before.
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
        // SAFETY: a process that was begun here.
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
