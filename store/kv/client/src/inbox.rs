// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes that arrived over a stream, and the packets in them.

use freeport_kv_protocol::batch::Header;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of an empty inbox.
const FIRST_BYTES: usize = 64 << 10;
/// Largest payload of replies.
const PAYLOAD_LIMIT: u32 = 1 << 31;

/// Bytes that arrived, and the packets of them that are whole.
///
/// `bytes[start..scanned]` are whole packets that nobody has taken, and `bytes[scanned..end]` the
/// beginning of the next one.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    scanned: usize,
    end: usize,
    /// Headers of the whole packets.
    whole: VecDeque<Header>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        let (start, scanned, end) = (0, 0, 0);
        Self { bytes: vec![0; FIRST_BYTES], start, scanned, end, whole: VecDeque::new() }
    }

    /// Number of whole packets.
    pub(crate) fn packets(&self) -> usize {
        self.whole.len()
    }

    /// Room for more bytes. The inbox grows only while a packet has filled it, so a header that
    /// announces much takes no memory.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.scanned, self.end) = (0, 0, 0);
        }
        if self.end == self.bytes.len() {
            if self.start >= self.bytes.len() / 2 {
                self.bytes.copy_within(self.start..self.end, 0);
                self.scanned -= self.start;
                self.end -= self.start;
                self.start = 0;
            } else {
                self.bytes.resize(2 * self.bytes.len(), 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Takes bytes that have been written into the [room](Self::room).
    ///
    /// # Errors
    /// They are no reply.
    pub(crate) fn arrived(&mut self, bytes: usize) -> Result<(), String> {
        self.end += bytes;
        loop {
            let rest = &self.bytes[self.scanned..self.end];
            let header = Header::parse_reply(rest, PAYLOAD_LIMIT);
            match header.map_err(|error| error.to_string())? {
                Some(header) if header.packet_bytes() <= rest.len() => {
                    self.scanned += header.packet_bytes();
                    self.whole.push_back(header);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Takes the first whole packet: its header, and where its payload is.
    pub(crate) fn take(&mut self) -> Option<(Header, Range<usize>)> {
        let header = self.whole.pop_front()?;
        let end = self.start + header.packet_bytes();
        let payload = self.start + header.bytes()..end;
        self.start = end;
        Some((header, payload))
    }

    /// Bytes of a payload that was taken, until the next call of [`room`](Self::room).
    pub(crate) fn payload(&self, payload: Range<usize>) -> &[u8] {
        &self.bytes[payload]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_protocol::batch::{ReplyLimits, ReplyWriter};

    fn packet(batch: u32, value: &[u8]) -> Vec<u8> {
        let mut packet = vec![];
        let mut writer = ReplyWriter::begin(&mut packet, batch, 0, ReplyLimits::default());
        writer.value(&mut packet, value);
        writer.finish(&mut packet);
        packet
    }

    #[test]
    fn packets_are_whole_in_any_portions() {
        let values: Vec<Vec<u8>> =
            (0..40).map(|number: usize| vec![number as u8; number.pow(3)]).collect();
        let stream: Vec<u8> =
            values.iter().zip(0..).flat_map(|(value, batch)| packet(batch, value)).collect();
        for portion in [1, 7, 16, 1_000, 100_000, stream.len()] {
            let (mut inbox, mut batch) = (Inbox::new(), 0);
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let room = inbox.room();
                let bytes = portion.min(room.len()).min(rest.len());
                room[..bytes].copy_from_slice(&rest[..bytes]);
                rest = &rest[bytes..];
                inbox.arrived(bytes).expect("they are replies");
                // Every other time, packets stay in the inbox.
                while bytes % 2 == 0 || inbox.packets() > 2 || rest.is_empty() {
                    let Some((header, payload)) = inbox.take() else { break };
                    assert_eq!(header.batch as usize, batch);
                    assert_eq!(inbox.payload(payload), &packet(0, &values[batch])[16..]);
                    batch += 1;
                }
            }
            assert_eq!(batch, values.len());
        }
    }

    #[test]
    fn a_header_takes_no_memory_for_what_it_announces() {
        let mut inbox = Inbox::new();
        let header = Header { is_reply: true, payload_bytes: 1 << 30, ..Header::default() };
        let mut bytes = vec![];
        header.write(&mut bytes);
        inbox.room()[..16].copy_from_slice(&bytes);
        inbox.arrived(16).expect("it is a header");
        assert_eq!((inbox.packets(), inbox.room().len()), (0, FIRST_BYTES - 16));
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut inbox = Inbox::new();
        inbox.room()[..5].copy_from_slice(b"-ERR ");
        let error = inbox.arrived(5).expect_err("this is RESP");
        assert!(error.contains("4b 56"), "{error}");
    }
}
