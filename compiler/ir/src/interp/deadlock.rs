// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Deadlock reports: why nothing moves although data waits.
//!
//! An instance waits for room in a channel, whose reader would have to fire, or for an item in a
//! channel, whose writer would have to fire. Following these waits from instance to instance ends
//! either at one that waits for the outside, or in a cycle. In a cycle, no input can make the graph
//! continue.

use super::Interpreter;
use super::firing::Wanted;
use crate::{InstanceId, Sink, Source};
use std::fmt;

/// Causes of a stall.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Instances that hold items back or have items waiting, and the members of the cycle.
    pub blocked: Vec<Blocked>,
    /// Channels out of the graph with unread items.
    pub unread: Vec<ChannelFill>,
    /// Channels along which instances wait for each other in a cycle, if they do.
    pub cycle: Vec<ChannelFill>,
}

/// An instance that cannot fire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// Name of the instance.
    pub instance: String,
    /// Condition it waits for.
    pub wait: Wait,
}

/// Condition that an instance waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Room in all of these channels.
    Room(Vec<ChannelFill>),
    /// An item in any of these channels.
    AnyItem(Vec<ChannelFill>),
    /// An item in each of these channels.
    AllItems(Vec<ChannelFill>),
    /// Its firings do nothing with the items it has; an item in any of these channels may change
    /// that.
    Quiet(Vec<ChannelFill>),
    /// It will not fire again: it reached its firing limit or the end of its record.
    Over,
}

/// Fill level of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelFill {
    /// Writer and reader, as `a.out -> b.in`.
    pub name: String,
    /// Number of items in it.
    pub fill: usize,
    /// Maximum number of items it holds.
    pub depth: usize,
}

/// State of a stalled graph, independent of the back end that runs it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// State of each instance.
    pub instances: Vec<StandingInstance>,
    /// State of each channel.
    pub channels: Vec<StandingChannel>,
}

/// State of an instance of a stalled graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandingInstance {
    /// Name of the instance.
    pub name: String,
    /// Ports that its next firing waits for; none if it will not fire again.
    pub wanted: Option<Wanted>,
    /// Whether its last firing did nothing with the items that wait for it.
    pub is_quiet: bool,
}

/// State of a channel of a stalled graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandingChannel {
    /// Its items; those waiting at an endpoint in front of it count as well, up to its depth.
    pub fill: ChannelFill,
    /// Instance and port that write it; none if an endpoint does.
    pub writer: Option<(usize, usize)>,
    /// Instance and port that read it; none if an endpoint does.
    pub reader: Option<(usize, usize)>,
    /// Whether its writer holds an item that does not fit.
    pub has_staged: bool,
}

/// A wait of one instance for another along a channel; none for the outside.
struct Edge {
    to: Option<usize>,
    channel: usize,
}

impl Interpreter<'_> {
    /// Returns what each blocked instance waits for.
    pub(super) fn report(&self) -> Report {
        Report::of(&self.standing())
    }

    /// Describes what an instance waits for; `None` if it will not fire again.
    pub(super) fn describe_wait(&self, id: InstanceId) -> Option<String> {
        match Waits::of(&self.standing()).wait(id.index()) {
            Wait::Over => None,
            wait => Some(format!("it {wait}")),
        }
    }

    fn standing(&self) -> Standing {
        let instances = self.instances.iter().enumerate().map(|(at, instance)| StandingInstance {
            name: instance.name.clone(),
            wanted: match instance.counters.firings >= instance.firing_limit {
                true => None,
                false => self.wanted_ports(InstanceId::new(at)),
            },
            is_quiet: instance.quiet_ready.is_some(),
        });
        let channels = self.program.graph.channels.iter().zip(&self.channels);
        let channels = channels.map(|(channel, state)| {
            let (name, depth) = (state.name.clone(), state.depth());
            let writer = match channel.source {
                Source::Port(writer, port) => Some((writer.index(), port.index())),
                Source::Endpoint(_) => None,
            };
            StandingChannel {
                fill: ChannelFill { name, fill: state.fill(), depth },
                writer,
                reader: match channel.sink {
                    Sink::Port(reader, port) => Some((reader.index(), port.index())),
                    Sink::Endpoint(_) => None,
                },
                has_staged: writer
                    .is_some_and(|(writer, port)| self.instances[writer].staged[port].is_some()),
            }
        });
        Standing { instances: instances.collect(), channels: channels.collect() }
    }
}

