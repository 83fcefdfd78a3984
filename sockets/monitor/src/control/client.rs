// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client for a running monitor.

use super::question::STAY;
use crate::text::printable;
use crate::{Error, Location, socket};
use serde_json::{Value, json};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for an answer that a waiting command can do without.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum size of a part of an answer.
const PART_BYTES_MAX: usize = 64 << 10;

/// A client of one monitor.
pub struct Control {
    location: Location,
}

/// The socket that [`why`](Control::why) is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// PID of its process.
    pub pid: i32,
    /// Number of its descriptor in that process.
    pub number: i32,
    /// Inode of the socket, if known.
    pub inode: Option<u64>,
}

impl Control {
    /// Returns a client of the monitor at that place. Each question makes its own connection.
    pub fn at(location: Location) -> Self {
        Self { location }
    }

    /// Returns all connections with a slot, and the most recent refusals.
    ///
    /// # Errors
    /// As for every question: [`Error::NoMonitor`], [`Error::Refused`] or [`Error::Answer`].
    pub fn list(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "list"}))
    }

    /// Returns the counters.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn stats(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "stats"}))
    }

    /// Returns what the monitor knows about one socket: `state` is `accelerated`, `refused` or
    /// `unknown`.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn why(&self, socket: Descriptor) -> Result<Value, Error> {
        let Descriptor { pid, number, inode } = socket;
        self.ask(&json!({"do": "why", "pid": pid, "descriptor": number, "inode": inode}))
    }

    /// Checks whether the rules allow this user any accelerated connection. Waits only briefly:
    /// there may be another monitor.
    ///
    /// # Errors
    /// [`Error::NoMonitor`], [`Error::Answer`] for another release, or [`Error::Refused`] if they
    /// do not.
    pub fn may(&self) -> Result<(), Error> {
        let answer = self.ask_within(&json!({"do": "may"}), SHORT_PATIENCE)?;
        if answer["version"] != freeport_sockets_proto::VERSION {
            return Err(Error::Answer);
        }
        Ok(())
    }

    /// Location of the monitor.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the rules in their order.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn rules(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "rules"}))
    }

    /// Inserts a rule before the others.
    ///
    /// # Errors
    /// As [`list`](Self::list); [`Error::Refused`] if the monitor does not accept it.
    pub fn put_rule(&self, rule: &str) -> Result<Value, Error> {
        self.ask(&json!({"do": "put rule", "rule": rule}))
    }

    /// Removes the rule at this position, counted from 1.
    ///
    /// # Errors
    /// As [`list`](Self::list); [`Error::Refused`] if there is no such rule.
    pub fn remove_rule(&self, place: usize) -> Result<Value, Error> {
        self.ask(&json!({"do": "remove rule", "place": place}))
    }

    /// Recalls connections that the rules no longer allow into the kernel; returns the numbers of
    /// those `pending` and `returned`.
    ///
    /// # Errors
    /// As [`list`](Self::list); [`Error::Refused`] if the user may not do this.
    pub fn recall(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "recall"}))
    }

    /// Asks the monitor to keep running as long as this process lives, however it ends. Does not
    /// wait for the answer.
    ///
    /// # Errors
    /// [`Error::NoMonitor`], or [`Error::System`] if the request cannot be sent.
    pub fn stay(&self) -> Result<(), Error> {
        let connection = self.location.connect()?;
        let sent = socket::send(connection.as_fd(), STAY.as_bytes(), &[]);
        sent.map_err(|source| Error::System { what: "asking the monitor", source })
    }

    fn ask(&self, question: &Value) -> Result<Value, Error> {
        self.ask_within(question, PATIENCE)
    }

    fn ask_within(&self, question: &Value, patience: Duration) -> Result<Value, Error> {
        let connection = self.location.connect()?;
        let failed = |source| Error::System { what: "asking the monitor", source };
        socket::send(connection.as_fd(), question.to_string().as_bytes(), &[]).map_err(failed)?;
        let (mut answer, mut part) = (vec![], vec![0; PART_BYTES_MAX]);
        let until = Instant::now() + patience;
        // The kernel may also report end of file if the last part and the hang-up arrive during its
        // check. The end counts only when it is reported twice.
        let mut has_ended = false;
        loop {
            match socket::receive(connection.as_fd(), &mut part) {
                Ok(message) if message.length == 0 && has_ended => break,
                Ok(message) if message.length == 0 => has_ended = true,
                Ok(message) => answer.extend_from_slice(&part[..message.length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&connection, until).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let answer: Value = serde_json::from_slice(&answer).map_err(|_| Error::Answer)?;
        match answer["error"].as_str() {
            Some(error) => Err(Error::Refused(printable(error).into_owned())),
            None => Ok(answer),
        }
    }
}

fn wait(connection: &impl AsRawFd, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
    let mut wanted = libc::pollfd { fd: connection.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, and the structure lives as long as the call.
    match unsafe { libc::poll(&mut wanted, 1, timeout) } {
        0 => Err(io::ErrorKind::TimedOut.into()),
        1.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
