// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of alternatives, without those that a device cannot carry out and equal ones.

use super::{Candidate, PlanError};
use crate::function::{Action, Alternative, Criterion, Function};
use freeport_plan_model::{Operation, Profile};

/// Most steps of a call.
const STEPS_MAX: u64 = 1 << 14;
/// Most steps of all calls in flight: each simulated call keeps all of its steps in memory.
const STEPS_IN_FLIGHT_MAX: u64 = 1 << 21;

/// Refuses messages that are longer than a packet of the device.
pub(super) fn check_messages(profile: &Profile, function: &Function) -> Result<(), PlanError> {
    let most = profile.network.mtu as u64;
    for alternative in &function.alternatives {
        for step in alternative.steps.iter().chain(&alternative.miss) {
            let bytes = match step.action {
                Action::Message { bytes, .. } | Action::Answer { bytes, .. } => bytes,
                Action::Request(request) if request.operation == Operation::Send => request.bytes,
                _ => 0,
            };
            if bytes > most {
                let alternative = alternative.name.clone();
                return Err(PlanError::Message { alternative, bytes, most });
            }
        }
    }
    Ok(())
}

/// Refuses alternatives of more steps than can be simulated with all calls in flight.
pub(super) fn check_steps(
    profile: &Profile,
    candidates: &[Candidate],
    in_flight: u64,
) -> Result<(), PlanError> {
    let most = STEPS_MAX.min(STEPS_IN_FLIGHT_MAX / in_flight);
    for Candidate { alternative, .. } in candidates {
        let steps = alternative.steps_of_call(profile);
        if steps > most {
            let alternative = alternative.name.clone();
            return Err(PlanError::Steps { alternative, steps, in_flight, most });
        }
    }
    Ok(())
}

/// Returns the reason if an alternative is the same as another one after the rules: as an earlier
/// one, or as a later one that they did not change.
pub(super) fn equal(
    alternative: &Alternative,
    declared: &[Alternative],
    changed: &[Alternative],
) -> Option<String> {
    let number = changed.iter().position(|other| other.name == alternative.name)?;
    let is_same = |other: &&Alternative| {
        other.name != alternative.name
            && (&other.steps, &other.miss, &other.memory)
                == (&alternative.steps, &alternative.miss, &alternative.memory)
            && other.covers == alternative.covers
    };
    let is_changed = |at: usize| declared[at] != changed[at];
    let is_kept = |(at, _): &(usize, &Alternative)| match is_changed(number) == is_changed(*at) {
        true => *at < number,
        false => is_changed(number),
    };
    let others = changed.iter().enumerate().filter(|(_, other)| is_same(other));
    let (_, other) = others.filter(|other| is_kept(other)).min_by_key(|(at, _)| *at)?;
    let name = &other.name;
    Some(match is_changed(number) {
        true => format!("the rules make it the same as {name}"),
        false => format!("it is the same as {name}"),
    })
}

/// Ranks candidates: by the first criterion, then by the next one where the tolerance makes figures
/// equal, and so on; by the order of their declaration in the end.
pub(super) fn ranked(
    candidates: Vec<Candidate>,
    criteria: &[Criterion],
    tolerance: f64,
) -> Vec<Candidate> {
    let Some((criterion, next)) = criteria.split_first() else { return candidates };
    let mut left = candidates;
    let mut ranking = vec![];
    while !left.is_empty() {
        let figure = |candidate: &Candidate| candidate.cost.figure(*criterion);
        let figures = left.iter().map(figure);
        let is_equal: Box<dyn Fn(f64) -> bool> = match criterion {
            Criterion::Throughput => {
                let best = figures.fold(0.0, f64::max);
                Box::new(move |figure| figure >= best * (1.0 - tolerance))
            }
            _ => {
                let best = figures.fold(f64::INFINITY, f64::min);
                Box::new(move |figure| figure * (1.0 - tolerance) <= best)
            }
        };
        let (group, others) = left.into_iter().partition(|candidate| is_equal(figure(candidate)));
        ranking.extend(ranked(group, next, tolerance));
        left = others;
    }
    ranking
}
