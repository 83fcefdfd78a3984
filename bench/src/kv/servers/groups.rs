// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plan of a measurement: for each case, groups of loads on servers with the same contents.

use super::super::case::CaseName;
use super::super::draws::Spread;
use super::super::load::contents::{Contents, Workload};
use super::super::{Arguments, Pace};
use super::cases::{CASES, Case, MANY, Peer};
use super::client::Load;
use crate::between::rounds::chosen;
use std::time::Duration;

const SPREADS: [Spread; 1] = [Spread::Zipf];
const PAIRS: u64 = 1_000_000;
const QUICK_WORKLOADS: [Workload; 1] = [Workload::A];
const QUICK_VALUES: [usize; 1] = [92];
const QUICK_PAIRS: u64 = 100_000;
/// Bytes beside key and value that a pair may take, so that all fit in half of the memory.
const PAIR_EXTRA_BYTES: usize = 64;
/// Time before each measurement. Accelerated connections leave the kernel in it.
const WARM_UP: Duration = Duration::from_millis(50);

/// Servers with the same contents, and the loads that they get in turn.
pub struct Group {
    pub case: &'static Case,
    pub contents: Contents,
    pub spread: Spread,
    /// For each workload, all pipelines.
    pub loads: Vec<Vec<Load>>,
}

impl Group {
    /// Its name, with the contents of its servers.
    pub fn title(&self) -> String {
        let Contents { key_bytes, value_bytes, .. } = self.contents;
        format!("{}, {key_bytes} + {value_bytes} B", self.case.title)
    }

    /// The load of a peer that takes turns with one of ours.
    pub fn of_peer(peer: &Peer, load: &Load, arguments: &Arguments) -> Load {
        Load {
            contents: load.contents.in_form(peer.form),
            pipeline: peer.pipeline.unwrap_or(load.pipeline),
            connections: arguments.connections.unwrap_or(MANY),
            ..*load
        }
    }

    /// Describes the loads of peers that differ from a load of ours.
    pub fn of_peers(&self, load: &Load, arguments: &Arguments) -> Option<String> {
        let differs = |peer: &&Peer| peer.form != self.case.form;
        let of_peer = |peer: &Peer| {
            let Load { connections, pipeline, .. } = Self::of_peer(peer, load, arguments);
            format!("{}: {connections} connections of {pipeline} over TCP", peer.name)
        };
        let loads: Vec<_> = self.case.peers.iter().filter(differs).map(of_peer).collect();
        (!loads.is_empty()).then(|| loads.join("; "))
    }
}

/// Returns the groups of the chosen cases.
pub fn groups(arguments: &Arguments, cases: &[CaseName], pace: Pace) -> Vec<Group> {
    let mut groups = vec![];
    for case in CASES.iter().filter(|case| cases.contains(&case.name)) {
        let is_quick = arguments.quick;
        let values = if is_quick { &QUICK_VALUES[..] } else { case.values };
        let of_value = |&value_bytes: &usize| Contents {
            form: case.form,
            key_bytes: arguments.key,
            value_bytes,
            pairs: pairs(arguments, value_bytes),
            are_counters: false,
        };
        let mut contents: Vec<_> = chosen(&arguments.values, values).iter().map(of_value).collect();
        contents.extend(contents.first().map(|it| it.of_counters()));
        for contents in contents {
            for &spread in chosen(&arguments.distributions, &SPREADS) {
                let loads = loads(arguments, case, contents, spread, pace);
                if !loads.is_empty() {
                    groups.push(Group { case, contents, spread, loads });
                }
            }
        }
    }
    groups
}

/// Number of pairs that fit in half of the memory, at most a million.
fn pairs(arguments: &Arguments, value_bytes: usize) -> u64 {
    let most = if arguments.quick { QUICK_PAIRS } else { PAIRS };
    let pair_bytes = arguments.key + value_bytes + PAIR_EXTRA_BYTES;
    most.min(((arguments.memory << 20) / 2 / pair_bytes) as u64).max(1)
}

fn loads(
    arguments: &Arguments,
    case: &Case,
    contents: Contents,
    spread: Spread,
    pace: Pace,
) -> Vec<Vec<Load>> {
    let is_quick = arguments.quick;
    let workloads = if is_quick { &QUICK_WORKLOADS[..] } else { case.workloads };
    let middle = case.pipelines.len() / 2;
    let pipelines = if is_quick { &case.pipelines[middle..=middle] } else { case.pipelines };
    let load = |workload: Workload, pipeline: usize| Load {
        contents,
        workload,
        spread,
        connections: arguments.connections.unwrap_or(case.connections),
        pipeline,
        warm_up: WARM_UP,
        window: pace.window,
    };
    let of_workload = |workload: &Workload| {
        let pipelines = chosen(&arguments.pipelines, pipelines).iter();
        pipelines.map(|pipeline| load(*workload, *pipeline)).collect()
    };
    let chosen = chosen(&arguments.workloads, workloads).iter();
    let of_contents = |it: &&Workload| it.is_of_counters() == contents.are_counters;
    chosen.filter(of_contents).map(of_workload).collect()
}
