// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages in each direction between two processes.

use super::hello::Purpose;
use super::link::{For, Link, Waits};
use super::peer::Woken;
use super::{Memory, Options};
use crate::error::Error;
use crate::wait::{WaitCounts, Waiting};
use freeport_ring::layout::message_max;
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use freeport_ring::{Full, Receiver, Sender};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One side of two streams of messages. It begins, waits and ends like a
/// [`Connection`](super::Connection).
///
/// ```
/// use freeport_fabric::shm::{MessageConnection, Options};
///
/// let (mut here, mut there) = MessageConnection::pair(&Options::default())?;
/// here.send(&[b"in parts, ", b"but one message"])?;
/// let mut buffer = [0; 64];
/// assert_eq!(there.receive(&mut buffer)?, Some(25));
/// # Ok::<(), freeport_fabric::Error>(())
/// ```
#[derive(Debug)]
pub struct MessageConnection {
    sender: MessageSender<Memory, Memory>,
    receiver: MessageReceiver<Memory, Memory>,
    link: Link,
}

impl MessageConnection {
    /// Creates both sides in one process.
    ///
    /// # Errors
    /// The sizes are invalid, or the system refuses an operation.
    pub fn pair(options: &Options) -> Result<(Self, Self), Error> {
        Self::pair_for(Purpose::Messages, options)
    }

    /// Creates the first side, whose options determine the sizes of the rings.
    ///
    /// # Errors
    /// The sizes are invalid, the system refuses an operation, or the peer's hello is refused.
    pub fn connect(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Self::connect_for(stream, Purpose::Messages, options)
    }

    /// Creates the second side.
    ///
    /// # Errors
    /// The peer's hello is refused, or the system refuses an operation.
    pub fn accept(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Self::accept_for(stream, Purpose::Messages, options)
    }

    pub(super) fn pair_for(purpose: Purpose, options: &Options) -> Result<(Self, Self), Error> {
        let [first, second] = Link::pair(purpose, options)?;
        Ok((Self::new(first), Self::new(second)))
    }

    pub(super) fn connect_for(
        stream: UnixStream,
        purpose: Purpose,
        options: &Options,
    ) -> Result<Self, Error> {
        Link::connect(stream, purpose, options).map(Self::new)
    }

    pub(super) fn accept_for(
        stream: UnixStream,
        purpose: Purpose,
        options: &Options,
    ) -> Result<Self, Error> {
        Link::accept(stream, purpose, options).map(Self::new)
    }

    pub(super) fn new((link, (sender, receiver)): (Link, super::layout::Ends)) -> Self {
        let (sender, receiver) = (MessageSender::new(sender), MessageReceiver::new(receiver));
        Self { sender, receiver, link }
    }

    /// Sends a message that consists of these parts.
    ///
    /// # Errors
    /// The message is too long; the peer has closed, died, or broken the protocol; or the time-out
    /// has expired.
    #[inline]
    pub fn send(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        self.until(For::Room, |this| this.send_one(parts))
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`send`](Self::send).
    #[inline]
    pub fn try_send(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        self.send_one(parts)?.ok_or(Error::WouldBlock)
    }

