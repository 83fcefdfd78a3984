// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleep that ends when a port may make progress, or when another thread wakes the worker.

use super::wake::Wake;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Sleep if a port has no descriptor to wait for.
const BLIND_SLEEP: Duration = Duration::from_millis(1);

/// Conditions that end a sleep.
pub struct Waiting<'w> {
    wake: Option<&'w Wake>,
    entries: Vec<libc::pollfd>,
    longest: Duration,
    /// The descriptors of the entries are open as long as this lives.
    _borrowed: PhantomData<BorrowedFd<'w>>,
}

impl<'w> Waiting<'w> {
    /// Waits for a thread that wakes the worker, if `wake` is given.
    pub fn new(wake: Option<&'w Wake>) -> Self {
        let entries = wake.iter().map(|wake| entry(wake.as_fd(), libc::POLLIN)).collect();
        Self { wake, entries, longest: Duration::MAX, _borrowed: PhantomData }
    }

    /// Limits the sleep to this time.
    #[must_use]
    pub fn at_most(self, longest: Duration) -> Self {
        Self { longest: self.longest.min(longest), ..self }
    }

    /// Waits for frames from a port with this [readiness](freeport_port::Receive::readiness).
    pub fn for_frames(&mut self, readiness: Option<BorrowedFd<'w>>) {
        self.add(readiness, libc::POLLIN);
    }

    /// Waits for room at a port with this [readiness](freeport_port::Transmit::readiness).
    pub fn for_room(&mut self, readiness: Option<BorrowedFd<'w>>) {
        self.add(readiness, libc::POLLOUT);
    }

    fn add(&mut self, descriptor: Option<BorrowedFd<'w>>, events: i16) {
        match descriptor {
            Some(descriptor) => self.entries.push(entry(descriptor, events)),
            None => self.longest = self.longest.min(BLIND_SLEEP),
        }
    }

    /// Sleeps; a signal also ends the sleep.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn wait(mut self) -> io::Result<()> {
        poll(&mut self.entries, self.longest)?;
        if let Some(wake) = self.wake
            && self.entries[0].revents != 0
        {
            wake.drain();
        }
        Ok(())
    }
}

fn entry(descriptor: BorrowedFd<'_>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 }
}

fn poll(entries: &mut [libc::pollfd], longest: Duration) -> io::Result<()> {
    let longest = libc::timespec {
        tv_sec: libc::time_t::try_from(longest.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    let count = entries.len() as libc::nfds_t;
    // SAFETY: `entries` has `count` entries, and both it and `longest` outlive the call.
    let ready = unsafe { libc::ppoll(entries.as_mut_ptr(), count, &longest, std::ptr::null()) };
    if ready >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}
