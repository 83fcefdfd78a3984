// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Gets of keys whose popularity has a Zipf distribution, and the share of them that a cache of the
//! most popular keys answers.

use crate::alternative::Alternative;
use crate::client::Client;
use crate::error::KvError;
use freeport_kv_study::workload::Zipf;
use freeport_study_verbs::Verbs;

/// Keys with values, and their popularity.
#[derive(Clone, Debug)]
pub struct Workload {
    zipf: Zipf,
    value_bytes: usize,
}

impl Workload {
    /// Describes a number of keys with values of a length in bytes. `skew` is 0 for keys that are
    /// alike, and below 1. Returns none if there are no keys, or for another skew.
    pub fn new(keys: u64, value_bytes: usize, skew: f64) -> Option<Self> {
        Some(Self { zipf: Zipf::new(keys, skew)?, value_bytes })
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> u64 {
        self.zipf.records()
    }

    /// Returns a key, by its rank; the most popular one has rank 0.
    pub fn key(&self, rank: u64) -> Vec<u8> {
        rank.to_be_bytes().to_vec()
    }

    /// Returns the first value of a key.
    pub fn value(&self, rank: u64) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(rank);
        (0..self.value_bytes).map(|_| random.u8(..)).collect()
    }

    /// Returns the share of gets that miss a cache of the `cached` most popular keys. No cache of
    /// that many keys misses less.
    pub fn least_misses(&self, cached: u64) -> f64 {
        1.0 - (0..cached.min(self.keys())).map(|rank| self.zipf.probability(rank)).sum::<f64>()
    }

    /// Gets one key after the other, and calls `done` after each.
    ///
    /// # Errors
    /// See [`KvError`].
    ///
    /// # Panics
    /// A key is missing.
    pub async fn gets<V: Verbs>(
        &self,
        client: &Client<V>,
        alternative: Alternative,
        mut random: fastrand::Rng,
        mut done: impl FnMut(),
    ) -> Result<(), KvError> {
        loop {
            let rank = self.zipf.draw(&mut random);
            let value = client.get(alternative, &self.key(rank)).await?;
            assert!(value.is_some(), "key {rank} is loaded");
            done();
        }
    }
}
