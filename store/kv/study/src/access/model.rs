// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expected memory accesses per operation of a table of chained buckets.
//!
//! All costs are sums of three parts: the buckets that are visited, the accesses to the pair's own
//! block, and reads of blocks whose secondary hash matches by chance.
//!
//! The largest index ratio is where index, chained buckets and blocks fill memory exactly. Larger
//! indexes have shorter chains, so this ratio gives the fewest accesses (KV-Direct, hash table).

use super::Occupancy;
use crate::workload::Sizes;

/// Bytes of a bucket.
const BUCKET_BYTES: f64 = 64.0;

/// Probability that the secondary hash of another key matches: 9 bits.
const FALSE_MATCH: f64 = 1.0 / 512.0;

/// Smallest share of memory for an index that is considered.
const SMALLEST_INDEX_RATIO: f64 = 1e-3;

/// Sizes that a store's layout gives to pairs.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Slots of a bucket.
    pub slots: usize,
    /// Bytes of a slot, all of which can hold bytes of an inline pair.
    pub slot_bytes: usize,
    /// Bytes stored with each inline pair.
    pub inline_header_bytes: usize,
    /// Bytes stored with each pair in a block.
    pub block_header_bytes: usize,
    /// Size of the block that holds a given number of bytes.
    pub block_bytes: fn(usize) -> usize,
}

impl Layout {
    /// The published layout: ten slots of 5 bytes, no header of inline pairs, 2 bytes in a block,
    /// blocks of 32 bytes and their doubles (KV-Direct, hash table).
    pub const PUBLISHED: Layout = Layout {
        slots: 10,
        slot_bytes: 5,
        inline_header_bytes: 0,
        block_header_bytes: 2,
        block_bytes: |bytes| bytes.next_power_of_two().max(32),
    };

    /// Slots that an inline pair occupies; `None` if it does not fit into a bucket.
    pub fn inline_slots(&self, pair_bytes: usize) -> Option<usize> {
        let slots = (pair_bytes + self.inline_header_bytes).div_ceil(self.slot_bytes).max(1);
        (slots <= self.slots).then_some(slots)
    }

    /// Bytes of the block that holds a pair outside its bucket.
    pub fn pair_block_bytes(&self, pair_bytes: usize) -> usize {
        (self.block_bytes)(pair_bytes + self.block_header_bytes)
    }
}

/// A store filled with pairs.
#[derive(Clone, Debug)]
pub struct Store {
    /// Bytes of pairs, key and value together.
    pub pairs: Sizes,
    /// Bytes of all pairs by bytes of memory.
    pub utilisation: f64,
    /// Pairs of at most this many bytes lie in buckets, if a bucket can hold them.
    pub inline_threshold: usize,
}

/// Expected accesses per operation, without those of the slab allocator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Share of memory that the index has.
    pub index_ratio: f64,
    /// Buckets visited per operation.
    pub occupancy: Occupancy,
    /// Blocks of other pairs read per stored key, because the secondary hash matches.
    pub false_reads_of_hit: f64,
    /// Blocks of other pairs read per absent key.
    pub false_reads_of_miss: f64,
    /// Mean accesses to the pair's own block per operation: 0 inline, 1 in a block, between them
    /// for a mix.
    pub blocks: f64,
}

impl Expected {
    /// Accesses of `store` with `index_ratio` of memory for the index. Returns `None` if the pairs
    /// do not fit.
    pub fn new(layout: &Layout, store: &Store, index_ratio: f64) -> Option<Expected> {
        let filled = Filled::new(layout, store, index_ratio);
        filled.fits().then(|| {
            // Each block in the chain of a bucket is as likely as another to be compared before.
            let false_reads = filled.mean_pairs * filled.in_blocks * FALSE_MATCH;
            Expected {
                index_ratio,
                occupancy: filled.occupancy,
                false_reads_of_hit: false_reads / 2.0,
                false_reads_of_miss: false_reads,
                blocks: filled.in_blocks,
            }
        })
    }

