// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Studies of the key-value engine: workloads, memory accesses per operation, the choice of its
//! parameters, and rival hash tables (KV-Direct, hash table).
//!
//! - [`workload`] generates the YCSB workloads, repeatable from a seed.
//! - [`access`] counts memory accesses by cause and predicts them from the occupancy of buckets.
//! - [`rivals`] are the hash tables of other systems over memory that counts accesses the same way.
//! - [`sweep`] fills tables, measures what their operations cost, and returns rows to print.
//! - [`table`] is the interface of all tables, and [`metered`] gives it to the engine.
//! - [`tuner`] chooses the inline threshold and the index ratio for a mix of sizes.
//!
//! ```
//! use freeport_kv_study::access::Layout;
//! use freeport_kv_study::tuner::{Demand, Work, plan};
//! use freeport_kv_study::workload::Sizes;
//!
//! // Pairs of 10 bytes fill half of the memory; of 20 operations, 19 are GETs.
//! let demand = Demand { pairs: Sizes::fixed(10), utilisation: 0.5, work: Work::gets(0.95) };
//! let best = plan(&Layout::ENGINE, &demand).expect("the pairs fit").best;
//! assert_eq!(best.inline_threshold, 10);
//! assert!(best.accesses < 1.2);
//! ```

#![forbid(unsafe_code)]

pub mod access;
pub mod metered;
pub mod rivals;
pub mod sweep;
pub mod table;
pub mod tuner;
pub mod workload;
