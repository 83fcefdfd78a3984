// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of ranks and operations drawn in advance, taken in turn again and again.
//!
//! A draw is one load from consecutive memory, so that a measurement of tens of millions of
//! operations a second does not measure the generator. A table of some millions of entries is
//! large enough: the records that it names exceed the caches as all records do.

use fastrand::Rng;

use super::Ranks;

/// Most records that tables of operations name.
const OPERATION_RECORDS: u64 = 1 << 31;

/// Bit of an entry that marks a write.
const WRITE: u32 = 1 << 31;

/// Ranks drawn in advance.
#[derive(Clone, Debug)]
pub struct Drawn {
    ranks: Vec<u32>,
    next: usize,
}

impl Drawn {
    /// Draws `2^log_count` ranks.
    ///
    /// # Panics
    /// If there are more than 2^32 records.
    pub fn new(ranks: &mut Ranks, log_count: u32) -> Drawn {
        assert!(ranks.records() <= 1 << 32, "ranks in tables have 32 bits");
        Drawn { ranks: (0..1usize << log_count).map(|_| ranks.draw() as u32).collect(), next: 0 }
    }

    /// The next rank.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        // The length is a power of two, which spares a division.
        let rank = self.ranks[self.next & (self.ranks.len() - 1)];
        self.next = self.next.wrapping_add(1);
        rank
    }

    /// Starts at another place of the table, for instance in each thread.
    pub fn skip_to(&mut self, place: usize) {
        self.next = place;
    }

    /// All ranks of the table.
    pub fn as_slice(&self) -> &[u32] {
        &self.ranks
    }
}

/// Reads and writes of stored records drawn in advance: the mixes A, B, C and F, and any other
/// share of writes.
#[derive(Clone, Debug)]
pub struct DrawnOperations {
    operations: Drawn,
}

/// An operation of a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DrawnOperation {
    /// Rank of the record.
    pub rank: u32,
    /// The record is written; otherwise it is read.
    pub is_write: bool,
}

impl DrawnOperations {
    /// Draws `2^log_count` operations, of which `write_share`, from 0 to 1, are writes.
    ///
    /// # Panics
    /// If there are more than 2^31 records.
    pub fn new(ranks: &mut Ranks, log_count: u32, write_share: f64, seed: u64) -> DrawnOperations {
        assert!(ranks.records() <= OPERATION_RECORDS, "ranks in tables have 31 bits");
        let mut operations = Drawn::new(ranks, log_count);
        // Another sequence than that of the ranks.
        let mut random = Rng::with_seed(!seed);
        for entry in &mut operations.ranks {
            *entry |= if random.f64() < write_share { WRITE } else { 0 };
        }
        DrawnOperations { operations }
    }

    /// The next operation.
    #[inline]
    pub fn draw(&mut self) -> DrawnOperation {
        let entry = self.operations.draw();
        DrawnOperation { rank: entry & !WRITE, is_write: entry & WRITE != 0 }
    }

    /// Starts at another place of the table, for instance in each thread.
    pub fn skip_to(&mut self, place: usize) {
        self.operations.skip_to(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Distribution;

    #[test]
    fn a_table_repeats_what_the_generator_draws() {
        for distribution in Distribution::ALL {
            let mut table = Drawn::new(&mut Ranks::new(distribution, 1000, 4), 8);
            let mut ranks = Ranks::new(distribution, 1000, 4);
            let first: Vec<u32> = (0..256).map(|_| ranks.draw() as u32).collect();
            assert_eq!(table.as_slice(), first, "{}", distribution.name());
            let twice: Vec<u32> = (0..512).map(|_| table.draw()).collect();
            assert_eq!(twice, first.repeat(2), "{}", distribution.name());
            table.skip_to(255);
            assert_eq!([table.draw(), table.draw()], [first[255], first[0]]);
        }
    }

    #[test]
    fn operations_have_the_share_of_writes_and_the_ranks_of_the_generator() {
        for (share, writes) in [(0.0, 0..=0), (0.05, 700..=940), (1.0, 16_384..=16_384)] {
            let mut ranks = Ranks::new(Distribution::Zipf, 1000, 4);
            let mut table = DrawnOperations::new(&mut ranks.clone(), 14, share, 4);
            let operations: Vec<_> = (0..1 << 14).map(|_| table.draw()).collect();
            let found = operations.iter().filter(|operation| operation.is_write).count();
            assert!(writes.contains(&found), "{found} writes at a share of {share}");
            assert!(operations.iter().all(|operation| u64::from(operation.rank) == ranks.draw()));
        }
    }
}
