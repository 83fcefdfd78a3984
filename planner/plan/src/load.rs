// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payload that a plan moves over the links of a machine.

use crate::figures::gbps;
use crate::function::{Action, Repeated};
use crate::plan::Plan;
use freeport_plan_model::route::{Request, Resource, Stage, Step};
use freeport_plan_model::{Operation, Path, Profile, Side};

/// Payload on its way from one side to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Passage {
    /// Number of the plan's share.
    pub share: usize,
    /// The side that it leaves.
    pub from: Side,
    /// The links that it passes, in their order.
    pub links: Vec<Resource>,
    /// The side that it enters.
    pub to: Side,
    /// Payload in Gbit/s at the plan's rate.
    pub gbps: f64,
}

/// Returns the payload that all steps of a plan move at its rate.
pub fn passages(profile: &Profile, plan: &Plan) -> Vec<Passage> {
    let mut found: Vec<Passage> = vec![];
    for (number, share) in plan.shares.iter().enumerate() {
        for (steps, part) in share.candidate.alternative.sequences() {
            for Repeated { action, times, .. } in steps {
                for (step, path, bytes, is_back) in moves(action) {
                    let (from, to) = match is_back {
                        true => (path.target(), path.requester()),
                        false => (path.requester(), path.target()),
                    };
                    let gbps = gbps(share.rate * part * times, bytes as f64);
                    let links = links(profile, &step);
                    if gbps > 0.0 {
                        add(&mut found, Passage { share: number, from, links, to, gbps });
                    }
                }
            }
        }
    }
    found
}

/// Returns the steps of an action that move payload in one direction: with their path, their bytes
/// and whether they move it to the requester.
fn moves(action: &Action) -> Vec<(Step, Path, u64, bool)> {
    let message = |path, bytes| (Step::Message { path, bytes }, path, bytes, false);
    let answer = |path, bytes| (Step::Answer { path, bytes }, path, bytes, true);
    match *action {
        Action::Message { path, bytes } => vec![message(path, bytes)],
        Action::Answer { path, bytes } => vec![answer(path, bytes)],
        Action::Work { .. } => vec![],
        Action::Request(request) => {
            let Request { path, operation, bytes, .. } = request;
            match operation {
                Operation::Send => vec![message(path, bytes), answer(path, bytes)],
                Operation::Read => vec![(Step::Request(request), path, bytes, true)],
                Operation::Write => vec![(Step::Request(request), path, bytes, false)],
            }
        }
    }
}

/// Returns the links on which a step moves payload.
fn links(profile: &Profile, step: &Step) -> Vec<Resource> {
    let Some(route) = step.route(profile) else { return vec![] };
    let stages = route.before.iter().chain(&route.last).chain(&route.after);
    let passed = stages.filter_map(|stage| match *stage {
        Stage::Transfer { link, bytes, .. } if bytes > 0 => Some(link),
        _ => None,
    });
    passed.collect()
}

fn add(found: &mut Vec<Passage>, passage: Passage) {
    let is_same = |other: &&mut Passage| {
        (other.share, other.from, &other.links, other.to)
            == (passage.share, passage.from, &passage.links, passage.to)
    };
    match found.iter_mut().find(is_same) {
        Some(other) => other.gbps += passage.gbps,
        None => found.push(passage),
    }
}
