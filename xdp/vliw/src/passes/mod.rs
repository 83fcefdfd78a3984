// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transformations of a program's operations before scheduling, one pass a file. [`bounds`],
//! [`zeroing`] and [`threading`] work on blocks, where every register is still that of the program;
//! the others on regions, where each result is a separate value.

pub mod bounds;
pub mod coalescing;
pub mod dead;
pub mod if_conversion;
pub mod memory_operations;
pub mod replication;
pub mod superblocks;
pub mod threading;
pub mod wide_accesses;
pub mod zeroing;
