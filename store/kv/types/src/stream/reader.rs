// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Byte strings and ids of the packed form: writing them, and a reader that never passes the end.
//!
//! A byte string is its length ([`varint`](crate::varint)) and its bytes. An id is both its halves.

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
/// number is not encoded as [`varint::write`] does; the reader then stays where it was.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Number of bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns whether all bytes are read.
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// Reads all bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads two bytes as a little-endian number.
    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).and_then(|bytes| Some(u16::from_le_bytes(bytes.try_into().ok()?)))
    }

    /// Reads a number.
    pub fn number(&mut self) -> Option<u64> {
        let (value, size) = varint::read(&self.bytes[self.at..])?;
        self.at += size;
        Some(value)
    }

    /// Reads `length` bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }

    /// Reads a byte string.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, size) = varint::read(&self.bytes[self.at..])?;
        let begin = self.at + size;
        let end = begin.checked_add(usize::try_from(length).ok()?)?;
        let bytes = self.bytes.get(begin..end)?;
        self.at = end;
        Some(bytes)
    }

    /// Reads both halves of an id.
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
        assert_eq!(reader.take(usize::MAX), None);
    }
}