    /// Accesses of a GET that finds its key.
    pub fn get_hit(&self) -> f64 {
        self.occupancy.buckets_to_hit + self.false_reads_of_hit + self.blocks
    }

    /// Accesses of a GET that does not find its key.
    pub fn get_miss(&self) -> f64 {
        self.occupancy.buckets_to_miss + self.false_reads_of_miss
    }

    /// Accesses of a PUT that replaces a value by one of the same size.
    pub fn update(&self) -> f64 {
        self.get_hit() + 1.0
    }

    /// Accesses of a PUT of a new key. A bucket that is appended to the chain is linked to it by a
    /// write more.
    pub fn insert(&self) -> f64 {
        self.get_miss() + 1.0 + self.blocks + self.occupancy.appends
    }

    /// Accesses of a DELETE of a stored key. A chained bucket that becomes empty is unlinked by a
    /// write more.
    pub fn delete(&self) -> f64 {
        self.get_hit() + 1.0 + self.occupancy.unlinks
    }
}

/// Returns the largest share of memory that the index can have so that all pairs of `store` fit,
/// or `None` if they do not fit at any ratio.
pub fn largest_index_ratio(layout: &Layout, store: &Store) -> Option<f64> {
    let fits = |ratio: f64| Filled::new(layout, store, ratio).fits();
    let (mut fitting, mut exceeding) = (SMALLEST_INDEX_RATIO, 1.0);
    if !fits(fitting) {
        return None;
    }
    if fits(exceeding) {
        return Some(exceeding);
    }
    // Buckets, index and chained, grow with the ratio: half an interval at a time.
    while exceeding - fitting > 1e-4 {
        let middle = (fitting + exceeding) / 2.0;
        *(if fits(middle) { &mut fitting } else { &mut exceeding }) = middle;
    }
    Some(fitting)
}

/// A store with an index of a given share.
struct Filled {
    /// Mean number of pairs that hash to a bucket.
    mean_pairs: f64,
    occupancy: Occupancy,
    /// Share of pairs that lie in blocks.
    in_blocks: f64,
    /// Bytes of buckets and of blocks, by bytes of memory.
    buckets: f64,
    blocks: f64,
}

impl Filled {
    fn new(layout: &Layout, store: &Store, index_ratio: f64) -> Filled {
        let mut slots_shares = vec![0.0; layout.slots + 1];
        let (mut in_blocks, mut block_bytes) = (0.0, 0.0);
        for (bytes, share) in store.pairs.shares() {
            let inline = layout.inline_slots(bytes).filter(|_| bytes <= store.inline_threshold);
            slots_shares[inline.unwrap_or(1)] += share;
            if inline.is_none() {
                in_blocks += share;
                block_bytes += share * layout.pair_block_bytes(bytes) as f64;
            }
        }
        let pairs_by_bytes = store.utilisation / store.pairs.mean();
        let mean_pairs = pairs_by_bytes * BUCKET_BYTES / index_ratio;
        let occupancy = match slots_shares.iter().position(|&share| share > 1.0 - 1e-9) {
            Some(slots) => Occupancy::poisson(mean_pairs, layout.slots / slots),
            None => Occupancy::thrown(mean_pairs, &slots_shares),
        };
        Filled {
            mean_pairs,
            occupancy,
            in_blocks,
            buckets: index_ratio * occupancy.buckets_to_miss,
            blocks: pairs_by_bytes * block_bytes,
        }
    }

