// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor for which programs are scheduled: hXDP's Sephirot (section 4.2 of the
//! publication), with a configurable number of lanes.
//!
//! A row of operations is fetched in each cycle and passes through four stages: fetch, decode
//! (reads registers, starts loads), execute (results, branches, stores), commit (writes registers).
//! A result of a row is therefore available to the second row after it; the next row receives it
//! only in the lane that computed it, which forwards its own result.

use crate::operation::FRAME_POINTER;

/// Number of registers: the 11 of eBPF, the packet's start, and those that only the compiler uses.
/// Four bits select one.
pub const REGISTERS: u8 = 16;
/// The register that always holds the start address of the packet. Only helpers that move it write
/// it.
pub const PACKET: u8 = FRAME_POINTER + 1;
/// The first register reserved for the compiler.
pub const FIRST_OWN: u8 = PACKET + 1;
/// Size of a function's frame in bytes.
pub const FRAME_BYTES: usize = 512;
/// Distance in rows from a store to the first row that may load the same bytes: a load reads memory
/// one stage before a store writes it.
pub const STORE_TO_LOAD: usize = 2;
/// Maximum number of helper calls in a row: there is one unit for them.
pub const CALLS_PER_ROW: usize = 1;
/// Supported numbers of lanes.
pub const LANES: std::ops::RangeInclusive<u8> = 1..=8;

/// Parameters of the processor that are chosen when it is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Operations in a row, within [`LANES`].
    pub lanes: u8,
}

impl Default for Machine {
    /// Returns a machine with four lanes, the number that the publication found best.
    fn default() -> Self {
        Self { lanes: 4 }
    }
}
