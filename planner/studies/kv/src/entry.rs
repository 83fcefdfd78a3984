// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of the index: two words, of which each has the version, so that readers notice an entry
//! whose words do not belong together.
//!
//! | word | bits | contents |
//! |---|---|---|
//! | 0 | 63 to 48 | fingerprint of the key |
//! | 0 | 47 to 24 | length of the item in words of 8 bytes; zero if there is none |
//! | 0 | 23 to 0 | version |
//! | 1 | 63 to 40 | version |
//! | 1 | 39 to 0 | address of the item; 1 if there is none |
//!
//! An entry that was never used is zero. One whose item was deleted is not, since keys may be in
//! buckets that lie beyond it.

use crate::layout::ENTRY_BYTES;

/// Bits of the version in an entry.
const VERSION: u64 = (1 << 24) - 1;
/// Address of a deleted item.
const DELETED: u64 = 1;

/// An entry that names an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Fingerprint of the key.
    pub fingerprint: u16,
    /// Version of the item; entries have its low 24 bits.
    pub version: u64,
    /// First byte of the item in the host's memory.
    pub at: u64,
    /// Length of the item in bytes.
    pub bytes: u64,
}

/// The contents of an entry as they were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// It was never used: no key is in a bucket beyond this one.
    Unused,
    /// Its item was deleted.
    Deleted,
    /// It names an item.
    Live(Entry),
    /// It is being written.
    Torn,
}

impl Entry {
    /// Returns whether an item may be the entry's.
    pub fn has_version(&self, version: u64) -> bool {
        self.version & VERSION == version & VERSION
    }
}

impl Slot {
    /// Returns the slots of a bucket.
    pub fn of_bucket(bucket: &[u8]) -> impl Iterator<Item = Self> {
        bucket.as_chunks().0.iter().map(Self::decode)
    }

    /// Decodes an entry.
    pub fn decode(bytes: &[u8; ENTRY_BYTES as usize]) -> Self {
        let number = u128::from_le_bytes(*bytes);
        let (first, second) = (number as u64, (number >> 64) as u64);
        let (version, at) = (first & VERSION, second & ((1 << 40) - 1));
        let bytes = (first >> 24 & VERSION) * 8;
        match (bytes, at) {
            _ if number == 0 => Self::Unused,
            _ if version != second >> 40 => Self::Torn,
            (0, DELETED) => Self::Deleted,
            (0, _) | (_, 0..=DELETED) => Self::Torn,
            _ => {
                let fingerprint = (first >> 48) as u16;
                Self::Live(Entry { fingerprint, version, at, bytes })
            }
        }
    }

    /// Encodes an entry with a version.
    pub fn encode(entry: Option<&Entry>, version: u64) -> [u8; ENTRY_BYTES as usize] {
        let version = version & VERSION;
        let (fingerprint, words, at) = match entry {
            Some(entry) => (entry.fingerprint, entry.bytes / 8, entry.at),
            None => (0, 0, DELETED),
        };
        let first = u64::from(fingerprint) << 48 | words << 24 | version;
        let second = version << 40 | at;
        (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_written() {
        let entry = Entry { fingerprint: 0xabcd, version: 77, at: 1 << 33, bytes: 1 << 20 };
        let bytes = Slot::encode(Some(&entry), entry.version);
        assert_eq!(Slot::decode(&bytes), Slot::Live(entry));
        assert_eq!(Slot::decode(&[0; 16]), Slot::Unused);
        // A version whose low bits are zero is not unused.
        assert_eq!(Slot::decode(&Slot::encode(None, 1 << 24)), Slot::Deleted);
    }

    #[test]
    fn words_of_two_entries_are_torn() {
        let new = |version| Entry { fingerprint: 1, version, at: 64 * version, bytes: 32 };
        let kinds = [None, Some(new(1)), Some(new(2))];
        let encoded = |at: usize| match (&kinds[at], at) {
            (None, 0) => [0; 16],
            (entry, _) => Slot::encode(entry.as_ref(), at as u64),
        };
        for (one, two) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            let mut torn = encoded(one);
            torn[8..].copy_from_slice(&encoded(two)[8..]);
            assert_eq!(Slot::decode(&torn), Slot::Torn, "{one} {two}");
        }
        let mut torn = Slot::encode(None, 3);
        torn[8..].copy_from_slice(&encoded(2)[8..]);
        assert_eq!(Slot::decode(&torn), Slot::Torn);
    }
}
