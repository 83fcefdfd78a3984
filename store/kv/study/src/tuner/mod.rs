// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choice of the inline threshold and the index ratio for a mix of sizes (KV-Direct, hash table).
//!
//! Both are set when an engine is made. Pairs in buckets save an access, but take more slots, so
//! that chains become longer. For each candidate threshold the largest index is taken with which
//! the pairs fit, because larger indexes have shorter chains. [`plan`] compares the candidates by
//! the model; [`measure`] compares the same candidates by filling small engines.

use std::fmt;

use crate::access::{Expected, Layout, Store, largest_index_ratio};
use crate::sweep::{Bench, Costs};
use crate::workload::Sizes;

/// Inline thresholds that are compared, in bytes.
pub const THRESHOLDS: [usize; 11] = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50];

/// Share by which a plan's index leaves room for more pairs than asked for: chains are longer in
/// some stores than in others, and deletions leave gaps.
const HEADROOM: f64 = 1.0 / 256.0;

/// Costs that differ by less than this share count as equal; the smaller threshold is then chosen.
const EQUAL: f64 = 0.002;

/// The operations of a workload: relative weights of each kind, of which one at least is positive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// GETs of stored keys.
    pub get_hits: f64,
    /// GETs of absent keys.
    pub get_misses: f64,
    /// PUTs of stored keys, with values of the same size.
    pub updates: f64,
    /// PUTs of absent keys.
    pub inserts: f64,
    /// DELETEs of stored keys.
    pub deletes: f64,
}

impl Work {
    /// A share of GETs of stored keys, between 0 and 1, and updates.
    pub fn gets(share: f64) -> Work {
        Work { get_hits: share, updates: 1.0 - share, ..Work::default() }
    }

    /// Mean accesses of an operation when the kinds cost this much, in order of the fields.
    fn mean(&self, costs: [f64; 5]) -> f64 {
        let weights = [self.get_hits, self.get_misses, self.updates, self.inserts, self.deletes];
        let sum: f64 = weights.iter().sum();
        weights.iter().zip(costs).map(|(weight, cost)| weight * cost).sum::<f64>() / sum
    }
}

/// The store and the workload that an engine is made for.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Bytes of pairs, key and value together.
    pub pairs: Sizes,
    /// Bytes of all pairs by bytes of memory that the engine has to reach.
    pub utilisation: f64,
    /// The operations.
    pub work: Work,
}

/// Parameters of an engine, and the cost of the workload with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Largest pair in bytes that lies in a bucket.
    pub inline_threshold: usize,
    /// Share of memory for the index; `None` if the pairs do not fit with this threshold.
    pub index_ratio: Option<f64>,
    /// Mean accesses of an operation; infinite if the pairs do not fit.
    pub accesses: f64,
}

/// All candidates, and the one to use.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// A candidate for each of [`THRESHOLDS`].
    pub candidates: Vec<Candidate>,
    /// The candidate with the fewest accesses.
    pub best: Candidate,
}

/// Compares all thresholds by the model. Returns `None` if the pairs fit with none of them.
pub fn plan(layout: &Layout, demand: &Demand) -> Option<Plan> {
    Plan::new(candidates(demand, |inline_threshold| expect(layout, demand, inline_threshold)))
}

/// Compares all thresholds by filling engines and measuring their operations. Returns `None` if
/// the pairs fit with none of them.
pub fn measure(bench: &Bench, demand: &Demand) -> Option<Plan> {
    let trial = bench.trial(&demand.pairs, demand.utilisation);
    Plan::new(candidates(demand, |inline_threshold| {
        let row = bench.engine(&trial, inline_threshold);
        let index_ratio = row.costs.is_ok().then_some(row.index_ratio);
        let accesses = row.costs.map_or(f64::INFINITY, |costs| demand.work.mean(means(&costs)));
        Candidate { inline_threshold, index_ratio, accesses }
    }))
}

/// A candidate for each threshold. Thresholds that make the same pairs inline cost the same.
fn candidates(
    demand: &Demand,
    candidate: impl Fn(usize) -> Candidate,
) -> [Candidate; THRESHOLDS.len()] {
    let inline_sizes = |threshold: usize| {
        demand.pairs.shares().take_while(|&(bytes, _)| bytes <= threshold).count()
    };
    let mut last: Option<Candidate> = None;
    THRESHOLDS.map(|inline_threshold| {
        let same = last
            .filter(|last| inline_sizes(last.inline_threshold) == inline_sizes(inline_threshold));
        let candidate = same.map_or_else(
            || candidate(inline_threshold),
            |same| Candidate { inline_threshold, ..same },
        );
        last = Some(candidate);
        candidate
    })
}

/// Mean accesses of the workload on an engine with a candidate's parameters, measured. Returns
/// `None` if the pairs do not fit.
pub fn measure_candidate(bench: &Bench, demand: &Demand, candidate: &Candidate) -> Option<f64> {
    let trial = bench.trial(&demand.pairs, demand.utilisation);
    let row = bench.engine_with(&trial, candidate.inline_threshold, candidate.index_ratio?);
    row.costs.ok().map(|costs| demand.work.mean(means(&costs)))
}

