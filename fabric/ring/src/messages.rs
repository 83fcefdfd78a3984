// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole messages over a ring, each read as it was sent.
//!
//! A message lies in one piece. If it does not fit before the end of the ring, the rest of the ring
//! is skipped. Its length is limited to [`message_max`](layout::message_max), for which there is
//! always room once everything before it is read.

use crate::bytes::Done;
use crate::{Fault, Full, Kind, Local, Receiver, Remote, Sender, layout};

/// The sender of messages.
#[derive(Debug)]
pub struct MessageSender<R, L> {
    ring: Sender<R, L>,
}

impl<R: Remote, L: Local> MessageSender<R, L> {
    /// Sends over a ring.
    pub fn new(ring: Sender<R, L>) -> Self {
        Self { ring }
    }

    /// Returns the ring below.
    pub fn ring(&mut self) -> &mut Sender<R, L> {
        &mut self.ring
    }

    /// Sends a message that consists of these parts. True means that the receiver has to be woken.
    ///
    /// # Errors
    /// See [`stage`](Self::stage).
    #[inline]
    pub fn send(&mut self, parts: &[&[u8]]) -> Result<bool, Full> {
        self.stage(parts)?;
        Ok(self.publish())
    }

    /// Stages a message after the last one, to be published together with all staged messages.
    ///
    /// # Errors
    /// There is no credit for it now, it is too long, or the receiver broke the protocol. Then it
    /// is not sent.
    #[inline]
    pub fn stage(&mut self, parts: &[&[u8]]) -> Result<(), Full> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > layout::message_max(self.ring.capacity()) {
            return Err(Full::TooLong);
        }
        self.ring.stage(Kind::Data, parts)
    }

    /// Publishes the staged messages. True means that the receiver has to be woken.
    #[inline]
    #[must_use = "a receiver that sleeps has to be woken"]
    pub fn publish(&mut self) -> bool {
        self.ring.publish()
    }

    /// Announces that no more messages will be sent. True means that the receiver has to be woken.
    ///
    /// # Errors
    /// There is no credit for that now, or the receiver broke the protocol.
    pub fn end(&mut self) -> Result<bool, Full> {
        self.ring.send(Kind::Shutdown, &[])
    }
}

/// Result of receiving a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// A message of that many bytes.
    Message(usize),
    /// The next message has this number of bytes, more than there is room for. It stays in the
    /// ring.
    Longer(usize),
    /// No message has arrived.
    Nothing,
    /// No more messages will arrive.
    End,
    /// The ring continues in other memory; see [`Receiver::move_to`].
    Moved {
        /// The sender's name for that memory.
        name: u64,
        /// The entry that announces it.
        entry: crate::Entry,
    },
}

/// The receiver of messages.
#[derive(Debug)]
pub struct MessageReceiver<L, R> {
    ring: Receiver<L, R>,
}

impl<L: Local, R: Remote> MessageReceiver<L, R> {
    /// Receives from a ring.
    pub fn new(ring: Receiver<L, R>) -> Self {
        Self { ring }
    }

    /// Returns the ring below.
    pub fn ring(&mut self) -> &mut Receiver<L, R> {
        &mut self.ring
    }

    /// Copies the next message to the start of `into`.
    ///
    /// # Errors
    /// The sender broke the protocol.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Done<Received>, Fault> {
        let quiet = |outcome| Ok(Done { outcome, wake: false });
        if self.ring.cursor().ended {
            return quiet(Received::End);
        }
        let Some(entry) = self.ring.peek()? else {
            let wake = self.ring.found_nothing();
            return Ok(Done { outcome: Received::Nothing, wake });
        };
        let length = entry.length as usize;
        match entry.kind {
            Kind::Data if length > into.len() => quiet(Received::Longer(length)),
            Kind::Data => {
                self.ring.read(&entry, 0, into);
                let wake = self.ring.take(&entry);
                Ok(Done { outcome: Received::Message(length), wake })
            }
            Kind::Move => {
                let mut name = [0; 8];
                self.ring.read(&entry, 0, &mut name);
                quiet(Received::Moved { name: u64::from_ne_bytes(name), entry })
            }
            Kind::Shutdown | Kind::Wrap => {
                self.ring.cursor_mut().ended = true;
                quiet(Received::End)
            }
        }
    }
}
