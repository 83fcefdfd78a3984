// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans: alternatives in the order of their rank, until the machine is full (off-path SmartNIC
//! study, 3.3).
//!
//! 1. Each alternative is changed by the [rules](crate::rules). One that becomes the same as
//!    another is removed, and so is one that breaks a constraint.
//! 2. The others are ranked by the function's criteria.
//! 3. The first one gets calls until a resource is used up, the next one the rest, and so on. If
//!    one alternative alone serves more than all of them in that order, it is the plan.
//! 4. Clients are divided, and a queueing model says what they get. If they are too few to use all
//!    of these alternatives well, the plan has fewer.

mod clients;
mod fill;
mod rank;

use fill::{Excluded, best_single, fill};

use crate::constraints::broken;
use crate::cost::Cost;
use crate::figures::rate;
use crate::function::{Alternative, Function};
use crate::queue::Calls;
use crate::rules::{Finding, optimise};
use crate::simulation::{Run, Simulated, simulate};
use crate::switch::refined;
use freeport_plan_model::Profile;
use std::fmt::Write;
use thiserror::Error;

/// A plan for a function on a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The function.
    pub function: Function,
    /// The name of the device.
    pub device: String,
    /// Alternatives by rank, as the rules changed them.
    pub ranking: Vec<Candidate>,
    /// Alternatives that were removed before the ranking.
    pub removed: Vec<Removed>,
    /// Rules that fired, in the order of the alternatives.
    pub findings: Vec<Finding>,
    /// The plan itself: alternatives with their shares, in the order of their rank.
    pub shares: Vec<Share>,
    /// Ranked alternatives that have no share, with the reason.
    pub left_out: Vec<Removed>,
    /// Calls per second that resources allow, in millions.
    pub rate: f64,
    /// The limiting resource, or the offered load.
    pub limit: &'static str,
    /// Use of resources at that rate, the busiest first: 0 to 1.
    pub uses: Vec<(&'static str, f64)>,
    /// Cores of the host that are busy at that rate.
    pub host_cores: f64,
    /// The alternative with the highest bound alone, and that bound in millions of calls per
    /// second.
    pub single: (String, f64),
    /// The alternative that serves most alone in simulations with the clients of the plan, and its
    /// rate in millions of calls per second, if the plan was verified.
    pub simulated_single: Option<(String, f64)>,
    /// Whether all alternatives that fit in rank order are the plan: one alone serves no more, and
    /// there are clients for all of them.
    pub is_mix_kept: bool,
    /// Rate without the limiting resource, and the next limit; none if there is no limiting
    /// resource.
    pub relieved: Option<(f64, &'static str)>,
    /// Clients of the plan.
    pub clients: u32,
    /// Expected calls per second of all clients, in millions, and mean time of a call in
    /// microseconds (modelled); none if the function is [throttled](Function::is_throttled).
    pub expected: Option<Calls>,
    /// A simulation of the plan with its clients, if it was verified.
    pub simulated: Option<Simulated>,
    /// Whether the shares are those of the simulation, and not those of the bounds.
    pub are_shares_simulated: bool,
}

/// An alternative that the rules have changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The alternative.
    pub alternative: Alternative,
    /// Its cost.
    pub cost: Cost,
}

/// An alternative that is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// The reason: a constraint with both numbers, or an equal alternative.
    pub reason: String,
}

/// An alternative with its share of the calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Share {
    /// The alternative and its cost.
    pub candidate: Candidate,
    /// Millions of calls per second that resources allow in rank order (modelled).
    pub rate: f64,
    /// Share of all calls: above 0, at most 1. It is that of `rate`, or of the simulated rates if
    /// the plan was verified.
    pub share: f64,
    /// The resource that allows no more of it, or the offered load.
    pub limited_by: &'static str,
    /// Clients that use it.
    pub clients: u32,
    /// Expected calls of these clients (modelled); none if the function is
    /// [throttled](Function::is_throttled).
    pub expected: Option<Calls>,
}

