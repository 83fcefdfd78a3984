// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys in the order in which operations take them, drawn before the measurement: drawing them
//! takes longer than an operation.

use freeport_kv_study::workload::{Distribution, Keys, Ranks};

/// How operations choose keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Spread {
    /// Zipf with a skew of 0.99, popular keys scattered among the others
    Zipf,
    /// All keys alike
    Uniform,
}

impl Spread {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Zipf, Self::Uniform];

    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zipf => "zipf",
            Self::Uniform => "uniform",
        }
    }

    /// The generator of ranks.
    pub fn distribution(self) -> Distribution {
        match self {
            Self::Zipf => Distribution::ScrambledZipf,
            Self::Uniform => Distribution::Uniform,
        }
    }
}

/// Number of draws, a power of two. Their keys exceed the caches.
const COUNT: usize = 1 << 22;
const SEED: u64 = 20;

/// Keys in order.
pub struct Draws {
    bytes: Vec<u8>,
    key_bytes: usize,
}

impl Draws {
    /// Keys of records below `pairs`.
    pub fn new(spread: Spread, keys: Keys, pairs: u64) -> Self {
        let mut ranks = Ranks::new(spread.distribution(), pairs, SEED);
        let key_bytes = keys.bytes();
        let mut bytes = Vec::with_capacity(COUNT * key_bytes);
        let mut key = vec![];
        for _ in 0..COUNT {
            keys.write(ranks.draw(), &mut key);
            bytes.extend_from_slice(&key);
        }
        Self { bytes, key_bytes }
    }

    /// The keys of `count` draws from a place on, fewer at the end of the table.
    pub fn batch(&self, place: usize, count: usize) -> impl Iterator<Item = &[u8]> {
        let start = place % COUNT * self.key_bytes;
        let end = (start + count * self.key_bytes).min(self.bytes.len());
        self.bytes[start..end].chunks_exact(self.key_bytes)
    }
}
