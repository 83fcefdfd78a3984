// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How other threads get the worker's attention: a flag that it checks after each batch while
//! traffic flows, and an event that ends its sleep while there is none.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes a worker, or makes it pause.
#[derive(Debug)]
pub struct Wake {
    event: OwnedFd,
    wanted: AtomicBool,
}

impl Wake {
    /// Creates a wake that is not raised.
    ///
    /// # Errors
    /// The kernel provides no event descriptor.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointer.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        Ok(Self { event, wanted: AtomicBool::new(false) })
    }

    /// Makes the worker check for work that was handed over before this call.
    pub fn raise(&self) {
        if self.wanted.swap(true, Ordering::Release) {
            // It was already raised, and the worker has not checked since.
            return;
        }
        let one = 1u64.to_ne_bytes();
        // A full event counter is also readable, so a failed write does no harm.
        // SAFETY: the eight bytes are readable for the length of the call.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Resets the flag; call this before checking for work.
    pub fn lower(&self) {
        if self.wanted.load(Ordering::Relaxed) {
            self.wanted.swap(false, Ordering::Acquire);
        }
    }

    /// Empties the event after a wait that it ended; [`lower`](Self::lower) has to follow.
    pub fn drain(&self) {
        let mut count = [0; 8];
        // SAFETY: the eight bytes are writable for the length of the call.
        unsafe { libc::read(self.event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    /// Returns the flag.
    pub fn flag(&self) -> &AtomicBool {
        &self.wanted
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(wake: &Wake) -> bool {
        let mut poll =
            libc::pollfd { fd: wake.event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives for the length of the call.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    #[test]
    fn it_stays_raised_until_it_is_lowered_however_often_it_is_raised() {
        let wake = Wake::new().unwrap();
        assert!(!is_readable(&wake) && !wake.flag().load(Ordering::Relaxed));
        for _ in 0..2 {
            wake.raise();
            wake.raise();
            assert!(is_readable(&wake) && wake.flag().load(Ordering::Relaxed));
            wake.drain();
            wake.lower();
            assert!(!is_readable(&wake) && !wake.flag().load(Ordering::Relaxed));
        }
    }
}
