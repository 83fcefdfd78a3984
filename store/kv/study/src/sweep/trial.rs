// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trial: a table is filled up to a memory utilisation, and the cost of each kind of operation is
//! measured there.
//!
//! Pairs are inserted until their bytes reach the utilisation. Then stored and absent keys are
//! read, values are replaced by others of the same size, and pairs are deleted and new ones
//! inserted in turn, so that the utilisation stays. Keys of operations are drawn evenly: a skewed
//! choice would measure the few chains of popular keys.

use fastrand::Rng;

use super::Cost;
use crate::table::{Refused, Table};
use crate::workload::{Keys, Sizes, Values};

/// Largest key in bytes that all tables take.
const KEY_BYTES: usize = crate::rivals::KEY_BYTES;

/// The pairs of a trial, and its extent.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Bytes of pairs, key and value together.
    pub pairs: Sizes,
    /// Bytes of all pairs by bytes of memory, at which costs are measured.
    pub utilisation: f64,
    /// Operations of each kind.
    pub operations: u64,
    /// Seed of the choice of keys.
    pub seed: u64,
}

/// Costs at a utilisation, of each kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// GET of a stored key.
    pub get_hit: Cost,
    /// GET of an absent key.
    pub get_miss: Cost,
    /// PUT of a stored key, with a value of the same size.
    pub update: Cost,
    /// PUT of an absent key.
    pub insert: Cost,
    /// DELETE of a stored key.
    pub delete: Cost,
    /// Inserts that the table refused, which no cost includes.
    pub refused: u64,
}

impl Trial {
    /// The form of keys: at most half of the smallest pair, and eight bytes, so that rival tables
    /// take them. Pairs of less than six bytes have keys of three.
    pub fn keys(&self) -> Keys {
        let smallest = self.pairs.shares().map(|(bytes, _)| bytes).min().unwrap_or(0);
        Keys::Binary((smallest / 2).clamp(3, KEY_BYTES))
    }

    /// The values that fill pairs up to their sizes.
    pub(super) fn values(&self) -> Result<Values, Refused> {
        let key_bytes = self.keys().bytes();
        Values::of_pairs(&self.pairs, key_bytes).ok_or(Refused::KeyBytes(key_bytes))
    }

    /// Fills an empty table up to the utilisation, or until all keys are used. Returns the number
    /// of pairs.
    ///
    /// # Errors
    /// The table's reason for refusing a pair; or the key has more bytes than a pair.
    pub fn fill(&self, table: &mut dyn Table) -> Result<u64, Refused> {
        let (keys, values) = (self.keys(), self.values()?);
        let (mut key, mut value) = (vec![], vec![]);
        let bytes = (self.utilisation * table.memory_bytes() as f64) as u64;
        let mut rank = 0;
        while table.pair_bytes() < bytes && rank < keys.ranks() {
            keys.write(rank, &mut key);
            values.write(rank, 0, &mut value);
            table.put(&key, &value)?;
            rank += 1;
        }
        table.take_accesses();
        Ok(rank)
    }

    /// Measures a table that [`Trial::fill`] filled with `pairs`. The table's contents change.
    ///
    /// # Panics
    /// If the table has lost a pair, or has one that was not stored.
    pub fn measure(&self, table: &mut dyn Table, pairs: u64) -> Costs {
        let Ok(values) = self.values() else {
            return Costs::default();
        };
        let random = Rng::with_seed(self.seed);
        let mut meter = Meter { table, keys: self.keys(), values, key: vec![], value: vec![] };
        let mut costs = Costs::default();
        self.measure_reads(&mut meter, pairs, random.clone(), &mut costs);
        self.measure_changes(&mut meter, pairs, random, &mut costs);
        costs
    }

    fn measure_reads(&self, meter: &mut Meter, pairs: u64, mut random: Rng, costs: &mut Costs) {
        let mut found = vec![];
        let absent = pairs..meter.keys.ranks();
        for _ in 0..self.operations.min(pairs) {
            let rank = random.u64(..pairs);
            meter.prepare(rank, 0);
            let is_found = meter.table.get(&meter.key, &mut found);
            assert!(is_found && found == meter.value, "the table has lost rank {rank}");
            costs.get_hit.add(meter.table.take_accesses());
            if absent.is_empty() {
                continue;
            }
            meter.prepare(random.u64(absent.clone()), 0);
            assert!(!meter.table.get(&meter.key, &mut found), "a pair that was not stored");
            costs.get_miss.add(meter.table.take_accesses());
        }
    }

    fn measure_changes(&self, meter: &mut Meter, pairs: u64, mut random: Rng, costs: &mut Costs) {
        let mut ranks: Vec<u64> = (0..pairs).collect();
        for new in (pairs..meter.keys.ranks()).take(self.operations.min(pairs) as usize) {
            meter.prepare(ranks[random.usize(..ranks.len())], 1);
            meter.table.put(&meter.key, &meter.value).expect("the size stays");
            costs.update.add(meter.table.take_accesses());

            let rank = ranks.swap_remove(random.usize(..ranks.len()));
            meter.prepare(rank, 0);
            assert!(meter.table.delete(&meter.key), "the table has lost rank {rank}");
            costs.delete.add(meter.table.take_accesses());

            meter.prepare(new, 0);
            let is_stored = meter.table.put(&meter.key, &meter.value).is_ok();
            let accesses = meter.table.take_accesses();
            if is_stored {
                ranks.push(new);
                costs.insert.add(accesses);
            } else {
                costs.refused += 1;
            }
            if ranks.is_empty() {
                break;
            }
        }
    }
}

/// A table with the pair that is used next.
struct Meter<'a> {
    table: &'a mut dyn Table,
    keys: Keys,
    values: Values,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Meter<'_> {
    fn prepare(&mut self, rank: u64, version: u32) {
        self.keys.write(rank, &mut self.key);
        self.values.write(rank, version, &mut self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Cause;
    use crate::metered::Metered;

    #[test]
    fn costs_are_measured_at_the_utilisation() {
        let pairs = Sizes::fixed(10);
        let trial = Trial { pairs, utilisation: 0.4, operations: 500, seed: 1 };
        let mut table = Metered::new(1 << 20, 0.8, 10, 1).expect("valid");
        let pairs = trial.fill(&mut table).expect("pairs fit");
        assert_eq!(pairs, ((0.4 * f64::from(1 << 20)) as u64).div_ceil(10));
        let costs = trial.measure(&mut table, pairs);
        assert_eq!((table.pairs(), costs.refused), (pairs, 0));
        let Costs { get_hit, get_miss, update, insert, delete, .. } = costs;
        assert!([get_hit, get_miss, update, insert, delete].iter().all(|c| c.operations() == 500));
        let data = [get_hit, update, insert].map(|cost| cost.mean_of(Cause::Data));
        assert_eq!(data, [0.0; 3], "small pairs lie in buckets");
        assert!((1.0..1.2).contains(&get_hit.mean()), "{get_hit:?}");
        assert!((2.0..2.2).contains(&update.mean()), "{update:?}");
    }

    #[test]
    fn a_fill_that_exceeds_memory_is_refused() {
        let trial = Trial { pairs: Sizes::fixed(62), utilisation: 0.97, operations: 1, seed: 1 };
        let mut table = Metered::new(1 << 20, 0.3, 10, 1).expect("valid");
        assert_eq!(trial.fill(&mut table), Err(Refused::Memory));
        let small = Trial { pairs: Sizes::fixed(2), ..trial };
        assert_eq!(small.fill(&mut table), Err(Refused::KeyBytes(3)));
    }
}
