// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts and state of an allocator, for reports and tests.

use crate::class::Class;

/// State of an allocator, and events since it was made.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Every class, the smallest first.
    pub classes: Vec<ClassStatistics>,
    /// Units that no block has used yet, or that a merge added to them.
    pub unused_units: u32,
    /// Whether a second thread merges, or its result was not collected yet.
    pub is_merging: bool,
    /// Events since the allocator was made.
    pub events: Events,
}

impl Statistics {
    /// Number of allocations and frees.
    pub fn operations(&self) -> u64 {
        self.classes.iter().map(|class| class.allocated + class.freed).sum()
    }
}

/// State of a class.
#[derive(Copy, Clone, Debug)]
pub struct ClassStatistics {
    /// The class.
    pub class: Class,
    /// Entries in its stacks. A split copies entries of larger blocks there, uncut.
    pub free: u64,
    /// Units of the larger block that blocks of this class are carved from at present.
    pub open_units: u32,
    /// Blocks handed out so far.
    pub allocated: u64,
    /// Blocks taken back so far.
    pub freed: u64,
}

impl ClassStatistics {
    /// Blocks in use.
    pub fn handed_out(&self) -> u64 {
        self.allocated - self.freed
    }
}

/// Counts of events.
#[derive(Copy, Clone, Default, Eq, PartialEq, Debug)]
pub struct Events {
    /// Exchanges between the two stacks of a class ("synchronisations").
    pub exchanges: u64,
    /// Lines of 64 bytes that exchanges moved.
    pub transfers: u64,
    /// Entries in those lines.
    pub exchanged_entries: u64,
    /// Splits: a class took larger free blocks.
    pub splits: u64,
    /// Entries that splits copied to the smaller class.
    pub split_entries: u64,
    /// Merges that an allocation waited for.
    pub merges: u64,
    /// Merges of a background thread.
    pub background_merges: u64,
    /// Entries that merges took.
    pub merged_entries: u64,
}
