// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Number of memory accesses by cause and direction.

use std::ops::{Add, AddAssign, Sub};

/// The part of a store that an access is made for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The bucket that a key hashes to. A cuckoo table has two of them.
    Bucket,
    /// A bucket chained to a full one.
    Chain,
    /// A block with the bytes of a pair, or of its value.
    Data,
    /// Entries of free blocks, exchanged between the allocator's cache and memory.
    Slab,
    /// Values that were changed in a cache.
    WriteBack,
}

impl Cause {
    /// All causes, in the order in which reports list them.
    pub const ALL: [Cause; 5] =
        [Cause::Bucket, Cause::Chain, Cause::Data, Cause::Slab, Cause::WriteBack];

    /// Name of the cause in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Bucket => "bucket",
            Cause::Chain => "chain",
            Cause::Data => "data",
            Cause::Slab => "slab",
            Cause::WriteBack => "write-back",
        }
    }
}

/// Whether memory is read or written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From memory.
    Read,
    /// To memory.
    Write,
}

/// Number of memory accesses, by cause and direction (KV-Direct, hash table).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Accesses {
    counts: [[u64; 2]; Cause::ALL.len()],
}

impl Accesses {
    /// Counts one access.
    #[inline]
    pub fn count(&mut self, cause: Cause, direction: Direction) {
        self.count_many(cause, direction, 1);
    }

    /// Counts several accesses of one kind.
    #[inline]
    pub fn count_many(&mut self, cause: Cause, direction: Direction, accesses: u64) {
        self.counts[cause as usize][direction as usize] += accesses;
    }

    /// Number of reads for `cause`.
    pub const fn reads(&self, cause: Cause) -> u64 {
        self.counts[cause as usize][Direction::Read as usize]
    }

    /// Number of writes for `cause`.
    pub const fn writes(&self, cause: Cause) -> u64 {
        self.counts[cause as usize][Direction::Write as usize]
    }

    /// Number of reads and writes for `cause`.
    pub const fn of(&self, cause: Cause) -> u64 {
        self.reads(cause) + self.writes(cause)
    }

    /// Number of reads for all causes.
    pub fn all_reads(&self) -> u64 {
        self.counts.iter().map(|count| count[Direction::Read as usize]).sum()
    }

    /// Number of writes for all causes.
    pub fn all_writes(&self) -> u64 {
        self.counts.iter().map(|count| count[Direction::Write as usize]).sum()
    }

    /// Number of all accesses.
    pub fn total(&self) -> u64 {
        self.all_reads() + self.all_writes()
    }
}

impl AddAssign for Accesses {
    fn add_assign(&mut self, other: Accesses) {
        for (mine, others) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine += others;
        }
    }
}

impl Add for Accesses {
    type Output = Accesses;

    fn add(mut self, other: Accesses) -> Accesses {
        self += other;
        self
    }
}

impl Sub for Accesses {
    type Output = Accesses;

    /// Accesses since `earlier`, which was taken from the same counter.
    fn sub(mut self, earlier: Accesses) -> Accesses {
        for (now, then) in self.counts.iter_mut().flatten().zip(earlier.counts.iter().flatten()) {
            *now -= then;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_kept_apart_by_cause_and_direction() {
        let mut accesses = Accesses::default();
        for (at, cause) in Cause::ALL.into_iter().enumerate() {
            accesses.count_many(cause, Direction::Read, 1 << (2 * at));
            accesses.count_many(cause, Direction::Write, 2 << (2 * at));
        }
        for (at, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(accesses.reads(cause), 1 << (2 * at), "{}", cause.name());
            assert_eq!(accesses.of(cause), 3 << (2 * at), "{}", cause.name());
        }
        assert_eq!(accesses.all_reads(), 0b01_0101_0101);
        assert_eq!(accesses.all_writes(), 0b10_1010_1010);
        assert_eq!(accesses.total(), 0b11_1111_1111);
    }

    #[test]
    fn a_difference_is_what_was_counted_since() {
        let mut accesses = Accesses::default();
        accesses.count(Cause::Data, Direction::Write);
        let earlier = accesses;
        accesses.count(Cause::Slab, Direction::Read);
        let mut expected = Accesses::default();
        expected.count(Cause::Slab, Direction::Read);
        assert_eq!(accesses - earlier, expected);
        assert_eq!(earlier + expected, accesses);
    }
}
