// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes of keys. One 64-bit hash of a key gives two numbers from disjoint bits: the bucket (low
//! bits), and the secondary hash (top nine bits), which rejects the wrong slots of a bucket without
//! a look at their keys (KV-Direct, hash table).
//!
//! The function folds 128-bit products of the key's words with secret seeds. An engine that serves
//! strangers takes random seeds, so that they cannot choose keys of one bucket.

/// Bits of the secondary hash.
pub const SECONDARY_BITS: u32 = 9;

/// Hash of a key, with its first bytes, which the search compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash {
    /// All 64 bits.
    pub bits: u64,
    /// Up to eight first bytes of the key, little-endian, zero above its end.
    pub head: u64,
}

impl Hash {
    /// Secondary hash, below 512.
    #[inline(always)]
    pub fn secondary(self) -> u64 {
        self.bits >> (64 - SECONDARY_BITS)
    }
}

/// A hash function with its seeds.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    seeds: [u64; 3],
}

impl Hasher {
    /// The function that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        // Splitmix, so that similar seeds give unrelated functions.
        let mut state = seed;
        let seeds = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        });
        Self { seeds }
    }

    /// Hash of a key of any length.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> Hash {
        let [first, second, third] = self.seeds;
        let length = key.len() as u64;
        let head = head_of(key);
        let bits = match key.len() {
            0..=8 => fold(head ^ first, length ^ second),
            9..=16 => fold(head ^ first, word_at(key, key.len() - 8) ^ second ^ length),
            _ => self.hash_long(key),
        };
        Hash { bits: fold(bits ^ third, length ^ first), head }
    }

    fn hash_long(&self, key: &[u8]) -> u64 {
        let [first, second, third] = self.seeds;
        let mut state = first ^ key.len() as u64;
        let mut at = 0;
        while key.len() - at > 16 {
            state = fold(word_at(key, at) ^ second ^ state, word_at(key, at + 8) ^ third)
                .wrapping_add(state.rotate_left(23));
            at += 16;
        }
        let (last, tail) = (word_at(key, key.len() - 16), word_at(key, key.len() - 8));
        fold(last ^ second ^ state, tail ^ third ^ state)
    }
}

/// Up to eight first bytes of `key` as a little-endian number.
#[inline(always)]
pub fn head_of(key: &[u8]) -> u64 {
    match key.len() {
        8.. => word_at(key, 0),
        length @ 4..8 => {
            let low = u32::from_le_bytes([key[0], key[1], key[2], key[3]]);
            let end = length - 4;
            let high = u32::from_le_bytes([key[end], key[end + 1], key[end + 2], key[end + 3]]);
            u64::from(low) | u64::from(high) << (8 * end)
        }
        length @ 1..4 => {
            let (middle, last) = (length / 2, length - 1);
            u64::from(key[0])
                | u64::from(key[middle]) << (8 * middle)
                | u64::from(key[last]) << (8 * last)
        }
        0 => 0,
    }
}

#[inline(always)]
fn word_at(key: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&key[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_has_the_first_bytes() {
        let key = b"abcdefghij";
        for length in 0..=key.len() {
            let mut word = [0; 8];
            let copied = length.min(8);
            word[..copied].copy_from_slice(&key[..copied]);
            assert_eq!(head_of(&key[..length]), u64::from_le_bytes(word), "{length} bytes");
        }
    }

    #[test]
    fn every_bit_of_a_key_and_its_length_change_the_hash() {
        let hasher = Hasher::new(7);
        for length in 0..80 {
            let key: Vec<u8> = (0..length).map(|byte| byte * 3).collect();
            let plain = hasher.hash(&key).bits;
            for bit in 0..usize::from(length) * 8 {
                let mut changed = key.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let difference = (hasher.hash(&changed).bits ^ plain).count_ones();
                assert!((8..56).contains(&difference), "{length} bytes, bit {bit}: {difference}");
            }
            let mut longer = key.clone();
            longer.push(0);
            assert_ne!(hasher.hash(&longer).bits, plain);
        }
    }

    /// A chi-squared test of the buckets and of the secondary hashes, of consecutive numbers as
    /// keys: binary and decimal.
    #[test]
    fn consecutive_keys_spread_evenly() {
        const CELLS: usize = 512;
        const KEYS: u64 = 200_000;
        let hasher = Hasher::new(1);
        let binary = |number: u64| number.to_le_bytes().to_vec();
        let short = |number: u64| number.to_le_bytes()[..5].to_vec();
        let decimal = |number: u64| format!("user{number:020}").into_bytes();
        let makers: [&dyn Fn(u64) -> Vec<u8>; 3] = [&binary, &short, &decimal];
        for (kind, make) in makers.iter().enumerate() {
            let mut counts = [[0_u64; CELLS]; 2];
            for number in 0..KEYS {
                let hash = hasher.hash(&make(number));
                counts[0][hash.bits as usize % CELLS] += 1;
                counts[1][hash.secondary() as usize] += 1;
            }
            for (part, counts) in counts.iter().enumerate() {
                let mean = KEYS as f64 / CELLS as f64;
                let squared: f64 =
                    counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
                // 511 degrees of freedom: mean 511, standard deviation 32; six of them.
                assert!((319.0..703.0).contains(&squared), "keys {kind}, part {part}: {squared}");
            }
        }
    }
}
