// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Workloads in the manner of YCSB, repeatable from a seed.
//!
//! A workload is made of parts that know nothing of each other: a [`Distribution`] draws the *rank*
//! of a record, [`Keys`] and [`Values`] turn a rank into bytes, and a [`Mix`] decides what is done
//! with the record. [`Drawn`] and [`DrawnOperations`] are tables drawn in advance, for measurements
//! in which drawing would take longer than the operation.

mod distribution;
mod drawn;
mod keys;
mod mix;
mod scramble;
mod sizes;
mod zipf;

pub use distribution::{Distribution, Ranks};
pub use drawn::{Drawn, DrawnOperation, DrawnOperations};
pub use keys::{Keys, Values};
pub use mix::{Mix, Operation, Operations, Shares};
pub use scramble::Scramble;
pub use sizes::Sizes;
pub(crate) use sizes::mix;
pub use zipf::{THETA, Zipf, zeta};
