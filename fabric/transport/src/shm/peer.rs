// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process on the other side: waking it, being woken by it, and noticing that it is gone.
//!
//! It is gone when its process has ended or when all its descriptors of the socket are closed.
//! Both are needed: another process may have inherited the socket, and the process may be of a
//! namespace in which it cannot be named.

use super::doorbell::Doorbell;
use crate::error::Error;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Events that one look takes.
const EVENTS: usize = 4;

/// The tags of events.
const RUNG: u64 = 0;
const GONE: u64 = 1;

/// The other side.
#[derive(Debug)]
pub struct Peer {
    pid: i32,
    theirs: Doorbell,
    /// Watches the doorbell, the socket and the process.
    watch: OwnedFd,
    gone: bool,
    /// What is watched: closed with this.
    _mine: Doorbell,
    _socket: UnixStream,
    _process: Option<OwnedFd>,
}

/// Why a sleeper woke up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The peer rang.
    Rung,
    /// The time is over, or a signal came.
    Neither,
    /// The peer is gone.
    Gone,
}

impl Peer {
    /// The peer at the other end of a socket, over which all has been said.
    ///
    /// # Errors
    /// The system refuses to watch it.
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
        // SAFETY: the descriptor was just made, and has no other owner.
        let watch = unsafe { OwnedFd::from_raw_fd(watch) };
        add(&watch, mine.as_fd(), RUNG, libc::EPOLLIN | libc::EPOLLET)?;
        // Hanging up is always reported; bytes, which nobody sends, are not.
        add(&watch, socket.as_fd(), GONE, libc::EPOLLRDHUP)?;
        if let Some(process) = &process {
            add(&watch, process.as_fd(), GONE, libc::EPOLLIN)?;
        }
        let (_mine, _socket, _process) = (mine, socket, process);
        Ok(Self { pid, theirs, watch, gone: false, _mine, _socket, _process })
    }

    /// Its process; 0 if that is not known here.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Wakes it.
    ///
    /// # Errors
    /// It has made its doorbell unusable.
    pub fn wake(&self) -> Result<(), Error> {
        self.theirs.ring()
    }

    /// Whether it is gone.
    ///
    /// # Errors
    /// The system refuses to look.
    pub fn is_gone(&mut self) -> Result<bool, Error> {
        // The edge of a doorbell that is lost here is not missed: who sleeps announces it, and
        // looks, after this.
        Ok(self.sleep(Some(Duration::ZERO))? == Woken::Gone)
    }

    /// Sleeps until it rings, is gone, or the time is over.
    ///
    /// # Errors
    /// The system refuses to look.
    pub fn sleep(&mut self, longest: Option<Duration>) -> Result<Woken, Error> {
        if self.gone {
            return Ok(Woken::Gone);
        }
        // Rounded up: a time-out comes too late rather than too early.
        let longest_ms = match longest {
            Some(longest) => i32::try_from(longest.as_micros().div_ceil(1000)).unwrap_or(i32::MAX),
            None => -1,
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: room for as many events.
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

    /// Readable when it has rung or is gone.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

fn add(watch: &OwnedFd, what: BorrowedFd<'_>, tag: u64, events: i32) -> Result<(), Error> {
    let mut event = libc::epoll_event { events: events as u32, u64: tag };
    // SAFETY: an event that lives until then.
    let added = unsafe {
        libc::epoll_ctl(watch.as_raw_fd(), libc::EPOLL_CTL_ADD, what.as_raw_fd(), &mut event)
    };
    if added == 0 { Ok(()) } else { Err(Error::system("epoll_ctl")) }
}
