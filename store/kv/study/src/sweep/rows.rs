// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of the published figures, measured.

use freeport_kv_engine::Index;

use super::{Costs, Filled, Trial, fill_largest_index};
use crate::metered::Metered;
use crate::rivals::{Cuckoo, Fetch, Hopscotch, Options};
use crate::table::{Refused, Table};
use crate::workload::Sizes;

/// Tables of one size, and the operations that are measured on them.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// Bytes of memory of each table. An engine needs 1 MiB.
    pub memory_bytes: usize,
    /// Operations of each kind in a trial.
    pub operations: u64,
    /// Bytes of the smallest block of the rival tables. The engine's is 16, the published one 32.
    pub smallest_block_bytes: usize,
    /// Seed of hash functions and of the choice of keys.
    pub seed: u64,
}

/// A trial of one table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the table.
    pub table: &'static str,
    /// Mean bytes of a pair.
    pub pair_bytes: f64,
    /// Bytes of all pairs by bytes of memory.
    pub utilisation: f64,
    /// Largest pair in bytes that lies in a bucket; 0 for the rivals, whose values never do.
    pub inline_threshold: usize,
    /// Share of memory that the index has; 0 if the pairs fit at no ratio.
    pub index_ratio: f64,
    /// Costs of operations, or the reason for which the table could not be filled.
    pub costs: Result<Costs, Refused>,
}

/// The largest utilisation of an engine with an index of a given share of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Share of memory that the index has.
    pub index_ratio: f64,
    /// Bytes of all pairs by bytes of memory, when the first pair was refused.
    pub utilisation: f64,
}

impl Default for Bench {
    /// Tables of 2 MiB, blocks as small as the engine's, and 10,000 operations of each kind.
    fn default() -> Bench {
        Bench { memory_bytes: 2 << 20, operations: 10_000, smallest_block_bytes: 16, seed: 1 }
    }
}

impl Bench {
    /// A trial with this bench's number of operations.
    pub fn trial(&self, pairs: &Sizes, utilisation: f64) -> Trial {
        let Bench { operations, seed, .. } = *self;
        Trial { pairs: pairs.clone(), utilisation, operations, seed }
    }

    /// Costs of an engine with the largest index with which the pairs fit.
    pub fn engine(&self, trial: &Trial, inline_threshold: usize) -> Row {
        let make =
            |ratio| boxed(Metered::new(self.memory_bytes, ratio, inline_threshold, self.seed));
        let filled = fill_largest_index(&make, trial);
        self.row("engine", trial, inline_threshold, filled)
    }

    /// Costs of an engine whose index has a given share of memory.
    pub fn engine_with(&self, trial: &Trial, inline_threshold: usize, index_ratio: f64) -> Row {
        let table =
            boxed(Metered::new(self.memory_bytes, index_ratio, inline_threshold, self.seed));
        let filled = table.ok_or(Refused::Memory).and_then(|mut table| {
            let pairs = trial.fill(table.as_mut())?;
            Ok(Filled { table, index_ratio, pairs })
        });
        Row { index_ratio, ..self.row("engine", trial, inline_threshold, filled) }
    }

    /// Costs of an engine whose index grows while more than `fill` of its slots are taken. The row
    /// has the ratio that the index has grown to.
    pub fn growing_engine(&self, trial: &Trial, inline_threshold: usize, fill: f64) -> Row {
        let Bench { memory_bytes, seed, .. } = *self;
        let index = Index::Growing { fill };
        let options = freeport_kv_engine::Options { memory_bytes, index, inline_threshold, seed };
        let table = Metered::with_options(options).map_err(|_| Refused::Memory);
        let filled = table.and_then(|mut table| {
            let pairs = trial.fill(&mut table)?;
            let index_bytes = table.engine().statistics().index_bytes;
            let index_ratio = index_bytes as f64 / memory_bytes as f64;
            Ok(Filled { table: Box::new(table), index_ratio, pairs })
        });
        self.row("engine", trial, inline_threshold, filled)
    }

