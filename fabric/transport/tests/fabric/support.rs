// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A second process for a test: the test's own program, started again to run one part.

use std::env;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

/// Variable in which the second process finds its part.
const PART: &str = "FREEPORT_TEST_PART";

/// A process that is killed when the test ends, or fails.
pub struct Player {
    child: Child,
}

impl Player {
    /// Starts this program again with this part; returns it with this side's end of a socket
    /// between the two.
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

    /// Waits for it to exit successfully.
    pub fn ends_well(self) {
        self.ends(false);
    }

    /// Waits for it to exit, successfully or by a signal.
    pub fn ends(mut self, by_signal: bool) {
        let status = self.child.wait().expect("the other process");
        let as_it_should = if by_signal { status.code().is_none() } else { status.success() };
        assert!(as_it_should, "the other process: {status}");
    }

    /// Kills it immediately.
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

/// Returns, in the second process, its part and its end of the socket.
pub fn part() -> Option<(String, UnixStream)> {
    let part = env::var(PART).ok()?;
    // SAFETY: `start` put the socket there, and nothing else in a test reads standard input.
    Some((part, unsafe { UnixStream::from_raw_fd(0) }))
}

/// Returns the byte at a position of the stream that tests send.
pub fn byte(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]
}

/// Returns bytes of that stream.
pub fn bytes(at: usize, length: usize) -> Vec<u8> {
    (at..at + length).map(byte).collect()
}
