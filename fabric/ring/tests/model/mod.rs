// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model checker for rings: the real code on both sides, over memory in which writes become
//! visible late and out of order, in every interleaving of calls to the memory.

pub mod memory;
pub mod search;
pub mod sides;
pub mod world;
