// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Constraints and the order of alternatives.

use super::{Candidate, PlanError};
use crate::cost::Cost;
use crate::figures::time;
use crate::function::{Action, Alternative, Constraints, Criterion, Function};
use freeport_plan_model::{Operation, Profile, Side};

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

/// Returns the reason if the rules made an alternative the same as another one: as an earlier one,
/// or as a later one that they did not change.
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
    Some(format!("the rules make it the same as {}", other.name))
}

/// Returns the reason if an alternative breaks a constraint.
pub(super) fn broken(
    constraints: &Constraints,
    alternative: &Alternative,
    cost: &Cost,
) -> Option<String> {
    if constraints.host_cores == Some(0.0) && cost.host_time > 0.0 {
        let time = time(cost.host_time);
        return Some(format!("host-cores=0 allows no time of the host, and a call takes {time}"));
    }
    for side in [Side::Host, Side::Soc] {
        let needed = alternative.memory.iter().filter(|memory| memory.side == side);
        if let Some(reason) = too_large(constraints, side, needed.map(|memory| memory.bytes).sum())
        {
            return Some(reason);
        }
    }
    let latency = cost.latency / 1000.0;
    let most = constraints.latency_us.filter(|most| latency > *most)?;
    Some(format!("latency-us={most} is less than {latency:.2} us, its time on an idle machine"))
}

/// Returns the reason if a side has less memory than this.
pub(super) fn too_large(constraints: &Constraints, side: Side, bytes: u64) -> Option<String> {
    let (name, most) = match side {
        Side::Soc => ("soc-memory", constraints.soc_memory),
        _ => ("host-memory", constraints.host_memory),
    };
    let most = most.filter(|most| bytes > *most)?;
    Some(format!("{name}={most} is less than {bytes} B, which it needs"))
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
