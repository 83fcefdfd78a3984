// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream of bytes in each direction between two processes.

use super::hello::Purpose;
use super::link::{For, Link, Waits};
use super::{Memory, Options};
use crate::error::Error;
use crate::wait::{WaitCounts, Waiting};
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::{Receiver, Sender};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// One side of two streams of bytes.
///
/// Calls wait according to the [policy](Waiting); those that begin with `try_` return
/// [`Error::WouldBlock`] instead. When this is dropped, the peer reads the written data, and then
/// the end. If a peer is killed, waiting calls return [`Error::PeerDied`] once all of its data are
/// read.
///
/// ```
/// use freeport_fabric::shm::{Connection, Options};
///
/// let (mut here, mut there) = Connection::pair(&Options::default())?;
/// here.write_all(b"hello")?;
/// drop(here);
/// let mut buffer = [0; 16];
/// assert_eq!(there.read(&mut buffer)?, 5);
/// assert_eq!(there.read(&mut buffer)?, 0);
/// # Ok::<(), freeport_fabric::Error>(())
/// ```
///
/// For two processes, one listens at a path and calls `Connection::accept` with an accepted stream,
/// the other calls `Connection::connect` with a connected stream. Both wait for each other.
#[derive(Debug)]
pub struct Connection {
    sender: ByteSender<Memory, Memory>,
    receiver: ByteReceiver<Memory, Memory>,
    link: Link,
}

impl Connection {
    /// Creates both sides in one process, to pass one to a thread or to a child process.
    ///
    /// # Errors
    /// The sizes are invalid, or the system refuses an operation.
    pub fn pair(options: &Options) -> Result<(Self, Self), Error> {
        let [first, second] = Link::pair(Purpose::Bytes, options)?;
        Ok((Self::new(first), Self::new(second)))
    }

    /// Creates the first side, whose options determine the sizes of the rings.
    ///
    /// # Errors
    /// The sizes are invalid, the system refuses an operation, or the peer's hello is refused.
    pub fn connect(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Link::connect(stream, Purpose::Bytes, options).map(Self::new)
    }

    /// Creates the second side, which takes the sizes of the first one, up to the
    /// [largest](Options::largest) that it permits.
    ///
    /// # Errors
    /// The peer's hello is refused, or the system refuses an operation.
    pub fn accept(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Link::accept(stream, Purpose::Bytes, options).map(Self::new)
    }

    fn new((link, (sender, receiver)): (Link, super::layout::Ends)) -> Self {
        let (sender, receiver) = (ByteSender::new(sender), ByteReceiver::new(receiver));
        Self { sender, receiver, link }
    }

