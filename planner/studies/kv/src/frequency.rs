// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often keys were asked for lately, in little memory: a count-min sketch whose counters are
//! halved from time to time (the idea of TinyLFU).

use crate::layout::Hash;

/// Rows of counters; the least of them is the estimate.
const ROWS: usize = 4;
/// Requests for each counter of a row until all are halved.
const AGE: u64 = 8;

/// Counts of keys.
#[derive(Debug)]
pub struct Frequency {
    rows: [Vec<u8>; ROWS],
    mask: u64,
    requests: u64,
}

impl Frequency {
    /// Creates counters for about this number of hot keys.
    pub fn new(keys: u64) -> Self {
        let counters = (8 * keys.clamp(8, 1 << 24)).next_power_of_two();
        let row = || vec![0; counters as usize];
        Self { rows: [row(), row(), row(), row()], mask: counters - 1, requests: 0 }
    }

    fn places(&self, hash: Hash) -> [usize; ROWS] {
        let step = hash.0 >> 32 | 1;
        let place = |row| (hash.0.wrapping_add(row * step) & self.mask) as usize;
        [0, 1, 2, 3].map(place)
    }

    /// Counts a request.
    pub fn count(&mut self, hash: Hash) {
        let (estimate, places) = (self.estimate(hash), self.places(hash));
        // Counters beyond the least one belong to other keys too.
        for (row, place) in self.rows.iter_mut().zip(places) {
            if row[place] == estimate {
                row[place] = estimate.saturating_add(1);
            }
        }
        self.requests += 1;
        if self.requests.is_multiple_of(AGE * (self.mask + 1)) {
            self.rows.iter_mut().flatten().for_each(|counter| *counter /= 2);
        }
    }

    /// Returns about how often a key was asked for lately.
    pub fn estimate(&self, hash: Hash) -> u8 {
        let counters = self.rows.iter().zip(self.places(hash)).map(|(row, place)| row[place]);
        counters.min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> Hash {
        Hash::of(&number.to_le_bytes())
    }

    #[test]
    fn frequent_keys_are_told_from_rare_ones() {
        let mut frequency = Frequency::new(100);
        for round in 0..50 {
            (0..10).for_each(|key| frequency.count(hash(key)));
            (0..10).for_each(|key| frequency.count(hash(1000 + 10 * round + key)));
        }
        let least = (0..10).map(|key| frequency.estimate(hash(key))).min();
        assert!(least >= Some(50), "{least:?}");
        let most = (1000..1500).map(|key| frequency.estimate(hash(key))).max();
        assert!(most < Some(10), "{most:?}");
    }

    #[test]
    fn old_requests_are_forgotten() {
        let mut frequency = Frequency::new(8);
        (0..40).for_each(|_| frequency.count(hash(1)));
        (0..3000).for_each(|number| frequency.count(hash(2 + number % 1000)));
        assert!(frequency.estimate(hash(1)) < 20);
    }
}
