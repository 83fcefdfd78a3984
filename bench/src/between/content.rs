// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contents of messages, and their verification: each message begins with its number. In the first
//! round, which is not counted, all other bytes are compared as well.

use anyhow::{Result, ensure};

/// Bytes of the number at the beginning of each message.
pub const NUMBER_BYTES: usize = 8;

/// Generates messages.
pub struct Writer {
    message: Vec<u8>,
    number: u64,
    is_full: bool,
}

impl Writer {
    /// Creates a writer of messages of `size` bytes, at least [`NUMBER_BYTES`]. If `is_full`, all
    /// bytes differ from message to message, and not only the number.
    pub fn new(size: usize, is_full: bool) -> Self {
        Self { message: vec![0xa5; size], number: 0, is_full }
    }

    /// Returns the next message.
    #[inline]
    pub fn compose(&mut self) -> &[u8] {
        if self.is_full {
            fill(&mut self.message, self.number);
        } else if let Some(number) = self.message.first_chunk_mut() {
            *number = self.number.to_ne_bytes();
        }
        self.number += 1;
        &self.message
    }
}

/// Verifies messages that arrive in pieces of any size.
pub struct Reader {
    expected: Vec<u8>,
    number: u64,
    /// Bytes of the current message that have arrived.
    at: usize,
    is_full: bool,
}

impl Reader {
    /// Creates a reader for a [`Writer`] with the same arguments.
    pub fn new(size: usize, is_full: bool) -> Self {
        let mut expected = vec![0; size];
        fill(&mut expected, 0);
        Self { expected, number: 0, at: 0, is_full }
    }

    /// Number of messages that have arrived completely.
    pub fn messages(&self) -> u64 {
        self.number
    }

    /// Verifies the bytes that arrived next.
    ///
    /// # Errors
    /// The bytes differ from what was sent.
    #[inline]
    pub fn check(&mut self, mut bytes: &[u8]) -> Result<()> {
        let size = self.expected.len();
        if self.is_full {
            return self.compare(bytes);
        }
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(size - self.at));
            bytes = rest;
            match piece.first_chunk() {
                Some(number) if self.at == 0 => {
                    ensure!(u64::from_ne_bytes(*number) == self.number, self.wrong());
                }
                _ => self.check_cut_number(piece)?,
            }
            self.pass(piece.len());
        }
        Ok(())
    }

    /// Verifies a piece that begins or ends inside a number.
    #[cold]
    fn check_cut_number(&self, piece: &[u8]) -> Result<()> {
        let number = self.number.to_ne_bytes();
        let expected = number.get(self.at..).unwrap_or_default();
        let both = piece.len().min(expected.len());
        ensure!(piece[..both] == expected[..both], self.wrong());
        Ok(())
    }

    fn compare(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let expected = &self.expected[self.at..];
            let (piece, rest) = bytes.split_at(bytes.len().min(expected.len()));
            ensure!(*piece == expected[..piece.len()], self.wrong());
            bytes = rest;
            self.pass(piece.len());
            if self.at == 0 {
                fill(&mut self.expected, self.number);
            }
        }
        Ok(())
    }

    #[inline]
    fn pass(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at == self.expected.len() {
            self.at = 0;
            self.number += 1;
        }
    }

    fn wrong(&self) -> String {
        format!("message {} arrived damaged", self.number)
    }
}

/// Fills a message so that every page and every line differs.
fn fill(message: &mut [u8], number: u64) {
    for (at, byte) in message.iter_mut().enumerate() {
        let mixed = (at as u64 ^ number << 24).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *byte = (mixed >> 56) as u8;
    }
    if let Some(place) = message.first_chunk_mut() {
        *place = number.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends this many bytes as messages, changes one byte, and verifies them in pieces.
    fn arrives(size: usize, is_full: bool, piece: usize, changed: Option<usize>) -> bool {
        let (mut writer, mut reader) = (Writer::new(size, is_full), Reader::new(size, is_full));
        let mut stream = vec![];
        (0..20).for_each(|_| stream.extend_from_slice(writer.compose()));
        if let Some(at) = changed {
            stream[at] ^= 0x10;
        }
        let fine = stream.chunks(piece).all(|piece| reader.check(piece).is_ok());
        assert!(!fine || reader.messages() == 20);
        fine
    }

    #[test]
    fn what_is_sent_arrives_in_any_pieces() {
        for size in [8, 9, 64, 100] {
            for piece in [1, 3, 8, 13, 64, 1_000] {
                assert!(arrives(size, false, piece, None) && arrives(size, true, piece, None));
            }
        }
    }

    #[test]
    fn a_changed_byte_is_found() {
        for at in 0..20 * 24 {
            assert!(!arrives(24, true, 13, Some(at)), "byte {at}");
            assert_eq!(arrives(24, false, 13, Some(at)), at % 24 >= NUMBER_BYTES, "byte {at}");
        }
    }
}
