// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measured accesses per operation, as rows to print or to plot (KV-Direct, hash table): against
//! memory utilisation for several inline thresholds, against the index ratio, and for the engine
//! beside its rivals.
//!
//! Each row comes from real tables that are filled and used, in memory of a few MiB. The number of
//! accesses does not depend on the size of memory.

mod cost;
mod ratio;
mod report;
mod rows;
mod trial;
mod ycsb;

pub use cost::Cost;
pub use ratio::{Filled, fill_largest_index};
pub use report::{Text, csv};
pub use rows::{Bench, Reach, Row};
pub use trial::{Costs, Trial};
pub use ycsb::{MixCosts, run_mix};
