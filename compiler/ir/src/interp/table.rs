// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of all kinds, and references into their values.
//!
//! A reference names an entry and its generation. Deleting or evicting an entry makes its
//! references stale: accesses through them count as out of range.

use super::memory::zeros;
use crate::oracle::TableEntries;
use crate::{Bits, Table, TableId, TableKind};
use std::collections::{BTreeMap, HashMap};

/// Bits of a longest-prefix key that hold the prefix length.
const PREFIX_LENGTH_BITS: u32 = 32;

/// A reference into the value of a table entry, or null.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reference {
    entry: Option<(TableId, Entry)>,
    /// Byte offset from the start of the value, modulo 2^64.
    offset: i64,
}

/// An entry of a table, valid until it is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    slot: usize,
    generation: u64,
}

impl Reference {
    /// Creates a reference to the first byte of the value of `entry`.
    pub fn to(table: TableId, entry: Entry) -> Self {
        Self { entry: Some((table, entry)), offset: 0 }
    }

    /// Returns whether it was made from an entry; that entry may have been deleted since.
    pub fn is_valid(self) -> bool {
        self.entry.is_some()
    }

    /// Returns the reference advanced by `bytes`.
    pub fn advanced(self, bytes: &Bits) -> Self {
        Self { offset: self.offset.wrapping_add(bytes.to_i64()), ..self }
    }

    /// Returns the table it points into.
    pub fn table(self) -> Option<TableId> {
        self.entry.map(|(table, _)| table)
    }
}

/// The contents of one table.
#[derive(Clone, Debug)]
pub(super) struct TableMemory {
    kind: TableKind,
    key_bits: u32,
    capacity: usize,
    value_bytes: usize,
    /// Entries by key. A longest-prefix key has the bits beyond its prefix cleared.
    slots: HashMap<Bits, usize>,
    keys: Vec<Bits>,
    generations: Vec<u64>,
    free: Vec<usize>,
    values: Vec<u8>,
    /// Time of the last use of each slot, and the slots in that order.
    last_uses: Vec<u64>,
    by_use: BTreeMap<u64, usize>,
    uses: u64,
}

impl TableMemory {
    /// Creates an empty table (an array of zeros); `None` if it exceeds this machine.
    pub fn new(table: &Table) -> Option<Self> {
        let capacity = usize::try_from(table.capacity).ok()?;
        let value_bytes = (table.value_bits / 8) as usize;
        let values = match table.kind {
            TableKind::Array => zeros(capacity.checked_mul(value_bytes)?)?,
            _ => vec![],
        };
        Some(Self {
            kind: table.kind,
            key_bits: table.key_bits,
            capacity,
            value_bytes,
            slots: HashMap::new(),
            keys: vec![],
            generations: vec![],
            free: vec![],
            values,
            last_uses: vec![],
            by_use: BTreeMap::new(),
            uses: 0,
        })
    }

    /// Returns whether a lookup changes the table by making the entry the most recently used.
    pub fn lookup_is_use(&self) -> bool {
        self.kind == TableKind::LruHash
    }

    /// Looks up the entry that `key` matches.
    pub fn lookup(&mut self, key: &Bits) -> Option<Entry> {
        let slot = self.find(key)?;
        self.note_use(slot);
        Some(self.entry(slot))
    }

    /// Looks up the value that `key` matches, for the host: not a use.
    pub fn peek(&self, key: &Bits) -> Option<Bits> {
        self.find(key).map(|slot| self.value(slot))
    }

    /// Returns all entries, in the order of [`TableEntries`].
    pub fn entries(&self) -> TableEntries {
        if self.kind == TableKind::Array {
            let keys = 1_usize.checked_shl(self.key_bits).unwrap_or(usize::MAX);
            let slots = 0..self.capacity.min(keys);
            let key = |slot: usize| Bits::from_u64(self.key_bits, slot as u64);
            return slots.map(|slot| (key(slot), self.value(slot))).collect();
        }
        if self.kind == TableKind::LruHash {
            let slots = self.by_use.values();
            return slots.map(|slot| (self.keys[*slot].clone(), self.value(*slot))).collect();
        }
        let slots = self.slots.iter();
        let mut entries: Vec<_> =
            slots.map(|(key, slot)| (key.clone(), self.value(*slot))).collect();
        crate::oracle::sort_entries(&mut entries);
        entries
    }

    fn find(&self, key: &Bits) -> Option<usize> {
        match self.kind {
            TableKind::Array => self.array_slot(key),
            TableKind::LongestPrefix => self.longest_prefix(key),
            TableKind::Hash | TableKind::LruHash => self.slots.get(key).copied(),
        }
    }

    fn value(&self, slot: usize) -> Bits {
        let bytes = &self.values[slot * self.value_bytes..][..self.value_bytes];
        Bits::from_le_bytes(self.value_bytes as u32 * 8, bytes)
    }

