// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of what was carried.

use crate::options::Alternative;

/// Chunks and bytes of one alternative, counted when all backups hold the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// Chunks.
    pub chunks: u64,
    /// Their bytes with headers, without compression.
    pub raw_bytes: u64,
    /// Their bytes on the network to the first backup, each chunk once: attempts that failed have
    /// used the network as well, and are not counted.
    pub network_bytes: u64,
}

/// Chunks and bytes by alternatives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    carried: [Carried; Alternative::ALL.len()],
    /// Chunks that were not sent, because the backups had them already.
    pub known_chunks: u64,
}

impl Counters {
    pub(super) fn add(&mut self, alternative: Alternative, raw: u64, network: u64) {
        let carried = &mut self.carried[alternative as usize];
        carried.chunks += 1;
        carried.raw_bytes += raw;
        carried.network_bytes += network;
    }

    /// Returns what was carried by an alternative.
    pub fn of(&self, alternative: Alternative) -> Carried {
        self.carried[alternative as usize]
    }

    /// Returns what was carried by all alternatives.
    pub fn all(&self) -> Carried {
        self.carried.iter().fold(Carried::default(), |sum, one| Carried {
            chunks: sum.chunks + one.chunks,
            raw_bytes: sum.raw_bytes + one.raw_bytes,
            network_bytes: sum.network_bytes + one.network_bytes,
        })
    }

    /// Returns the share of the chunks' bytes that compression keeps off the network, 0 to 1.
    /// Attempts that failed are left out.
    pub fn saving(&self) -> f64 {
        let all = self.all();
        1.0 - all.network_bytes as f64 / all.raw_bytes.max(1) as f64
    }

    /// Returns what was carried since an earlier count.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counters = *self;
        counters.known_chunks -= earlier.known_chunks;
        for (now, before) in counters.carried.iter_mut().zip(earlier.carried) {
            now.chunks -= before.chunks;
            now.raw_bytes -= before.raw_bytes;
            now.network_bytes -= before.network_bytes;
        }
        counters
    }
}
