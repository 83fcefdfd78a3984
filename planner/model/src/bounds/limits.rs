// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rate that each resource on a way allows, if nothing else limits it.

use crate::path::Side;
use crate::profile::Profile;
use crate::route::{Cores, Pool, Resource, Route, Stage, Step, Time};
use crate::simulator::{Load, Outcome, PORTS_IN, PORTS_OUT};

/// The greatest rate that a resource allows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limit {
    /// The resource, by the name that simulations use.
    pub name: &'static str,
    /// Requests per second, in millions.
    pub rate: f64,
}

/// Returns the limits of all resources that a load uses, the lowest first. Nothing is returned for
/// a path that does not have the operation.
pub fn limits(profile: &Profile, load: &Load) -> Vec<Limit> {
    let Some(route) = Route::of(profile, &load.request) else { return vec![] };
    let shares = shares_of(profile, load, &route);
    let mut limits: Vec<Limit> =
        shares.into_iter().map(|(name, share)| Limit { name, rate: 1.0 / share }).collect();
    // Requests in flight, divided by the least time that one of them takes.
    let in_flight = load.in_flight() as f64;
    let least = (route.post + least_time(&route)) as f64 / 1e6;
    limits.push(Limit { name: "latency of requests in flight", rate: in_flight / least });
    limits.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    limits
}

/// Returns the shares of resources that a load uses at one million requests per second: rates of
/// several loads, multiplied by these, add up to one at most.
pub fn shares(profile: &Profile, load: &Load) -> Vec<(&'static str, f64)> {
    let route = Route::of(profile, &load.request);
    route.map(|route| shares_of(profile, load, &route)).unwrap_or_default()
}

/// Name of all NIC cores.
const NIC_CORES: &str = "NIC cores";

/// Use of a resource from which on it limits those who use it.
const LIMITS_FROM: f64 = 0.9;

/// Returns the resource that limits a load of a simulation, by its number: the busiest one that it
/// uses, or what limits it if none is busy.
pub fn limit_in(
    profile: &Profile,
    loads: &[Load],
    outcome: &Outcome,
    number: usize,
) -> &'static str {
    let (load, flow) = (&loads[number], &outcome.flows[number]);
    if load.offered.is_some_and(|offered| flow.rate > 0.98 * offered) {
        return "offered load";
    }
    // Ports and posting threads belong to this load alone: the outcome has the busiest of all.
    let is_own = |name: &str| name.starts_with("po");
    let used = |name: &str| outcome.uses.iter().find(|used| used.name == name);
    let shares = shares(profile, load).into_iter().map(|(name, share)| match used(name) {
        Some(used) if !is_own(name) => (name, used.share),
        _ => (name, share * flow.rate),
    });
    match shares.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((name, share)) if share >= LIMITS_FROM => name,
        _ => "latency of requests in flight",
    }
}

