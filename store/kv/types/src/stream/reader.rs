// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Byte strings and ids of the packed form: writing them, and a reader that never passes the end.
//!
//! A byte string is its length ([`varint`]) and its bytes. An id is both its halves.

use super::StreamId;
use crate::varint;

/// Appends a byte string.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::write(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Number of bytes that [`put_bytes`] appends.
pub fn size_of_bytes(bytes: &[u8]) -> usize {
    varint::size(bytes.len() as u64) + bytes.len()
}

/// Appends both halves of an id.
pub fn put_id(out: &mut Vec<u8>, id: StreamId) {
    varint::write(id.ms, out);
    varint::write(id.seq, out);
}

/// Reads from the front of a slice. Every read returns `None` if the bytes end too early, or if a
/// number is not encoded as [`varint::write`] does.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Number of bytes read and left together.
    total: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, total: bytes.len() }
    }

    /// Number of bytes read.
    #[inline]
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Number of bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns whether all bytes are read.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads all bytes that are left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Reads one byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Reads two bytes as a little-endian number.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u16::from_le_bytes(*bytes))
    }

    /// Reads a number. Those of one and two bytes, nearly all of a node, have a path of their own.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        match *self.rest {
            [first, ref rest @ ..] if first < 0x80 => {
                self.rest = rest;
                Some(u64::from(first))
            }
            [first, second @ 1..0x80, ref rest @ ..] => {
                self.rest = rest;
                Some(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Option<u64> {
        let (value, size) = varint::read(self.rest)?;
        self.rest = &self.rest[size..];
        Some(value)
    }

    /// Reads `length` bytes.
    #[inline]
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Reads a byte string.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let mut after_length = *self;
        let length = usize::try_from(after_length.number()?).ok()?;
        let (bytes, rest) = after_length.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Reads both halves of an id.
    #[inline]
    pub fn id(&mut self) -> Option<StreamId> {
        Some(StreamId::new(self.number()?, self.number()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut out = vec![];
        put_bytes(&mut out, b"abc");
        assert_eq!(out.len(), size_of_bytes(b"abc"));
        put_id(&mut out, StreamId::new(1 << 40, 7));
        out.extend([1, 2, 9]);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.bytes(), Some(&b"abc"[..]));
        assert_eq!(reader.id(), Some(StreamId::new(1 << 40, 7)));
        assert_eq!(reader.u16(), Some(0x0201));
        assert_eq!(reader.remaining(), 1);
        assert_eq!(reader.rest(), [9]);
        assert!(reader.is_at_end());
    }

    #[test]
    fn numbers_of_every_length_are_read() {
        for value in (0..64).flat_map(|shift| [1 << shift, (1 << shift) - 1, u64::MAX >> shift]) {
            let mut out = vec![];
            varint::write(value, &mut out);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.number(), reader.is_at_end()), (Some(value), true));
            assert_eq!(Reader::new(&out[..out.len() - 1]).number(), None);
        }
        assert_eq!(Reader::new(&[0x80, 0]).number(), None);
    }

    #[test]
    fn reads_behind_the_end_are_refused() {
        let mut reader = Reader::new(&[3, b'a', b'b']);
        assert_eq!(reader.bytes(), None);
        assert_eq!(reader.position(), 0);
        let mut longest = vec![];
        varint::write(u64::MAX, &mut longest);
        assert_eq!(Reader::new(&longest).bytes(), None);
        assert_eq!(Reader::new(&[1]).u16(), None);
        assert_eq!(Reader::new(&[]).byte(), None);
        assert_eq!(Reader::new(&[1]).id(), None);
    }
}
