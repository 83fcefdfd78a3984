// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asking a running monitor.

use super::question::STAY;
use crate::text::printable;
use crate::{Error, Location, socket};
use serde_json::{Value, json};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where a command waits that can do without.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// Longest part of an answer.
const PART_BYTES_MAX: usize = 64 << 10;

/// A monitor that can be asked.
pub struct Control {
    location: Location,
}

/// Which socket `why` is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The process.
    pub pid: i32,
    /// The number of the descriptor in it.
    pub number: i32,
    /// The inode of the socket, if that is known.
    pub inode: Option<u64>,
}

impl Control {
    /// The monitor at that place. Each question makes a connection of its own.
    pub fn at(location: Location) -> Self {
        Self { location }
    }

    /// All connections that have a slot, and what was refused last.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn list(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "list"}))
    }

    /// The counters.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn stats(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "stats"}))
    }

    /// What the monitor knows of one socket: `state` is `accelerated`, `refused` or `unknown`.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn why(&self, socket: Descriptor) -> Result<Value, Error> {
        let Descriptor { pid, number, inode } = socket;
        self.ask(&json!({"do": "why", "pid": pid, "descriptor": number, "inode": inode}))
    }

    /// Asks whether the rules let this user have accelerated connections at all. Does not wait for
    /// long: there may be another monitor.
    ///
    /// # Errors
    /// No monitor answers, it is of another release, or they do not.
    pub fn may(&self) -> Result<(), Error> {
        let answer = self.ask_within(&json!({"do": "may"}), SHORT_PATIENCE)?;
        if answer["version"] != freeport_sockets_proto::VERSION {
            return Err(Error::Answer);
        }
        Ok(())
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The rules, in their order.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn rules(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "rules"}))
    }

    /// Puts a rule before the others.
    ///
    /// # Errors
    /// No monitor answers, or it refuses.
    pub fn put_rule(&self, rule: &str) -> Result<Value, Error> {
        self.ask(&json!({"do": "put rule", "rule": rule}))
    }

    /// Takes out the rule at a place, from 1 on.
    ///
    /// # Errors
    /// No monitor answers, or there is no such rule.
    pub fn remove_rule(&self, place: usize) -> Result<Value, Error> {
        self.ask(&json!({"do": "remove rule", "place": place}))
    }

    /// Wants those connections back in the kernel that the rules do not allow any more; gives how
    /// many of them are `pending`, and have `returned`.
    ///
    /// # Errors
    /// No monitor answers, or it refuses.
    pub fn recall(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "recall"}))
    }

    /// Wants the monitor to stay for as long as this process lives, whatever becomes of it. Does
    /// not wait for the answer.
    ///
    /// # Errors
    /// No monitor listens.
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
        // The kernel says so as well if the last part and the end come while it looks: it finds
        // nothing, and then the end. So who hears it first looks once more.
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