    fn fits(&self) -> bool {
        self.buckets + self.blocks <= 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the specification: bytes of a pair, whether inline, utilisation, the largest
    /// index ratio, `b`, `c`, and accesses of GET and of PUT, each to two places.
    #[rustfmt::skip]
    const TABLE: [(usize, bool, f64, [f64; 5]); 10] = [
        (  5, true,  0.50, [0.91, 1.03, 1.10, 1.03, 2.03]),
        ( 10, true,  0.30, [0.98, 1.01, 1.02, 1.01, 2.01]),
        ( 10, true,  0.50, [0.84, 1.09, 1.19, 1.09, 2.09]),
        ( 10, true,  0.60, [0.58, 1.32, 1.72, 1.32, 2.32]),
        ( 10, true,  0.70, [0.26, 2.35, 3.85, 2.35, 3.35]),
        ( 15, true,  0.50, [0.73, 1.23, 1.36, 1.23, 2.23]),
        ( 25, true,  0.50, [0.81, 1.22, 1.24, 1.22, 2.22]),
        ( 50, true,  0.50, [0.80, 1.40, 1.25, 1.40, 2.40]),
        ( 62, false, 0.50, [0.48, 1.00, 1.00, 2.00, 3.00]),
        (254, false, 0.85, [0.14, 1.00, 1.00, 2.00, 3.00]),
    ];

    fn store(pair_bytes: usize, utilisation: f64, is_inline: bool) -> Store {
        let inline_threshold = if is_inline { usize::MAX } else { 0 };
        Store { pairs: Sizes::fixed(pair_bytes), utilisation, inline_threshold }
    }

    #[test]
    fn the_model_gives_the_table_of_the_specification() {
        for (pair_bytes, is_inline, utilisation, row) in TABLE {
            let store = store(pair_bytes, utilisation, is_inline);
            let ratio = largest_index_ratio(&Layout::PUBLISHED, &store).expect("pairs fit");
            let expected = Expected::new(&Layout::PUBLISHED, &store, ratio).expect("pairs fit");
            let Occupancy { buckets_to_hit, buckets_to_miss, .. } = expected.occupancy;
            // The table leaves out false matches.
            let get = expected.get_hit() - expected.false_reads_of_hit;
            let put = expected.update() - expected.false_reads_of_hit;
            let found = [ratio, buckets_to_hit, buckets_to_miss, get, put];
            for (found, told) in found.into_iter().zip(row) {
                // The table is rounded, and so are the ratios that its other columns are for.
                assert!((found - told).abs() < 0.006, "{store:?}: {found} instead of {told}");
            }
        }
    }

    #[test]
    fn pairs_that_exceed_memory_have_no_index_ratio() {
        let ratio = |store| largest_index_ratio(&Layout::PUBLISHED, &store);
        assert_eq!(ratio(store(10, 0.79, true)), None);
        assert!(ratio(store(10, 0.77, true)).is_some());
        // 70 bytes take a block of 128.
        assert_eq!(ratio(store(70, 0.55, false)), None);
        // Pairs that exceed a bucket lie in a block at any threshold.
        assert_eq!(ratio(store(51, 0.1, true)), ratio(store(51, 0.1, false)));
    }

    #[test]
    fn a_mix_costs_what_its_parts_cost_together() {
        let mixed = |inline_threshold| Store {
            pairs: Sizes::weighted(&[(10, 1.0), (62, 1.0)]).expect("valid"),
            utilisation: 0.4,
            inline_threshold,
        };
        let expected = |store| Expected::new(&Layout::PUBLISHED, &store, 0.3).expect("pairs fit");
        let (inline, none) = (expected(mixed(10)), expected(mixed(0)));
        assert_eq!((inline.blocks, none.blocks), (0.5, 1.0));
        assert!(inline.occupancy.buckets_to_miss > none.occupancy.buckets_to_miss);
        assert!(inline.false_reads_of_miss * 1.9 < none.false_reads_of_miss);
        assert!((inline.get_hit() - inline.occupancy.buckets_to_hit - 0.5).abs() < 0.01);
    }

    #[test]
    fn slots_and_blocks_are_rounded_up() {
        let layout = Layout { inline_header_bytes: 2, ..Layout::PUBLISHED };
        let slots = [1, 3, 4, 48, 49].map(|bytes| layout.inline_slots(bytes));
        assert_eq!(slots, [Some(1), Some(1), Some(2), Some(10), None]);
        let blocks = [1, 30, 31, 62, 254, 255].map(|bytes| layout.pair_block_bytes(bytes));
        assert_eq!(blocks, [32, 32, 64, 64, 256, 512]);
    }
}
