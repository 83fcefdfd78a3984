// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scheduling: which instance or endpoint advances next.
//!
//! A run consists of rounds over all instances and endpoints. In round-robin order, each advances
//! by one firing or one item. In random order, they are shuffled and each advances by zero to a few
//! steps, so that inputs stall and channels fill in every possible way. A run ends when a whole
//! round that skipped none of them moved nothing.

use super::deadlock::Report;
use super::firing::Advance;
use super::{Clock, Error, Interpreter};
use crate::InstanceId;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag for runs that are never interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Order in which instances and endpoints advance. By the semantics it decides nothing that the
/// oracles do not record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Each in turn.
    #[default]
    RoundRobin,
    /// Any, any number of times, drawn from the seed.
    Random {
        /// Seed of the generator.
        seed: u64,
    },
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All input is consumed, and nothing can fire.
    Idle,
    /// The budget is used up, and something can fire.
    Budget,
    /// This instance passed a breakpoint, and is held until it is resumed.
    Breakpoint(InstanceId),
    /// Instances only read the measured clock: run again after a while.
    Waiting,
    /// Nothing can move, although data waits.
    Stalled(Report),
}

/// Maximum steps of one instance or endpoint in a row, in the random order.
const MAX_BURST: u32 = 4;

/// Result of a round.
#[derive(Default)]
struct Round {
    moved: bool,
    /// Whether an instance or endpoint was skipped that might have advanced.
    passed_over: bool,
    /// Whether an instance read the measured clock and did nothing else.
    looked: bool,
    ended: Option<Outcome>,
}

/// An instance or endpoint that can take a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Instance(InstanceId),
    /// A position in the interpreter's input ends.
    Input(usize),
    /// A position in the interpreter's output ends.
    Output(usize),
}

