// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets over a stream of bytes: replies have the order of the requests.

use crate::address::Address;
use crate::error::Error;
use crate::inbox::Inbox;
use crate::transport::Transport;
use freeport_kv_protocol::batch::Header;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct StreamLink {
    address: Address,
    timeout: Duration,
    transport: Transport,
    inbox: Inbox,
    /// Batch and number of operations of the requests whose replies were not taken.
    in_flight: VecDeque<(u32, u16)>,
}

impl StreamLink {
    pub(crate) fn new(address: Address, timeout: Duration, transport: Transport) -> Self {
        let (inbox, in_flight) = (Inbox::new(), VecDeque::new());
        Self { address, timeout, transport, inbox, in_flight }
    }

    /// Requests whose replies were not taken.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Sends a packet.
    ///
    /// The server stops reading while it has many replies that this side does not take. So this
    /// waits for room only if no reply is due; otherwise it waits for a reply. One will come: the
    /// server has received the whole of an earlier packet.
    pub(crate) fn send(&mut self, packet: &[u8], batch: u32, count: u16) -> Result<(), Error> {
        let earlier = self.in_flight.len();
        self.in_flight.push_back((batch, count));
        let mut rest = packet;
        while !rest.is_empty() {
            let is_due = earlier > self.inbox.packets();
            let write = if is_due { Transport::try_write } else { Transport::write };
            let sent = write(&mut self.transport, rest).map_err(|source| self.lost(source))?;
            if sent == 0 {
                self.fill()?;
            }
            rest = &rest[sent..];
        }
        Ok(())
    }

    /// Takes the replies to the first request, and waits for them. There has to be one.
    pub(crate) fn receive(&mut self) -> Result<(Header, Range<usize>), Error> {
        while self.inbox.packets() == 0 {
            self.fill()?;
        }
        let (header, payload) = self.inbox.take().expect("it has a packet");
        let sent = self.in_flight.pop_front();
        let (batch, count) = sent.expect("replies are refused unless a request is in flight");
        let is_whole = header.first == 0 && (header.count == count || header.is_error);
        if header.batch != batch || !is_whole {
            let Header { count: replies, first, batch: other, .. } = header;
            return Err(self.broken(format!(
                "{replies} replies from reply {first} to batch {other}, instead of {count} to \
                 batch {batch}"
            )));
        }
        Ok((header, payload))
    }

    pub(crate) fn payload(&self, payload: Range<usize>) -> &[u8] {
        self.inbox.payload(payload)
    }

    /// Receives some bytes.
    fn fill(&mut self) -> Result<(), Error> {
        let bytes = self.transport.read(self.inbox.room()).map_err(|source| self.lost(source))?;
        self.inbox.arrived(bytes).map_err(|reason| self.broken(reason))?;
        if self.inbox.packets() > self.in_flight.len() {
            return Err(self.broken("there are more replies than requests".to_owned()));
        }
        Ok(())
    }

    fn lost(&self, source: std::io::Error) -> Error {
        Error::lost(&self.address, self.timeout, source)
    }

    fn broken(&self, reason: String) -> Error {
        Error::Protocol { address: self.address.clone(), reason }
    }
}
