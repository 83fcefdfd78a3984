// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Items: a word with state and version, a word with lengths and checksum, key and value, in whole
//! words of 8 bytes.
//!
//! Lengths, key and value of a version never change; only the state does. The checksum covers
//! everything but the state. A reader whose bytes come from different moments, or from two items
//! that had the same memory one after the other, therefore notices it, and the item was in the
//! state that it read at the moment when it read the state.

use crc32c::crc32c_append;

/// Bytes before the key.
const HEADER: usize = 16;
/// Bits of the version in the first word.
const VERSION_BITS: u32 = 62;

/// The state of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is not there yet.
    Pending = 1,
    /// It is the value of its key.
    Alive = 2,
    /// It was replaced or deleted.
    Dead = 3,
}

/// Result of a check of bytes that were read where an entry said that an item is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Check {
    /// The value of the key.
    Value(Vec<u8>),
    /// The entry belongs to another key.
    OtherKey,
    /// The item is pending, dead, or no longer there: the index has to be read again.
    Stale,
}

/// Returns the first word of an item.
pub fn state_word(state: State, version: u64) -> u64 {
    (state as u64) << VERSION_BITS | version
}

/// Returns the length of an item in bytes.
pub fn item_bytes(key: &[u8], value: &[u8]) -> u64 {
    (HEADER + key.len() + value.len()).next_multiple_of(8) as u64
}

/// Encodes an item. The key has at most 255 bytes, the value fewer than 2^24.
pub fn encode(state: State, version: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut item = Vec::with_capacity(item_bytes(key, value) as usize);
    item.extend(state_word(state, version).to_le_bytes());
    let lengths = (value.len() as u32) << 8 | key.len() as u32;
    item.extend(lengths.to_le_bytes());
    item.extend(checksum(version, lengths, &[key, value]).to_le_bytes());
    item.extend(key);
    item.extend(value);
    item.resize(item.len().next_multiple_of(8), 0);
    item
}

fn checksum(version: u64, lengths: u32, contents: &[&[u8]]) -> u32 {
    let header = crc32c_append(0, &version.to_le_bytes());
    let header = crc32c_append(header, &lengths.to_le_bytes());
    contents.iter().fold(header, |sum, part| crc32c_append(sum, part))
}

/// Returns the version and the state of an item, if there is one.
fn head(item: &[u8]) -> Option<(u64, u64)> {
    let word = u64::from_le_bytes(*item.first_chunk()?);
    Some((word & ((1 << VERSION_BITS) - 1), word >> VERSION_BITS))
}

/// Checks bytes that were read as an item, for a key. `has_version` tells whether an item of a
/// version is the wanted one.
pub fn check(item: &[u8], key: &[u8], has_version: impl FnOnce(u64) -> bool) -> Check {
    check_parts(item, key, has_version).unwrap_or(Check::Stale)
}

fn check_parts(item: &[u8], key: &[u8], has_version: impl FnOnce(u64) -> bool) -> Option<Check> {
    let (version, state) = head(item)?;
    if state != State::Alive as u64 || !has_version(version) {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(*item.get(at..)?.first_chunk()?));
    let (lengths, sum) = (word(8)?, word(12)?);
    let (key_bytes, value_bytes) = ((lengths & 255) as usize, (lengths >> 8) as usize);
    let contents = item.get(HEADER..)?.get(..key_bytes + value_bytes)?;
    if checksum(version, lengths, &[contents]) != sum {
        return None;
    }
    let (found, value) = contents.split_at(key_bytes);
    Some(if found == key { Check::Value(value.to_vec()) } else { Check::OtherKey })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_checked() {
        let item = encode(State::Alive, 9, b"key", b"value");
        assert_eq!(item.len() as u64, item_bytes(b"key", b"value"));
        assert_eq!(check(&item, b"key", |version| version == 9), Check::Value(b"value".into()));
        assert_eq!(check(&item, b"kex", |_| true), Check::OtherKey);
        assert_eq!(check(&item, b"key", |version| version == 8), Check::Stale);
        for state in [State::Pending, State::Dead] {
            let item = encode(state, 9, b"key", b"value");
            assert_eq!(check(&item, b"key", |_| true), Check::Stale);
        }
        for cut in 0..24 {
            assert_eq!(check(&item[..cut.min(item.len() - 1)], b"key", |_| true), Check::Stale);
        }
    }

    #[test]
    fn parts_of_two_items_are_stale() {
        let (old, new) = (b"key".as_slice(), b"other".as_slice());
        let items = [encode(State::Alive, 1, old, b"12345678"), encode(State::Alive, 2, new, b"1")];
        let items = [items[0].clone(), [items[1].clone(), vec![0; 8]].concat()];
        for at in (8..24).step_by(8) {
            for (first, second) in [(0, 1), (1, 0)] {
                let torn = [&items[first][..at], &items[second][at..]].concat();
                for key in [old, new] {
                    assert_eq!(check(&torn, key, |_| true), Check::Stale, "{at} {first}");
                }
            }
        }
    }

    #[test]
    fn no_bytes_panic() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let mut item = encode(State::Alive, 1, b"key", b"value");
            for _ in 0..random.usize(..4) {
                let at = random.usize(..item.len());
                item[at] = random.u8(..);
            }
            check(&item, b"key", |_| true);
        }
    }
}