    /// Costs of the cuckoo table with the largest index with which the pairs fit.
    pub fn cuckoo(&self, trial: &Trial) -> Row {
        let make = |ratio| boxed(Cuckoo::new(&self.options(ratio)));
        self.row("cuckoo", trial, 0, fill_largest_index(&make, trial))
    }

    /// Costs of the hopscotch table with the largest index with which the pairs fit.
    pub fn hopscotch(&self, trial: &Trial, fetch: Fetch) -> Row {
        let make = |ratio| boxed(Hopscotch::new(&self.options(ratio), fetch));
        let table = match fetch {
            Fetch::Lines => "hopscotch",
            Fetch::Neighbourhood => "farm",
        };
        self.row(table, trial, 0, fill_largest_index(&make, trial))
    }

    /// The engine against utilisation: a row for each utilisation and inline threshold.
    pub fn thresholds(
        &self,
        pairs: &Sizes,
        utilisations: &[f64],
        thresholds: &[usize],
    ) -> Vec<Row> {
        let trials = utilisations.iter().map(|&utilisation| self.trial(pairs, utilisation));
        trials
            .flat_map(|trial| thresholds.iter().map(move |&bytes| self.engine(&trial, bytes)))
            .collect()
    }

    /// The engine at one utilisation and inline threshold, against the index ratio.
    pub fn index_ratios(&self, trial: &Trial, inline_threshold: usize, ratios: &[f64]) -> Vec<Row> {
        ratios.iter().map(|&ratio| self.engine_with(trial, inline_threshold, ratio)).collect()
    }

    /// The engine and its rivals against utilisation: the engine, the cuckoo table, and the
    /// hopscotch table with its neighbourhoods fetched in both ways.
    pub fn side_by_side(
        &self,
        pairs: &Sizes,
        utilisations: &[f64],
        inline_threshold: usize,
    ) -> Vec<Row> {
        let trials = utilisations.iter().map(|&utilisation| self.trial(pairs, utilisation));
        trials
            .flat_map(|trial| {
                [
                    self.engine(&trial, inline_threshold),
                    self.cuckoo(&trial),
                    self.hopscotch(&trial, Fetch::Lines),
                    self.hopscotch(&trial, Fetch::Neighbourhood),
                ]
            })
            .collect()
    }

    /// The largest utilisation that an engine reaches, against the index ratio.
    pub fn largest_utilisations(
        &self,
        pairs: &Sizes,
        inline_threshold: usize,
        ratios: &[f64],
    ) -> Vec<Reach> {
        let trial = self.trial(pairs, 1.0);
        let reach = |&index_ratio: &f64| {
            let table =
                boxed(Metered::new(self.memory_bytes, index_ratio, inline_threshold, self.seed));
            let utilisation = table.map_or(0.0, |mut table| {
                // Some pair exceeds memory, unless keys run out before.
                let _ = trial.fill(table.as_mut());
                table.utilisation()
            });
            Reach { index_ratio, utilisation }
        };
        ratios.iter().map(reach).collect()
    }

    fn options(&self, index_ratio: f64) -> Options {
        let Bench { memory_bytes, smallest_block_bytes, seed, .. } = *self;
        Options { memory_bytes, index_ratio, smallest_block_bytes, seed }
    }

    fn row(
        &self,
        table: &'static str,
        trial: &Trial,
        inline_threshold: usize,
        filled: Result<Filled, Refused>,
    ) -> Row {
        Row {
            table,
            pair_bytes: trial.pairs.mean(),
            utilisation: trial.utilisation,
            inline_threshold,
            index_ratio: filled.as_ref().map_or(0.0, |filled| filled.index_ratio),
            costs: filled.map(|mut filled| trial.measure(filled.table.as_mut(), filled.pairs)),
        }
    }
}

fn boxed<T: Table + 'static, E>(table: Result<T, E>) -> Option<Box<dyn Table>> {
    table.ok().map(|table| Box::new(table) as Box<dyn Table>)
}
