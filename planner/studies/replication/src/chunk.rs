// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chunks of the log: records with a header, a number and checksums.
//!
//! The header has, in little endian: a mark, the way in which the body is stored, the number of the
//! chunk in the whole log, the lengths of the raw and of the stored body, the checksum of the raw
//! body, and the checksum of the header. In files the body is always raw; so the logs of all places
//! are equal.

use crate::codec::{self, Compression};
use std::rc::Rc;

/// Size of a header in bytes.
pub const HEADER_BYTES: usize = 32;
const MARK: u32 = 0x6b6e_6843;

/// A chunk with its raw body, as it is in files. A clone is the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its number in the log: the first is 1.
    pub number: u64,
    bytes: Rc<Vec<u8>>,
}

impl Chunk {
    /// Creates a chunk.
    pub fn new(number: u64, body: &[u8]) -> Self {
        let bytes = record(number, codec::RAW, body.len(), crc32c::crc32c(body), body);
        Self { number, bytes: Rc::new(bytes) }
    }

    /// Returns header and raw body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the raw body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Returns what the processor sends: the chunk with a compressed body, or itself if that is not
    /// smaller.
    pub fn compressed(&self, compression: Compression) -> Vec<u8> {
        match codec::compress(compression, self.body()) {
            Some((codec, stored)) => {
                let checksum = crc32c::crc32c(self.body());
                record(self.number, codec, self.body().len(), checksum, &stored)
            }
            None => self.bytes.to_vec(),
        }
    }

    /// Reads the chunk at the beginning of bytes, and returns it with its length there. Returns
    /// none if it is not whole, or its raw body is longer than `most` bytes.
    pub fn read(bytes: &[u8], most: usize) -> Option<(Self, usize)> {
        let header = bytes.get(..HEADER_BYTES)?;
        let word = |at: usize| {
            u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes of the header"))
        };
        if word(0) != MARK || word(28) != crc32c::crc32c(&header[..28]) {
            return None;
        }
        let number = u64::from(word(8)) | u64::from(word(12)) << 32;
        let (raw, stored) = (word(16) as usize, word(20) as usize);
        let length = HEADER_BYTES.checked_add(stored)?;
        let body = bytes.get(HEADER_BYTES..length)?;
        if raw > most {
            return None;
        }
        let chunk = match word(4) {
            codec::RAW if raw == stored => {
                Self { number, bytes: Rc::new(bytes[..length].to_vec()) }
            }
            codec => Self::new(number, &codec::decompress(codec, body, raw)?),
        };
        let is_whole = crc32c::crc32c(chunk.body()) == word(24);
        is_whole.then_some((chunk, length))
    }
}

fn record(number: u64, codec: u32, raw: usize, checksum: u32, stored: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + stored.len());
    bytes.extend(MARK.to_le_bytes());
    bytes.extend(codec.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend((raw as u32).to_le_bytes());
    bytes.extend((stored.len() as u32).to_le_bytes());
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend(stored);
    bytes
}