/// Sums of shares by names.
#[derive(Default)]
struct Shares(Vec<(&'static str, f64)>);

impl Shares {
    /// Adds the time of some servers, in picoseconds.
    fn add(&mut self, name: &'static str, time: f64, servers: f64) {
        let share = time / servers / 1e6;
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            _ if share == 0.0 => {}
            Some((_, sum)) => *sum += share,
            None => self.0.push((name, share)),
        }
    }
}

/// Returns the shares of resources that a step uses at one million per second, posted by this
/// number of machines of clients. Nothing is returned for a path without the operation.
pub fn step_shares(profile: &Profile, step: &Step, machines: u32) -> Vec<(&'static str, f64)> {
    let route = step.route(profile);
    route.map(|route| shares_of_route(profile, &route, machines).0).unwrap_or_default()
}

/// Returns the least time of a step in nanoseconds, on an idle machine with one segment after the
/// other in the pipeline.
pub fn step_time(profile: &Profile, step: &Step) -> f64 {
    step.route(profile).map_or(0.0, |route| least_time(&route) as f64 / 1000.0)
}

fn shares_of(profile: &Profile, load: &Load, route: &Route) -> Vec<(&'static str, f64)> {
    let mut shares = shares_of_route(profile, route, load.machines);
    let posting = (route.post + route.doorbell) as f64 / f64::from(load.request.batch);
    let threads = f64::from(load.machines) * f64::from(load.threads);
    if let Some(cores) = route.poster {
        shares.add(cores.name(), posting, f64::from(cores.servers(profile)));
    }
    shares.add("posting by the requester", posting, threads);
    shares.0
}

/// Returns the shares of resources on a way.
fn shares_of_route(profile: &Profile, route: &Route, machines: u32) -> Shares {
    let mut shares = Shares::default();
    for (stage, times) in route.stages() {
        let times = f64::from(times);
        let mut add = |name, time: Time, servers: f64| {
            shares.add(name, time as f64 * times, servers);
        };
        match stage {
            Stage::Serve(resource, time) | Stage::Transfer { link: resource, time, .. } => {
                add(resource.name(), time, f64::from(resource.servers(profile)));
            }
            Stage::Nic(_, time) if route.is_plain => add(NIC_CORES, time, profile.rnic.cores),
            Stage::Nic(cores, time) => {
                let (name, usable) = usable_cores(profile, cores);
                add(NIC_CORES, time, profile.nic.cores);
                add(name, time, usable);
            }
            Stage::ClientPort { inbound, time } => {
                let name = if inbound { PORTS_IN } else { PORTS_OUT };
                add(name, time, f64::from(machines));
            }
            Stage::Bank(side, time) if route.banked == Some(side) && route.banks > 0 => {
                let name = match side {
                    Side::Soc => "banks of the SoC's memory",
                    _ => "banks of the host's memory",
                };
                add(name, time, f64::from(route.banks));
            }
            Stage::Track { .. } => {}
            Stage::Bank(..) | Stage::Delay(_) | Stage::Take(..) | Stage::Give(..) => {}
        }
    }
    shares.add(Resource::Tracking.name(), tracking(route) as f64, 1.0);
    for (pool, held) in held_credits(route) {
        shares.add(pool.name(), held as f64, f64::from(pool.credits(profile)));
    }
    shares
}

/// Returns the name and number of the NIC cores that requests to an end may use.
fn usable_cores(profile: &Profile, cores: Cores) -> (&'static str, f64) {
    let nic = &profile.nic;
    match cores {
        Cores::Host => ("NIC cores for the host", nic.cores - nic.cores_for_soc),
        Cores::Soc => ("NIC cores for the SoC", nic.cores - nic.cores_for_host),
    }
}

/// Returns the time of the NIC's tracking of all segments.
fn tracking(route: &Route) -> Time {
    let of = |stages: &[Stage], segments: std::ops::Range<u32>| {
        let known = u64::from(route.tracked.clamp(segments.start, segments.end) - segments.start);
        let others = u64::from(segments.end - segments.start) - known;
        let sum = stages.iter().map(|stage| match stage {
            Stage::Track { tracked, untracked } => known * tracked + others * untracked,
            _ => 0,
        });
        sum.sum::<Time>()
    };
    let last = route.segments - 1;
    of(&route.each, 0..last) + of(&route.last, last..route.segments)
}

/// Returns the pools of a way, and the credits of a request multiplied by the least time in
/// picoseconds that it holds them.
fn held_credits(route: &Route) -> Vec<(Pool, Time)> {
    let each = (&route.each, route.segments - 1);
    let parts = [(&route.before, 1), each, (&route.last, 1), (&route.after, 1)];
    let mut held = vec![];
    for (stages, times) in parts.into_iter().filter(|(_, times)| *times > 0) {
        let mut taken: Vec<(Pool, u32, Time)> = vec![];
        for stage in stages {
            match *stage {
                Stage::Take(pool, credits) => taken.push((pool, credits, 0)),
                Stage::Give(pool, _) => {
                    if let Some(at) = taken.iter().position(|(other, ..)| *other == pool) {
                        let (_, credits, time) = taken.swap_remove(at);
                        held.push((pool, time * u64::from(credits) * u64::from(times)));
                    }
                }
                other => taken.iter_mut().for_each(|(_, _, time)| *time += least(other)),
            }
        }
    }
    held
}

/// Returns the least time of a stage.
fn least(stage: Stage) -> Time {
    match stage {
        Stage::Delay(time)
        | Stage::Nic(_, time)
        | Stage::Serve(_, time)
        | Stage::Transfer { time, .. }
        | Stage::ClientPort { time, .. } => time,
        // A cache may answer.
        Stage::Bank(..) | Stage::Take(..) | Stage::Give(..) => 0,
        Stage::Track { tracked, .. } => tracked,
    }
}

/// Returns the least time of a request with one segment after the other in the pipeline.
fn least_time(route: &Route) -> Time {
    // The last segment may be the shortest.
    let parts = [&route.before, &route.last, &route.after];
    parts.into_iter().flatten().copied().map(least).sum()
}