impl Report {
    /// Finds what each blocked instance waits for, and the cycle if there is one.
    pub fn of(standing: &Standing) -> Self {
        let waits = Waits::of(standing);
        let cycle = waits.find_cycle();
        let mut report = Report::default();
        for (at, instance) in standing.instances.iter().enumerate() {
            let has_input = |channel: &usize| standing.channels[*channel].fill.fill > 0;
            let waits_with_data =
                !waits.full(at).is_empty() || waits.inputs[at].iter().any(has_input);
            if waits_with_data || cycle.iter().any(|(from, _)| *from == at) {
                let instance = instance.name.clone();
                report.blocked.push(Blocked { instance, wait: waits.wait(at) });
            }
        }
        let unread = standing.channels.iter().filter(|channel| channel.reader.is_none());
        report.unread =
            unread.map(|channel| channel.fill.clone()).filter(|fill| fill.fill > 0).collect();
        report.cycle = waits.fills(&cycle.iter().map(|(_, channel)| *channel).collect::<Vec<_>>());
        report
    }
}

/// Channels of each instance, in the order of its ports.
struct Waits<'s> {
    standing: &'s Standing,
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
}

impl<'s> Waits<'s> {
    fn of(standing: &'s Standing) -> Self {
        let at_ports = |end: fn(&StandingChannel) -> Option<(usize, usize)>| {
            let mut channels = vec![vec![]; standing.instances.len()];
            for (at, channel) in standing.channels.iter().enumerate() {
                if let Some((instance, port)) = end(channel) {
                    channels[instance].push((port, at));
                }
            }
            let in_order = |mut channels: Vec<(usize, usize)>| {
                channels.sort_unstable();
                channels.into_iter().map(|(_, channel)| channel).collect()
            };
            channels.into_iter().map(in_order).collect()
        };
        let (inputs, outputs) = (at_ports(|it| it.reader), at_ports(|it| it.writer));
        Self { standing, inputs, outputs }
    }

    fn wait(&self, instance: usize) -> Wait {
        let full = self.full(instance);
        if !full.is_empty() {
            return Wait::Room(self.fills(&full));
        }
        let StandingInstance { wanted, is_quiet, .. } = &self.standing.instances[instance];
        let empty = |mask| self.fills(&self.empty(instance, mask));
        match *wanted {
            None => Wait::Over,
            Some(Wanted::Nothing) => Wait::Quiet(vec![]),
            Some(Wanted::Any(mask)) if *is_quiet => Wait::Quiet(empty(mask)),
            Some(Wanted::All(_)) if *is_quiet => Wait::Quiet(vec![]),
            Some(Wanted::Any(mask)) => Wait::AnyItem(empty(mask)),
            Some(Wanted::All(mask)) => Wait::AllItems(empty(mask)),
        }
    }

    /// Returns the channels for which an instance holds staged items.
    fn full(&self, instance: usize) -> Vec<usize> {
        let outputs = self.outputs[instance].iter().copied();
        outputs.filter(|channel| self.standing.channels[*channel].has_staged).collect()
    }

    /// Returns the empty channels among the masked ports.
    fn empty(&self, instance: usize, mask: u64) -> Vec<usize> {
        let inputs = self.inputs[instance].iter().enumerate();
        let masked = inputs.filter(|(port, _)| mask >> port & 1 == 1).map(|(_, channel)| *channel);
        masked.filter(|channel| self.standing.channels[*channel].fill.fill == 0).collect()
    }

    fn fills(&self, channels: &[usize]) -> Vec<ChannelFill> {
        channels.iter().map(|channel| self.standing.channels[*channel].fill.clone()).collect()
    }

    fn edges(&self, instance: usize) -> Vec<Edge> {
        let channels = &self.standing.channels;
        let full = self.full(instance).into_iter();
        let to_reader = |channel: usize| Edge {
            to: channels[channel].reader.map(|(reader, _)| reader),
            channel,
        };
        let full: Vec<Edge> = full.map(to_reader).collect();
        if !full.is_empty() {
            return full;
        }
        let (Some(Wanted::Any(mask)) | Some(Wanted::All(mask))) =
            self.standing.instances[instance].wanted
        else {
            return vec![];
        };
        let to_writer = |channel: usize| Edge {
            to: channels[channel].writer.map(|(writer, _)| writer),
            channel,
        };
        self.empty(instance, mask).into_iter().map(to_writer).collect()
    }

    /// Returns instances that wait for each other in a cycle, each with the channel it waits at.
    fn find_cycle(&self) -> Vec<(usize, usize)> {
        let mut is_searched = vec![false; self.standing.instances.len()];
        for start in 0..self.standing.instances.len() {
            let mut path = vec![];
            if let Some(cycle) = self.search(start, &mut path, &mut is_searched) {
                return cycle;
            }
        }
        vec![]
    }

