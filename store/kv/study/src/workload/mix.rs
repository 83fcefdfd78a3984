// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operation mixes of YCSB, A to F.

use fastrand::Rng;

use super::{Distribution, Ranks};

/// Longest scan, in records.
const SCAN_RECORDS: u64 = 100;

/// An operation on the record with a rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// Read the value.
    Read(u64),
    /// Replace the value.
    Update(u64),
    /// Store a new record.
    Insert(u64),
    /// Read records in order of their ranks: the first one, and their number. Fewer are read if the
    /// records end before.
    Scan(u64, u64),
    /// Read the value, then replace it.
    ReadModifyWrite(u64),
}

/// The standard mixes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mix {
    /// Update heavy: half reads, half updates.
    A,
    /// Read mostly: 5 % updates.
    B,
    /// Reads only.
    C,
    /// Read latest: 5 % inserts; new records are read most.
    D,
    /// Short ranges: scans of 1 to 100 records, 5 % inserts.
    E,
    /// Read-modify-write: half reads, half read-modify-writes.
    F,
}

/// Shares of the kinds of operations in percent. The rest to 100 are reads.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shares {
    /// Updates.
    pub updates: u8,
    /// Inserts of new records.
    pub inserts: u8,
    /// Scans.
    pub scans: u8,
    /// Read-modify-writes.
    pub read_modify_writes: u8,
}

impl Mix {
    /// All mixes.
    pub const ALL: [Mix; 6] = [Mix::A, Mix::B, Mix::C, Mix::D, Mix::E, Mix::F];

    /// The shares of operations.
    pub const fn shares(self) -> Shares {
        let none = Shares { updates: 0, inserts: 0, scans: 0, read_modify_writes: 0 };
        match self {
            Mix::A => Shares { updates: 50, ..none },
            Mix::B => Shares { updates: 5, ..none },
            Mix::C => none,
            Mix::D => Shares { inserts: 5, ..none },
            Mix::E => Shares { inserts: 5, scans: 95, ..none },
            Mix::F => Shares { read_modify_writes: 50, ..none },
        }
    }

    /// The distribution of records that YCSB uses with the mix.
    pub const fn distribution(self) -> Distribution {
        match self {
            Mix::D => Distribution::Latest,
            _ => Distribution::ScrambledZipf,
        }
    }
}

/// An endless sequence of operations.
#[derive(Clone, Debug)]
pub struct Operations {
    shares: Shares,
    ranks: Ranks,
    random: Rng,
}

impl Operations {
    /// A standard mix over `records` that are stored already, with its own distribution.
    pub fn new(mix: Mix, records: u64, seed: u64) -> Operations {
        Operations::with_shares(mix.shares(), Ranks::new(mix.distribution(), records, seed), seed)
    }

    /// A mix of any shares and distribution.
    pub fn with_shares(shares: Shares, ranks: Ranks, seed: u64) -> Operations {
        // Another sequence than that of the ranks.
        Operations { shares, ranks, random: Rng::with_seed(!seed) }
    }

    /// Number of records, with those inserted.
    pub fn records(&self) -> u64 {
        self.ranks.records()
    }

    fn operation(&mut self) -> Operation {
        let mut kind = self.random.u8(..100);
        // Whether the operation is of a kind with this share; else the kinds after it decide.
        let mut is = |share: u8| {
            let is = kind < share;
            kind = kind.saturating_sub(share);
            is
        };
        if is(self.shares.updates) {
            Operation::Update(self.ranks.draw())
        } else if is(self.shares.inserts) {
            Operation::Insert(self.ranks.add_record())
        } else if is(self.shares.scans) {
            let records = self.random.u64(1..=SCAN_RECORDS);
            Operation::Scan(self.ranks.draw(), records)
        } else if is(self.shares.read_modify_writes) {
            Operation::ReadModifyWrite(self.ranks.draw())
        } else {
            Operation::Read(self.ranks.draw())
        }
    }
}

impl Iterator for Operations {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        Some(self.operation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    #[test]
    fn operations_have_their_shares() {
        for mix in Mix::ALL {
            let mut counts = [0u32; 5];
            for operation in Operations::new(mix, 1000, 9).take(DRAWS) {
                counts[match operation {
                    Operation::Update(_) => 0,
                    Operation::Insert(_) => 1,
                    Operation::Scan(_, records) => {
                        assert!((1..=SCAN_RECORDS).contains(&records));
                        2
                    }
                    Operation::ReadModifyWrite(_) => 3,
                    Operation::Read(_) => 4,
                }] += 1;
            }
            let Shares { updates, inserts, scans, read_modify_writes } = mix.shares();
            let shares = [updates, inserts, scans, read_modify_writes];
            let reads = 100 - shares.iter().sum::<u8>();
            for (count, share) in counts.into_iter().zip(shares.into_iter().chain([reads])) {
                let mean = f64::from(share) / 100.0 * DRAWS as f64;
                // Five deviations of the count.
                let allowed = 5.0 * (mean * (1.0 - f64::from(share) / 100.0)).sqrt();
                assert!((f64::from(count) - mean).abs() <= allowed, "{mix:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn operations_address_records_that_exist() {
        for mix in Mix::ALL {
            let mut records = 100;
            for operation in Operations::new(mix, records, 1).take(10_000) {
                match operation {
                    Operation::Insert(rank) => {
                        assert_eq!(rank, records, "{mix:?}");
                        records += 1;
                    }
                    Operation::Read(rank)
                    | Operation::Update(rank)
                    | Operation::Scan(rank, _)
                    | Operation::ReadModifyWrite(rank) => assert!(rank < records, "{mix:?}"),
                }
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_operations() {
        let operations = |seed| Operations::new(Mix::A, 1000, seed).take(100).collect::<Vec<_>>();
        assert_eq!(operations(3), operations(3));
        assert_ne!(operations(3), operations(4));
    }
}
