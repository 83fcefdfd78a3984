// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of an engine, for commands and for limits.

use crate::bucket::{BUCKET_BYTES, SLOTS};
use crate::engine::Engine;
use crate::meter::Meter;
use crate::options::Index;
use crate::search::Portable;

/// State of an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of pairs.
    pub pairs: usize,
    /// Bytes of all keys and values.
    pub pair_bytes: usize,
    /// Bytes that the engine may use.
    pub memory_bytes: usize,
    /// Bytes of the index.
    pub index_bytes: usize,
    /// Bytes of blocks, chained buckets among them.
    pub block_bytes: usize,
    /// Number of chained buckets.
    pub chained_buckets: usize,
    /// Slots that pairs take, over all slots of index and chained buckets.
    pub fill: f64,
    /// Lines of 64 bytes that moved between the two stacks of a size class.
    pub slab_lines: u64,
}

impl Statistics {
    /// Bytes of keys and values over all bytes (KV-Direct, memory utilisation).
    pub fn utilisation(&self) -> f64 {
        self.pair_bytes as f64 / self.memory_bytes as f64
    }

    /// Bytes of index and blocks.
    pub fn used_bytes(&self) -> usize {
        self.index_bytes + self.block_bytes
    }
}

impl<M: Meter> Engine<M> {
    /// State of the engine. Takes about a microsecond.
    pub fn statistics(&self) -> Statistics {
        let table = &self.table;
        let buckets = table.index.buckets() + table.chained;
        Statistics {
            pairs: self.len(),
            pair_bytes: self.pair_bytes(),
            memory_bytes: self.options().memory_bytes,
            index_bytes: table.index.bytes(),
            block_bytes: table.block_bytes,
            chained_buckets: table.chained,
            fill: table.slots as f64 / (buckets * SLOTS) as f64,
            slab_lines: table.slabs.statistics().events.transfers,
        }
    }

    /// Bytes of blocks, and of the part of the index that the pairs need. The index does not become
    /// smaller when pairs are removed, but more of it waits for other pairs: that part is left out.
    pub fn occupied_bytes(&self) -> usize {
        let (table, index_bytes) = (&self.table, self.table.index.bytes());
        let share = table.slots as f64 / self.slots_limit as f64;
        let index_needed = match self.options().index {
            Index::Fixed { .. } => index_bytes,
            Index::Growing { .. } => (index_bytes as f64 * share.min(1.0)) as usize,
        };
        index_needed + table.block_bytes
    }

    /// Bytes that the pair of a key takes: its share of a bucket, and its block; none: no such key.
    pub fn memory_of(&self, key: &[u8]) -> Option<usize> {
        let place = self.table.find::<Portable>(key, self.hash(key))?;
        let found = self.table.found_at(place);
        let block_bytes = found.block.map_or(0, |(_, class)| self.table.bytes_of(class));
        Some((found.span * BUCKET_BYTES).div_ceil(SLOTS) + block_bytes)
    }
}
