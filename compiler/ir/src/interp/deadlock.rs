// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why nothing moves though data waits.
//!
//! An instance waits for room in a channel, whose reader would have to fire, or for an item in one,
//! whose writer would have to. Following these waits from instance to instance either ends at
//! somebody who waits for the outside, or goes in a cycle: then no input can ever get the graph
//! going again.

use super::Interpreter;
use super::firing::Wanted;
use crate::{ChannelId, InstanceId, Sink, Source};
use std::fmt;

/// What a stalled run waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Instances that hold items back or have items waiting, and those of the cycle.
    pub blocked: Vec<Blocked>,
    /// Channels out of the graph that hold items nobody reads.
    pub unread: Vec<ChannelFill>,
    /// Channels along which instances wait for each other in a circle, if they do.
    pub cycle: Vec<ChannelFill>,
}

/// An instance that cannot fire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// Its name.
    pub instance: String,
    /// What it waits for.
    pub wait: Wait,
}

/// What an instance waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Room in all of these.
    Room(Vec<ChannelFill>),
    /// An item in any of these.
    AnyItem(Vec<ChannelFill>),
    /// An item in each of these.
    AllItems(Vec<ChannelFill>),
    /// Nothing that it has makes it do anything; an item in any of these may.
    Quiet(Vec<ChannelFill>),
    /// It will not fire again: its limit or its record has ended.
    Over,
}

/// How full a channel is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelFill {
    /// Its writer and reader, as `a.out -> b.in`.
    pub name: String,
    /// Items in it.
    pub fill: usize,
    /// Items it holds at most.
    pub depth: usize,
}

/// Who waits for whom along which channel; none for the outside.
struct Edge {
    to: Option<InstanceId>,
    channel: ChannelId,
}

impl Interpreter<'_> {
    /// Who waits for what.
    pub(super) fn report(&self) -> Report {
        let cycle = self.find_cycle();
        let mut report = Report::default();
        for (at, instance) in self.instances.iter().enumerate() {
            let id = InstanceId::new(at);
            let waits_with_data = instance.has_staged()
                || instance.inputs.iter().any(|channel| self.channels[channel.index()].fill() > 0);
            if waits_with_data || cycle.iter().any(|(from, _)| *from == id) {
                let instance = instance.name.clone();
                report.blocked.push(Blocked { instance, wait: self.wait(id) });
            }
        }
        let unread = self.outputs.iter().map(|end| end.channel);
        report.unread = unread.map(|at| self.fill(at)).filter(|fill| fill.fill > 0).collect();
        report.cycle = cycle.iter().map(|(_, channel)| self.fill(*channel)).collect();
        report
    }

    /// What an instance waits for, in words; none if it waits for nothing.
    pub(super) fn describe_wait(&self, id: InstanceId) -> Option<String> {
        match self.wait(id) {
            Wait::Over => None,
            wait => Some(format!("it {wait}")),
        }
    }

    fn wait(&self, id: InstanceId) -> Wait {
        let instance = &self.instances[id.index()];
        let full = instance.staged.iter().zip(&instance.outputs);
        let full: Vec<_> =
            full.filter(|(staged, _)| staged.is_some()).map(|(_, at)| self.fill(*at)).collect();
        if !full.is_empty() {
            return Wait::Room(full);
        }
        if instance.counters.firings >= instance.firing_limit {
            return Wait::Over;
        }
        match self.wanted_ports(id) {
            None => Wait::Over,
            Some(Wanted::Nothing) => Wait::Quiet(vec![]),
            Some(Wanted::Any(mask)) if instance.quiet_ready.is_some() => {
                Wait::Quiet(self.empty_inputs(id, mask))
            }
            Some(Wanted::All(_)) if instance.quiet_ready.is_some() => Wait::Quiet(vec![]),
            Some(Wanted::Any(mask)) => Wait::AnyItem(self.empty_inputs(id, mask)),
            Some(Wanted::All(mask)) => Wait::AllItems(self.empty_inputs(id, mask)),
        }
    }

    fn empty_inputs(&self, id: InstanceId, mask: u64) -> Vec<ChannelFill> {
        self.empty_channels(id, mask).into_iter().map(|channel| self.fill(channel)).collect()
    }

    fn empty_channels(&self, id: InstanceId, mask: u64) -> Vec<ChannelId> {
        let inputs = self.instances[id.index()].inputs.iter().enumerate();
        let masked = inputs.filter(|(port, _)| mask >> port & 1 == 1).map(|(_, channel)| *channel);
        masked.filter(|channel| self.channels[channel.index()].fill() == 0).collect()
    }

    fn fill(&self, channel: ChannelId) -> ChannelFill {
        let state = &self.channels[channel.index()];
        ChannelFill { name: state.name.clone(), fill: state.fill(), depth: state.depth() }
    }

    fn edges(&self, id: InstanceId) -> Vec<Edge> {
        let instance = &self.instances[id.index()];
        let channels = &self.program.graph.channels;
        let staged = instance.staged.iter().zip(&instance.outputs);
        let full: Vec<Edge> = staged
            .filter(|(staged, _)| staged.is_some())
            .map(|(_, channel)| match channels[channel.index()].sink {
                Sink::Port(to, _) => Edge { to: Some(to), channel: *channel },
                Sink::Endpoint(_) => Edge { to: None, channel: *channel },
            })
            .collect();
        if !full.is_empty() {
            return full;
        }
        let (Some(Wanted::Any(mask)) | Some(Wanted::All(mask))) = self.wanted_ports(id) else {
            return vec![];
        };
        let empty = self.empty_channels(id, mask).into_iter();
        empty
            .map(|channel| match channels[channel.index()].source {
                Source::Port(to, _) => Edge { to: Some(to), channel },
                Source::Endpoint(_) => Edge { to: None, channel },
            })
            .collect()
    }

    /// Instances that wait for each other in a circle, each with the channel it waits at.
    fn find_cycle(&self) -> Vec<(InstanceId, ChannelId)> {
        let mut is_searched = vec![false; self.instances.len()];
        for start in 0..self.instances.len() {
            let mut path = vec![];
            if let Some(cycle) = self.search(InstanceId::new(start), &mut path, &mut is_searched) {
                return cycle;
            }
        }
        vec![]
    }

    fn search(
        &self,
        id: InstanceId,
        path: &mut Vec<(InstanceId, ChannelId)>,
        is_searched: &mut [bool],
    ) -> Option<Vec<(InstanceId, ChannelId)>> {
        if let Some(start) = path.iter().position(|(on_path, _)| *on_path == id) {
            return Some(path[start..].to_vec());
        }
        if std::mem::replace(&mut is_searched[id.index()], true) {
            return None;
        }
        for edge in self.edges(id) {
            let Some(to) = edge.to else { continue };
            path.push((id, edge.channel));
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

/// One line for each blocked instance and each channel that nobody reads, and one for the cycle:
/// `a.out -> b.in (16 of 16) -> b.out -> a.in (16 of 16)`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing can move, though data waits")?;
        for blocked in &self.blocked {
            write!(f, "\n  {} {}", blocked.instance, blocked.wait)?;
        }
        for unread in &self.unread {
            write!(f, "\n  nobody reads {unread}")?;
        }
        if !self.cycle.is_empty() {
            let cycle: Vec<String> = self.cycle.iter().map(ChannelFill::to_string).collect();
            write!(f, "\n  in a circle: {}", cycle.join(" -> "))?;
        }
        Ok(())
    }
}