    /// Sets the value under `key`; returns false if there is no room or the key is invalid.
    pub fn update(&mut self, key: &Bits, value: &Bits) -> bool {
        let Some(slot) = self.slot_for(key) else { return false };
        self.note_use(slot);
        let bytes = value.to_le_bytes();
        self.values[slot * self.value_bytes..][..self.value_bytes].copy_from_slice(&bytes);
        true
    }

    /// Removes the entry under exactly `key`; returns false if there is none. Entries of an array
    /// stay.
    pub fn delete(&mut self, key: &Bits) -> bool {
        let removed = match self.kind {
            TableKind::Array => None,
            TableKind::LongestPrefix => {
                self.prefix(key).and_then(|prefix| self.slots.remove(&prefix))
            }
            TableKind::Hash | TableKind::LruHash => self.slots.remove(key),
        };
        if let Some(slot) = removed {
            self.generations[slot] += 1;
            self.by_use.remove(&self.last_uses[slot]);
            self.free.push(slot);
        }
        removed.is_some()
    }

    /// Loads `bytes` bytes through a reference; `None` if it is stale or out of range.
    pub fn load(&self, reference: Reference, bytes: usize) -> Option<Bits> {
        let range = self.range(reference, bytes)?;
        Some(Bits::from_le_bytes(bytes as u32 * 8, &self.values[range]))
    }

    /// Stores through a reference; returns false if it is stale or out of range.
    pub fn store(&mut self, reference: Reference, value: &Bits) -> bool {
        let bytes = value.to_le_bytes();
        let Some(range) = self.range(reference, bytes.len()) else { return false };
        self.values[range].copy_from_slice(&bytes);
        true
    }

    fn range(&self, reference: Reference, bytes: usize) -> Option<std::ops::Range<usize>> {
        let (_, entry) = reference.entry?;
        let start = usize::try_from(reference.offset).ok()?;
        let is_inside = start.checked_add(bytes)? <= self.value_bytes;
        let from = entry.slot * self.value_bytes + start;
        (is_inside && self.entry(entry.slot) == entry).then_some(from..from + bytes)
    }

    fn entry(&self, slot: usize) -> Entry {
        Entry { slot, generation: self.generations.get(slot).copied().unwrap_or(0) }
    }

