// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accesses of the YCSB mixes, with their own distributions of records.
//!
//! A table has no order, so a scan reads records one after the other. Its accesses, as those of a
//! read-modify-write, are counted together.

use super::{Cost, Trial};
use crate::table::{Put, Refused, Table};
use crate::workload::{Keys, Operation, Operations, Values};

/// Accesses of a mix, by kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MixCosts {
    /// Reads.
    pub reads: Cost,
    /// Updates.
    pub updates: Cost,
    /// Inserts.
    pub inserts: Cost,
    /// Scans.
    pub scans: Cost,
    /// Read-modify-writes.
    pub read_modify_writes: Cost,
    /// All operations.
    pub all: Cost,
}

/// Runs `count` operations on a table that [`Trial::fill`] filled. The operations' records are
/// those that it stored.
///
/// # Errors
/// The table's reason for refusing an insert; or the key has more bytes than a pair.
///
/// # Panics
/// If the table has lost a pair.
pub fn run_mix(
    trial: &Trial,
    table: &mut dyn Table,
    operations: &mut Operations,
    count: usize,
) -> Result<MixCosts, Refused> {
    let mut client = Client {
        keys: trial.keys(),
        values: trial.values()?,
        key: vec![],
        value: vec![],
        version: 0,
        table,
    };
    let mut costs = MixCosts::default();
    client.table.take_accesses();
    for _ in 0..count {
        let records = operations.records();
        let Some(operation) = operations.next() else {
            break;
        };
        let cost = match operation {
            Operation::Read(rank) => {
                client.read(rank);
                &mut costs.reads
            }
            Operation::Update(rank) => {
                client.write(rank)?;
                &mut costs.updates
            }
            Operation::Insert(rank) => {
                let put = client.write(rank)?;
                assert_eq!(put, Put::Inserted, "rank {rank} is new");
                &mut costs.inserts
            }
            Operation::Scan(first, length) => {
                (first..records.min(first + length)).for_each(|rank| client.read(rank));
                &mut costs.scans
            }
            Operation::ReadModifyWrite(rank) => {
                client.read(rank);
                client.write(rank)?;
                &mut costs.read_modify_writes
            }
        };
        let accesses = client.table.take_accesses();
        cost.add(accesses);
        costs.all.add(accesses);
    }
    Ok(costs)
}

/// A table, and the pair of the current operation.
struct Client<'a> {
    keys: Keys,
    values: Values,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Version of the next value that is written.
    version: u32,
    table: &'a mut dyn Table,
}

impl Client<'_> {
    fn read(&mut self, rank: u64) {
        self.keys.write(rank, &mut self.key);
        assert!(self.table.get(&self.key, &mut self.value), "the table has lost rank {rank}");
    }

    fn write(&mut self, rank: u64) -> Result<Put, Refused> {
        self.version = self.version.wrapping_add(1);
        self.keys.write(rank, &mut self.key);
        self.values.write(rank, self.version, &mut self.value);
        self.table.put(&self.key, &self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metered::Metered;
    use crate::workload::{Mix, Sizes};

    const COUNT: usize = 4000;

    fn run(mix: Mix) -> MixCosts {
        let trial = Trial { pairs: Sizes::fixed(10), utilisation: 0.4, operations: 0, seed: 1 };
        let mut table = Metered::new(1 << 20, 0.85, 10, 1).expect("valid");
        let pairs = trial.fill(&mut table).expect("pairs fit");
        let mut operations = Operations::new(mix, pairs, 5);
        let costs = run_mix(&trial, &mut table, &mut operations, COUNT).expect("pairs fit");
        assert_eq!(table.pairs(), pairs + costs.inserts.operations(), "{mix:?}");
        costs
    }

    #[test]
    fn kinds_of_operations_are_kept_apart() {
        for mix in Mix::ALL {
            let costs = run(mix);
            let MixCosts { reads, updates, inserts, scans, read_modify_writes, all } = costs;
            let kinds = [reads, updates, inserts, scans, read_modify_writes];
            assert_eq!(all.operations(), COUNT as u64, "{mix:?}");
            assert_eq!(kinds.iter().map(Cost::operations).sum::<u64>(), all.operations());
            let accesses = kinds.iter().map(|cost| cost.accesses().total()).sum::<u64>();
            assert_eq!(accesses, all.accesses().total(), "{mix:?}");
            assert_eq!(updates.operations() > 0, matches!(mix, Mix::A | Mix::B), "{mix:?}");
            assert_eq!(scans.operations() > 0, mix == Mix::E);
        }
    }

    #[test]
    fn most_reads_cost_one_access_and_most_updates_two() {
        let costs = run(Mix::A);
        assert!((1.0..1.3).contains(&costs.reads.mean()), "{:?}", costs.reads);
        assert!((2.0..2.3).contains(&costs.updates.mean()), "{:?}", costs.updates);
        let costs = run(Mix::F);
        let sum = costs.read_modify_writes.mean();
        assert!((3.0..3.6).contains(&sum), "a read and an update: {sum}");
        // A scan has 50 records on average.
        assert!((45.0..65.0).contains(&run(Mix::E).scans.mean()));
    }
}
