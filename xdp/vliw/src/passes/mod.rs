// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is done to a program's operations before they are placed in rows, a pass a file.
//! [`bounds`], [`zeroing`] and [`threading`] work on blocks, where every register is still that of
//! the program; the others on regions, where each result is a value of its own.

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
