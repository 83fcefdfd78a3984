// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor that programs are scheduled for: hXDP's Sephirot (section 4.2 of the publication),
//! with how many lanes it has.
//!
//! A row of operations is fetched in each cycle and goes through four stages: fetch, decode
//! (registers are read, loads begin), execute (results, branches, stores), commit (registers are
//! written). So what a row computes is there for the second row after it; the row right after it
//! gets it only in the lane that computed it, which forwards its own result.

use crate::operation::FRAME_POINTER;

/// Registers: the 11 of eBPF, the packet's start, and those that only the compiler uses. Four bits
/// name one.
pub const REGISTERS: u8 = 16;
/// The register that always holds the address where the packet begins. Only helpers that move it
/// write it.
pub const PACKET: u8 = FRAME_POINTER + 1;
/// The first register that only the compiler uses.
pub const FIRST_OWN: u8 = PACKET + 1;
/// Bytes of a function's frame.
pub const FRAME_BYTES: usize = 512;
/// Rows from one that stores to the first one that may load the same bytes: a load reads memory a
/// stage before a store writes it.
pub const STORE_TO_LOAD: usize = 2;
/// Helper functions that a row may call: there is one unit for them.
pub const CALLS_PER_ROW: usize = 1;
/// Fewest and most lanes.
pub const LANES: std::ops::RangeInclusive<u8> = 1..=8;

/// What of the processor is chosen when it is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Operations of a row, one of [`LANES`].
    pub lanes: u8,
}

impl Default for Machine {
    /// Four lanes, as the publication found best.
    fn default() -> Self {
        Self { lanes: 4 }
    }
}
