// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys and values of records, as functions of a rank.

use super::Sizes;
use super::sizes::mix;

/// The form of keys. Different ranks have different keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keys {
    /// The rank as a little-endian number of this many bytes; zeros follow the eighth byte.
    Binary(usize),
    /// `user` and the rank in this many decimal digits, as in YCSB.
    User(usize),
    /// The rank in this many decimal digits: short keys for protocols of text.
    Decimal(usize),
}

impl Keys {
    /// Bytes of a key.
    pub const fn bytes(self) -> usize {
        match self {
            Keys::Binary(bytes) => bytes,
            Keys::User(digits) => "user".len() + digits,
            Keys::Decimal(digits) => digits,
        }
    }

    /// Number of different keys; more ranks than that cannot be used.
    pub fn ranks(self) -> u64 {
        let (base, digits) = match self {
            Keys::Binary(bytes) => (256, bytes),
            Keys::User(digits) | Keys::Decimal(digits) => (10u64, digits),
        };
        u32::try_from(digits).ok().and_then(|digits| base.checked_pow(digits)).unwrap_or(u64::MAX)
    }

    /// Makes the key of `rank`, in place of what `key` contained.
    #[inline]
    pub fn write(self, rank: u64, key: &mut Vec<u8>) {
        debug_assert!(rank < self.ranks(), "rank {rank} has no key of its own in {self:?}");
        key.clear();
        match self {
            Keys::Binary(bytes) => {
                key.extend_from_slice(&rank.to_le_bytes()[..bytes.min(8)]);
                key.resize(bytes, 0);
            }
            Keys::User(digits) => {
                key.extend_from_slice(b"user");
                append_decimal(rank, digits, key);
            }
            Keys::Decimal(digits) => append_decimal(rank, digits, key),
        }
    }

    /// The key of `rank`.
    pub fn key(self, rank: u64) -> Vec<u8> {
        let mut key = vec![];
        self.write(rank, &mut key);
        key
    }
}

/// Appends the last decimal digits of `rank`, with leading zeros.
#[inline]
fn append_decimal(rank: u64, digits: usize, key: &mut Vec<u8>) {
    let start = key.len();
    key.resize(start + digits, b'0');
    let mut rest = rank;
    for digit in key[start..].iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
}

/// The contents of values. Bytes depend on rank and version, so that a reader notices a value of
/// another record, an old one, and one that was torn.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    sizes: Sizes,
}

impl Values {
    /// Values with the given sizes in bytes.
    pub fn new(sizes: Sizes) -> Values {
        Values { sizes }
    }

    /// Values that fill pairs up to the given sizes, with keys of `key_bytes`.
    ///
    /// Returns `None` if a pair is smaller than its key.
    pub fn of_pairs(pairs: &Sizes, key_bytes: usize) -> Option<Values> {
        let values: Option<Vec<_>> = pairs
            .shares()
            .map(|(bytes, share)| Some((bytes.checked_sub(key_bytes)?, share)))
            .collect();
        Sizes::weighted(&values?).map(Values::new)
    }

    /// The sizes in bytes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Makes the value of `rank` in its `version`, in place of what `value` contained.
    #[inline]
    pub fn write(&self, rank: u64, version: u32, value: &mut Vec<u8>) {
        let bytes = self.sizes.of(rank);
        value.clear();
        let mut state = mix(rank) ^ u64::from(version);
        while value.len() < bytes {
            state = mix(state);
            let more = (bytes - value.len()).min(8);
            value.extend_from_slice(&state.to_le_bytes()[..more]);
        }
    }

    /// The value of `rank` in its `version`.
    pub fn value(&self, rank: u64, version: u32) -> Vec<u8> {
        let mut value = vec![];
        self.write(rank, version, &mut value);
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_different_and_have_their_form() {
        assert_eq!(Keys::User(8).key(4201), b"user00004201");
        assert_eq!(Keys::User(2).key(99), b"user99");
        assert_eq!(Keys::Decimal(6).key(4201), b"004201");
        assert_eq!(Keys::Binary(3).key(0x0102), [2, 1, 0]);
        assert_eq!(Keys::Binary(10).key(1 << 56), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        for keys in [Keys::Binary(2), Keys::Binary(16), Keys::User(5), Keys::Decimal(4)] {
            let all: HashSet<_> = (0..10_000).map(|rank| keys.key(rank)).collect();
            assert_eq!(all.len(), 10_000, "{keys:?}");
            assert!(all.iter().all(|key| key.len() == keys.bytes()), "{keys:?}");
        }
    }

    #[test]
    fn the_number_of_keys_is_known() {
        let keys =
            [Keys::Binary(1), Keys::Binary(7), Keys::Binary(8), Keys::User(3), Keys::User(40)];
        assert_eq!(keys.map(Keys::ranks), [256, 1 << 56, u64::MAX, 1000, u64::MAX]);
        assert_eq!(Keys::Decimal(8).ranks(), 100_000_000);
    }

    #[test]
    fn values_differ_by_rank_and_version() {
        let values = Values::of_pairs(&Sizes::fixed(21), 8).expect("keys fit");
        let all: HashSet<_> = (0..100)
            .flat_map(|rank| [(rank, 0), (rank, 1)])
            .map(|(r, v)| values.value(r, v))
            .collect();
        assert_eq!(all.len(), 200);
        assert!(all.iter().all(|value| value.len() == 13));
        assert_eq!(values.value(5, 3), values.value(5, 3));
        assert_eq!(Values::of_pairs(&Sizes::fixed(7), 8), None);
    }
}
