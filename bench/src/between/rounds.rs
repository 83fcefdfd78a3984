// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running all subjects in turn, round after round: which settings there are, how often and how
//! long each is measured.

use super::measure::{Idle, Plan};
use super::placement::Placement;
use super::results::{PairCase, PairResult, Series, Setting};
use super::wait::Wait;
use crate::harness::histogram::Histogram;
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// A channel between processes, or a limit of such channels.
pub trait Carrier {
    /// Returns its name.
    fn name(&self) -> &'static str;

    /// Measures round trips of messages.
    ///
    /// # Errors
    /// The reason why it could not work.
    fn round_trips(&self, plan: &Plan, wait: Wait) -> Result<Histogram>;

    /// Sends messages one way; returns the time that took.
    ///
    /// # Errors
    /// The reason why it could not work.
    fn stream(&self, plan: &Plan, wait: Wait) -> Result<Duration>;

    /// Measures a silence of this length.
    ///
    /// # Errors
    /// The reason why it could not work.
    fn idle(&self, _plan: &Plan, _wait: Wait, _time: Duration) -> Result<Idle> {
        bail!("{} has no sleep to measure", self.name())
    }

    /// Makes and closes as many connections as the plan has messages: if `again`, to the same
    /// listener, else to a new listener each time. Returns the time that took.
    ///
    /// # Errors
    /// The reason why it could not work.
    fn connect(&self, _plan: &Plan, _again: bool) -> Result<Duration> {
        bail!("{} has no connections", self.name())
    }
}

/// Number, length and place of rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds<'a> {
    /// Number of rounds.
    pub rounds: u32,
    /// Length of each round.
    pub window: Duration,
    /// Available cores.
    pub cores: &'a [usize],
}

/// Messages of the round in which every byte is compared: the minimum, and otherwise the number of
/// bytes.
const FULL_CHECK: (u64, u64) = (4, 4 << 20);
/// The same for the trial that determines how many messages a round takes.
const TRIAL: (u64, u64) = (20, 4 << 20);
const TRIAL_MESSAGES_MAX: u64 = 500;
const TRIALS: usize = 4;
/// Length of a silence, in rounds.
const IDLE_WINDOWS: u32 = 4;
/// Bytes of the message that ends a silence.
const IDLE_SIZE: u32 = 8;
/// Bytes sent over a connection that is only made and closed.
const CONNECT_SIZE: u32 = 0;

/// Returns all combinations of settings that make sense.
pub fn settings(
    cases: &[PairCase],
    placements: &[Placement],
    pairs: &[u16],
    sizes: &[u32],
) -> Vec<Setting> {
    let mut settings = vec![];
    for case in cases {
        let pairs = if *case == PairCase::Throughput { pairs } else { &[1] };
        let sizes = match case {
            PairCase::Latency | PairCase::Throughput => sizes,
            PairCase::Idle => &[IDLE_SIZE],
            PairCase::Connect | PairCase::Reconnect => &[CONNECT_SIZE],
        };
        for placement in placements {
            for pairs in pairs {
                settings.extend(sizes.iter().map(|size| Setting {
                    case: *case,
                    placement: *placement,
                    pairs: usize::from(*pairs),
                    size: *size as usize,
                }));
            }
        }
    }
    settings
}

/// Returns the given values, or the default ones if none are given.
pub fn chosen<'a, T>(given: &'a [T], usual: &'a [T]) -> &'a [T] {
    if given.is_empty() { usual } else { given }
}

