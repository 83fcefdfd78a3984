// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schedules regions to rows: computes [dependences], then a [list] scheduler fills one row after
//! the other, assigns [lanes] to its operations, and allocates a [register](registers) for each
//! result when it is placed (publication, section 3.3: scheduling and physical register assignment,
//! combined so that neither has to undo the other).

pub mod dependences;
mod lanes;
pub mod list;
mod registers;

use crate::operation::Operation;

/// A node in its lane, with registers.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Index of the node in its region.
    pub node: usize,
    /// Its lane.
    pub lane: usize,
    /// The operation; targets are still blocks.
    pub operation: Operation,
}

/// Results of the last row before a region that its first row cannot use yet.
#[derive(Clone, Debug, Default)]
pub struct Late {
    /// Registers that it writes, with the lanes.
    pub written: Vec<(u8, usize)>,
    /// Its stores, with their accesses.
    pub stored: Vec<(Operation, Vec<freeport_ebpf::analysis::Access>)>,
}
