// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Buckets of the rival tables: four slots in a line of 64 bytes.
//!
//! ```text
//! bytes  0..56   four slots of 14 bytes: code, tag, eight bytes of key, unit of the value's block
//!       56..60   unit of the next bucket of the chain; 0 if none
//! ```
//!
//! The code is 0 in a free slot. Otherwise its upper half is the class of the block plus one, and
//! its lower half the length of the key.

use super::memory::Pointer;
use crate::workload::mix;

/// Bytes of a bucket, and of a line.
pub(super) const BUCKET_BYTES: usize = 64;
/// Slots of a bucket.
pub(super) const SLOTS: usize = 4;
/// Largest key in bytes.
pub const KEY_BYTES: usize = 8;

const ENTRY_BYTES: usize = 14;
const KEY: usize = 2;
const UNIT: usize = KEY + KEY_BYTES;
const NEXT: usize = SLOTS * ENTRY_BYTES;

/// An occupied slot: a key and the place of its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    bytes: [u8; ENTRY_BYTES],
}

impl Entry {
    /// An entry for a key of at most `KEY_BYTES`.
    pub fn new(key: &[u8], tag: u8, pointer: Pointer) -> Entry {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = (pointer.class + 1) << 4 | key.len() as u8;
        bytes[1] = tag;
        bytes[KEY..][..key.len()].copy_from_slice(key);
        bytes[UNIT..].copy_from_slice(&pointer.unit.to_le_bytes());
        Entry { bytes }
    }

    pub fn key(&self) -> &[u8] {
        &self.bytes[KEY..][..usize::from(self.bytes[0] & 15)]
    }

    pub fn tag(&self) -> u8 {
        self.bytes[1]
    }

    pub fn pointer(&self) -> Pointer {
        let unit = self.bytes[UNIT..].try_into().expect("the unit ends the entry");
        Pointer { unit: u32::from_le_bytes(unit), class: (self.bytes[0] >> 4) - 1 }
    }
}

/// A copy of a bucket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Bucket {
    pub bytes: [u8; BUCKET_BYTES],
}

impl Bucket {
    pub const EMPTY: Bucket = Bucket { bytes: [0; BUCKET_BYTES] };

    /// The entry of a slot, unless the slot is free.
    pub fn entry(&self, slot: usize) -> Option<Entry> {
        let bytes = self.bytes[slot * ENTRY_BYTES..][..ENTRY_BYTES].try_into();
        let entry = Entry { bytes: bytes.expect("slots lie in the bucket") };
        (entry.bytes[0] != 0).then_some(entry)
    }

    pub fn set(&mut self, slot: usize, entry: Option<Entry>) {
        let bytes = entry.map_or([0; ENTRY_BYTES], |entry| entry.bytes);
        self.bytes[slot * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(&bytes);
    }

    /// Slots in use, with their entries.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (usize, Entry)> {
        (0..SLOTS).filter_map(|slot| Some((slot, self.entry(slot)?)))
    }

    /// The slot and entry of `key`. All keys are compared, at once in hardware.
    pub fn find(&self, key: &[u8]) -> Option<(usize, Entry)> {
        self.entries().find(|(_, entry)| entry.key() == key)
    }

    pub fn free_slot(&self) -> Option<usize> {
        (0..SLOTS).find(|&slot| self.bytes[slot * ENTRY_BYTES] == 0)
    }

    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Unit of the next bucket of the chain; 0 if there is none.
    pub fn next(&self) -> u32 {
        let unit = self.bytes[NEXT..NEXT + 4].try_into().expect("four bytes");
        u32::from_le_bytes(unit)
    }

    pub fn set_next(&mut self, unit: u32) {
        self.bytes[NEXT..NEXT + 4].copy_from_slice(&unit.to_le_bytes());
    }
}

/// Hash of a key of at most `KEY_BYTES`.
pub(super) fn hash(key: &[u8], seed: u64) -> u64 {
    let mut bytes = [0; KEY_BYTES];
    bytes[..key.len()].copy_from_slice(key);
    mix(mix(u64::from_le_bytes(bytes) ^ seed) ^ key.len() as u64)
}

/// The bucket, of `buckets`, that a hash stands for.
pub(super) fn bucket_of(hash: u64, buckets: u64) -> u64 {
    ((u128::from(hash) * u128::from(buckets)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_parts() {
        let mut bucket = Bucket::EMPTY;
        assert!(bucket.is_empty());
        for (slot, key) in [&b""[..], b"a", b"seven77", b"eight888"].into_iter().enumerate() {
            assert_eq!(bucket.free_slot(), Some(slot));
            let pointer = Pointer { unit: u32::MAX - slot as u32, class: slot as u8 * 2 };
            let entry = Entry::new(key, 250 + slot as u8, pointer);
            bucket.set(slot, Some(entry));
            assert_eq!(bucket.find(key), Some((slot, entry)));
            assert_eq!((entry.key(), entry.tag()), (key, 250 + slot as u8));
            assert_eq!(entry.pointer(), pointer);
        }
        bucket.set_next(77);
        assert_eq!((bucket.free_slot(), bucket.next()), (None, 77));
        assert_eq!(bucket.find(b"eight88\0"), None);
        bucket.set(2, None);
        assert_eq!((bucket.free_slot(), bucket.entries().count()), (Some(2), 3));
        assert_eq!(bucket.find(b"seven77"), None);
    }

    #[test]
    fn keys_that_differ_in_length_only_have_different_hashes() {
        let hashes = [&b""[..], b"\0", b"\0\0", b"a", b"a\0"].map(|key| hash(key, 1));
        for (at, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..at].contains(hash), "{hashes:?}");
            assert!(bucket_of(*hash, 10) < 10);
        }
        assert_eq!((bucket_of(0, 7), bucket_of(u64::MAX, 7)), (0, 6));
    }
}
