// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Switch points: how many clients use the first of two alternatives, for the greatest throughput.

use crate::cost::{Cost, serves_whole};
use crate::function::Alternative;
use crate::queue::{Class, Demand, closed};
use crate::simulation::{Run, simulate};
use freeport_plan_model::Profile;

/// A division of clients.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Switch {
    /// Clients that use the first alternative; the others use the second one.
    pub first: u32,
    /// Calls of all clients in millions per second.
    pub rate: f64,
}

/// Divisions that differ by less than this share in throughput are equal: more clients then use the
/// first alternative.
const EQUAL: f64 = 0.0005;

/// Gain in a simulation from which on another division is better.
const GAIN_MIN: f64 = 1.01;
/// Part of all clients by which the first step of a refinement moves the division.
const REACH: u32 = 16;
/// Parts in which a search divides a range.
const PARTS: u32 = 8;

/// Returns a class of clients with this number of calls in flight each.
pub fn class(cost: &Cost, clients: u32, in_flight: u32) -> Class {
    let demands = cost.shares.iter().zip(&cost.stays);
    Class {
        calls: f64::from(clients) * f64::from(in_flight),
        latency: cost.latency / 1000.0,
        demands: demands
            .map(|((name, busy), stay)| {
                let is_whole = serves_whole(name);
                Demand { name, busy: *busy, stay: *stay, is_whole }
            })
            .collect(),
    }
}

/// Returns the division with the greatest throughput by the queueing model.
pub fn switch_point(first: &Cost, second: &Cost, clients: u32, in_flight: u32) -> Switch {
    let rate = |count: u32| {
        let classes = [class(first, count, in_flight), class(second, clients - count, in_flight)];
        closed(&classes).iter().map(|calls| calls.rate).sum()
    };
    // The rate has one peak: a coarse search finds its place, and finer ones the peak.
    let (mut least, mut most) = (0, clients);
    loop {
        let step = ((most - least) / PARTS).max(1);
        let places = (least..=most).step_by(step as usize).chain([most]);
        let found = best(places.map(|first| Switch { first, rate: rate(first) }));
        if step == 1 {
            return found;
        }
        least = found.first.saturating_sub(step).max(least);
        most = (found.first + step).min(most);
    }
}

/// Returns the division with the greatest throughput among some in simulations.
pub fn exhaustive(
    profile: &Profile,
    alternatives: [&Alternative; 2],
    clients: u32,
    candidates: impl Iterator<Item = u32>,
    run: &Run,
) -> Switch {
    best(candidates.map(|first| simulated(profile, alternatives, clients, first, run)))
}

/// Returns a division near another one that serves more in simulations; the other one, if none
/// serves at least 1 % more. Both alternatives keep clients.
pub fn refined(
    profile: &Profile,
    alternatives: [&Alternative; 2],
    clients: u32,
    first: u32,
    run: &Run,
) -> Switch {
    let of = |count| simulated(profile, alternatives, clients, count, run);
    let start = of(first);
    let mut best = start;
    let mut step = (clients / REACH).max(1);
    while step > 0 {
        let near = [best.first.saturating_sub(step), best.first + step];
        let near = near.into_iter().filter(|count| (1..clients).contains(count)).map(of);
        match near.max_by(|a, b| a.rate.total_cmp(&b.rate)) {
            Some(other) if other.rate > best.rate => best = other,
            _ => step /= 2,
        }
    }
    if best.rate >= GAIN_MIN * start.rate { best } else { start }
}

/// Returns the throughput of a division in a simulation.
pub fn simulated(
    profile: &Profile,
    [first, second]: [&Alternative; 2],
    clients: u32,
    count: u32,
    run: &Run,
) -> Switch {
    let parts = [(first, count), (second, clients - count)];
    Switch { first: count, rate: simulate(profile, &parts, run).rate }
}

fn best(all: impl Iterator<Item = Switch>) -> Switch {
    all.fold(Switch { first: 0, rate: 0.0 }, |best, next| {
        if next.rate >= best.rate * (1.0 - EQUAL) && next.rate > 0.0 {
            Switch { rate: next.rate.max(best.rate), ..next }
        } else {
            best
        }
    })
}
