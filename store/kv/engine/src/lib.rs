// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value engine (KV-Direct, hash table): a hash index of 64-byte buckets that hold small
//! pairs themselves, and blocks for larger ones.
//!
//! An [`Engine`] belongs to one core and needs no locks. A server has one for each of its workers,
//! and divides the keys between them.

mod batch;
mod block;
mod bucket;
mod change;
mod engine;
mod entry;
mod growth;
mod hash;
mod index;
mod memory;
mod meter;
mod options;
mod pipeline;
mod place;
mod scan;
mod search;
mod short;
mod station;
mod statistics;
mod table;

pub use batch::{Replies, Request};
pub use block::PART_BYTES;
pub use bucket::{INLINE_BYTES, INLINE_KEY_BYTES};
pub use engine::{Engine, Stored, Value, ValueMut};
pub use entry::Entry;
pub use hash::{Hash, Hasher};
pub use meter::{Cause, Counting, Meter, Silent};
pub use options::{Index, Options, OptionsError, OutOfMemory};
pub use pipeline::{Execute, Keys};
pub use statistics::Statistics;