    fn search(
        &self,
        instance: usize,
        path: &mut Vec<(usize, usize)>,
        is_searched: &mut [bool],
    ) -> Option<Vec<(usize, usize)>> {
        if let Some(start) = path.iter().position(|(on_path, _)| *on_path == instance) {
            return Some(path[start..].to_vec());
        }
        if std::mem::replace(&mut is_searched[instance], true) {
            return None;
        }
        for edge in self.edges(instance) {
            let Some(to) = edge.to else { continue };
            path.push((instance, edge.channel));
            if let Some(cycle) = self.search(to, path, is_searched) {
                return Some(cycle);
            }
            path.pop();
        }
        None
    }
}

impl fmt::Display for ChannelFill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} of {})", self.name, self.fill, self.depth)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |channels: &[ChannelFill], word: &str| {
            let names: Vec<String> = channels.iter().map(ChannelFill::to_string).collect();
            names.join(word)
        };
        match self {
            Wait::Room(channels) => write!(f, "waits for room in {}", list(channels, " and ")),
            Wait::AnyItem(channels) => write!(f, "waits for an item in {}", list(channels, " or ")),
            Wait::AllItems(channels) => {
                write!(f, "waits for an item in {}", list(channels, " and "))
            }
            Wait::Quiet(channels) if channels.is_empty() => {
                write!(f, "does nothing with its input")
            }
            Wait::Quiet(channels) => {
                write!(f, "does nothing without an item in {}", list(channels, " or "))
            }
            Wait::Over => write!(f, "will not fire again"),
        }
    }
}

