// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory accesses of operations: how many there were, by cause, and how many a model expects.
//!
//! A memory access is one request to memory, as in the published evaluation (KV-Direct, hash
//! table). An access to a bucket is one line of 64 bytes; a table that reads two lines of its index
//! makes two accesses. An access to a block of data is one, however long the block is.

mod counts;
mod model;
mod occupancy;

pub use counts::{Accesses, Cause, Direction};
pub use model::{Expected, Layout, Store, largest_index_ratio};
pub use occupancy::Occupancy;
