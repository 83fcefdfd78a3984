// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chunks of the log: records with a header, a number and checksums.
//!
//! The header has, in little endian: a mark, the way in which the body is stored, the number of the
//! chunk in the whole log, the lengths of the raw and of the stored body, the identity of the
//! previous chunk, the checksum of the raw body, and the checksum of the header. In files the body
//! is always raw; so the logs of all places are equal.
//!
//! The last two make the chunk's identity. Each identity covers the previous one, so it stands for
//! the whole log up to its chunk.

use crate::codec::{self, Compression};
use std::rc::Rc;

/// Size of a header in bytes.
pub const HEADER_BYTES: usize = 40;
const MARK: u32 = 0x6b6e_6843;

/// A chunk with its raw body, as it is in files. A clone is the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its number in the log: the first is 1.
    pub number: u64,
    bytes: Rc<Vec<u8>>,
}

impl Chunk {
    /// Creates a chunk. The first one has 0 as the identity of the previous one.
    pub fn new(number: u64, previous: u64, body: &[u8]) -> Self {
        let fields = Fields {
            codec: codec::RAW,
            number,
            raw: body.len(),
            stored: body.len(),
            previous,
            checksum: crc32c::crc32c(body),
        };
        Self { number, bytes: Rc::new(fields.record(body)) }
    }

    /// Returns the identity of the previous chunk.
    pub fn previous(&self) -> u64 {
        word(&self.bytes, 24)
    }

    /// Returns the identity of this chunk with all earlier ones.
    pub fn identity(&self) -> u64 {
        mixed(word(&self.bytes, 32))
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
                let fields = Fields::of(&self.bytes).expect("its header is whole");
                Fields { codec, stored: stored.len(), ..fields }.record(&stored)
            }
            None => self.bytes.to_vec(),
        }
    }

    /// Reads the chunk at the beginning of bytes, and returns it with its length there. Returns
    /// none if it is not whole, or its raw body is longer than `most` bytes.
    pub fn read(bytes: &[u8], most: usize) -> Option<(Self, usize)> {
        let fields = Fields::of(bytes)?;
        let Fields { codec, number, raw, previous, checksum, .. } = fields;
        let body = bytes.get(HEADER_BYTES..fields.length())?;
        if raw > most {
            return None;
        }
        let chunk = match codec {
            codec::RAW if raw == body.len() => {
                Self { number, bytes: Rc::new(bytes[..fields.length()].to_vec()) }
            }
            codec => Self::new(number, previous, &codec::decompress(codec, body, raw)?),
        };
        let is_whole = crc32c::crc32c(chunk.body()) == checksum;
        is_whole.then_some((chunk, fields.length()))
    }

    /// Returns the length of the chunk at the beginning of bytes, as its header states it, whether
    /// its body is there or not. Returns none if the header is not whole.
    pub(crate) fn stated_length(bytes: &[u8]) -> Option<usize> {
        Fields::of(bytes).map(|fields| fields.length())
    }

    /// Returns whether bytes begin as a chunk does.
    pub(crate) fn is_begun(bytes: &[u8]) -> bool {
        bytes.starts_with(&MARK.to_le_bytes())
    }
}

/// The contents of a header.
#[derive(Clone, Copy)]
struct Fields {
    codec: u32,
    number: u64,
    raw: usize,
    stored: usize,
    previous: u64,
    checksum: u32,
}

impl Fields {
    /// Reads the header at the beginning of bytes, if it is whole.
    fn of(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let half = |at: usize| (word(header, at / 8 * 8) >> (at % 8 * 8)) as u32;
        let is_whole = half(0) == MARK && half(36) == crc32c::crc32c(&header[..36]);
        is_whole.then(|| Self {
            codec: half(4),
            number: word(header, 8),
            raw: half(16) as usize,
            stored: half(20) as usize,
            previous: word(header, 24),
            checksum: half(32),
        })
    }

    fn length(&self) -> usize {
        HEADER_BYTES + self.stored
    }

    /// Returns the header, with the stored body behind it.
    fn record(&self, stored: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length());
        bytes.extend(MARK.to_le_bytes());
        bytes.extend(self.codec.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend((self.raw as u32).to_le_bytes());
        bytes.extend((self.stored as u32).to_le_bytes());
        bytes.extend(self.previous.to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes.extend(stored);
        bytes
    }
}

/// Returns another word for each word, by multiplication. A CRC of data with their own CRC behind
/// them is the same for all data, so the next chunk's could not cover this word itself.
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ word >> 32
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes of the header"))
}
