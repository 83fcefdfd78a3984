// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a batch that goes over one connection.

use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::replies::Replies;
use freeport_kv_protocol::batch::{Operation, Refused};
use std::collections::VecDeque;

/// A connection, and which operations of the batch its packets have.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) pipeline: Pipeline,
    /// Most packets without replies.
    window: usize,
    /// Numbers of the batch's operations in the order in which they were pushed.
    numbers: Vec<usize>,
    /// Packets without all of their replies: number, and index of their first operation.
    in_flight: VecDeque<(u32, usize)>,
    /// Index of the first operation in the packet that is being written.
    next: usize,
}

impl Connection {
    pub(crate) fn new(pipeline: Pipeline, window: usize) -> Self {
        let (numbers, in_flight) = (Vec::new(), VecDeque::new());
        Self { pipeline, window: window.max(1), numbers, in_flight, next: 0 }
    }

    /// Begins another batch.
    pub(crate) fn begin(&mut self) {
        self.numbers.clear();
        self.in_flight.clear();
        self.next = 0;
    }

    /// Pushes the operation with a number. Submits a packet that is full, and receives replies
    /// while too many packets are in flight.
    #[inline]
    pub(crate) fn push(
        &mut self,
        number: usize,
        operation: &Operation<'_>,
        replies: &mut Replies,
    ) -> Result<(), Error> {
        while let Err(refused) = self.pipeline.push(operation) {
            self.make_room(number, refused, replies)?;
        }
        self.numbers.push(number);
        Ok(())
    }

    #[cold]
    fn make_room(
        &mut self,
        number: usize,
        refused: Refused,
        replies: &mut Replies,
    ) -> Result<(), Error> {
        if let Refused::TooLarge { .. } = refused {
            return Err(Error::too_large(self.pipeline.address(), number, refused));
        }
        self.submit()?;
        while self.in_flight.len() >= self.window {
            self.receive(replies)?;
        }
        Ok(())
    }

    /// Sends the packet that is being written.
    pub(crate) fn submit(&mut self) -> Result<(), Error> {
        let operations = usize::from(self.pipeline.pushed());
        if let Some(batch) = self.pipeline.submit()? {
            self.in_flight.push_back((batch, self.next));
            self.next += operations;
        }
        Ok(())
    }

    /// Waits for the replies of all packets.
    pub(crate) fn finish(&mut self, replies: &mut Replies) -> Result<(), Error> {
        while !self.in_flight.is_empty() {
            self.receive(replies)?;
        }
        Ok(())
    }

    fn receive(&mut self, replies: &mut Replies) -> Result<(), Error> {
        let Some(received) = self.pipeline.receive()? else { return Ok(()) };
        let packet = self.in_flight.iter().position(|(batch, _)| *batch == received.batch);
        let packet = packet.expect("the pipeline returns replies of packets in flight");
        let first = self.in_flight[packet].1 + usize::from(received.first);
        if received.is_last {
            self.in_flight.remove(packet);
        }
        let numbers = &self.numbers[first..][..usize::from(received.count)];
        // One more item than there are replies is an error: bytes behind them.
        let mut numbers = numbers.iter();
        for reply in received.replies {
            match (reply, numbers.next()) {
                (Ok(reply), Some(number)) => replies.set(*number, reply),
                (Err(error), _) => {
                    let address = self.pipeline.address().clone();
                    return Err(Error::Protocol { address, reason: error.to_string() });
                }
                (Ok(_), None) => unreachable!("a packet has as many replies as its header says"),
            }
        }
        Ok(())
    }
}
