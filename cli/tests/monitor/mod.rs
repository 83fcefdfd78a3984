// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport node` as a child process, with a separate socket.
#![allow(dead_code, reason = "each test uses what it needs")]

use freeport_monitor::{Location, socket};
use freeport_sockets_proto::VERSION;
use freeport_sockets_proto::message::Request;
use freeport_testbed::wait_until;
use std::fs::{self, File, Permissions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A monitor and its folder; dropping it ends the process.
pub struct Monitor {
    /// Parent of its folder, which the monitor creates.
    base: tempfile::TempDir,
    pub process: Child,
}

impl Monitor {
    /// Starts a monitor as this user, or as another one. `None`: it could not start.
    pub fn new(user: Option<u32>) -> Option<Self> {
        Self::begin(user, &[])
    }

    /// Starts a monitor by way of a program with these arguments.
    pub fn after(words: &[&str]) -> Option<Self> {
        Self::begin(None, words)
    }

    fn begin(user: Option<u32>, before: &[&str]) -> Option<Self> {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), Permissions::from_mode(0o1777)).unwrap();
        let log = File::create(base.path().join("log")).unwrap();
        // Modes are those that the monitor requests, without a mask.
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0; exec \"$@\"", "sh"]).args(before);
        command.args([env!("CARGO_BIN_EXE_freeport"), "node"]);
        command.env("FREEPORT_MONITOR", place(base.path())).env_remove("LD_PRELOAD");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let process = command.spawn().unwrap();
        let mut monitor = Self { base, process };
        wait_until("the monitor listens, or has ended", || {
            monitor.process.try_wait().unwrap().is_some() || monitor.log().contains("listen")
        });
        let lives = monitor.process.try_wait().unwrap().is_none();
        lives.then_some(monitor)
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.base.path().join("log")).unwrap()
    }

    /// The command, configured for this monitor.
    pub fn freeport(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(words).env("FREEPORT_MONITOR", place(self.base.path()));
        command.env_remove("LD_PRELOAD").stdin(Stdio::null());
        command
    }

    /// Output of a command, which must succeed.
    pub fn reported(&self, words: &[&str]) -> String {
        let output = self.freeport(words).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Registers this process as a member.
    pub fn join(&self) -> OwnedFd {
        let member = Location::at(place(self.base.path())).connect().unwrap();
        let hello = Request::Hello { version: VERSION, membarrier: true };
        socket::send(member.as_fd(), &hello.encode(), &[]).unwrap();
        member
    }

    /// Mode of a file that the monitor has created, or of its folder.
    pub fn mode(&self, name: &str) -> u32 {
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

/// Path of its socket.
fn place(base: &Path) -> PathBuf {
    base.join("made/monitor.sock")
}

/// Whether tests run as root.
pub fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
