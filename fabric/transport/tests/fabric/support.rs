// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A second process for a test: the test's own program, started again, which plays one part.

use std::env;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

/// What the second process finds its part in.
const PART: &str = "FREEPORT_TEST_PART";

/// A process that is killed when the test is done with it, or fails.
pub struct Player {
    child: Child,
}

impl Player {
    /// Starts this program again with that part; gives this side's end of a socket between the two.
    pub fn start(part: &str) -> (Self, UnixStream) {
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        let program = env::current_exe().expect("the test's own program");
        let child = Command::new(program)
            .args(["--exact", "player", "--nocapture", "--test-threads=1", "-q"])
            .env(PART, part)
            .stdin(OwnedFd::from(there))
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("the test's own program starts");
        (Self { child }, here)
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits for it to end of its own.
    pub fn ends_well(self) {
        self.ends(false);
    }

    /// Waits for it to end, well or by a signal.
    pub fn ends(mut self, by_signal: bool) {
        let status = self.child.wait().expect("the other process");
        let as_it_should = if by_signal { status.code().is_none() } else { status.success() };
        assert!(as_it_should, "the other process: {status}");
    }

    /// Kills it, at once and without leave.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("the other process");
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// In the second process: its part, and its end of the socket.
pub fn part() -> Option<(String, UnixStream)> {
    let part = env::var(PART).ok()?;
    // SAFETY: `start` put the socket there, and nothing else in a test reads what is typed.
    Some((part, unsafe { UnixStream::from_raw_fd(0) }))
}

/// The byte at a place of the stream that tests send.
pub fn byte(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]
}

/// Bytes of that stream.
pub fn bytes(at: usize, length: usize) -> Vec<u8> {
    (at..at + length).map(byte).collect()
}
