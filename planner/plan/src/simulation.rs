// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Alternatives in a simulation: clients make calls one after the other, step by step.
//!
//! Repetitions that are no whole numbers and misses are random choices. Equal seeds give equal
//! results.

use crate::function::{Alternative, Repeated};
use fastrand::Rng;
use freeport_plan_model::Profile;
use freeport_plan_model::route::Step;
use freeport_plan_model::simulator::{LinkCount, Outcome, Session};
use std::collections::HashMap;

/// How long a simulation is, and how it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Calls that a client has in flight.
    pub in_flight: u32,
    /// Calls that are measured, but at least four for each in flight, after half as many that are
    /// not.
    pub calls: u32,
    /// Seed of random choices.
    pub seed: u64,
}

/// Results of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulated {
    /// Results of the alternatives, in their order.
    pub flows: Vec<Flow>,
    /// Calls of all clients in millions per second.
    pub rate: f64,
    /// The busiest resource if it is the limit; or else the latency of calls.
    pub bottleneck: &'static str,
    /// Use of resources, the busiest first: 0 to 1.
    pub uses: Vec<(&'static str, f64)>,
    /// Payload on links in the measured time.
    pub links: Vec<(&'static str, LinkCount)>,
    /// Measured time in nanoseconds.
    pub time: f64,
}

/// Results of the clients of one alternative.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// The alternative.
    pub name: String,
    /// Its clients.
    pub clients: u32,
    /// Calls that were measured.
    pub completed: u64,
    /// Millions of calls per second.
    pub rate: f64,
    /// Mean time of a call in nanoseconds.
    pub latency: f64,
}

/// Calls that are measured for each in flight at least: the first ones begin together.
const CALLS_MIN: u64 = 4;
/// Use from which on a resource is the limit.
const LIMITS_FROM: f64 = 0.9;
/// Wait of a client whose call happens to have no steps, in picoseconds.
const IDLE: u64 = 1000;

/// Simulates clients of alternatives, whose sizes are those after compression.
pub fn simulate(profile: &Profile, parts: &[(&Alternative, u32)], run: &Run) -> Simulated {
    let mut driver = Driver::new(profile, parts, run);
    let calls = u64::from(run.calls).max(CALLS_MIN * driver.callers.len() as u64);
    driver.run(calls / 2);
    driver.measure();
    driver.run(calls);
    driver.results(parts)
}

/// A call in flight, which begins again when it is done.
struct Caller {
    part: usize,
    client: u32,
    since: u64,
    steps: Vec<Step>,
    next: usize,
}

struct Driver<'a> {
    profile: &'a Profile,
    alternatives: Vec<&'a Alternative>,
    session: Session,
    random: Rng,
    callers: Vec<Caller>,
    /// Callers by what they wait for.
    waiting: HashMap<u64, usize>,
    /// Number of calls and sum of their times, by alternative.
    done: Vec<(u64, u64)>,
    since: u64,
}

impl<'a> Driver<'a> {
    fn new(profile: &'a Profile, parts: &[(&'a Alternative, u32)], run: &Run) -> Self {
        let machines = profile.client.machines as u32;
        let mut callers = vec![];
        let mut client = 0;
        for (part, (_, clients)) in parts.iter().enumerate() {
            for _ in 0..*clients {
                let caller = || Caller { part, client, since: 0, steps: vec![], next: 0 };
                callers.extend((0..run.in_flight).map(|_| caller()));
                client += 1;
            }
        }
        let mut driver = Self {
            profile,
            alternatives: parts.iter().map(|(alternative, _)| *alternative).collect(),
            session: Session::new(profile, machines, false, run.seed),
            random: Rng::with_seed(run.seed),
            callers,
            waiting: HashMap::new(),
            done: vec![(0, 0); parts.len()],
            since: 0,
        };
        (0..driver.callers.len()).for_each(|caller| driver.begin_call(caller));
        driver
    }

    /// Runs until this number of calls is done since the last measurement.
    fn run(&mut self, calls: u64) {
        while self.done.iter().map(|(count, _)| count).sum::<u64>() < calls {
            let Some(ticket) = self.session.next() else { return };
            let Some(caller) = self.waiting.remove(&ticket) else { continue };
            self.proceed(caller);
        }
    }

    fn measure(&mut self) {
        self.session.measure();
        self.since = self.session.now();
        self.done.fill((0, 0));
    }

    fn begin_call(&mut self, number: usize) {
        let caller = &mut self.callers[number];
        let alternative = self.alternatives[caller.part];
        let is_covered = alternative.covers >= 1.0 || self.random.f64() < alternative.covers;
        let sequence = if is_covered { &alternative.steps } else { &alternative.miss };
        caller.steps.clear();
        for Repeated { action, times, .. } in sequence {
            let more = u32::from(self.random.f64() < times.fract());
            for _ in 0..times.trunc() as u32 + more {
                caller.steps.extend(action.steps(self.profile));
            }
        }
        (caller.next, caller.since) = (0, self.session.now());
        self.begin_step(number);
    }

    fn begin_step(&mut self, number: usize) {
        let caller = &mut self.callers[number];
        let step = caller.steps.get(caller.next).copied();
        caller.next += 1;
        let machine = caller.client;
        let ticket = step.and_then(|step| self.session.begin(step, machine));
        let ticket = ticket.unwrap_or_else(|| self.session.wait(IDLE));
        self.waiting.insert(ticket, number);
    }

    fn proceed(&mut self, number: usize) {
        let caller = &self.callers[number];
        if caller.next < caller.steps.len() {
            return self.begin_step(number);
        }
        let (count, time) = &mut self.done[caller.part];
        *count += 1;
        *time += self.session.now() - caller.since;
        self.begin_call(number);
    }

    fn results(self, parts: &[(&Alternative, u32)]) -> Simulated {
        let time = (self.session.now() - self.since) as f64;
        let flow = |((alternative, clients), (count, sum)): (&(&Alternative, u32), &(u64, u64))| {
            Flow {
                name: alternative.name.clone(),
                clients: *clients,
                completed: *count,
                // Calls per picosecond, as millions per second.
                rate: *count as f64 / time.max(1.0) * 1e6,
                latency: *sum as f64 / (*count).max(1) as f64 / 1000.0,
            }
        };
        let flows: Vec<Flow> = parts.iter().zip(&self.done).map(flow).collect();
        let Outcome { uses, links, time, .. } = self.session.outcome();
        let uses: Vec<(&str, f64)> = uses.iter().map(|it| (it.name, it.share)).collect();
        let bottleneck = match uses.first() {
            Some((name, share)) if *share >= LIMITS_FROM => name,
            _ => "latency of calls in flight",
        };
        let rate = flows.iter().map(|flow| flow.rate).sum();
        Simulated { flows, rate, bottleneck, uses, links, time }
    }
}
