// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Studies of the key-value engine: workloads, memory accesses per operation, the choice of its
//! parameters, and rival hash tables (KV-Direct 5.4.1).
//!
//! - [`workload`] generates the YCSB workloads, repeatable from a seed.
//! - [`access`] counts memory accesses by cause and predicts them from the occupancy of buckets.
//! - [`rivals`] are the hash tables of other systems over memory that counts accesses the same way.
//! - [`sweep`] fills tables, measures what their operations cost, and returns rows to print.
//! - [`tuner`] chooses the inline threshold and the index ratio for a mix of sizes.

#![forbid(unsafe_code)]

pub mod access;
pub mod metered;
pub mod rivals;
pub mod sweep;

pub mod table;
pub mod tuner;
pub mod workload;