/// Prints a line for each blocked instance and each unread channel, and one for the cycle: `a.out
/// -> b.in (16 of 16) -> b.out -> a.in (16 of 16)`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing can move, though data waits")?;
        for blocked in &self.blocked {
            write!(f, "\n  {} {}", blocked.instance, blocked.wait)?;
        }
        for unread in &self.unread {
            write!(f, "\n  unread output: {unread}")?;
        }
        if !self.cycle.is_empty() {
            let cycle: Vec<String> = self.cycle.iter().map(ChannelFill::to_string).collect();
            write!(f, "\n  in a cycle: {}", cycle.join(" -> "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, WORD, done, put, run_to_idle, take};
    use super::super::{Interpreter, Options, Outcome, Schedule};
    use crate::*;

    /// Loads the count from the first state variable and stores it plus 1, modulo `modulus`.
    fn count(b: &mut Builder, modulus: u64) -> ValueId {
        let counter = ObjectRef::State(ObjectId(0));
        let (zero, one, modulus) = (b.number(1, 0), b.number(64, 1), b.number(64, modulus));
        let old = b.load(counter, zero, 0, 64);
        let sum = b.binary(BinaryOp::Add, old, one);
        let new = b.binary(BinaryOp::URem, sum, modulus);
        b.store(counter, zero, 0, new);
        old
    }

    /// Ends with `if_last` as the mask if `count` is `last`, else with `otherwise`.
    fn done_by_count(b: &mut Builder, count: ValueId, last: u64, if_last: u64, otherwise: u64) {
        let last = b.number(64, last);
        let cond = b.compare(CompareOp::Eq, count, last);
        let (if_true, if_false) = (b.number(2, if_last), b.number(2, otherwise));
        let mask = b.push(Op::Select { cond, if_true, if_false }, Type::Bits(2));
        b.end(Term::Done { mask: Some(mask) });
    }

    /// Returns a client that sends four requests before it takes four responses, and a server that
    /// answers each.
    fn request_loop(depth: u32) -> Program {
        let mut fixture = Fixture::default();
        let client = fixture.element(&[WORD, WORD], &[WORD], |b| {
            let (request, response, exit) = (b.new_block(), b.new_block(), b.new_block());
            let count = count(b, 8);
            let four = b.number(64, 4);
            let is_request = b.compare(CompareOp::ULt, count, four);
            b.branch(is_request, request, response);
            b.switch_to(request);
            let value = take(b, 0, 64);
            put(b, 0, value);
            b.jump(exit);
            b.switch_to(response);
            take(b, 1, 64);
            b.jump(exit);
            b.switch_to(exit);
            // From the fourth request until the fourth response, it waits for responses.
            let three = b.number(64, 3);
            let seven = b.number(64, 7);
            let from_three = b.compare(CompareOp::ULe, three, count);
            let below_seven = b.compare(CompareOp::ULt, count, seven);
            let cond = b.binary(BinaryOp::And, from_three, below_seven);
            let (if_true, if_false) = (b.number(2, 0b10), b.number(2, 0b01));
            let mask = b.push(Op::Select { cond, if_true, if_false }, Type::Bits(2));
            b.end(Term::Done { mask: Some(mask) });
        });
        fixture.state(client, 64, 1);
        let server = fixture.element(&[WORD], &[WORD], |b| {
            let value = take(b, 0, 64);
            put(b, 0, value);
            done(b);
        });
        let client = fixture.instance("client", client);
        let server = fixture.instance("server", server);
        fixture.feed_into("input", (client, 0), 16);
        fixture.join((client, 0), (server, 0), depth);
        fixture.join((server, 0), (client, 1), depth);
        fixture.program
    }

    fn run(program: &Program, schedule: Schedule, items: u64) -> Result<(), String> {
        let options = Options { schedule, ..Options::default() };
        let mut interpreter = Interpreter::new(program, &options).unwrap();
        let input = interpreter.endpoint("input").unwrap();
        for value in 0..items {
            interpreter.feed_item(input, Bits::from_u64(64, value)).unwrap();
        }
        match interpreter.run(10_000) {
            Ok(Outcome::Idle) => Ok(()),
            Ok(Outcome::Stalled(report)) => Err(report.to_string()),
            other => panic!("{other:?}"),
        }
    }

    /// CN-30: deadlock is judged at the declared depth.
    #[test]
    fn a_request_loop_without_room_is_a_deadlock_in_every_schedule() {
        let expected = "nothing can move, though data waits\n  \
            client waits for room in client.out0 -> server.in0 (1 of 1)\n  \
            server waits for room in server.out0 -> client.in1 (1 of 1)\n  \
            in a cycle: client.out0 -> server.in0 (1 of 1) -> server.out0 -> client.in1 (1 of 1)";
        let program = request_loop(1);
        assert_eq!(run(&program, Schedule::RoundRobin, 12), Err(expected.into()));
        for seed in 0..20 {
            assert_eq!(run(&program, Schedule::Random { seed }, 12), Err(expected.into()));
        }
        assert_eq!(run(&request_loop(2), Schedule::RoundRobin, 12), Ok(()));
        let page = include_str!("../../../../docs/reference/semantics.md");
        assert!(page.contains(expected), "the page shows what a report looks like");
    }

    /// A fork gives each item to both branches; a join takes two of one branch for each of the
    /// other.
    #[test]
    fn a_join_that_takes_at_unequal_rates_starves_the_fork() {
        let mut fixture = Fixture::default();
        let fork = fixture.element(&[WORD], &[WORD, WORD], |b| {
            let value = take(b, 0, 64);
            put(b, 0, value);
            put(b, 1, value);
            done(b);
        });
        let join = fixture.element(&[WORD, WORD], &[], |b| {
            let count = count(b, 3);
            let (first, second, exit) = (b.new_block(), b.new_block(), b.new_block());
            let two = b.number(64, 2);
            let is_second = b.compare(CompareOp::Eq, count, two);
            b.branch(is_second, second, first);
            for (block, port) in [(first, 0), (second, 1)] {
                b.switch_to(block);
                take(b, port, 64);
                b.jump(exit);
            }
            b.switch_to(exit);
            done_by_count(b, count, 1, 0b10, 0b01);
        });
        fixture.state(join, 64, 1);
        fixture.program.elements[join.index()].await_all = true;
        let (fork, join) = (fixture.instance("fork", fork), fixture.instance("join", join));
        fixture.feed_into("input", (fork, 0), 16);
        fixture.join((fork, 0), (join, 0), 4);
        fixture.join((fork, 1), (join, 1), 4);
        let report = run(&fixture.program, Schedule::RoundRobin, 40).expect_err("a deadlock");
        let circle = "in a cycle: fork.out1 -> join.in1 (4 of 4) -> fork.out0 -> join.in0 (0 of 4)";
        assert!(report.ends_with(circle), "{report}");
        assert!(report.contains("join waits for an item in fork.out0 -> join.in0 (0 of 4)"));
        assert!(report.contains("fork waits for room in fork.out1 -> join.in1 (4 of 4)"));
    }

    #[test]
    fn who_waits_for_the_outside_is_in_no_circle() {
        let program = request_loop(2);
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        let input = interpreter.endpoint("input").unwrap();
        // Two requests have left; the other two never come, and the responses wait.
        interpreter.feed_item(input, Bits::from_u64(64, 1)).unwrap();
        let Ok(Outcome::Stalled(report)) = interpreter.run(100) else { panic!("data waits") };
        assert!(report.cycle.is_empty(), "{report}");
        assert!(report.to_string().contains("client waits for an item in input -> client.in0"));
        for value in 2..=4 {
            interpreter.feed_item(input, Bits::from_u64(64, value)).unwrap();
        }
        run_to_idle(&mut interpreter);
    }
}
