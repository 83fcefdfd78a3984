// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assigns keys to elements of a map: a hash table with chaining, preallocated as a whole.
//!
//! Elements are numbered. An element is either in the free list, of which the one freed last is
//! allocated first, as in the kernel, or holds a key in the chain of its bucket. The hash is
//! seeded, because keys are usually controlled by the senders of packets.

/// End of a chain or of the free list.
const END: u32 = u32::MAX;

/// Keys of one size, and the elements that hold them.
pub(crate) struct HashIndex {
    keys: Vec<u8>,
    key_size: usize,
    links: Vec<Link>,
    buckets: Vec<u32>,
    seed: u64,
    free: u32,
}

/// Links of an element in its chain.
#[derive(Clone, Copy)]
struct Link {
    next: u32,
    hash: u32,
    is_used: bool,
}

impl HashIndex {
    /// Returns the size in bytes of an index of `count` keys, or `None` on overflow.
    pub fn bytes_for(count: u64, key_size: u32) -> Option<usize> {
        let one = u64::from(key_size) + size_of::<Link>() as u64 + 8;
        usize::try_from(count.checked_mul(one)?).ok()
    }

    /// Creates an index with `count` free elements, for keys of `key_size` bytes.
    pub fn new(count: u32, key_size: u32, seed: u64) -> Self {
        let link = |at: u32| Link {
            next: if at + 1 < count { at + 1 } else { END },
            hash: 0,
            is_used: false,
        };
        Self {
            keys: vec![0; count as usize * key_size as usize],
            key_size: key_size as usize,
            links: (0..count).map(link).collect(),
            buckets: vec![END; (count as usize).max(1).next_power_of_two()],
            seed,
            free: if count > 0 { 0 } else { END },
        }
    }

    /// Returns the key of `element`.
    pub fn key(&self, element: u32) -> &[u8] {
        let start = element as usize * self.key_size;
        &self.keys[start..start + self.key_size]
    }

    /// Returns the element that holds `key`, which has the size of all keys.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hash(key);
        let mut at = self.buckets[self.bucket(hash)];
        while at != END {
            let link = self.links[at as usize];
            if link.hash == hash && self.key(at) == key {
                return Some(at);
            }
            at = link.next;
        }
        None
    }

    /// Allocates an element from the free list, without a key.
    pub fn take(&mut self) -> Option<u32> {
        let element = self.free;
        if element == END {
            return None;
        }
        self.free = self.links[element as usize].next;
        Some(element)
    }

    /// Stores `key`, which no other element holds, in an allocated element.
    pub fn insert(&mut self, element: u32, key: &[u8]) {
        let hash = self.hash(key);
        let bucket = self.bucket(hash);
        let start = element as usize * self.key_size;
        self.keys[start..start + self.key_size].copy_from_slice(key);
        self.links[element as usize] = Link { next: self.buckets[bucket], hash, is_used: true };
        self.buckets[bucket] = element;
    }

    /// Removes `key`; its element then belongs to the caller.
    pub fn detach(&mut self, key: &[u8]) -> Option<u32> {
        let hash = self.hash(key);
        let bucket = self.bucket(hash);
        let (mut before, mut at) = (END, self.buckets[bucket]);
        while at != END {
            let link = self.links[at as usize];
            if link.hash == hash && self.key(at) == key {
                match before {
                    END => self.buckets[bucket] = link.next,
                    before => self.links[before as usize].next = link.next,
                }
                self.links[at as usize].is_used = false;
                return Some(at);
            }
            (before, at) = (at, link.next);
        }
        None
    }

    /// Frees an element that holds no key.
    pub fn give_back(&mut self, element: u32) {
        self.links[element as usize] = Link { next: self.free, hash: 0, is_used: false };
        self.free = element;
    }

    /// Returns whether `element` holds a key.
    pub fn is_used(&self, element: u32) -> bool {
        self.links.get(element as usize).is_some_and(|link| link.is_used)
    }

    /// Returns the first element from `from` on that holds a key.
    pub fn next_used(&self, from: u32) -> Option<u32> {
        (from..self.links.len() as u32).find(|&element| self.is_used(element))
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    fn hash(&self, key: &[u8]) -> u32 {
        hash(self.seed, key)
    }
}

/// Hashes `bytes`: words are multiplied to 128 bits and both halves folded, as in wyhash.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        state = fold(state ^ word, MULTIPLIER ^ seed.rotate_left(32));
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        state = fold(state ^ u64::from_le_bytes(last), MULTIPLIER ^ seed.rotate_left(32));
    }
    (fold(state ^ MULTIPLIER, seed | 1) >> 7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn random_operations_agree_with_a_model() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut index = HashIndex::new(50, 3, 99);
        let mut model: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for _ in 0..20_000 {
            let key = vec![random.u8(0..80), 0, random.u8(0..2)];
            assert_eq!(index.find(&key), model.get(&key).copied());
            if random.bool() {
                let removed = index.detach(&key);
                assert_eq!(removed, model.remove(&key));
                removed.inspect(|&element| index.give_back(element));
            } else if index.find(&key).is_none() {
                match index.take() {
                    Some(element) => {
                        assert!(!model.values().any(|&other| other == element), "it was free");
                        index.insert(element, &key);
                        model.insert(key, element);
                    }
                    None => assert_eq!(model.len(), 50, "full only when all are used"),
                }
            }
        }
        let mut all = vec![];
        let mut next = index.next_used(0);
        while let Some(element) = next {
            all.push(index.key(element).to_vec());
            next = index.next_used(element + 1);
        }
        all.sort();
        assert_eq!(all, model.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn hashes_of_counted_keys_spread() {
        let mut buckets = [0; 64];
        for key in 0..6_400_u32 {
            buckets[hash(5, &key.to_le_bytes()) as usize % 64] += 1;
        }
        assert!(buckets.iter().all(|&count| (50..200).contains(&count)), "{buckets:?}");
    }
}