impl Rounds<'_> {
    /// Measures all subjects in turn, round after round, after one round each that compares every
    /// byte.
    ///
    /// # Errors
    /// The error of a subject.
    pub fn measure(
        &self,
        bench: &'static str,
        setting: Setting,
        subjects: &[&dyn Carrier],
    ) -> Result<PairResult> {
        let wait = setting.placement.wait(setting.pairs, self.cores);
        let round = Round { setting, wait, window: self.window };
        let mut all = vec![];
        for subject in subjects {
            let cores = setting.placement.cores(setting.pairs, self.cores)?;
            let plan = round.prepare(*subject, cores).context(subject.name())?;
            all.push((*subject, Series::new(subject.name()), plan));
        }
        for _ in 0..self.rounds {
            for (subject, series, plan) in &mut all {
                let latest = round.measure(*subject, series, plan).context(subject.name())?;
                // If other processes take its core during a trial or a round, that seems long
                // enough.
                plan.messages = plan.messages.max(round.messages(latest));
            }
        }
        let series = all.into_iter().map(|(_, series, _)| series).collect();
        Ok(PairResult { bench, setting, series })
    }
}

fn messages(size: usize, (least, bytes): (u64, u64)) -> u64 {
    least.max(bytes / size.max(1) as u64)
}

/// Measures a round of one subject.
struct Round {
    setting: Setting,
    wait: Wait,
    window: Duration,
}

impl Round {
    /// Compares every byte, and finds how many messages take as long as a round should.
    fn prepare(&self, subject: &dyn Carrier, cores: Vec<[usize; 2]>) -> Result<Plan> {
        let size = self.setting.size;
        let count = |of| messages(size, of).min(TRIAL_MESSAGES_MAX);
        let mut plan = Plan { size, messages: count(FULL_CHECK), is_full_check: true, cores };
        match self.setting.case {
            PairCase::Latency => drop(subject.round_trips(&plan, self.wait)?),
            PairCase::Throughput => _ = subject.stream(&plan, self.wait)?,
            PairCase::Connect | PairCase::Reconnect => {}
            PairCase::Idle => return Ok(plan),
        }
        plan.is_full_check = false;
        plan.messages = count(TRIAL);
        // Start-up is slow, so a trial much shorter than a round is not representative.
        for _ in 0..TRIALS {
            let mut trial = Series::new(subject.name());
            let wanted = self.messages(self.measure(subject, &mut trial, &plan)?);
            let is_long = plan.messages > wanted / 4;
            plan.messages = wanted;
            if is_long {
                break;
            }
        }
        Ok(plan)
    }

    /// Returns how many messages each pair sends in the time of a round, from the value of an
    /// earlier one.
    fn messages(&self, figure: f64) -> u64 {
        let window_us = self.window.as_secs_f64() * 1e6;
        let messages = match self.setting.case {
            PairCase::Throughput | PairCase::Connect | PairCase::Reconnect => {
                window_us * figure / self.setting.pairs as f64
            }
            PairCase::Latency => window_us / figure.max(1e-3),
            PairCase::Idle => 0.0,
        };
        (messages as u64).max(TRIAL.0)
    }

    /// Measures one round; returns its value, see [`Series::rounds`].
    fn measure(&self, subject: &dyn Carrier, series: &mut Series, plan: &Plan) -> Result<f64> {
        let million_per_second = |elapsed: Duration| {
            let messages = plan.messages as f64 * plan.cores.len() as f64;
            messages / elapsed.as_secs_f64().max(1e-9) / 1e6
        };
        let figure = match self.setting.case {
            PairCase::Latency => {
                let trips = subject.round_trips(plan, self.wait)?;
                series.trips.merge(&trips);
                trips.quantile(0.5) / 1e3
            }
            PairCase::Throughput => million_per_second(subject.stream(plan, self.wait)?),
            case @ (PairCase::Connect | PairCase::Reconnect) => {
                million_per_second(subject.connect(plan, case == PairCase::Reconnect)?)
            }
            PairCase::Idle => {
                let silence = self.window * IDLE_WINDOWS;
                let idle = subject.idle(plan, self.wait, silence)?;
                series.waiting.rates.push(idle.waiting.as_secs_f64() / silence.as_secs_f64());
                series.trips.add(idle.trip);
                idle.trip.as_secs_f64() * 1e6
            }
        };
        series.rounds.rates.push(figure);
        Ok(figure)
    }
}
