// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The peer's process: waking it, being woken by it, and detecting that it is gone.
//!
//! It is gone when its process has exited or when all its descriptors of the socket are closed.
//! Both checks are needed: another process may have inherited the socket, and the process may be in
//! a namespace where this one cannot name it.

use super::doorbell::Doorbell;
use crate::error::Error;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum number of events per call.
const EVENTS: usize = 4;

/// Tags of events.
const RUNG: u64 = 0;
const GONE: u64 = 1;

/// The peer.
#[derive(Debug)]
pub struct Peer {
    pid: i32,
    theirs: Doorbell,
    /// Monitors the doorbell, the socket and the process.
    watch: OwnedFd,
    gone: bool,
    /// The monitored descriptors, closed with this value.
    _mine: Doorbell,
    _socket: UnixStream,
    _process: Option<OwnedFd>,
}

/// Cause of a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The peer rang.
    Rung,
    /// The time is over, or a signal arrived.
    Neither,
    /// The peer is gone.
    Gone,
}

impl Peer {
    /// Watches the peer of a socket, after the handshake.
    ///
    /// # Errors
    /// The system refuses to monitor it.
    pub fn new(
        socket: UnixStream,
        pid: i32,
        process: Option<OwnedFd>,
        mine: Doorbell,
        theirs: Doorbell,
    ) -> Result<Self, Error> {
        // SAFETY: no memory is passed.
        let watch = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if watch < 0 {
            return Err(Error::system("epoll_create1"));
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let watch = unsafe { OwnedFd::from_raw_fd(watch) };
        add(&watch, mine.as_fd(), RUNG, libc::EPOLLIN | libc::EPOLLET)?;
        // A hang-up is always reported; bytes, which no peer sends, are not.
        add(&watch, socket.as_fd(), GONE, libc::EPOLLRDHUP)?;
        if let Some(process) = &process {
            add(&watch, process.as_fd(), GONE, libc::EPOLLIN)?;
        }
        let (_mine, _socket, _process) = (mine, socket, process);
        Ok(Self { pid, theirs, watch, gone: false, _mine, _socket, _process })
    }

    /// Returns its process; 0 if unknown.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Wakes the peer.
    ///
    /// # Errors
    /// It has made its doorbell unusable.
    pub fn wake(&self) -> Result<(), Error> {
        self.theirs.ring()
    }

    /// Returns whether the peer is gone.
    ///
    /// # Errors
    /// The system refuses the check.
    pub fn is_gone(&mut self) -> Result<bool, Error> {
        // A doorbell's edge that is consumed here is not lost: a side that sleeps announces it, and
        // checks its condition, after this.
        Ok(self.sleep(Some(Duration::ZERO))? == Woken::Gone)
    }

    /// Sleeps until the peer rings, is gone, or the time is over.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn sleep(&mut self, longest: Option<Duration>) -> Result<Woken, Error> {
        if self.gone {
            return Ok(Woken::Gone);
        }
        // Rounded up: a time-out may be late, but not early.
        let longest_ms = match longest {
            Some(longest) => i32::try_from(longest.as_micros().div_ceil(1000)).unwrap_or(i32::MAX),
            None => -1,
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: the buffer has room for this number of events.
        let count = unsafe {
            let room = EVENTS as i32;
            libc::epoll_wait(self.watch.as_raw_fd(), events.as_mut_ptr(), room, longest_ms)
        };
        let Ok(count) = usize::try_from(count) else {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Woken::Neither),
                source => Err(Error::System { what: "waiting for the peer", source }),
            };
        };
        self.gone = events.iter().take(count).any(|event| event.u64 == GONE);
        Ok(match count {
            _ if self.gone => Woken::Gone,
            0 => Woken::Neither,
            _ => Woken::Rung,
        })
    }

    /// Returns a descriptor that is readable when the peer has rung or is gone.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

fn add(watch: &OwnedFd, what: BorrowedFd<'_>, tag: u64, events: i32) -> Result<(), Error> {
    let mut event = libc::epoll_event { events: events as u32, u64: tag };
    // SAFETY: the event outlives the call.
    let added = unsafe {
        libc::epoll_ctl(watch.as_raw_fd(), libc::EPOLL_CTL_ADD, what.as_raw_fd(), &mut event)
    };
    if added == 0 { Ok(()) } else { Err(Error::system("epoll_ctl")) }
}
