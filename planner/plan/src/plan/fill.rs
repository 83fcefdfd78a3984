// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filling a machine with calls of alternatives.

use super::{Candidate, Removed};
use crate::constraints::too_large;
use crate::cost::Cost;
use crate::function::{Function, Memory};
use std::collections::BTreeMap;

/// The limit of a plan that no resource limits.
const OFFERED: &str = "offered load";
/// The processor time of the host that a constraint allows.
const HOST_ALLOWED: &str = "cores of the host that the constraint allows";
/// An alternative that adds less than this share of its own limit is left out, and so is one that
/// would serve less than this share of the offered load.
const SHARE_MIN: f64 = 0.01;

/// Use of resources by calls that are planned.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Budget {
    used: Vec<(&'static str, f64)>,
}

impl Budget {
    fn used(&self, name: &str) -> f64 {
        self.used.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, used)| *used)
    }

    /// Returns the rate of further calls in millions per second, and the resource that limits it.
    fn room(&self, shares: &[(&'static str, f64)]) -> (f64, &'static str) {
        let left =
            |(name, share): &(&'static str, f64)| ((1.0 - self.used(name)).max(0.0) / share, *name);
        let all = shares.iter().filter(|(_, share)| *share > 0.0).map(left);
        all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::MAX, "latency"))
    }

    fn add(&mut self, shares: &[(&'static str, f64)], rate: f64) {
        for (name, share) in shares {
            match self.used.iter_mut().find(|(known, _)| known == name) {
                Some((_, used)) => *used += rate * share,
                None => self.used.push((name, rate * share)),
            }
        }
    }

    /// Returns the use of all resources, the busiest first.
    pub(super) fn uses(&self) -> Vec<(&'static str, f64)> {
        let mut uses = self.used.clone();
        uses.sort_by(|a, b| b.1.total_cmp(&a.1));
        uses
    }
}

/// A candidate's part in a filled machine.
pub(super) struct Part {
    /// Its place in the ranking.
    pub(super) number: usize,
    pub(super) rate: f64,
    pub(super) limited_by: &'static str,
}

/// A machine that is filled.
pub(super) struct Filled {
    pub(super) parts: Vec<Part>,
    pub(super) left_out: Vec<Removed>,
    pub(super) rate: f64,
    pub(super) limit: &'static str,
    pub(super) budget: Budget,
}

/// Returns whether a limit is a resource of the machine.
pub(super) fn is_resource(limit: &str) -> bool {
    limit != OFFERED
}

/// Returns the greatest rate of a call's alternative that the function's offered load and the
/// processor time that a constraint allows leave, in millions per second.
pub(super) fn allowed_rate(function: &Function, cost: &Cost) -> f64 {
    let (room, _) = Budget::default().room(&shares(function, cost, None));
    room.min(function.offered.unwrap_or(f64::INFINITY))
}

/// Returns the processor time of the host for a call as a share of what a constraint allows.
pub(super) fn host_share(function: &Function, cost: &Cost) -> Option<(&'static str, f64)> {
    let allowed = function.constraints.host_cores.filter(|cores| *cores > 0.0)?;
    Some((HOST_ALLOWED, cost.host_time / 1000.0 / allowed))
}

/// Returns the shares of a call, with that of the processor time that a constraint allows.
fn shares(function: &Function, cost: &Cost, without: Option<&str>) -> Vec<(&'static str, f64)> {
    let all = cost.shares.iter().copied().chain(host_share(function, cost));
    all.filter(|(name, _)| Some(*name) != without).collect()
}

/// Candidates that are not used whatever is left, by their places in the ranking, with the reasons.
pub(super) type Excluded = BTreeMap<usize, String>;

/// Fills a machine with candidates in their order, as if the resource `without` had no limit.
pub(super) fn fill(
    function: &Function,
    ranking: &[Candidate],
    excluded: &Excluded,
    without: Option<&'static str>,
) -> Filled {
    let offered = function.offered.unwrap_or(f64::INFINITY);
    let mut filled = Filled {
        parts: vec![],
        left_out: vec![],
        rate: 0.0,
        limit: OFFERED,
        budget: Budget::default(),
    };
    let mut memory: Vec<&Memory> = vec![];
    for (number, candidate) in ranking.iter().enumerate() {
        let mut skip = |reason: String| {
            let name = candidate.alternative.name.clone();
            filled.left_out.push(Removed { name, reason });
        };
        if let Some(reason) = excluded.get(&number) {
            skip(reason.clone());
            continue;
        }
        let left = offered - filled.rate;
        if function.offered.is_some_and(|offered| left <= SHARE_MIN * offered) {
            skip("less than 1 % of the offered load is left".into());
            continue;
        }
        let together = with_memory(&memory, candidate);
        let broken = too_large(&function.constraints, together.iter().copied());
        if let Some(reason) = broken {
            skip(format!("{reason} together with those before"));
            continue;
        }
        let shares = shares(function, &candidate.cost, without);
        let (room, resource) = filled.budget.room(&shares);
        let (alone, _) = Budget::default().room(&shares);
        if room < SHARE_MIN * alone {
            let names: Vec<&str> = filled
                .parts
                .iter()
                .map(|part| &ranking[part.number])
                .filter(|other| other.cost.shares.iter().any(|(name, _)| *name == resource))
                .map(|other| other.alternative.name.as_str())
                .collect();
            skip(format!("{} uses up: {resource}", names.join(" with ")));
            continue;
        }
        let (rate, limited_by) = if left < room { (left, OFFERED) } else { (room, resource) };
        filled.budget.add(&shares, rate);
        filled.rate += rate;
        filled.limit = limited_by;
        filled.parts.push(Part { number, rate, limited_by });
        memory = together;
    }
    filled
}

/// Returns the memory of candidates; what has the same name is shared.
fn with_memory<'a>(memory: &[&'a Memory], candidate: &'a Candidate) -> Vec<&'a Memory> {
    let mut all = memory.to_vec();
    for one in &candidate.alternative.memory {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Returns the candidate that serves most calls alone, and its rate.
pub(super) fn best_single(function: &Function, ranking: &[Candidate]) -> (usize, f64) {
    let rate = |candidate: &Candidate| allowed_rate(function, &candidate.cost);
    let mut best = (0, 0.0);
    for (number, candidate) in ranking.iter().enumerate() {
        if rate(candidate) > best.1 {
            best = (number, rate(candidate));
        }
    }
    best
}
