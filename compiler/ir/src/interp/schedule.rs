// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who goes next.
//!
//! A run goes in rounds over all instances and outer ends. In the round robin each goes on by one
//! firing or one item; in the random order they come shuffled, and each goes on by none to a few,
//! so that inputs stall and channels fill in every possible way. A run ends when a whole round in
//! which nobody was passed over moved nothing.

use super::deadlock::Report;
use super::firing::Advance;
use super::{Error, Interpreter};
use crate::InstanceId;

/// The order in which instances and outer ends go on. By the semantics it decides nothing that
/// the oracles do not record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Each in turn.
    #[default]
    RoundRobin,
    /// Any, any number of times, drawn from the seed.
    Random {
        /// Of the generator.
        seed: u64,
    },
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All that was fed is consumed, and nothing can fire.
    Idle,
    /// The budget is used up, and something can fire.
    Budget,
    /// This instance passed a breakpoint, and rests until it is told to resume.
    Breakpoint(InstanceId),
    /// Nothing can move, though data waits.
    Stalled(Report),
}

/// Most steps of one instance or outer end in a row, in the random order.
const MAX_BURST: u32 = 4;

/// What a round came to.
#[derive(Default)]
struct Round {
    moved: bool,
    /// Whether somebody was passed over who might have gone on.
    passed_over: bool,
    ended: Option<Outcome>,
}

/// Who can go on by a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Instance(InstanceId),
    /// A position in the interpreter's input ends.
    Input(usize),
    /// A position in the interpreter's output ends.
    Output(usize),
}

impl Interpreter<'_> {
    /// Runs until nothing can go on, for at most `budget` firings.
    ///
    /// # Errors
    /// A writer that breaks the framing of a flit channel, and a replay that cannot go on.
    pub fn run(&mut self, budget: u64) -> Result<Outcome, Error> {
        let mut left = budget;
        let mut everybody = false;
        loop {
            let round = self.round(&mut left, everybody)?;
            if let Some(outcome) = round.ended {
                return Ok(outcome);
            }
            if !round.moved && !round.passed_over {
                return self.rest();
            }
            // A round that moved nothing is repeated with everybody, so that the end is certain.
            everybody = !round.moved;
        }
    }

    fn round(&mut self, left: &mut u64, everybody: bool) -> Result<Round, Error> {
        let mut round = Round::default();
        let mut actors = std::mem::take(&mut self.actors);
        if let Some(generator) = &mut self.order {
            generator.shuffle(&mut actors);
        }
        for actor in &actors {
            let burst = match &mut self.order {
                Some(generator) if !everybody => generator.u32(0..=MAX_BURST),
                _ => 1,
            };
            round.passed_over |= burst == 0;
            for _ in 0..burst {
                let moved = self.step(*actor, left, everybody, &mut round)?;
                round.moved |= moved;
                if !moved || round.ended.is_some() {
                    break;
                }
            }
            if round.ended.is_some() {
                break;
            }
        }
        self.actors = actors;
        Ok(round)
    }

    /// Lets `actor` go on by one step; whether it did.
    fn step(
        &mut self,
        actor: Actor,
        left: &mut u64,
        everybody: bool,
        round: &mut Round,
    ) -> Result<bool, Error> {
        match actor {
            Actor::Input(at) => {
                let end = &mut self.inputs[at];
                end.advance(&mut self.channels[end.channel.index()], self.is_replay)
            }
            Actor::Output(at) => {
                let end = &mut self.outputs[at];
                let channel = &mut self.channels[end.channel.index()];
                if channel.fill() == 0 || end.is_closed() {
                    return Ok(false);
                }
                if end.is_stalled() && !everybody {
                    round.passed_over = true;
                    return Ok(false);
                }
                Ok(end.advance(channel))
            }
            Actor::Instance(id) => {
                if *left == 0 && self.can_fire(id).is_some() {
                    round.ended = Some(Outcome::Budget);
                    return Ok(false);
                }
                let fired = self.advance(id)?;
                *left = left.saturating_sub(u64::from(fired == Advance::Fired));
                if fired == Advance::Fired && self.instances[id.index()].held_at.is_some() {
                    round.ended = Some(Outcome::Breakpoint(id));
                }
                Ok(fired != Advance::Nothing)
            }
        }
    }

    /// The outcome of a run in which nothing can go on.
    fn rest(&mut self) -> Result<Outcome, Error> {
        let held = self.instances.iter().position(|instance| instance.held_at.is_some());
        if let Some(held) = held {
            return Ok(Outcome::Breakpoint(InstanceId::new(held)));
        }
        self.check_replay_is_over()?;
        let waits = self.channels.iter().any(|channel| channel.fill() > 0)
            || self.inputs.iter().any(|end| !end.queue.is_empty())
            || self.instances.iter().any(|instance| instance.has_staged());
        Ok(if waits { Outcome::Stalled(self.report()) } else { Outcome::Idle })
    }

    fn check_replay_is_over(&self) -> Result<(), Error> {
        for (at, instance) in self.instances.iter().enumerate() {
            if let Some(stream) = instance.choice.unused() {
                let id = InstanceId::new(at);
                let waits = self.describe_wait(id).unwrap_or_else(|| "it cannot fire".to_owned());
                let reason = format!("its record of `{stream}` has more, but {waits}");
                return Err(self.replay_error(id, reason));
            }
        }
        match self.channels.iter().find(|channel| !channel.is_replayed()) {
            Some(channel) => Err(Error::ReplayChannel {
                channel: channel.name.clone(),
                item: channel.keep.len() as u64,
            }),
            None => Ok(()),
        }
    }
}
