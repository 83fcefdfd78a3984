// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From regions to rows: [dependences], then a [list] scheduler that fills one row
//! after the other, finds [lanes] for what is in it, and gives each result a
//! [register](registers) when it places it (publication, section 3.3: scheduling, and physical
//! register assignment, done in one here so that neither has to undo the other).

pub mod dependences;
mod lanes;
pub mod list;
mod registers;

use crate::operation::Operation;

/// A node in its lane, with registers.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The node's place in its region.
    pub node: usize,
    /// Its lane.
    pub lane: usize,
    /// What is done; targets are still blocks.
    pub operation: Operation,
}

/// What the last row before a region leaves that its first row cannot have yet.
#[derive(Clone, Debug, Default)]
pub struct Late {
    /// Registers that it writes, with the lanes.
    pub written: Vec<(u8, usize)>,
    /// What it stores, and by which operation.
    pub stored: Vec<(Operation, Vec<freeport_ebpf::analysis::Access>)>,
}