impl Interpreter<'_> {
    /// Runs until nothing can advance, for at most `budget` firings.
    ///
    /// # Errors
    /// A writer that breaks the framing of a flit channel; a replay that cannot continue.
    pub fn run(&mut self, budget: u64) -> Result<Outcome, Error> {
        self.run_until(&NEVER, budget)
    }

    /// Runs like [`run`](Self::run), but also ends with [`Outcome::Budget`] after the round in
    /// which `is_wanted` was set.
    ///
    /// # Errors
    /// As for `run`.
    pub fn run_until(&mut self, is_wanted: &AtomicBool, budget: u64) -> Result<Outcome, Error> {
        let mut left = budget;
        let mut everybody = false;
        loop {
            let round = self.round(&mut left, everybody)?;
            if let Some(outcome) = round.ended {
                return Ok(outcome);
            }
            if !round.moved && !round.passed_over {
                return if round.looked { Ok(Outcome::Waiting) } else { self.rest() };
            }
            // A round that moved nothing is repeated without skipping, so that the end is certain.
            everybody = !round.moved;
            if round.moved && is_wanted.load(Ordering::Relaxed) {
                return Ok(Outcome::Budget);
            }
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

    /// Advances `actor` by one step; returns whether it moved.
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
                let has_fired = matches!(fired, Advance::Fired | Advance::Looked);
                *left = left.saturating_sub(u64::from(has_fired));
                if has_fired && self.instances[id.index()].held_at.is_some() {
                    round.ended = Some(Outcome::Breakpoint(id));
                }
                // A steered clock advances with firings, so these are worthwhile.
                let is_measured = matches!(self.shared.clock, Clock::Measured(_));
                let has_only_looked = fired == Advance::Looked && is_measured;
                round.looked |= has_only_looked;
                Ok(fired != Advance::Nothing && !has_only_looked)
            }
        }
    }

    /// Returns the outcome of a run in which nothing can advance.
    fn rest(&mut self) -> Result<Outcome, Error> {
        let held = self.instances.iter().position(|instance| instance.held_at.is_some());
        if let Some(held) = held {
            return Ok(Outcome::Breakpoint(InstanceId::new(held)));
        }
        self.check_replay_is_over()?;
        Ok(if self.holds_items() { Outcome::Stalled(self.report()) } else { Outcome::Idle })
    }

    /// Returns whether items wait inside the graph, or for room in it.
    pub fn holds_items(&self) -> bool {
        self.channels.iter().any(|channel| channel.fill() > 0)
            || self.inputs.iter().any(|end| !end.queue.is_empty())
            || self.instances.iter().any(|instance| instance.has_staged())
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

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, WORD, done, put, run_to_idle, take};
    use super::super::{Clock, Error, Interpreter, Options, Outcome, Schedule};
    use crate::oracle::{Execution, Oracles};
    use crate::*;

    fn random(seed: u64) -> Options {
        Options { schedule: Schedule::Random { seed }, random_seed: seed, ..Options::default() }
    }

    fn feed(interpreter: &mut Interpreter<'_>, endpoint: &str, values: std::ops::Range<u64>) {
        let endpoint = interpreter.endpoint(endpoint).unwrap();
        for value in values {
            interpreter.feed_item(endpoint, Bits::from_u64(64, value)).unwrap();
        }
    }

    /// Splits each item into two branches, one of them slower, and joins them pair by pair.
    fn fork_and_join() -> Program {
        let mut fixture = Fixture::default();
        let fork = fixture.element(&[WORD], &[WORD, WORD], |b| {
            let value = take(b, 0, 64);
            put(b, 0, value);
            put(b, 1, value);
            done(b);
        });
        let square = fixture.element(&[WORD], &[WORD], |b| {
            let value = take(b, 0, 64);
            let square = b.binary(BinaryOp::Mul, value, value);
            put(b, 0, square);
            done(b);
        });
        let join = fixture.element(&[WORD, WORD], &[WORD], |b| {
            let (left, right) = (take(b, 0, 64), take(b, 1, 64));
            let sum = b.binary(BinaryOp::Add, left, right);
            put(b, 0, sum);
            done(b);
        });
        fixture.program.elements[join.index()].await_all = true;
        let fork = fixture.instance("fork", fork);
        let (first, second) =
            (fixture.instance("first", square), fixture.instance("second", square));
        let join = fixture.instance("join", join);
        fixture.feed_into("input", (fork, 0), 2);
        fixture.join((fork, 0), (first, 0), 1);
        fixture.join((first, 0), (second, 0), 3);
        fixture.join((second, 0), (join, 0), 1);
        fixture.join((fork, 1), (join, 1), 2);
        fixture.collect((join, 0), "output", 1);
        fixture.program
    }

    #[test]
    fn without_choice_every_schedule_gives_the_same_execution() {
        let program = fork_and_join();
        let execute = |options: &Options, stall: u8| {
            let mut interpreter = Interpreter::new(&program, options).unwrap();
            let output = interpreter.endpoint("output").unwrap();
            interpreter.stall_output(output, stall, 1).unwrap();
            feed(&mut interpreter, "input", 0..40);
            run_to_idle(&mut interpreter);
            let oracles = interpreter.oracles();
            assert!(oracles.instances.iter().all(|instance| instance.ready.is_empty()));
            interpreter.execution()
        };
        let expected = execute(&Options::default(), 0);
        assert_eq!(expected.histories[5].len(), 40);
        assert_eq!(expected.histories[5][3].to_u64(), 81 + 3);
        for seed in 0..50 {
            assert_eq!(execute(&random(seed), (seed % 90) as u8), expected, "seed {seed}");
        }
    }

    /// Merges two inputs in order of arrival, adding `random` and `now`, into a lossy channel.
    fn merge() -> Program {
        let mut fixture = Fixture::default();
        let pass = fixture.element(&[WORD], &[WORD], |b| {
            let value = take(b, 0, 64);
            put(b, 0, value);
            done(b);
        });
        let merge = fixture.element(&[WORD, WORD], &[WORD], |b| {
            let (left, right, exit) = (b.new_block(), b.new_block(), b.new_block());
            let is_ready = b.push(Op::Ready(PortId(0)), Type::Bits(1));
            b.branch(is_ready, left, right);
            let merged = b.add_param(exit, Type::Bits(64), None);
            for (block, port) in [(left, 0), (right, 1)] {
                b.switch_to(block);
                let value = take(b, port, 64);
                b.end(Term::Jump(Target { block: exit, args: vec![value] }));
            }
            b.switch_to(exit);
            let total = ObjectRef::State(ObjectId(0));
            let zero = b.number(1, 0);
            let old = b.load(total, zero, 0, 64);
            let (random, now) =
                (b.push(Op::Random, Type::Bits(64)), b.push(Op::Now, Type::Bits(64)));
            let mut sum = merged;
            for part in [random, now, old] {
                sum = b.binary(BinaryOp::Add, sum, part);
            }
            b.store(total, zero, 0, sum);
            put(b, 0, sum);
            done(b);
        });
        fixture.state(merge, 64, 1);
        let (slow, merge) = (fixture.instance("slow", pass), fixture.instance("merge", merge));
        let last = fixture.instance("last", pass);
        fixture.feed_into("left", (slow, 0), 1);
        fixture.join((slow, 0), (merge, 0), 2);
        fixture.feed_into("right", (merge, 1), 2);
        let lossy = fixture.join((merge, 0), (last, 0), 1);
        fixture.collect((last, 0), "output", 1);
        fixture.program.graph.channels[lossy.index()].on_full = OnFull::DropCounted;
        fixture.program
    }

    fn feed_merge(interpreter: &mut Interpreter<'_>) {
        feed(interpreter, "left", 0..30);
        feed(interpreter, "right", 100..130);
    }

    fn record_merge(program: &Program, seed: u64) -> (Execution, Oracles) {
        let mut interpreter = Interpreter::new(program, &random(seed)).unwrap();
        feed_merge(&mut interpreter);
        interpreter.run(10).unwrap();
        let total = Bits::from_u64(64, seed);
        interpreter.write_variable(InstanceId(1), "state0", 0, total).unwrap();
        run_to_idle(&mut interpreter);
        (interpreter.execution(), interpreter.oracles())
    }

    #[test]
    fn the_oracles_of_one_schedule_replay_under_another() {
        let program = merge();
        let mut dropped = 0;
        let mut merged = std::collections::HashSet::new();
        for seed in 0..50 {
            let (execution, oracles) = record_merge(&program, seed);
            dropped += oracles.channels[3].keep.iter().filter(|kept| !**kept).count();
            merged.insert(oracles.instances[1].ready.clone());
            for options in [Options::default(), random(seed + 1000)] {
                let mut replay = Interpreter::replay(&program, oracles.clone(), &options).unwrap();
                feed_merge(&mut replay);
                run_to_idle(&mut replay);
                assert_eq!(replay.execution(), execution, "seed {seed}");
                assert_eq!(replay.oracles(), oracles, "seed {seed}");
            }
        }
        assert!(
            dropped > 0 && merged.len() > 40,
            "the schedules must differ for this to test much"
        );
    }

    /// A record made with deeper channels fits these only if they hold more than they declare.
    #[test]
    fn a_record_of_deeper_channels_replays_without_bounds() {
        let program = merge();
        let mut deep = program.clone();
        // The output is not read, so only the depth lets all items through.
        deep.graph.channels[4].depth = 64;
        let mut recording = Interpreter::new(&deep, &Options::default()).unwrap();
        let output = recording.endpoint("output").unwrap();
        recording.stall_output(output, 100, 0).unwrap();
        feed_merge(&mut recording);
        assert!(matches!(recording.run(1_000), Ok(Outcome::Stalled(_))));
        let oracles = recording.oracles();
        for (unbounded_channels, goes_through) in [(false, false), (true, true)] {
            let options = Options { unbounded_channels, ..Options::default() };
            let mut replay = Interpreter::replay(&program, oracles.clone(), &options).unwrap();
            replay.stall_output(output, 100, 0).unwrap();
            feed_merge(&mut replay);
            let outcome = replay.run(1_000);
            assert_eq!(outcome.is_ok(), goes_through, "{outcome:?}");
            assert_eq!(replay.execution() == recording.execution(), goes_through);
        }
    }

    fn replay_error(oracles: Oracles, left: u64) -> Error {
        let program = merge();
        let mut replay = Interpreter::replay(&program, oracles, &Options::default()).unwrap();
        feed(&mut replay, "left", 0..left);
        feed(&mut replay, "right", 100..130);
        replay.run(1_000).expect_err("this replay must not go through")
    }

    #[test]
    fn a_replay_that_cannot_go_on_names_instance_and_firing() {
        let (_, recorded) = record_merge(&merge(), 7);
        assert!(matches!(
            replay_error(recorded.clone(), 29),
            Error::Replay { instance, firing, .. } if instance == "merge" && firing > 0
        ));
        let mut short = recorded.clone();
        short.instances[1].now.truncate(5);
        let error = replay_error(short, 30);
        let text = "the replay of merge cannot continue at firing 5: its record of `now` has ended";
        assert_eq!(error.to_string(), text);
        let mut impossible = recorded.clone();
        impossible.instances[1].ready[2] = 0b101;
        assert!(matches!(replay_error(impossible, 30), Error::Replay { firing: 2, .. }));
        let mut unkept = recorded.clone();
        unkept.channels[3].keep.truncate(4);
        assert!(matches!(replay_error(unkept, 30), Error::ReplayChannel { item: 4, .. }));
        let mut foreign = recorded;
        foreign.channels.pop();
        let program = merge();
        let error = Interpreter::replay(&program, foreign, &Options::default()).err();
        let want = Error::ForeignRecord { what: "channels", recorded: 4, there: 5 };
        assert_eq!(error, Some(want));
    }

    #[test]
    fn a_run_ends_after_the_round_in_which_somebody_wants_it_to() {
        let mut fixture = Fixture::default();
        let source = fixture.element(&[], &[WORD], |b| {
            let number = b.number(64, 1);
            put(b, 0, number);
            done(b);
        });
        let program = fixture.alone(source);
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        let is_wanted = std::sync::atomic::AtomicBool::new(true);
        for firings in 1..4 {
            assert_eq!(interpreter.run_until(&is_wanted, 1_000), Ok(Outcome::Budget));
            assert_eq!(interpreter.counters(InstanceId(0)).firings, firings);
        }
    }

    #[test]
    fn a_budget_stops_a_source_that_never_ends_and_a_limit_lets_it_replay() {
        let mut fixture = Fixture::default();
        let source = fixture.element(&[], &[WORD], |b| {
            let now = b.push(Op::Now, Type::Bits(64));
            put(b, 0, now);
            done(b);
        });
        let program = fixture.alone(source);
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        assert_eq!(interpreter.run(25), Ok(Outcome::Budget));
        assert_eq!(interpreter.counters(InstanceId(0)).firings, 25);
        let oracles = interpreter.oracles();
        let mut replay = Interpreter::replay(&program, oracles, &Options::default()).unwrap();
        replay.limit_firings(InstanceId(0), 25);
        run_to_idle(&mut replay);
        assert_eq!(replay.execution(), interpreter.execution());
    }

    /// Passes an item once the time that it contains has come.
    fn alarm() -> Program {
        let mut fixture = Fixture::default();
        let alarm = fixture.element(&[WORD], &[WORD], |b| {
            let (wait, pass) = (b.new_block(), b.new_block());
            let time = b.push(Op::Peek(PortId(0)), Type::Bits(64));
            let now = b.push(Op::Now, Type::Bits(64));
            let is_early = b.compare(CompareOp::ULt, now, time);
            b.branch(is_early, wait, pass);
            b.switch_to(wait);
            done(b);
            b.switch_to(pass);
            let value = take(b, 0, 64);
            put(b, 0, value);
            done(b);
        });
        fixture.alone(alarm)
    }

    #[test]
    fn where_time_is_measured_a_run_ends_once_somebody_only_waits_for_it() {
        use std::sync::atomic::{AtomicU64, Ordering};
        static TIME: AtomicU64 = AtomicU64::new(10);
        let program = alarm();
        let clock = Clock::Measured(|| TIME.load(Ordering::Relaxed));
        for schedule in [Schedule::RoundRobin, Schedule::Random { seed: 3 }] {
            TIME.store(10, Ordering::Relaxed);
            let options = Options { clock, schedule, ..Options::default() };
            let mut interpreter = Interpreter::new(&program, &options).unwrap();
            let name = program.graph.endpoints[0].name.clone();
            feed(&mut interpreter, &name, 10..12);
            assert_eq!(interpreter.run(u64::MAX), Ok(Outcome::Waiting), "11 is not yet");
            assert!(interpreter.holds_items());
            let output = EndpointId::new(1);
            assert_eq!(interpreter.take_items(output).unwrap().len(), 1);
            TIME.store(11, Ordering::Relaxed);
            assert_eq!(interpreter.run(u64::MAX), Ok(Outcome::Idle));
            assert_eq!(interpreter.take_items(output).unwrap().len(), 1);
            assert!(!interpreter.holds_items());
        }
        // With a clock that firings advance, firing is worthwhile.
        let mut steered = Interpreter::new(&program, &Options::default()).unwrap();
        let name = program.graph.endpoints[0].name.clone();
        feed(&mut steered, &name, 1_000..1_001);
        assert_eq!(steered.run(u64::MAX), Ok(Outcome::Idle));
        assert!(steered.counters(InstanceId(0)).firings >= 999);
    }
}
