// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads frames that are in memory. The bytes may be anything.

use super::frame::{Frame, HEADER_BYTES, MAX_ITEMS_BYTES, MAX_TEXT_BYTES, kind};
use thiserror::Error;

/// The header of a frame, whose kind and length can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub(super) kind: u8,
    pub(super) body_bytes: usize,
    /// CRC-32C of the body.
    pub(super) check: u32,
}

/// Bytes are no frame. The link cannot be used any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The header does not match its check: the bytes are damaged, or the other side does not speak
    /// this protocol.
    #[error("the header of a frame does not match its check")]
    HeaderCheck,
    /// The body does not match its check.
    #[error("the body of a frame does not match its check")]
    BodyCheck,
    /// The kind is not known.
    #[error("frames of kind {0} are not known; the other server may be newer")]
    Kind(u8),
    /// A frame of this kind has another length.
    #[error("a frame of kind {kind} has {bytes} bytes, which is too much or too little")]
    Length {
        /// Number of the kind.
        kind: u8,
        /// Bytes of its body.
        bytes: usize,
    },
    /// A text is not UTF-8, or a flag is neither 0 nor 1.
    #[error("a frame of kind {0} has a field that cannot be")]
    Field(u8),
}

impl Header {
    /// Bytes of the whole frame.
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.body_bytes
    }

    /// Reads the header of a frame, and checks the length that it announces.
    ///
    /// # Errors
    /// [`Malformed::HeaderCheck`], [`Malformed::Kind`] and [`Malformed::Length`].
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Malformed> {
        let (fields, check) = bytes.split_at(HEADER_BYTES - 4);
        if crc32c::crc32c(fields).to_le_bytes() != check || fields[1..4] != [0; 3] {
            return Err(Malformed::HeaderCheck);
        }
        let [kind, _, _, _, l0, l1, l2, l3, c0, c1, c2, c3, ..] = *bytes;
        let body_bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let check = u32::from_le_bytes([c0, c1, c2, c3]);
        let (fixed, payload) = lengths(kind).ok_or(Malformed::Kind(kind))?;
        if !(fixed..=fixed + payload).contains(&body_bytes) {
            return Err(Malformed::Length { kind, bytes: body_bytes });
        }
        Ok(Self { kind, body_bytes, check })
    }

    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let length = u32::try_from(self.body_bytes).expect("the limits are below 4 GiB");
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind;
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.check.to_le_bytes());
        let check = crc32c::crc32c(&bytes[..12]);
        bytes[12..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn body<'a>(&self, body: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        if crc32c::crc32c(body) != self.check {
            return Err(Malformed::BodyCheck);
        }
        let field = Malformed::Field(self.kind);
        let text = || std::str::from_utf8(body).map_err(|_| field);
        let mut rest = Fields(body);
        // The header has checked that there are enough bytes.
        let frame = match self.kind {
            kind::BEGIN => {
                let (position, bytes) = (rest.u64(), rest.u64());
                let is_full = match rest.0 {
                    [0] => false,
                    [1] => true,
                    _ => return Err(field),
                };
                Frame::Begin { is_full, position, bytes }
            }
            kind::LINEAGE => Frame::Lineage { text: text()? },
            kind::ENTRIES => Frame::Entries { count: rest.u32(), items: rest.0 },
            kind::ENTRIES_END => Frame::EntriesEnd { entries: rest.u64() },
            kind::BATCH => {
                let (position, end, count) = (rest.u64(), rest.u64(), rest.u32());
                if end < position {
                    return Err(field);
                }
                Frame::Batch { position, end, count, items: rest.0 }
            }
            kind::PING => Frame::Ping { end: rest.u64(), time_ms: rest.u64() },
            kind::REFUSED => Frame::Refused { text: text()? },
            kind::COMPLETE => Frame::Complete { position: rest.u64() },
            kind::RESUMED => Frame::Resumed,
            kind::MOVED => Frame::Moved { revision: rest.u64() },
            kind::ACK => Frame::Ack { released: rest.u64(), durable: rest.u64() },
            other => return Err(Malformed::Kind(other)),
        };
        Ok(frame)
    }
}

impl<'a> Frame<'a> {
    /// Reads the frame at the beginning of the bytes. Returns it with its length, or `None` if more
    /// bytes are needed. Items are as the other side has sent them: they may be fewer than their
    /// number says.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(header) = bytes.first_chunk() else { return Ok(None) };
        let header = Header::decode(header)?;
        let length = header.frame_bytes();
        match bytes.get(HEADER_BYTES..length) {
            Some(body) => Ok(Some((header.body(body)?, length))),
            None => Ok(None),
        }
    }
}

/// Bytes of the numbers of a kind of frame, and the most bytes of its payload.
fn lengths(kind: u8) -> Option<(usize, usize)> {
    Some(match kind {
        kind::BEGIN => (17, 0),
        kind::LINEAGE | kind::REFUSED => (0, MAX_TEXT_BYTES),
        kind::ENTRIES => (4, MAX_ITEMS_BYTES),
        kind::BATCH => (20, MAX_ITEMS_BYTES),
        kind::ENTRIES_END | kind::COMPLETE | kind::MOVED => (8, 0),
        kind::PING | kind::ACK => (16, 0),
        kind::RESUMED => (0, 0),
        _ => return None,
    })
}

/// Numbers that follow each other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.0.split_first_chunk().expect("the header has checked the length");
        self.0 = rest;
        *bytes
    }
}
