// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages in both directions between two places, over two rings.

use super::frames::{Assembly, FRAME_BYTES, Message, Sending};
use super::refusal::Refusal;
use freeport_fabric::channel::{Channel, InboxOf, WindowOf};
use freeport_fabric::{Completion, Endpoint};
use freeport_ring::Full;
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use std::collections::VecDeque;

/// Capacity of each ring in bytes: four of the longest frames at least.
pub const RING_BYTES: usize = 256 << 10;

/// One side of the rings.
pub struct Wire<E: Endpoint> {
    endpoint: E,
    channel: Channel<E>,
    sender: MessageSender<WindowOf<E>, InboxOf<E>>,
    receiver: MessageReceiver<InboxOf<E>, WindowOf<E>>,
    outbox: VecDeque<Sending>,
    outbox_bytes: usize,
    assembly: Assembly,
    buffer: Vec<u8>,
}

impl<E: Endpoint> Wire<E> {
    /// Creates a side with an open channel.
    pub fn new(
        endpoint: E,
        channel: Channel<E>,
        ends: freeport_fabric::channel::EndsOf<E>,
    ) -> Self {
        let (sender, receiver) = (MessageSender::new(ends.0), MessageReceiver::new(ends.1));
        let (outbox, assembly) = (VecDeque::new(), Assembly::default());
        let (outbox_bytes, buffer) = (0, vec![0; FRAME_BYTES]);
        Self { endpoint, channel, sender, receiver, outbox, outbox_bytes, assembly, buffer }
    }

    /// Returns the number of messages that the ring had no room for yet.
    pub fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// Returns the number of bytes of these messages, each counted whole until all of it has left.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox_bytes
    }

    /// Sends a message, as soon as there is room.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn send(&mut self, message: Message) -> Result<(), Refusal> {
        self.outbox_bytes += message.contents.len();
        self.outbox.push_back(Sending::new(message));
        self.flush().map(|_| ())
    }

    /// Sends messages that have waited for room. Returns whether there were any.
    ///
    /// # Errors
    /// The peer broke the protocol.
    fn flush(&mut self) -> Result<bool, Refusal> {
        let (mut is_busy, mut wake) = (false, false);
        while let Some(sending) = self.outbox.front_mut() {
            match self.sender.send(&sending.frame()) {
                Ok(wakes) => wake |= wakes,
                Err(Full::NoCredit) => break,
                Err(Full::Fault(fault)) => return Err(fault.into()),
                Err(Full::TooLong) => return Err(Refusal::Message("a ring is too small")),
            }
            is_busy = true;
            if sending.advance() {
                self.outbox_bytes -= sending.bytes();
                self.outbox.pop_front();
            }
        }
        self.channel.wake(wake)?;
        Ok(is_busy)
    }

    /// Sends what has waited for room, and passes on completions of operations. Returns whether
    /// something happened.
    ///
    /// # Errors
    /// The peer broke the protocol, or the transport failed.
    pub fn progress(&mut self, mut completed: impl FnMut(Completion)) -> Result<bool, Refusal> {
        let mut is_busy = false;
        self.channel.progress(|completion| {
            is_busy = true;
            completed(completion);
        })?;
        Ok(self.flush()? | is_busy)
    }

    /// Returns the next message that has arrived completely.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn receive(&mut self) -> Result<Option<Message>, Refusal> {
        loop {
            let done = self.receiver.receive(&mut self.buffer)?;
            self.channel.wake(done.wake)?;
            match done.outcome {
                Received::Message(length) => {
                    let message = self.assembly.add(&self.buffer[..length])?;
                    if message.is_some() {
                        return Ok(message);
                    }
                }
                Received::Nothing => return Ok(None),
                Received::Longer(_) => return Err(Refusal::Message("a frame is too long")),
                Received::End | Received::Moved { .. } => {
                    return Err(Refusal::Message("a ring of places neither ends nor moves"));
                }
            }
        }
    }

    /// Announces that this side sleeps. True means that it may: nothing has arrived, and the
    /// descriptor of the endpoint reports what will. [`disarm`](Self::disarm) follows in any case.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn arm(&mut self) -> Result<bool, Refusal> {
        let wake = self.receiver.ring().announce_sleep();
        if !self.outbox.is_empty() {
            self.sender.ring().announce_sleep();
        }
        self.channel.wake(wake)?;
        let is_armed = self.endpoint.arm()?;
        let has_message = self.receiver.ring().peek()?.is_some();
        let has_room = match self.outbox.front() {
            Some(sending) => {
                let length = sending.frame().map(<[u8]>::len).iter().sum();
                self.sender.ring().has_room(length)?
            }
            None => false,
        };
        Ok(is_armed && !has_message && !has_room)
    }

    /// Announces that this side is awake.
    pub fn disarm(&mut self) {
        self.receiver.ring().announce_awake();
        self.sender.ring().announce_awake();
    }
}