    /// Returns the slot that an update of `key` writes, created if necessary.
    fn slot_for(&mut self, key: &Bits) -> Option<usize> {
        let key = match self.kind {
            TableKind::Array => return self.array_slot(key),
            TableKind::LongestPrefix => self.prefix(key)?,
            TableKind::Hash | TableKind::LruHash => key.clone(),
        };
        if let Some(slot) = self.slots.get(&key) {
            return Some(*slot);
        }
        if self.slots.len() >= self.capacity && !self.evict() {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.keys.push(key.clone());
                self.generations.push(0);
                self.last_uses.push(0);
                self.values.resize(self.values.len() + self.value_bytes, 0);
                self.keys.len() - 1
            }
        };
        self.keys[slot] = key.clone();
        self.last_uses[slot] = 0;
        self.slots.insert(key, slot);
        Some(slot)
    }

    /// Evicts the least recently used entry, if the table kind does that.
    fn evict(&mut self) -> bool {
        let oldest = self.by_use.first_key_value().map(|(_, slot)| *slot);
        oldest.is_some_and(|slot| self.delete(&self.keys[slot].clone()))
    }

    fn note_use(&mut self, slot: usize) {
        if self.kind == TableKind::LruHash {
            self.uses += 1;
            self.by_use.remove(&self.last_uses[slot]);
            self.by_use.insert(self.uses, slot);
            self.last_uses[slot] = self.uses;
        }
    }

    fn array_slot(&self, key: &Bits) -> Option<usize> {
        let index = usize::try_from(key.checked_u64()?).ok()?;
        (index < self.capacity).then_some(index)
    }

    fn longest_prefix(&self, key: &Bits) -> Option<usize> {
        let data_bits = self.key_bits.checked_sub(PREFIX_LENGTH_BITS)?;
        let most = (key.extract(0, PREFIX_LENGTH_BITS).to_u64() as u32).min(data_bits);
        (0..=most).rev().find_map(|length| {
            let shorter = key.insert(0, &Bits::from_u64(PREFIX_LENGTH_BITS, u64::from(length)));
            self.slots.get(&self.prefix(&shorter)?).copied()
        })
    }

    /// Clears the data of a longest-prefix key beyond its prefix; returns `None` if the prefix is
    /// longer than the data. The prefix covers the data byte by byte, each from its highest bit
    /// down.
    fn prefix(&self, key: &Bits) -> Option<Bits> {
        let data_bits = self.key_bits.checked_sub(PREFIX_LENGTH_BITS)?;
        let length = key.extract(0, PREFIX_LENGTH_BITS).to_u64() as u32;
        if length > data_bits {
            return None;
        }
        let mut bytes = key.to_le_bytes();
        let data = &mut bytes[(PREFIX_LENGTH_BITS / 8) as usize..];
        for (at, byte) in data.iter_mut().enumerate() {
            let kept = length.saturating_sub(at as u32 * 8).min(8);
            *byte &= !(0xff_u32 >> kept) as u8;
        }
        Some(Bits::from_le_bytes(self.key_bits, &bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loc;

    const TABLE: TableId = TableId(0);

    fn table(kind: TableKind, key_bits: u32, capacity: u64) -> TableMemory {
        let name = "table".into();
        let loc = Loc::default();
        TableMemory::new(&Table { name, kind, key_bits, value_bits: 32, capacity, loc }).unwrap()
    }

    fn bits(width: u32, value: u64) -> Bits {
        Bits::from_u64(width, value)
    }

    fn value_of(table: &mut TableMemory, key: u64) -> Option<u64> {
        let entry = table.lookup(&bits(table.key_bits, key))?;
        table.load(Reference::to(TABLE, entry), 4).map(|bits| bits.to_u64())
    }

    fn set(table: &mut TableMemory, key: u64, value: u64) -> bool {
        table.update(&bits(table.key_bits, key), &bits(32, value))
    }

    #[test]
    fn a_hash_table_fills_up_and_makes_room_only_by_delete() {
        let mut table = table(TableKind::Hash, 16, 2);
        assert!(set(&mut table, 1, 10) && set(&mut table, 2, 20));
        assert!(!set(&mut table, 3, 30));
        assert!(set(&mut table, 1, 11));
        assert_eq!([1, 2, 3].map(|key| value_of(&mut table, key)), [Some(11), Some(20), None]);
        assert!(table.delete(&bits(16, 1)) && !table.delete(&bits(16, 1)));
        assert!(set(&mut table, 3, 30));
        assert_eq!([1, 2, 3].map(|key| value_of(&mut table, key)), [None, Some(20), Some(30)]);
    }

    #[test]
    fn the_least_recently_used_entry_makes_room() {
        let mut table = table(TableKind::LruHash, 16, 2);
        assert!(set(&mut table, 1, 10) && set(&mut table, 2, 20));
        assert_eq!(value_of(&mut table, 1), Some(10));
        assert!(set(&mut table, 3, 30));
        assert_eq!([1, 2, 3].map(|key| value_of(&mut table, key)), [Some(10), None, Some(30)]);
        assert!(table.delete(&bits(16, 1)) && set(&mut table, 4, 40));
        assert_eq!([3, 4].map(|key| value_of(&mut table, key)), [Some(30), Some(40)]);
    }

    #[test]
    fn an_array_has_every_entry_from_the_start() {
        let mut table = table(TableKind::Array, 32, 3);
        assert_eq!([0, 2, 3].map(|key| value_of(&mut table, key)), [Some(0), Some(0), None]);
        assert!(set(&mut table, 2, 7) && !set(&mut table, 3, 7));
        assert_eq!(value_of(&mut table, 2), Some(7));
        assert!(!table.delete(&bits(32, 2)));
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut table = table(TableKind::LongestPrefix, 64, 8);
        let key = |length: u64, address: [u8; 4]| {
            length | u64::from(u32::from_le_bytes(address)) << PREFIX_LENGTH_BITS
        };
        assert!(set(&mut table, key(0, [0; 4]), 1));
        assert!(set(&mut table, key(9, [10, 128, 0, 0]), 2));
        assert!(set(&mut table, key(24, [10, 129, 2, 99]), 3));
        assert!(!set(&mut table, key(33, [10, 129, 2, 99]), 4));
        let mut find = |length, address| value_of(&mut table, key(length, address));
        assert_eq!(find(32, [10, 129, 2, 3]), Some(3));
        assert_eq!(find(32, [10, 129, 3, 3]), Some(2));
        assert_eq!(find(32, [10, 127, 3, 3]), Some(1));
        assert_eq!(find(16, [10, 129, 2, 3]), Some(2));
        assert!(table.delete(&bits(64, key(24, [10, 129, 2, 7]))));
        assert_eq!(value_of(&mut table, key(32, [10, 129, 2, 3])), Some(2));
    }

    #[test]
    fn references_end_with_their_entry_and_with_its_value() {
        let mut table = table(TableKind::Hash, 16, 2);
        set(&mut table, 1, 0x4433_2211);
        let reference = Reference::to(TABLE, table.lookup(&bits(16, 1)).unwrap());
        let second = reference.advanced(&bits(8, 1));
        assert_eq!(table.load(second, 2), Some(bits(16, 0x3322)));
        assert!(table.store(second, &bits(8, 0xaa)));
        assert_eq!(value_of(&mut table, 1), Some(0x4433_aa11));
        assert_eq!(table.load(second, 4), None);
        assert_eq!(table.load(reference.advanced(&bits(8, 0xff)), 1), None);
        table.delete(&bits(16, 1));
        set(&mut table, 2, 5);
        assert_eq!(table.load(reference, 4), None);
        assert!(!table.store(reference, &bits(8, 1)) && reference.is_valid());
        assert_eq!(table.load(Reference::default(), 1), None);
    }
}