/// Functions that have no plan.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PlanError {
    /// Constraints removed all alternatives.
    #[error("no alternative of {function} is left; relax a constraint:{}", list(removed))]
    NothingLeft {
        /// The function.
        function: String,
        /// All alternatives with the constraints that removed them.
        removed: Vec<Removed>,
    },
    /// More calls in flight than can be simulated.
    #[error(
        "{clients} clients with {in_flight} calls in flight each are more than {most} calls; take \
         fewer clients"
    )]
    InFlight {
        /// Clients.
        clients: u32,
        /// Calls of each in flight.
        in_flight: u32,
        /// Most calls in flight.
        most: u64,
    },
    /// More steps of a call than can be simulated.
    #[error(
        "a call of {alternative} takes {steps} steps, more than the {most} that can be simulated \
         with {in_flight} in flight: repeat steps less often, or take smaller transfers or fewer \
         clients"
    )]
    Steps {
        /// The alternative.
        alternative: String,
        /// Steps of a call after the rules.
        steps: u64,
        /// Calls of all clients in flight.
        in_flight: u64,
        /// Most steps of a call.
        most: u64,
    },
    /// The profile cannot carry out a step.
    #[error(
        "{alternative} needs messages of {bytes} B, and the device has packets of {most} B \
             (network.mtu): use a read or write for its data"
    )]
    Message {
        /// The alternative.
        alternative: String,
        /// Payload of the message in bytes.
        bytes: u64,
        /// Longest payload of a packet in bytes.
        most: u64,
    },
}

/// Most calls in flight of all clients.
const IN_FLIGHT_MAX: u64 = 1 << 16;

fn list(removed: &[Removed]) -> String {
    removed.iter().fold(String::new(), |mut text, Removed { name, reason }| {
        let _ = write!(text, "\n  {name}: {reason}");
        text
    })
}

impl Plan {
    /// Simulates the plan with its clients: this number of calls is measured.
    pub fn simulate(&self, profile: &Profile, calls: u32, seed: u64) -> Simulated {
        let parts: Vec<_> =
            self.shares.iter().map(|share| (&share.candidate.alternative, share.clients)).collect();
        simulate(profile, &parts, &Run { in_flight: self.function.in_flight, calls, seed })
    }

    /// Holds the plan against simulations of this number of calls. Two alternatives get a better
    /// division of clients if there is one nearby. Where one alternative alone serves more of the
    /// same clients, it becomes the plan. Shares are then those of the simulation.
    ///
    /// A plan for a [throttled](Function::is_throttled) function stays as it is, without a
    /// simulation.
    pub fn verified(self, profile: &Profile, calls: u32, seed: u64) -> Self {
        if self.function.is_throttled() {
            return self;
        }
        let run = Run { in_flight: self.function.in_flight, calls, seed };
        let plan = self.refined(profile, &run);
        let simulated = plan.simulate(profile, calls, seed);
        let (number, most) = plan.best_alone(profile, &run, simulated.rate);
        let single = (plan.ranking[number].alternative.name.clone(), most);
        if most <= simulated.rate {
            return plan.with_simulation(simulated, single);
        }
        let Self { ranking, removed, findings, function, .. } = plan;
        let reason = format!(
            "in a simulation, {} alone serves {} of the same clients instead of {}",
            single.0,
            rate(most),
            rate(simulated.rate),
        );
        let excluded = clients::others(&ranking, number, &reason);
        let plan = Basis { ranking, removed, findings }.plan(profile, &function, excluded, true);
        let simulated = plan.simulate(profile, calls, seed);
        plan.with_simulation(simulated, single)
    }

    /// Takes a simulation of the plan, and the shares of calls in it.
    fn with_simulation(mut self, simulated: Simulated, single: (String, f64)) -> Self {
        // A run that is too short for a call of each alternative has no shares.
        if simulated.flows.iter().all(|flow| flow.rate > 0.0) {
            for (share, flow) in self.shares.iter_mut().zip(&simulated.flows) {
                share.share = flow.rate / simulated.rate;
            }
            self.are_shares_simulated = true;
        }
        Self { simulated: Some(simulated), simulated_single: Some(single), ..self }
    }

    /// Improves the division of clients between two alternatives.
    fn refined(mut self, profile: &Profile, run: &Run) -> Self {
        let [first, second] = &self.shares[..] else { return self };
        let both = [&first.candidate.alternative, &second.candidate.alternative];
        let count = refined(profile, both, self.clients, first.clients, run).first;
        if count != first.clients {
            let counts = [count, self.clients - count];
            clients::assign(&self.function, &mut self.shares, &counts);
            self.expected = clients::together(&self.shares);
        }
        self
    }

