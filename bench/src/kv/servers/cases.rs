// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases of servers as a table, and what is measured if nothing else is asked for.

use super::super::case::CaseName;
use super::super::draws::Spread;
use super::super::load::script::{Contents, Workload};
use super::super::load::wire::Wire;
use super::super::{Arguments, Pace};
use super::client::Load;
use super::server::{Kind, Sync};
use crate::between::rounds::chosen;
use std::time::Duration;

/// A protocol, with the peer that has it.
pub struct Case {
    pub name: CaseName,
    /// Name in results.
    pub title: &'static str,
    pub wire: Wire,
    pub peer: Kind,
    /// Whether servers and clients run under `freeport exec`.
    pub is_accelerated: bool,
    /// When servers sync the log of all changes that they keep; none: they keep none.
    pub sync: Option<Sync>,
    workloads: &'static [Workload],
    values: &'static [usize],
    pipelines: &'static [usize],
}

/// All cases of servers.
const CASES: [Case; 6] = [
    Case {
        name: CaseName::Resp,
        title: "resp",
        wire: Wire::Resp,
        peer: Kind::Redis,
        is_accelerated: false,
        sync: None,
        workloads: &[Workload::A, Workload::C],
        values: &[2, 92],
        pipelines: &[1, 16, 64],
    },
    Case {
        name: CaseName::RespExec,
        title: "resp-exec",
        wire: Wire::Resp,
        peer: Kind::Redis,
        is_accelerated: true,
        sync: None,
        workloads: &[Workload::C],
        values: &[92],
        pipelines: &[1, 16],
    },
    Case {
        name: CaseName::RespEverysec,
        title: "resp-everysec",
        wire: Wire::Resp,
        peer: Kind::Redis,
        is_accelerated: false,
        sync: Some(Sync::EverySecond),
        workloads: &[Workload::A],
        values: &[92],
        pipelines: &[1, 16, 64],
    },
    Case {
        name: CaseName::RespAlways,
        title: "resp-always",
        wire: Wire::Resp,
        peer: Kind::Redis,
        is_accelerated: false,
        sync: Some(Sync::Always),
        workloads: &[Workload::A],
        values: &[92],
        pipelines: &[1, 16, 64],
    },
    Case {
        name: CaseName::Memcached,
        title: "memcached",
        wire: Wire::Text,
        peer: Kind::Memcached,
        is_accelerated: false,
        sync: None,
        workloads: &[Workload::A, Workload::C],
        values: &[92],
        pipelines: &[1, 16],
    },
    Case {
        name: CaseName::MemcachedMeta,
        title: "memcached-meta",
        wire: Wire::Meta,
        peer: Kind::Memcached,
        is_accelerated: false,
        sync: None,
        workloads: &[Workload::C],
        values: &[92],
        pipelines: &[1, 16],
    },
];

const SPREADS: [Spread; 1] = [Spread::Zipf];
const PAIRS: u64 = 1_000_000;
const QUICK_WORKLOADS: [Workload; 1] = [Workload::A];
const QUICK_VALUES: [usize; 1] = [92];
const QUICK_PIPELINES: [usize; 1] = [16];
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
}

/// Returns the groups of the chosen cases.
pub fn groups(arguments: &Arguments, cases: &[CaseName], pace: Pace) -> Vec<Group> {
    let mut groups = vec![];
    for case in CASES.iter().filter(|case| cases.contains(&case.name)) {
        let is_quick = arguments.quick;
        let values = if is_quick { &QUICK_VALUES[..] } else { case.values };
        for &value_bytes in chosen(&arguments.values, values) {
            for &spread in chosen(&arguments.distributions, &SPREADS) {
                let pairs = pairs(arguments, value_bytes);
                let (wire, key_bytes) = (case.wire, arguments.key);
                let contents = Contents { wire, key_bytes, value_bytes, pairs };
                let loads = loads(arguments, case, contents, spread, pace);
                groups.push(Group { case, contents, spread, loads });
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
    let pipelines = if is_quick { &QUICK_PIPELINES[..] } else { case.pipelines };
    let load = |workload: Workload, pipeline: usize| Load {
        contents,
        workload,
        spread,
        connections: arguments.connections,
        pipeline,
        warm_up: WARM_UP,
        window: pace.window,
    };
    let of_workload = |workload: &Workload| {
        let pipelines = chosen(&arguments.pipelines, pipelines).iter();
        pipelines.map(|pipeline| load(*workload, *pipeline)).collect()
    };
    chosen(&arguments.workloads, workloads).iter().map(of_workload).collect()
}
