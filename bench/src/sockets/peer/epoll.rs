// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for any of several connections by `epoll`.

use anyhow::{Context, Result};
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Maximum number of events per call.
const EVENTS: usize = 64;

/// A set of connections, each with a number.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> Result<Self> {
        // SAFETY: the call takes a number and returns a new descriptor.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(Error::last_os_error()).context("no epoll descriptor");
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Adds a descriptor that is reported when it becomes readable.
    ///
    /// # Errors
    /// The system refuses.
    pub fn add(&self, descriptor: &impl AsRawFd, number: usize) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, libc::EPOLLIN, number)
    }

    /// Has a descriptor reported when it becomes readable, and if `also_writable`, when it has room
    /// to send.
    ///
    /// # Errors
    /// The system refuses.
    pub fn change(
        &self,
        descriptor: &impl AsRawFd,
        number: usize,
        also_writable: bool,
    ) -> Result<()> {
        let writable = if also_writable { libc::EPOLLOUT } else { 0 };
        self.control(libc::EPOLL_CTL_MOD, descriptor, libc::EPOLLIN | writable, number)
    }

    fn control(
        &self,
        operation: i32,
        descriptor: &impl AsRawFd,
        events: i32,
        number: usize,
    ) -> Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: number as u64 };
        let (set, it) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: the call reads the event.
        match unsafe { libc::epoll_ctl(set, operation, it, &mut event) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()).context("a connection cannot be watched"),
        }
    }

    /// Waits for at most `within_ms` milliseconds until at least one is readable; returns their
    /// numbers.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, within_ms: i32) -> Result<Vec<usize>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let set = self.0.as_raw_fd();
        // SAFETY: the call writes at most that many events.
        let count = unsafe { libc::epoll_wait(set, events.as_mut_ptr(), EVENTS as i32, within_ms) };
        if count < 0 {
            let error = Error::last_os_error();
            let is_interrupted = error.kind() == ErrorKind::Interrupted;
            return if is_interrupted { Ok(vec![]) } else { Err(error).context("epoll_wait") };
        }
        Ok(events.iter().take(count as usize).map(|event| event.u64 as usize).collect())
    }
}
