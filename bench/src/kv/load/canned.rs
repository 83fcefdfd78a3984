// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of a server that stores nothing.

use super::contents::{Contents, Form};
use super::wire::{Kind, Wire};
use freeport_kv_protocol::batch::{Header, Opcode, Operations, ReplyLimits, ReplyWriter};

/// The replies to requests for some contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Canned {
    /// Requests of fixed lengths, and the reply to each kind.
    Single(Single),
    /// Packets; each operation but a put returns this value.
    Packets(Vec<u8>),
}

/// Requests that are told apart by a byte, and their replies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Single {
    /// Place of the byte.
    mark: usize,
    /// For each kind of request, the byte, and the length of the request.
    requests: [(u8, usize); 3],
    /// For each kind of request, the reply.
    pub replies: [Vec<u8>; 3],
}

impl Canned {
    /// Replies to requests for these contents, with a key and a value of `0`.
    pub fn new(contents: &Contents) -> Self {
        let Contents { form, key_bytes, value_bytes, are_counters, .. } = *contents;
        let (key, mut value) = (vec![b'0'; key_bytes], vec![b'0'; value_bytes]);
        if are_counters {
            contents.write_value(0, 0, &mut value);
        }
        match form {
            Form::Single(wire) => Self::Single(Single::new(wire, &key, &value)),
            Form::Packets { .. } => Self::Packets(value),
        }
    }
}

impl Single {
    fn new(wire: Wire, key: &[u8], value: &[u8]) -> Self {
        let requests = Kind::ALL.map(|kind| {
            let mut request = vec![];
            match kind {
                Kind::Read => wire.read(key, &mut request),
                Kind::Write => wire.write(key, value, &mut request),
                Kind::Add => wire.add(key, &mut request),
            }
            (request[wire.mark()], request.len())
        });
        let replies = Kind::ALL.map(|kind| {
            let mut reply = vec![];
            match kind {
                Kind::Read => wire.value(key, value, &mut reply),
                Kind::Write => reply.extend_from_slice(wire.stored()),
                Kind::Add => wire.sum(value, &mut reply),
            }
            reply
        });
        Self { mark: wire.mark(), requests, replies }
    }

    /// Appends the replies to all complete requests. Returns their bytes and their number.
    fn reply(&self, requests: &[u8], replies: &mut Vec<u8>) -> Option<(usize, u64)> {
        let (mut at, mut count) = (0, 0);
        while let Some(mark) = requests.get(at + self.mark) {
            let kind = self.requests.iter().position(|(byte, _)| byte == mark)?;
            let end = at + self.requests[kind].1;
            if end > requests.len() {
                break;
            }
            replies.extend_from_slice(&self.replies[kind]);
            (at, count) = (end, count + 1);
        }
        Some((at, count))
    }
}

/// Replies, with room to make them.
pub struct Answers {
    canned: Canned,
    operations: Operations,
    replies: Vec<u8>,
}

impl Answers {
    /// Gives these replies.
    pub fn new(canned: Canned) -> Self {
        Self { canned, operations: Operations::default(), replies: vec![] }
    }

    /// Makes the replies to all complete requests. Returns their bytes and their number; none if
    /// they are not requests for these contents.
    pub fn reply(&mut self, requests: &[u8]) -> Option<(usize, u64)> {
        self.replies.clear();
        let value = match &self.canned {
            Canned::Single(single) => return single.reply(requests, &mut self.replies),
            Canned::Packets(value) => value,
        };
        let (mut at, mut count, limits) = (0, 0, ReplyLimits::default());
        while let Some(header) = Header::parse_request(&requests[at..], u32::MAX).ok()? {
            let Some(payload) = requests.get(at + header.bytes()..at + header.packet_bytes())
            else {
                break;
            };
            self.operations.decode(payload, header.count).ok()?;
            let mut writer = ReplyWriter::begin(&mut self.replies, header.batch, 0, limits);
            for operation in self.operations.iter(payload) {
                match operation.opcode {
                    Opcode::Put => writer.done(&mut self.replies),
                    _ => writer.value(&mut self.replies, value),
                }
            }
            writer.finish(&mut self.replies);
            at += header.packet_bytes();
            count += u64::from(header.count);
        }
        Some((at, count))
    }

    /// The replies that were made last.
    pub fn replies(&self) -> &[u8] {
        &self.replies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_pieces_are_answered_when_they_are_complete() {
        for wire in Wire::ALL {
            let form = Form::Single(wire);
            let contents =
                Contents { form, key_bytes: 4, value_bytes: 9, pairs: 10, are_counters: false };
            let mut answers = Answers::new(Canned::new(&contents));
            let mut requests = vec![];
            wire.read(b"0001", &mut requests);
            let first = requests.len();
            wire.write(b"0002", b"123456789", &mut requests);
            let second = requests.len();
            wire.add(b"0003", &mut requests);
            for end in 0..=requests.len() {
                let expected = match end {
                    _ if end < first => (0, 0),
                    _ if end < second => (first, 1),
                    _ if end < requests.len() => (second, 2),
                    _ => (requests.len(), 3),
                };
                assert_eq!(answers.reply(&requests[..end]), Some(expected));
            }
            assert_eq!(answers.reply(&[b'?'; 20]), None);
        }
    }
}
