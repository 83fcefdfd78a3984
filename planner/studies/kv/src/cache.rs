// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hot items in the memory of the device's processor, each in several copies, so that requests for
//! a hot key do not all meet at the same banks of memory.

use crate::frequency::Frequency;
use crate::item::{State, encode, state_word};
use crate::layout::{Hash, Layout, Options};
use crate::message::Copies;
use freeport_study_verbs::Memory;
use std::collections::HashMap;

/// Keys among which one is chosen that leaves the cache.
const CANDIDATES: usize = 8;

/// Cached items. The places for copies are all of one size.
pub struct Cache {
    cached: HashMap<Vec<u8>, Cached>,
    /// All cached keys.
    keys: Vec<Vec<u8>>,
    free: Vec<u64>,
    place_bytes: u64,
    copies: usize,
    frequency: Frequency,
    random: fastrand::Rng,
}

/// A cached item.
struct Cached {
    /// Number of its key.
    number: usize,
    version: u64,
    copies: Copies,
}

impl Cache {
    /// Creates a cache without items.
    pub fn new(options: &Options, layout: &Layout) -> Self {
        let place_bytes = options.cached_item_max.next_multiple_of(8).max(8);
        let places = options.cache_memory / place_bytes;
        let free = (0..places).rev().map(|place| layout.cache + place * place_bytes);
        Self {
            cached: HashMap::new(),
            keys: Vec::new(),
            free: free.collect(),
            place_bytes,
            copies: options.item_copies as usize,
            frequency: Frequency::new(places / options.item_copies),
            random: fastrand::Rng::with_seed(1),
        }
    }

    /// Returns the number of cached keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Counts a request for a key, and returns its copies.
    pub fn request(&mut self, key: &[u8]) -> Option<&Copies> {
        self.frequency.count(Hash::of(key));
        self.cached.get(key).map(|cached| &cached.copies)
    }

    /// Returns whether an item would be cached: there is room, or another one is asked for less.
    pub fn wants(&mut self, key: &[u8], bytes: u64) -> bool {
        let has_room = self.free.len() >= self.copies;
        bytes <= self.place_bytes && (has_room || self.colder_than(key).is_some())
    }

    /// Returns a cached key that is asked for less than another one.
    fn colder_than(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let count = self.keys.len();
        let candidates = (0..CANDIDATES.min(count)).map(|_| self.random.usize(..count));
        let frequency = |number: &usize| self.frequency.estimate(Hash::of(&self.keys[*number]));
        let coldest = candidates.collect::<Vec<_>>().into_iter().min_by_key(frequency)?;
        let is_colder = frequency(&coldest) < self.frequency.estimate(Hash::of(key));
        is_colder.then(|| self.keys[coldest].clone())
    }

    /// Caches an item that is not cached, if it is wanted.
    pub fn fill(&mut self, memory: &impl Memory, version: u64, key: &[u8], value: &[u8]) {
        let item = encode(State::Alive, version, key, value);
        let bytes = item.len() as u64;
        if bytes > self.place_bytes || self.cached.contains_key(key) {
            return;
        }
        while self.free.len() < self.copies {
            let Some(coldest) = self.colder_than(key) else { return };
            self.invalidate(memory, &coldest);
        }
        let at = self.free.split_off(self.free.len() - self.copies);
        for place in &at {
            // Readers of an older item here see that it is gone, and then the new one as a whole.
            memory.store_word(*place, state_word(State::Pending, version));
            memory.store(place + 8, &item[8..]);
            memory.store_word(*place, state_word(State::Alive, version));
        }
        let copies = Copies { bytes, at };
        self.cached.insert(key.to_vec(), Cached { number: self.keys.len(), version, copies });
        self.keys.push(key.to_vec());
    }

    /// Makes all copies of a key invalid. Returns whether there were any.
    pub fn invalidate(&mut self, memory: &impl Memory, key: &[u8]) -> bool {
        let Some(Cached { number, version, copies }) = self.cached.remove(key) else {
            return false;
        };
        self.keys.swap_remove(number);
        if let Some(moved) = self.keys.get(number) {
            self.cached.get_mut(moved).expect("all keys are cached").number = number;
        }
        for place in copies.at {
            memory.store_word(place, state_word(State::Dead, version));
            self.free.push(place);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Check, check};
    use std::cell::RefCell;
    use std::collections::HashSet;

    struct Bytes(RefCell<Vec<u8>>);

    impl Memory for Bytes {
        fn bytes(&self) -> u64 {
            self.0.borrow().len() as u64
        }

        fn load(&self, at: u64, bytes: usize) -> Vec<u8> {
            self.0.borrow()[at as usize..][..bytes].to_vec()
        }

        fn store(&self, at: u64, data: &[u8]) {
            self.0.borrow_mut()[at as usize..][..data.len()].copy_from_slice(data);
        }
    }

    #[test]
    fn copies_are_of_their_keys_and_do_not_overlap() {
        let options = Options {
            buckets: 1,
            bucket_entries: 1,
            index_copies: 1,
            cache_memory: 64 * 21,
            cached_item_max: 64,
            item_copies: 2,
            ..Options::default()
        };
        let layout = options.layout().expect("within the limits");
        let memory = Bytes(RefCell::new(vec![0; layout.soc_bytes as usize]));
        let mut cache = Cache::new(&options, &layout);
        let mut random = fastrand::Rng::with_seed(1);
        for version in 1..5000 {
            let key = [random.u8(..40)];
            match random.u8(..4) {
                0 => {
                    cache.invalidate(&memory, &key);
                    assert_eq!(cache.request(&key), None);
                }
                1 => cache.fill(&memory, version, &key, &[key[0]; 30]),
                _ => {
                    let _ = cache.request(&key);
                }
            }
            assert!(cache.len() <= 10);
            let mut places = HashSet::new();
            for (key, cached) in &cache.cached {
                assert_eq!(cache.keys[cached.number], *key);
                for at in &cached.copies.at {
                    assert!(places.insert(*at) && *at >= layout.cache);
                    let item = memory.load(*at, cached.copies.bytes as usize);
                    assert_eq!(check(&item, key, |_| true), Check::Value(vec![key[0]; 30]));
                }
            }
            assert!(cache.free.iter().all(|at| places.insert(*at)));
            assert_eq!((places.len(), cache.keys.len()), (21, cache.cached.len()));
        }
        let long = cache.wants(b"long", 65);
        assert!(!long, "it does not fit");
    }
}
