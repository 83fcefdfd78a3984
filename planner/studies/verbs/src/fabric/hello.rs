// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first message of each side of a connection between two places.
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | the mark `FPPLACES` |
//! | 8-11 | version |
//! | 12-13 | kind of place: 0 client, 1 host, 2 device's processor, 3 peer |
//! | 14-15 | number of the place; 0 for host and device's processor |
//! | 16-23 | bytes of the place's memory |
//!
//! Numbers are little-endian.

use super::refusal::Refusal;
use crate::place::Place;

const MARK: [u8; 8] = *b"FPPLACES";
const VERSION: u32 = 1;

/// Length of a hello in bytes.
pub const HELLO_BYTES: usize = 24;

/// The contents of a hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The place that sends it.
    pub place: Place,
    /// Size of its memory in bytes.
    pub memory_bytes: u64,
}

impl Hello {
    /// Returns the message.
    pub fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let (kind, number) = match self.place {
            Place::Client(number) => (0_u16, number),
            Place::Host => (1, 0),
            Place::Soc => (2, 0),
            Place::Peer(number) => (3, number),
        };
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..14].copy_from_slice(&kind.to_le_bytes());
        bytes[14..16].copy_from_slice(&number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.memory_bytes.to_le_bytes());
        bytes
    }

    /// Parses a message, which is not trusted.
    ///
    /// # Errors
    /// A field is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let found = bytes.len();
        let bytes: &[u8; HELLO_BYTES] =
            bytes.try_into().map_err(|_| Refusal::Length { expected: HELLO_BYTES, found })?;
        let (mark, numbers) = bytes.split_at(8);
        if mark != MARK {
            return Err(Refusal::Mark);
        }
        let number = |at: usize, length: usize| {
            let part = numbers.iter().skip(at).take(length).rev();
            part.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        if number(0, 4) != u64::from(VERSION) {
            return Err(Refusal::Version { ours: VERSION, theirs: number(0, 4) as u32 });
        }
        let place = match (number(4, 2), number(6, 2) as u16) {
            (0, number) => Place::Client(number),
            (1, 0) => Place::Host,
            (2, 0) => Place::Soc,
            (3, number) => Place::Peer(number),
            (kind, number) => return Err(Refusal::Place { kind: kind as u16, number }),
        };
        Ok(Self { place, memory_bytes: number(8, 8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        for place in [Place::Client(7), Place::Host, Place::Soc, Place::Peer(u16::MAX)] {
            let hello = Hello { place, memory_bytes: 0x0102_0304_0506_0708 };
            assert_eq!(Hello::parse(&hello.to_bytes()), Ok(hello));
        }
    }

    #[test]
    fn invalid_fields_are_refused_by_name() {
        let hello = Hello { place: Place::Host, memory_bytes: 64 }.to_bytes();
        let changed = |at: usize, byte| {
            let mut bytes = hello;
            bytes[at] = byte;
            Hello::parse(&bytes)
        };
        assert_eq!(changed(0, b'G'), Err(Refusal::Mark));
        assert_eq!(changed(8, 2), Err(Refusal::Version { ours: 1, theirs: 2 }));
        assert_eq!(changed(12, 9), Err(Refusal::Place { kind: 9, number: 0 }));
        assert_eq!(changed(14, 1), Err(Refusal::Place { kind: 1, number: 1 }));
        let short = Refusal::Length { expected: HELLO_BYTES, found: 23 };
        assert_eq!(Hello::parse(&hello[..23]), Err(short));
    }
}
