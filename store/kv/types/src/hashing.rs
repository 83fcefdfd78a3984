// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SipHash-1-3 of entries: a keyed hash function, so that clients who do not know the seed cannot
//! choose keys that collide (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; one
//! round per word and three at the end, as in the hash tables of several languages).

use crate::entry::Entry;

/// Returns the hash of `entry`. Integers are hashed as their value, which needs no text.
pub(crate) fn hash(seed: u64, entry: Entry<'_>) -> u64 {
    match entry {
        Entry::Bytes(bytes) => sip(seed, 0x6279_7465_7374_7269, bytes),
        Entry::Integer(value) => sip(seed, 0x696e_7465_6765_7273, &value.to_le_bytes()),
    }
}

/// The four words of the state.
struct State([u64; 4]);

impl State {
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }

    fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }
}

fn sip(key: u64, other_key: u64, bytes: &[u8]) -> u64 {
    let mut state = State([
        key ^ 0x736f_6d65_7073_6575,
        other_key ^ 0x646f_7261_6e64_6f6d,
        key ^ 0x6c79_6765_6e65_7261,
        other_key ^ 0x7465_6462_7974_6573,
    ]);
    let (words, rest) = bytes.as_chunks::<8>();
    for &word in words {
        state.word(u64::from_le_bytes(word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    state.word(u64::from_le_bytes(last));
    state.0[2] ^= 0xff;
    for _ in 0..3 {
        state.round();
    }
    state.0.into_iter().fold(0, |all, word| all ^ word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hasher};

    /// The standard library's hasher is SipHash-1-3 with a key of zero.
    #[test]
    fn it_is_the_hash_of_the_standard_library() {
        let bytes: Vec<u8> = (0..100).collect();
        for length in 0..bytes.len() {
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes[..length]);
            assert_eq!(sip(0, 0, &bytes[..length]), hasher.finish(), "{length} bytes");
        }
    }

    #[test]
    fn the_seed_and_the_kind_change_the_hash() {
        let eight = 7i64.to_le_bytes();
        assert_ne!(hash(1, Entry::Integer(7)), hash(2, Entry::Integer(7)));
        assert_ne!(hash(1, Entry::Integer(7)), hash(1, Entry::Bytes(&eight)));
    }
}