    /// Returns the alternative that serves most of the clients alone in simulations, and its rate.
    /// `rate` is that of the plan in a simulation.
    fn best_alone(&self, profile: &Profile, run: &Run, rate: f64) -> (usize, f64) {
        let in_flight = f64::from(self.clients) * f64::from(run.in_flight);
        let bound = |number: &usize| self.ranking[*number].cost.bound(in_flight);
        let mut numbers: Vec<usize> = (0..self.ranking.len()).collect();
        numbers.sort_by(|a, b| bound(b).total_cmp(&bound(a)));
        let mut best = (numbers[0], 0.0);
        for number in numbers {
            // A simulation is above a bound by no more than the ends of its measured time.
            if bound(&number) <= best.1 {
                break;
            }
            let alternative = &self.ranking[number].alternative;
            let is_plan = self.shares.len() == 1
                && self.shares[0].candidate.alternative.name == alternative.name;
            let alone = match is_plan {
                true => rate,
                false => simulate(profile, &[(alternative, self.clients)], run).rate,
            };
            if alone > best.1 {
                best = (number, alone);
            }
        }
        best
    }
}

/// Plans a function on a device.
///
/// # Errors
/// The constraints leave no alternative, the device cannot carry out a step, or clients or steps
/// of a call are too many.
pub fn plan(profile: &Profile, function: &Function) -> Result<Plan, PlanError> {
    let (clients, in_flight) = (function.clients_on(profile), function.in_flight);
    let all_in_flight = u64::from(clients) * u64::from(in_flight);
    if all_in_flight > IN_FLIGHT_MAX {
        return Err(PlanError::InFlight { clients, in_flight, most: IN_FLIGHT_MAX });
    }
    rank::check_messages(profile, function)?;
    let mut findings = vec![];
    let mut removed: Vec<Removed> = vec![];
    let mut candidates: Vec<Candidate> = vec![];
    let resolved = function.resolved();
    let optimised: Vec<Alternative> = resolved
        .iter()
        .map(|alternative| {
            let (changed, mut found) =
                optimise(profile, function.ratio, &function.constraints, alternative);
            findings.append(&mut found);
            changed
        })
        .collect();
    for alternative in &optimised {
        let cost = Cost::of(profile, alternative);
        let reason = rank::equal(alternative, &resolved, &optimised)
            .or_else(|| broken(&function.constraints, alternative, &cost));
        match reason {
            Some(reason) => removed.push(Removed { name: alternative.name.clone(), reason }),
            None => candidates.push(Candidate { alternative: alternative.clone(), cost }),
        }
    }
    if candidates.is_empty() {
        return Err(PlanError::NothingLeft { function: function.name.clone(), removed });
    }
    rank::check_steps(profile, &candidates, all_in_flight)?;
    let ranking = rank::ranked(candidates, &function.criteria, function.tolerance);
    let mut excluded = Excluded::new();
    let (single, single_rate) = best_single(function, &ranking);
    if fill(function, &ranking, &excluded, None).rate < single_rate * (1.0 - 1e-9) {
        let name = &ranking[single].alternative.name;
        let reason = format!("{name} alone serves more, {}", rate(single_rate));
        excluded = clients::others(&ranking, single, &reason);
    }
    let basis = Basis { ranking, removed, findings };
    Ok(basis.plan(profile, function, excluded, false))
}

/// Results of the steps before calls are divided.
struct Basis {
    ranking: Vec<Candidate>,
    removed: Vec<Removed>,
    findings: Vec<Finding>,
}

impl Basis {
    /// Divides calls and clients among the alternatives that are not excluded. Unless these are
    /// final, an excluded one that serves more of few clients may replace them.
    fn plan(
        self,
        profile: &Profile,
        function: &Function,
        mut excluded: Excluded,
        is_final: bool,
    ) -> Plan {
        let Self { ranking, removed, findings } = self;
        let (single, single_rate) = best_single(function, &ranking);
        let shares = clients::divided(profile, function, &ranking, &mut excluded, is_final);
        let filled = fill(function, &ranking, &excluded, None);
        let relieved = fill::is_resource(filled.limit).then(|| {
            let chosen: Vec<Candidate> =
                shares.iter().map(|share| share.candidate.clone()).collect();
            let more = fill(function, &chosen, &Excluded::new(), Some(filled.limit));
            (more.rate, more.limit)
        });
        let host_time = |share: &Share| share.rate * share.candidate.cost.host_time / 1000.0;
        Plan {
            function: function.clone(),
            device: profile.name.clone(),
            removed,
            findings,
            host_cores: shares.iter().map(host_time).sum(),
            expected: clients::together(&shares),
            shares,
            left_out: filled.left_out,
            rate: filled.rate,
            limit: filled.limit,
            uses: filled.budget.uses(),
            single: (ranking[single].alternative.name.clone(), single_rate),
            is_mix_kept: excluded.is_empty(),
            ranking,
            relieved,
            clients: function.clients_on(profile),
            simulated_single: None,
            simulated: None,
            are_shares_simulated: false,
        }
    }
}
