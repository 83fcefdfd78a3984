// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of memory accesses by cause, as the publication counts them: one access is a read or a
//! write of a 64-byte line of the index, or of the data of one block, whatever its size (KV-Direct
//! 5.5). Lines between the stacks of size classes are in the engine's statistics, since the
//! allocator counts them itself. The engine takes its meter as a type: with [`Silent`], counting
//! costs nothing.

use std::cell::Cell;

/// Reason for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A bucket of the index.
    Bucket,
    /// A chained bucket.
    Chain,
    /// Key and value in a block.
    Data,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Bucket, Self::Chain, Self::Data];

    /// Name for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Chain => "chain",
            Self::Data => "data",
        }
    }
}

/// A counter of the accesses of an engine.
pub trait Meter {
    /// A line or block was read.
    fn read(&self, cause: Cause);
    /// A line or block was written.
    fn write(&self, cause: Cause);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Meter for Silent {
    #[inline(always)]
    fn read(&self, _: Cause) {}
    #[inline(always)]
    fn write(&self, _: Cause) {}
}

/// Counts of accesses.
#[derive(Clone, Debug, Default)]
pub struct Counting {
    reads: [Cell<u64>; 3],
    writes: [Cell<u64>; 3],
}

impl Counting {
    /// Number of reads with a cause.
    pub fn reads(&self, cause: Cause) -> u64 {
        self.reads[cause as usize].get()
    }

    /// Number of writes with a cause.
    pub fn writes(&self, cause: Cause) -> u64 {
        self.writes[cause as usize].get()
    }

    /// All reads and writes.
    pub fn total(&self) -> u64 {
        Cause::ALL.iter().map(|&cause| self.reads(cause) + self.writes(cause)).sum()
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        self.reads.iter().chain(&self.writes).for_each(|count| count.set(0));
    }
}

impl Meter for Counting {
    fn read(&self, cause: Cause) {
        let count = &self.reads[cause as usize];
        count.set(count.get() + 1);
    }

    fn write(&self, cause: Cause) {
        let count = &self.writes[cause as usize];
        count.set(count.get() + 1);
    }
}
