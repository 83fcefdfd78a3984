// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of a plan: how many use which alternative, and what they get.
//!
//! In the order of rank, each alternative gets as many clients as keep it busy at its planned rate.
//! This division is kept unless the queueing model knows one that serves more: that of the greatest
//! throughput for two alternatives, that in proportion to what several ones need, and all clients
//! at one alternative.

use super::fill::{Excluded, Filled, Part, allowed_rate, fill, host_share};
use super::{Candidate, Share};
use crate::cost::Cost;
use crate::function::Function;
use crate::queue::{Calls, Class, Demand, closed};
use crate::switch::{class, switch_point};
use freeport_plan_model::Profile;

/// A division that serves less than this share of the best one is not kept.
const KEPT_FROM: f64 = 0.99;

/// Divides the clients of a function among the alternatives that are not excluded. Alternatives
/// that get no client are excluded as well, and the others get what they leave. Unless the excluded
/// ones are final, the best alternative alone may replace all others.
pub(super) fn divided(
    profile: &Profile,
    function: &Function,
    ranking: &[Candidate],
    excluded: &mut Excluded,
    is_final: bool,
) -> Vec<Share> {
    let clients = function.clients_on(profile);
    loop {
        let filled = fill(function, ranking, excluded, None);
        let division = best_division(function, ranking, &filled, clients);
        let enough = division.rate / KEPT_FROM;
        let better = || better_alone(function, ranking, clients, enough);
        if let Some(single) = (!is_final).then(better).flatten() {
            let name = &ranking[single].alternative.name;
            let reason = format!("{clients} clients are too few: more are served by {name} alone");
            *excluded = others(ranking, single, &reason);
            continue;
        }
        let idle: Vec<usize> = idle(&filled, &division.counts).collect();
        if idle.is_empty() {
            return shares(function, ranking, &filled, &division.counts);
        }
        let reason = format!("{clients} clients are too few: the others serve more of them");
        excluded.extend(idle.into_iter().map(|number| (number, reason.clone())));
    }
}

/// Gives shares these clients, and sets their expected calls.
pub(super) fn assign(function: &Function, shares: &mut [Share], counts: &[u32]) {
    let classes: Vec<Class> = shares
        .iter()
        .zip(counts)
        .map(|(share, clients)| class_of(function, &share.candidate.cost, *clients))
        .collect();
    for ((share, clients), expected) in shares.iter_mut().zip(counts).zip(closed(&classes)) {
        share.clients = *clients;
        share.expected = (!function.is_throttled()).then_some(expected);
    }
}

/// Returns all candidates but one as excluded.
pub(super) fn others(ranking: &[Candidate], kept: usize, reason: &str) -> Excluded {
    let others = (0..ranking.len()).filter(|number| *number != kept);
    others.map(|number| (number, reason.to_owned())).collect()
}

/// Returns the expected calls of all shares together; none if those of a share are not known.
pub(super) fn together(shares: &[Share]) -> Option<Calls> {
    let (mut rate, mut in_flight) = (0.0, 0.0);
    for share in shares {
        let calls = share.expected?;
        rate += calls.rate;
        in_flight += calls.rate * calls.latency;
    }
    Some(Calls { rate, latency: in_flight / rate })
}

fn idle<'a>(filled: &'a Filled, counts: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
    let parts = filled.parts.iter().zip(counts);
    parts.filter(|(_, clients)| **clients == 0).map(|(part, _)| part.number)
}

/// Clients of each part, and the calls of all of them in millions per second.
struct Division {
    counts: Vec<u32>,
    rate: f64,
}

fn best_division(
    function: &Function,
    ranking: &[Candidate],
    filled: &Filled,
    clients: u32,
) -> Division {
    let window = function.in_flight;
    let cost = |number: usize| &ranking[filled.parts[number].number].cost;
    let needed: Vec<f64> = (0..filled.parts.len())
        .map(|number| filled.parts[number].rate * cost(number).latency / 1000.0 / f64::from(window))
        .collect();
    let sum: f64 = needed.iter().sum();
    let surplus = (f64::from(clients) / sum).max(1.0);
    let proportional: Vec<f64> = needed.iter().map(|part| part * surplus).collect();
    let of = |counts: Vec<u32>| {
        let rate = calls(function, ranking, filled, &counts).iter().map(|calls| calls.rate).sum();
        Division { counts, rate }
    };
    let by_rank = of(rounded(&proportional, clients));
    if filled.parts.len() != 2 || by_rank.rate >= KEPT_FROM * filled.rate {
        return by_rank;
    }
    let first = switch_point(cost(0), cost(1), clients, window).first;
    let fastest = of(vec![first, clients - first]);
    if by_rank.rate >= KEPT_FROM * fastest.rate { by_rank } else { fastest }
}

/// Returns the candidate that serves most calls of all clients alone, if these are more than
/// `enough` millions per second.
fn better_alone(
    function: &Function,
    ranking: &[Candidate],
    clients: u32,
    enough: f64,
) -> Option<usize> {
    let in_flight = f64::from(clients) * f64::from(function.in_flight);
    let mut best = (None, enough);
    for (number, candidate) in ranking.iter().enumerate() {
        let most = allowed_rate(function, &candidate.cost);
        if candidate.cost.bound(in_flight).min(most) <= best.1 {
            continue;
        }
        let rate = closed(&[class_of(function, &candidate.cost, clients)])[0].rate.min(most);
        if rate > best.1 {
            best = (Some(number), rate);
        }
    }
    best.0
}

/// Returns clients as a class, for which the host has only the processor time that is allowed.
fn class_of(function: &Function, cost: &Cost, clients: u32) -> Class {
    let mut class = class(cost, clients, function.in_flight);
    let host = host_share(function, cost).map(|(name, busy)| {
        let stay = busy.max(cost.host_time / 1000.0);
        Demand { name, busy, stay, is_whole: true }
    });
    class.demands.extend(host);
    class
}

fn calls(
    function: &Function,
    ranking: &[Candidate],
    filled: &Filled,
    counts: &[u32],
) -> Vec<Calls> {
    let classes: Vec<_> = filled
        .parts
        .iter()
        .zip(counts)
        .map(|(part, clients)| class_of(function, &ranking[part.number].cost, *clients))
        .collect();
    closed(&classes)
}

fn shares(
    function: &Function,
    ranking: &[Candidate],
    filled: &Filled,
    counts: &[u32],
) -> Vec<Share> {
    let calls = calls(function, ranking, filled, counts);
    let share = |(part, (clients, expected)): (&Part, (&u32, Calls))| Share {
        candidate: ranking[part.number].clone(),
        rate: part.rate,
        share: part.rate / filled.rate,
        limited_by: part.limited_by,
        clients: *clients,
        expected: (!function.is_throttled()).then_some(expected),
    };
    filled.parts.iter().zip(counts.iter().zip(calls)).map(share).collect()
}

/// Rounds up in order, until all clients are used; the last one gets the rest.
fn rounded(parts: &[f64], clients: u32) -> Vec<u32> {
    let mut left = clients;
    let last = parts.len() - 1;
    let take = |(number, part): (usize, &f64)| {
        let count = if number == last { left } else { (part.ceil() as u32).min(left) };
        left -= count;
        count
    };
    parts.iter().enumerate().map(take).collect()
}