    /// Writes as many of the bytes as there is room for, at least one; an empty slice writes none.
    ///
    /// # Errors
    /// The peer has closed, died, or broken the protocol; or the time-out has expired.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.until(For::Room, |this| this.write_some(bytes))
    }

    /// Writes as many of the bytes as there is room for, without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`write`](Self::write).
    #[inline]
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.write_some(bytes)?.ok_or(Error::WouldBlock)
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write); the number of bytes written is then unknown.
    #[inline]
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while let Some(behind) = rest.get(self.write(rest)?..).filter(|rest| !rest.is_empty()) {
            rest = behind;
        }
        Ok(())
    }

    /// Reads as many bytes as have arrived and fit, at least one unless `into` is empty; 0 means
    /// the end.
    ///
    /// # Errors
    /// The peer has died or broken the protocol, and all earlier bytes are read; or the time-out
    /// has expired.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.until(For::Data, |this| this.read_some(into))
    }

    /// Reads as many bytes as have arrived and fit, without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`read`](Self::read).
    #[inline]
    pub fn try_read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.read_some(into)?.ok_or(Error::WouldBlock)
    }

    /// Shuts down writing on this side. It may continue to read.
    ///
    /// # Errors
    /// The peer made its doorbell unusable.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        self.link.end()
    }

    /// Closes this side, as dropping it does.
    pub fn close(self) {}

    /// Prepares for waiting on the [descriptor](Self::as_fd) in an event loop. True means that
    /// there is nothing to read or, with `room`, no room to write, and that the descriptor will
    /// report when that changes or the peer dies. False means that an operation may succeed at
    /// once.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read): the peer has died, or broken the protocol.
    pub fn arm(&mut self, room: bool) -> Result<bool, Error> {
        self.arm_for(true, room)
    }

    /// Like [`arm`](Self::arm), for a side that does not read for now: only room to write counts.
    ///
    /// # Errors
    /// The same.
    pub fn arm_for_room(&mut self) -> Result<bool, Error> {
        self.arm_for(false, true)
    }

    fn arm_for(&mut self, data: bool, room: bool) -> Result<bool, Error> {
        let gone = self.link.peer.is_gone()?;
        self.link.armed = true;
        let mut quiet = None;
        if data {
            quiet = self.prepare_sleep(For::Data, |this| {
                let ended = this.link.peer_has_ended();
                let nothing = this.receiver.peek(&mut [0])? == Read::Nothing;
                Ok((ended || !nothing).then_some(()))
            })?;
        }
        if room && quiet.is_none() {
            quiet = self.prepare_sleep(For::Room, |this| {
                let ring = this.sender.ring();
                Ok((ring.room(1)? > 0).then_some(()))
            })?;
        }
        match quiet {
            None if gone => Err(self.link.gone()),
            None => Ok(true),
            Some(()) => {
                self.disarm();
                Ok(false)
            }
        }
    }

    /// Returns whether the peer still exists.
    ///
    /// # Errors
    /// The system refuses the check.
    pub fn peer_is_alive(&mut self) -> Result<bool, Error> {
        Ok(!self.link.peer.is_gone()?)
    }

    /// Returns the peer's process; 0 if unknown.
    pub fn peer_pid(&self) -> i32 {
        self.link.peer.pid()
    }

    /// Changes the waiting policy of this side.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.link.waiting = waiting;
    }

    /// Returns the counters of this side's waiting.
    pub fn wait_counts(&self) -> WaitCounts {
        self.link.counts
    }

    /// Returns the current capacity of the ring to the peer, in bytes.
    pub fn capacity(&mut self) -> usize {
        self.sender.ring().capacity()
    }

    /// Returns whether both sides execute a fence with each operation, because one of them cannot
    /// use `membarrier`.
    pub fn is_fenced(&self) -> bool {
        self.link.is_fenced()
    }

    #[inline]
    fn write_some(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        self.link.check_writing()?;
        self.disarm();
        self.link.grow(self.sender.ring())?;
        let done = self.sender.write(bytes)?;
        self.link.was_full |= done.outcome < bytes.len();
        self.link.wake(done.wake)?;
        Ok((done.outcome > 0 || bytes.is_empty()).then_some(done.outcome))
    }

    #[inline]
    fn read_some(&mut self, into: &mut [u8]) -> Result<Option<usize>, Error> {
        self.disarm();
        loop {
            // Before the ring is checked: everything written before the end is then in the ring.
            let ended = self.link.peer_has_ended();
            let done = self.receiver.read(into)?;
            self.link.wake(done.wake)?;
            return Ok(match done.outcome {
                Read::Bytes(count) => Some(count),
                Read::Nothing if into.is_empty() || ended => Some(0),
                Read::Nothing => None,
                Read::End => Some(0),
                Read::Moved { name, entry } => {
                    self.link.follow(self.receiver.ring(), name, &entry)?;
                    continue;
                }
            });
        }
    }
}

impl Waits for Connection {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn rings(&mut self) -> (&mut Sender<Memory, Memory>, &mut Receiver<Memory, Memory>) {
        (self.sender.ring(), self.receiver.ring())
    }
}

impl AsFd for Connection {
    /// Returns a descriptor that is readable when the peer has rung or is gone, after
    /// [`arm`](Self::arm).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.peer.descriptor()
    }
}

impl io::Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(Self::read(self, into)?)
    }
}

impl io::Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(Self::write(self, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