    /// Receives the next message and returns its length, or `None` at the end.
    ///
    /// # Errors
    /// The message is longer than the buffer; the peer has died or broken the protocol and all
    /// earlier messages are received; or the time-out has expired.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>, Error> {
        self.until(For::Data, |this| this.receive_one(into))
    }

    /// Receives the next message without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`receive`](Self::receive).
    #[inline]
    pub fn try_receive(&mut self, into: &mut [u8]) -> Result<Option<usize>, Error> {
        self.receive_one(into)?.ok_or(Error::WouldBlock)
    }

    /// Shuts down sending on this side. It may continue to receive.
    ///
    /// # Errors
    /// The peer made its doorbell unusable.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        self.link.end()
    }

    /// Returns the length of the longest message that can be sent.
    pub fn message_max(&self) -> usize {
        message_max(self.link.capacity_max())
    }

    /// Returns whether the peer still exists.
    ///
    /// # Errors
    /// The system refuses the check.
    pub fn peer_is_alive(&mut self) -> Result<bool, Error> {
        Ok(!self.link.peer.is_gone()?)
    }

    /// Changes the waiting policy of this side.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.link.waiting = waiting;
    }

    /// Returns the counters of this side's waiting.
    pub fn wait_counts(&self) -> WaitCounts {
        self.link.counts
    }

    /// Prepares for waiting on the descriptor in an event loop. True means that there is no
    /// message, and that the descriptor will become readable when there is one or the peer is gone.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn arm(&mut self) -> Result<bool, Error> {
        let found = self.prepare_sleep(For::Data, |this| {
            let something = this.receiver.ring().peek()?.is_some();
            Ok(something.then_some(()))
        })?;
        self.link.armed = found.is_none();
        Ok(found.is_none())
    }

    /// Sleeps after [`arm`](Self::arm), until the peer rings, or for at most `longest`.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn sleep(&mut self, longest: Duration) -> Result<(), Error> {
        self.link.counts.sleeps += 1;
        match self.link.peer.sleep(Some(longest))? {
            Woken::Gone => Err(self.link.gone()),
            Woken::Rung | Woken::Neither => Ok(()),
        }
    }

    /// Wakes the peer, whether it sleeps or not.
    pub(super) fn wake(&mut self) -> Result<(), Error> {
        self.link.wake(true)
    }

    /// Returns whether a message of that length can be sent now.
    pub(super) fn has_room(&mut self, length: usize) -> Result<bool, Error> {
        Ok(self.sender.ring().has_room(length)?)
    }

    pub(super) fn check_writing(&self) -> Result<(), Error> {
        self.link.check_writing()
    }

    /// Returns whether both sides execute a fence with each operation, because one of them cannot
    /// use `membarrier`.
    pub fn is_fenced(&self) -> bool {
        self.link.is_fenced()
    }

    #[inline]
    fn send_one(&mut self, parts: &[&[u8]]) -> Result<Option<()>, Error> {
        self.link.check_writing()?;
        loop {
            self.link.grow(self.sender.ring())?;
            match self.sender.send(parts) {
                Ok(wake) => return self.link.wake(wake).map(Some),
                Err(Full::Fault(fault)) => return Err(fault.into()),
                Err(Full::NoCredit) => {
                    self.link.was_full = true;
                    return Ok(None);
                }
                Err(Full::TooLong) => {
                    let length = parts.iter().map(|part| part.len()).sum();
                    let longest = self.message_max();
                    if length > longest {
                        return Err(Error::TooLong { length, longest });
                    }
                    if self.link.was_full {
                        // It could not move, for lack of credit.
                        return Ok(None);
                    }
                    self.link.was_full = true;
                }
            }
        }
    }

    #[inline]
    fn receive_one(&mut self, into: &mut [u8]) -> Result<Option<Option<usize>>, Error> {
        self.disarm();
        loop {
            // Before the ring is checked: everything sent before the end is then in the ring.
            let ended = self.link.peer_has_ended();
            let done = self.receiver.receive(into)?;
            self.link.wake(done.wake)?;
            return match done.outcome {
                Received::Message(length) => Ok(Some(Some(length))),
                Received::Longer(length) => Err(Error::Longer { length, room: into.len() }),
                Received::Nothing if ended => Ok(Some(None)),
                Received::Nothing => Ok(None),
                Received::End => Ok(Some(None)),
                Received::Moved { name, entry } => {
                    self.link.follow(self.receiver.ring(), name, &entry)?;
                    continue;
                }
            };
        }
    }
}

impl Waits for MessageConnection {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn rings(&mut self) -> (&mut Sender<Memory, Memory>, &mut Receiver<Memory, Memory>) {
        (self.sender.ring(), self.receiver.ring())
    }
}

impl AsFd for MessageConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.peer.descriptor()
    }
}
