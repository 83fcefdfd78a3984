// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Doorbells that wake sleepers: an eventfd that the peer writes to.
//!
//! It is never read: the sleeper waits for edges, of which each write makes one. A peer shares the
//! flags of an eventfd and could make it blocking, after filling it; so an eventfd that is blocking
//! or full is refused. (Between the check of the flags and the write there is a gap of a few
//! instructions that a peer could hit, to block this thread until it is killed.)

use crate::error::{Error, HelloError};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A doorbell of this side or of the peer.
#[derive(Debug)]
pub struct Doorbell {
    event: OwnedFd,
}

impl Doorbell {
    /// Creates a doorbell.
    ///
    /// # Errors
    /// No descriptor is available.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: no memory is passed.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            return Err(Error::system("eventfd"));
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        Ok(Self { event })
    }

    /// Takes a doorbell that a peer has sent.
    ///
    /// # Errors
    /// The descriptor is not an eventfd, or is blocking.
    pub fn import(event: OwnedFd) -> Result<Self, Error> {
        let doorbell = Self { event };
        let path = format!("/proc/self/fd/{}", doorbell.event.as_raw_fd());
        let what = fs::read_link(path)
            .map_err(|source| Error::System { what: "identifying the peer's doorbell", source })?;
        if what.as_os_str() == "anon_inode:[eventfd]" && !doorbell.blocks() {
            Ok(doorbell)
        } else {
            Err(HelloError::NotDoorbell.into())
        }
    }

    /// Wakes the side that waits for it.
    ///
    /// # Errors
    /// The peer has made it blocking, or full.
    pub fn ring(&self) -> Result<(), Error> {
        if self.blocks() {
            return Err(HelloError::NotDoorbell.into());
        }
        let one = 1_u64;
        // SAFETY: the pointer is to 8 bytes that outlive the call.
        let written = unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
        if written == 8 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => {
                Err(HelloError::NotDoorbell.into())
            }
            source => Err(Error::System { what: "ringing the peer's doorbell", source }),
        }
    }

    fn blocks(&self) -> bool {
        // SAFETY: no memory is passed.
        let flags = unsafe { libc::fcntl(self.event.as_raw_fd(), libc::F_GETFL) };
        flags & libc::O_NONBLOCK == 0
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn refuses(descriptor: OwnedFd) {
        let refused = Doorbell::import(descriptor);
        assert!(matches!(refused, Err(Error::Hello(HelloError::NotDoorbell))), "{refused:?}");
    }

    #[test]
    fn only_an_eventfd_that_does_not_block_is_a_doorbell() {
        Doorbell::import(Doorbell::new().unwrap().event).expect("it is one").ring().unwrap();
        refuses(File::open("/dev/null").unwrap().into());
        refuses(std::os::unix::net::UnixStream::pair().unwrap().0.into());
        // SAFETY: no memory is passed.
        let blocking = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        refuses(unsafe { OwnedFd::from_raw_fd(blocking) });
    }

    #[test]
    fn a_doorbell_that_would_block_is_an_error() {
        let doorbell = Doorbell::new().unwrap();
        let full = u64::MAX - 1;
        // SAFETY: the pointer is to 8 bytes that outlive the call.
        unsafe { libc::write(doorbell.event.as_raw_fd(), (&raw const full).cast(), 8) };
        assert!(matches!(doorbell.ring(), Err(Error::Hello(HelloError::NotDoorbell))));
        // SAFETY: no memory is passed.
        unsafe { libc::fcntl(doorbell.event.as_raw_fd(), libc::F_SETFL, 0) };
        assert!(matches!(doorbell.ring(), Err(Error::Hello(HelloError::NotDoorbell))));
    }
}
