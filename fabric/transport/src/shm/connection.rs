// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream of bytes each way between two processes.

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
/// Calls wait as the [policy](Waiting) says; those that begin with `try_` give
/// [`Error::WouldBlock`] instead. When this is dropped, the peer reads what was written, and then
/// the end; a peer that is killed is [`Error::PeerDied`] for who waits for it, once all that it
/// wrote is read.
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
/// Between two processes, one has a listening path and calls `Connection::accept` with what it
/// accepts, the other calls `Connection::connect` with what it has connected. Both wait for each
/// other.
#[derive(Debug)]
pub struct Connection {
    sender: ByteSender<Memory, Memory>,
    receiver: ByteReceiver<Memory, Memory>,
    link: Link,
}

impl Connection {
    /// Both sides in one process, to hand one to a thread or to a child.
    ///
    /// # Errors
    /// The sizes cannot be, or the system refuses something.
    pub fn pair(options: &Options) -> Result<(Self, Self), Error> {
        let [first, second] = Link::pair(Purpose::Bytes, options)?;
        Ok((Self::new(first), Self::new(second)))
    }

    /// The first side: its options say how large the rings are.
    ///
    /// # Errors
    /// The sizes cannot be, the system refuses something, or the peer does not do its part.
    pub fn connect(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Link::connect(stream, Purpose::Bytes, options).map(Self::new)
    }

    /// The second side: it takes the sizes that the first one says, up to the
    /// [largest](Options::largest) that it allows.
    ///
    /// # Errors
    /// The peer does not do its part, or the system refuses something.
    pub fn accept(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Link::accept(stream, Purpose::Bytes, options).map(Self::new)
    }

    fn new((link, (sender, receiver)): (Link, super::layout::Ends)) -> Self {
        let (sender, receiver) = (ByteSender::new(sender), ByteReceiver::new(receiver));
        Self { sender, receiver, link }
    }

    /// Writes as many of the bytes as there is room for, at least one; of none, none.
    ///
    /// # Errors
    /// The peer has closed, or died, or broke the protocol; or time is over.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.until(For::Room, |this| this.write_some(bytes))
    }

    /// Writes as many of the bytes as there is room for now.
    ///
    /// # Errors
    /// There is none, or as [`write`](Self::write).
    #[inline]
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.write_some(bytes)?.ok_or(Error::WouldBlock)
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write); how much was written is not known then.
    #[inline]
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while let Some(behind) = rest.get(self.write(rest)?..).filter(|rest| !rest.is_empty()) {
            rest = behind;
        }
        Ok(())
    }

    /// Reads as many bytes as have come and fit, at least one, unless there is no room; 0: the
    /// end.
    ///
    /// # Errors
    /// The peer died or broke the protocol, and all that came before that is read; or time is
    /// over.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.until(For::Data, |this| this.read_some(into))
    }

    /// Reads as many bytes as have come and fit.
    ///
    /// # Errors
    /// None have come, or as [`read`](Self::read).
    #[inline]
    pub fn try_read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.read_some(into)?.ok_or(Error::WouldBlock)
    }

    /// Says that this side writes nothing more. It may go on reading.
    ///
    /// # Errors
    /// The peer spoilt its doorbell.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        self.link.end()
    }

    /// Says that this side does nothing more, as dropping it does.
    pub fn close(self) {}

    /// Before an event loop waits for the [descriptor](Self::as_fd): true if there is nothing to
    /// read or, with `room`, no room to write, and the descriptor will say when that changes or
    /// the peer dies. False: something may be done at once.
    ///
    /// # Errors
    /// As [`read`](Self::read): the peer died, or broke the protocol.
    pub fn arm(&mut self, room: bool) -> Result<bool, Error> {
        let gone = self.link.peer.is_gone()?;
        self.link.armed = true;
        let mut quiet = self.prepare_sleep(For::Data, |this| {
            let ended = this.link.peer_has_ended();
            let nothing = this.receiver.peek(&mut [0])? == Read::Nothing;
            Ok((ended || !nothing).then_some(()))
        })?;
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

    /// Whether the peer still is there.
    ///
    /// # Errors
    /// The system refuses to look.
    pub fn peer_is_alive(&mut self) -> Result<bool, Error> {
        Ok(!self.link.peer.is_gone()?)
    }

    /// The peer's process; 0 if it is not known here.
    pub fn peer_pid(&self) -> i32 {
        self.link.peer.pid()
    }

    /// Changes how this side waits.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.link.waiting = waiting;
    }

    /// How this side has waited so far.
    pub fn wait_counts(&self) -> WaitCounts {
        self.link.counts
    }

    /// The bytes of the ring to the peer, as it is now.
    pub fn capacity(&mut self) -> usize {
        self.sender.ring().capacity()
    }

    /// Whether both sides pass a fence with each operation, because one of them cannot use
    /// `membarrier`.
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
            // Before the look at the ring: what was written before the end is there.
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
    /// Readable when the peer has rung or is gone; for who has [armed](Self::arm) it.
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
