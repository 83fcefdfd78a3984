// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hash tables of other systems, with the same count of memory accesses as the engine's.
//!
//! The published comparison (KV-Direct, hash table) has two: the bucketised [`Cuckoo`] table of
//! MemC3 (Fan et al., NSDI 2013), and the chained associative [`Hopscotch`] table of FaRM
//! (Dragojevic et al., NSDI 2014). As there, keys lie in the index, where the keys of a bucket are
//! compared at once, and values lie in blocks of a slab allocator. Both tables use buckets of one
//! line with four slots, the same memory, and the same allocator.
//!
//! Each line of the index is one access. FaRM fetches two adjacent lines with one request; its
//! table can be counted both ways.

mod bucket;
mod cuckoo;
mod hopscotch;
mod memory;

pub use bucket::KEY_BYTES;
pub use cuckoo::Cuckoo;
pub use hopscotch::{Fetch, Hopscotch};
pub use memory::{InvalidOptions, Options, VALUE_BYTES};
