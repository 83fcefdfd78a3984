// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cost of a call: its share of each resource, its time, and what it moves.

use crate::function::{Action, Alternative, Criterion};
use freeport_plan_model::bounds::{Limit, step_shares, step_time};
use freeport_plan_model::path::Packets;
use freeport_plan_model::route::{Pool, Request, Resource, Route, Stage, Step};
use freeport_plan_model::{Path, Profile, Side};

/// Mean cost of a call.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Cost {
    /// Shares of resources at one million calls per second; also the time in microseconds for which
    /// a call keeps the resource busy.
    pub shares: Vec<(&'static str, f64)>,
    /// Time in microseconds that a call spends at each of these resources on an idle machine:
    /// longer than it keeps all of the resource busy, if that serves several at once.
    pub stays: Vec<f64>,
    /// Time on an idle machine in nanoseconds.
    pub latency: f64,
    /// Time of the host's processor in nanoseconds.
    pub host_time: f64,
    /// Payload on the network in bytes.
    pub network_bytes: f64,
    /// Payload on path 3 in bytes.
    pub path3_bytes: f64,
    /// Packets with payload on both PCIe links.
    pub packets: f64,
    /// Round trips on the network.
    pub round_trips: f64,
}

impl Cost {
    /// Returns the cost of a call by an alternative, after compression.
    pub fn of(profile: &Profile, alternative: &Alternative) -> Self {
        let mut cost = Self::default();
        for (steps, share) in alternative.sequences() {
            for step in steps {
                cost.add(profile, &step.action, step.times * share);
            }
        }
        cost
    }

    fn add(&mut self, profile: &Profile, action: &Action, times: f64) {
        for step in action.steps(profile) {
            let shares = step_shares(profile, &step, profile.client.machines as u32);
            let latency = latency(profile, &step, &shares);
            self.latency += times * latency;
            for (name, share) in shares {
                let stay = (share * servers(profile, name)).min(latency / 1000.0).max(share);
                self.add_share(name, share * times, stay * times);
            }
            self.host_time += times * host_time(profile, &step);
        }
        let (path, bytes) = match *action {
            Action::Request(Request { path, bytes, .. })
            | Action::Message { path, bytes }
            | Action::Answer { path, bytes } => (path, bytes),
            Action::Work { .. } => return,
        };
        let Packets { pcie1, pcie0, .. } = path.packets(profile, bytes);
        self.packets += times * (pcie1 + pcie0) as f64;
        if path.requester() == Side::Client || path.target() == Side::Peer {
            self.network_bytes += times * bytes as f64;
            let is_answer = matches!(action, Action::Answer { .. });
            self.round_trips += if is_answer { 0.0 } else { times };
        }
        if matches!(path, Path::SocToHost | Path::HostToSoc) {
            self.path3_bytes += times * bytes as f64;
        }
    }

    fn add_share(&mut self, name: &'static str, share: f64, stay: f64) {
        match self.shares.iter().position(|(known, _)| *known == name) {
            Some(at) => {
                self.shares[at].1 += share;
                self.stays[at] += stay;
            }
            None => {
                self.shares.push((name, share));
                self.stays.push(stay);
            }
        }
    }

    /// Returns the resource that limits calls first, and the rate that it allows.
    pub fn limit(&self) -> Limit {
        let most = self.shares.iter().fold(("latency", 0.0), |most, (name, share)| {
            if *share > most.1 { (*name, *share) } else { most }
        });
        Limit { name: most.0, rate: 1.0 / most.1 }
    }

    /// Returns the rate that this number of calls in flight has at most, in millions per second:
    /// that of the limiting resource, and that of calls which do not wait.
    pub fn bound(&self, in_flight: f64) -> f64 {
        self.limit().rate.min(in_flight / (self.latency / 1000.0))
    }

    /// Returns the figure of a criterion: millions of calls per second, nanoseconds, bytes, packets
    /// or round trips.
    pub fn figure(&self, criterion: Criterion) -> f64 {
        match criterion {
            Criterion::Throughput => self.limit().rate,
            Criterion::Latency => self.latency,
            Criterion::HostProcessor => self.host_time,
            Criterion::NetworkBytes => self.network_bytes,
            Criterion::Amplification => self.packets,
            Criterion::RoundTrips => self.round_trips,
        }
    }
}

/// Returns the time of a step on an idle machine in nanoseconds: its parts follow each other as
/// fast as the slowest resource passes them on.
fn latency(profile: &Profile, step: &Step, shares: &[(&'static str, f64)]) -> f64 {
    let segments = match step {
        Step::Request(_) => step.route(profile).map_or(1, |route| route.segments),
        _ => 1,
    };
    let slowest = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    step_time(profile, step) + 1000.0 * slowest * (1.0 - 1.0 / f64::from(segments))
}

/// Returns the time of the host's processor for a step in nanoseconds: working, answering, posting.
fn host_time(profile: &Profile, step: &Step) -> f64 {
    match step {
        Step::Work { side: Side::Host, time } => *time as f64 / 1000.0,
        Step::Work { .. } | Step::Answer { .. } => 0.0,
        Step::Message { path, .. } if path.requester() == Side::Host => {
            profile.host.post + profile.host.doorbell
        }
        Step::Message { .. } => 0.0,
        Step::Request(request) => {
            let Some(route) = Route::of(profile, request) else { return 0.0 };
            let posting = match request.path.requester() {
                Side::Host => (route.post + route.doorbell) as f64 / f64::from(request.batch),
                _ => 0.0,
            };
            // A message that the host answers keeps a core busy.
            let answering = route.stages().map(|(stage, times)| match stage {
                Stage::Serve(Resource::HostCores, time) => time as f64 * f64::from(times),
                _ => 0.0,
            });
            (posting + answering.sum::<f64>()) / 1000.0
        }
    }
}

/// Returns the number of servers of a resource.
fn servers(profile: &Profile, name: &str) -> f64 {
    let resource = Resource::ALL.into_iter().find(|resource| resource.name() == name);
    let pool = Pool::ALL.into_iter().find(|pool| pool.name() == name);
    match (resource, pool) {
        (Some(resource), _) => f64::from(resource.servers(profile)),
        (_, Some(pool)) => f64::from(pool.credits(profile)),
        _ if name.starts_with("NIC cores") => profile.nic.cores,
        _ => 1.0,
    }
}

/// Returns whether a resource serves whole calls, and not parts of transfers.
pub(crate) fn serves_whole(name: &str) -> bool {
    let cores = [Resource::HostCores, Resource::SocCores, Resource::Dma, Resource::Fetch];
    name.starts_with("NIC cores") || cores.iter().any(|resource| resource.name() == name)
}
