// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Digests of values, by which tests see whether two data sets are the same: equal contents have
//! the same digest, whatever their form, their order in memory, and the shards of their keys.
//!
//! The digest of a set is the exclusive or of those of its elements. The digest without any element
//! is zero, as tests expect it of an empty data set. They are no protection against an adversary.

use std::fmt::{self, Display};

use freeport_kv_keyspace::{Keyspace, ValueRef};
use freeport_kv_types::stream::{FullGroup, StreamEntry, StreamInfo};
use freeport_kv_types::{Entry, StreamId, StreamRef};

/// Lanes of a digest, of 64 bits each; the last one shows half of them.
const LANES: usize = 3;

/// A digest of 160 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u64; LANES]);

impl Digest {
    /// Digest of a value with its time of expiry; zero: no such key.
    pub(super) fn of_key(keyspace: &Keyspace, key: &[u8], now_ms: u64) -> Self {
        let Some(value) = keyspace.value(key, now_ms) else { return Self::default() };
        let mut digest = Self::of(&[value.kind().name().as_bytes()]);
        digest.add(Self::of_value(value));
        if let Some(at_ms) = keyspace.expires_ms(key, now_ms).flatten() {
            digest.add(Self::of(&[b"expires", &at_ms.to_le_bytes()]));
        }
        digest
    }

    /// Adds all keys of a database, with their values.
    pub(super) fn add_database(&mut self, number: u16, keyspace: &Keyspace, now_ms: u64) {
        let mut cursor = 0;
        loop {
            cursor = keyspace.scan(cursor, now_ms, |key, _| {
                let value = Self::of_key(keyspace, key, now_ms);
                self.add(Self::of(&[&number.to_le_bytes(), key, &value.bytes()]));
            });
            if cursor == 0 {
                return;
            }
        }
    }

    fn of_value(value: ValueRef<'_>) -> Self {
        let mut digest = Self::default();
        match value {
            ValueRef::String(text) => digest.add(Self::of(&[text])),
            ValueRef::Hash(hash) => {
                hash.iter().for_each(|[field, value]| digest.add_pair(field, &value.to_vec()));
            }
            ValueRef::List(list) => list.iter().for_each(|element| digest.append(element)),
            ValueRef::Set(set) => set.iter().for_each(|member| digest.add_pair(member, b"")),
            ValueRef::SortedSet(set) => {
                set.iter()
                    .for_each(|(member, score)| digest.add_pair(member, &score.to_le_bytes()));
            }
            ValueRef::Stream(stream) => {
                let entries = stream.range(StreamId::MIN, StreamId::MAX);
                entries.for_each(|entry| digest.append_entry(entry));
                digest.append_counters(stream);
            }
        }
        digest
    }

    /// Digest of byte strings in their order.
    fn of(parts: &[&[u8]]) -> Self {
        const SEEDS: [u64; LANES] =
            [0xCBF2_9CE4_8422_2325, 0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];
        Self(SEEDS.map(|seed| parts.iter().fold(seed, |hash, part| hash_part(hash, part))))
    }

    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(lane, other)| *lane ^= other);
    }

    fn add_pair(&mut self, first: Entry<'_>, second: &[u8]) {
        self.add(first.with_bytes(|first| Self::of(&[first, second])));
    }

    /// Continues with an element whose place among the others counts.
    fn append(&mut self, element: Entry<'_>) {
        let before = self.bytes();
        *self = element.with_bytes(|element| Self::of(&[&before, element]));
    }

    fn append_entry(&mut self, entry: StreamEntry<'_>) {
        self.append_id(entry.id);
        for (name, value) in entry.fields {
            self.append_parts(&[name]);
            self.append(value);
        }
    }

    /// Continues with what a stream has besides its entries: the ids it has given and deleted, and
    /// its groups. Times at which consumers were seen are left out, as reads alone set them too.
    fn append_counters(&mut self, stream: StreamRef<'_>) {
        let info = stream.full_info(0);
        let StreamInfo { last_generated_id, max_deleted_entry_id, entries_added, .. } = info.stream;
        self.append_id(last_generated_id);
        self.append_id(max_deleted_entry_id);
        self.append_parts(&[&entries_added.to_le_bytes()]);
        for FullGroup { group, pending, consumers } in &info.groups {
            let read = group.entries_read.map_or([0xFF; 8], u64::to_le_bytes);
            self.append_parts(&[group.name, &read]);
            self.append_id(group.last_delivered_id);
            for entry in pending {
                let delivered = entry.delivered_ms.to_le_bytes();
                let deliveries = entry.deliveries.to_le_bytes();
                self.append_parts(&[entry.consumer, &delivered, &deliveries]);
                self.append_id(entry.id);
            }
            consumers.iter().for_each(|consumer| self.append_parts(&[consumer.name]));
        }
    }

    fn append_id(&mut self, StreamId { ms, seq }: StreamId) {
        self.append_parts(&[&ms.to_le_bytes(), &seq.to_le_bytes()]);
    }

    fn append_parts(&mut self, parts: &[&[u8]]) {
        let before = self.bytes();
        *self = Self::of(&[&[&before[..]], parts].concat());
    }

    fn bytes(self) -> [u8; LANES * 8] {
        let mut bytes = [0; LANES * 8];
        let lanes = self.0.iter().flat_map(|lane| lane.to_le_bytes());
        bytes.iter_mut().zip(lanes).for_each(|(byte, lane)| *byte = lane);
        bytes
    }
}

impl Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, third] = self.0;
        write!(formatter, "{first:016x}{second:016x}{:08x}", third >> 32)
    }
}

/// FNV-1a of the length and the bytes, mixed at the end.
fn hash_part(hash: u64, part: &[u8]) -> u64 {
    let length = (part.len() as u64).to_le_bytes();
    let hash = length
        .iter()
        .chain(part)
        .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
    let hash = (hash ^ hash >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_forty_digits_and_depends_on_all_parts() {
        assert_eq!(Digest::default().to_string(), "0".repeat(40));
        let texts: Vec<String> =
            [&[&b"ab"[..], b"c"][..], &[b"a", b"bc"], &[b"abc"], &[b"abc", b""]]
                .iter()
                .map(|parts| Digest::of(parts).to_string())
                .collect();
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(text.len(), 40);
            assert!(!texts[..at].contains(text));
        }
    }

    #[test]
    fn order_counts_where_it_is_part_of_the_value() {
        let [one, other] = [Entry::new(b"one"), Entry::new(b"2")];
        let mut sets = [Digest::default(); 2];
        sets[0].add_pair(one, b"");
        sets[0].add_pair(other, b"");
        sets[1].add_pair(other, b"");
        sets[1].add_pair(one, b"");
        assert_eq!(sets[0], sets[1]);
        let mut lists = [Digest::default(); 2];
        lists[0].append(one);
        lists[0].append(other);
        lists[1].append(other);
        lists[1].append(one);
        assert_ne!(lists[0], lists[1]);
    }
}
