// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of a key-value engine: a region of reserved address space, and an allocator of blocks in
//! it (KV-Direct, slab allocator).
//!
//! One engine runs on one core and owns one [`Region`]. Positions in it are counted in *units* of
//! 16, 32 or 64 bytes, so that 31 bits address up to 128 GiB; unit 0 means "none". [`Slabs`] hands
//! out blocks of [`Class`] sizes. It stores nothing in the blocks and never touches the region, so
//! that freeing a block costs no cache miss in it.
//!
//! ```
//! use freeport_kv_slab::{Class, Options, Slabs};
//!
//! let mut slabs = Slabs::new(1..65_536, Options::default());
//! let class = Class::holding_units(9).expect("a small block");
//! assert_eq!(class.units(), 10);
//! let unit = slabs.allocate(class).expect("an empty range has room");
//! slabs.free(unit, class);
//! assert_eq!(slabs.used_bytes(), 0);
//! ```
//!
//! # The published design on a CPU
//!
//! In the published system a network card allocates, and a daemon on the host keeps the memory; a
//! pair of stacks for each class, one on either side, exchanges entries over PCIe. Here, the
//! engine's own core plays both parts. The small stack (`front`) stays in its first-level cache,
//! and the large stack (`back`) is touched about once in 24 operations of the class, or less. The
//! exchange is the same: entries of five bytes, twelve to a line of 64 bytes, two lines at once.
//!
//! A second thread for the exchange would not pay. It exists in the published design since
//! the card cannot keep the large stacks. On a CPU, copying two lines takes less time than the
//! misses that lines shared between cores cause, and each operation would need ordered stores.
//! Splitting copies entries as well. Merging is the only long work, so it is the work that a second
//! thread does; it gets whole stacks and returns whole stacks.
//!
//! # Fragmentation
//!
//! A block is larger than what was asked for by less than a quarter from 8 units on; below, sizes
//! are exact. Free blocks are not joined until memory is short. A class that needs memory takes, in
//! this order: its own free blocks, memory that no block has used yet, larger free blocks, and the
//! result of a merge. After a merge, an allocation succeeds if any run of free units is as long as
//! its block.
//!
//! With random sizes of 1 to 200 units, allocations fail when 94 % of the range is in use, and with
//! sizes of 1 to 4 units, when 98 % is (measured by `tests/fragmentation.rs`). The worst case is
//! that of every allocator that does not move blocks: if one unit in every `n` stays in use, no
//! block of `n` units fits, however much is free.

mod back;
mod bitmap;
mod class;
mod entry;
mod extent;
mod front;
mod merge;
mod radix;
mod region;
mod slabs;
mod statistics;

pub use class::Class;
pub use region::Region;
pub use slabs::{Options, Slabs};
pub use statistics::{ClassStatistics, Events, Statistics};