fn means(costs: &Costs) -> [f64; 5] {
    [costs.get_hit, costs.get_miss, costs.update, costs.insert, costs.delete]
        .map(|cost| cost.mean())
}

fn expect(layout: &Layout, demand: &Demand, inline_threshold: usize) -> Candidate {
    let Demand { pairs, utilisation, work } = demand;
    let store = |utilisation| Store { pairs: pairs.clone(), utilisation, inline_threshold };
    let index_ratio = largest_index_ratio(layout, &store(utilisation * (1.0 + HEADROOM)));
    let expected = index_ratio
        .and_then(|ratio| Some((ratio, Expected::new(layout, &store(*utilisation), ratio)?)));
    let accesses = expected.map_or(f64::INFINITY, |(_, expected)| {
        work.mean([
            expected.get_hit(),
            expected.get_miss(),
            expected.update(),
            expected.insert(),
            expected.delete(),
        ])
    });
    Candidate { inline_threshold, index_ratio: expected.map(|(ratio, _)| ratio), accesses }
}

impl Plan {
    fn new(candidates: [Candidate; THRESHOLDS.len()]) -> Option<Plan> {
        let fewest = candidates.iter().map(|candidate| candidate.accesses).fold(f64::MAX, f64::min);
        let best = candidates.iter().find(|candidate| {
            candidate.index_ratio.is_some() && candidate.accesses <= fewest * (1.0 + EQUAL)
        })?;
        Some(Plan { best: *best, candidates: candidates.to_vec() })
    }

    /// The candidate without any inline pairs.
    fn without_inline(&self) -> &Candidate {
        &self.candidates[0]
    }
}

/// The table of candidates, the choice, and its reason.
impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "inline threshold (B)  index ratio  accesses per operation")?;
        for candidate in &self.candidates {
            write!(formatter, "{:20}  ", candidate.inline_threshold)?;
            match candidate.index_ratio {
                Some(ratio) => write!(formatter, "{ratio:11.3}  {:22.3}", candidate.accesses)?,
                None => write!(formatter, "pairs do not fit")?,
            }
            writeln!(formatter, "{}", if candidate == &self.best { "  chosen" } else { "" })?;
        }
        let Candidate { inline_threshold, accesses, .. } = self.best;
        let other = self.without_inline();
        match (inline_threshold, other.index_ratio) {
            (0, _) => write!(formatter, "No pair is inline: buckets would overflow too often."),
            (_, None) => write!(
                formatter,
                "Pairs of up to {inline_threshold} B are inline: blocks for all do not fit."
            ),
            (_, Some(_)) => write!(
                formatter,
                "Pairs of up to {inline_threshold} B are inline: {:.2} accesses less than without.",
                other.accesses - accesses
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(pairs: &[(usize, f64)], utilisation: f64, work: Work) -> Demand {
        Demand { pairs: Sizes::weighted(pairs).expect("valid"), utilisation, work }
    }

    #[test]
    fn small_pairs_are_inline_and_large_ones_are_not() {
        let plan = |demand| plan(&Layout::PUBLISHED, &demand).expect("pairs fit");
        let small = plan(demand(&[(10, 1.0)], 0.5, Work::gets(0.95)));
        assert_eq!(small.best.inline_threshold, 10);
        assert_eq!(small.candidates[0].index_ratio, None, "blocks of 32 B for all do not fit");
        // Larger thresholds make no difference.
        assert!((small.candidates[10].accesses - small.best.accesses).abs() < 1e-9);
        let large = plan(demand(&[(62, 1.0)], 0.5, Work::gets(0.95)));
        assert_eq!(large.best.inline_threshold, 0);
        assert!((large.best.accesses - 2.06).abs() < 0.02, "{large:?}");
    }

    #[test]
    fn a_high_utilisation_has_a_lower_best_threshold() {
        let sizes = [(10, 1.0), (20, 1.0), (30, 1.0), (40, 1.0), (50, 1.0)];
        let best = |utilisation| {
            let demand = demand(&sizes, utilisation, Work::gets(0.5));
            plan(&Layout::ENGINE, &demand).expect("pairs fit").best.inline_threshold
        };
        let found = [0.2, 0.5, 0.65].map(best);
        assert!(found.is_sorted_by(|low, high| low >= high), "{found:?}");
        assert!(found[0] > found[2], "{found:?}");
    }

    #[test]
    fn a_plan_states_its_choice() {
        let demand = demand(&[(10, 1.0)], 0.5, Work::gets(1.0));
        let text = plan(&Layout::PUBLISHED, &demand).expect("pairs fit").to_string();
        assert_eq!(text.lines().count(), 13);
        assert_eq!(text.lines().filter(|line| line.ends_with("chosen")).count(), 1, "{text}");
        assert!(text.ends_with("up to 10 B are inline: blocks for all do not fit."), "{text}");
    }

    #[test]
    fn pairs_that_never_fit_have_no_plan() {
        let demand = demand(&[(10, 1.0)], 0.9, Work::gets(1.0));
        assert_eq!(plan(&Layout::PUBLISHED, &demand), None);
    }
}
