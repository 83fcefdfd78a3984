// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Joins: elements that wait for an item at each of their ports, such as a buffer that waits for
//! the verdict on each packet.
//!
//! If the paths to two ports of a join diverge at one instance, items on the short path wait for
//! those on the long path. The channels of the short path must hold as many items as are in flight
//! on the long path: one for each element there, plus the item that is joined. With less room, the
//! elements of the long path run one after another instead of concurrently.

use crate::{ChannelId, InstanceId, PortId, Program, Sink, Source};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of instances visited upstream of each join.
const MOST_ANCESTORS: usize = 256;

/// A join whose waiting channels have too little room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShallowJoin {
    /// The join.
    pub join: InstanceId,
    /// Channel into it whose items wait.
    pub waiting: ChannelId,
    /// Channel into it from the long path.
    pub awaited: ChannelId,
    /// Items that the short path holds.
    pub holds: u64,
    /// Items that it needs to hold.
    pub needs: u64,
}

/// Finds the joins of a program with too little room; for each waiting port, the worst case.
pub fn shallow_joins(program: &Program) -> Vec<ShallowJoin> {
    let mut found = vec![];
    for at in 0..program.graph.instances.len() {
        let join = InstanceId::new(at);
        let element = program.element_of(join);
        if !element.await_all || element.inputs.len() < 2 {
            continue;
        }
        let ports = (0..element.inputs.len()).map(PortId::new);
        let channels = ports.filter_map(|port| program.graph.channel_to(Sink::Port(join, port)));
        let ways: Vec<Ways> = channels.map(|channel| Ways::to(program, channel)).collect();
        found.extend(ways.iter().filter_map(|waiting| worst(join, waiting, &ways)));
    }
    found
}

/// Finds the long path that needs the most additional room on the side of `waiting`, if any does.
fn worst(join: InstanceId, waiting: &Ways, all: &[Ways]) -> Option<ShallowJoin> {
    let mut worst: Option<ShallowJoin> = None;
    for awaited in all.iter().filter(|it| it.channel != waiting.channel) {
        for (ancestor, short) in &waiting.from {
            let Some(long) = awaited.from.get(ancestor) else { continue };
            let (holds, needs) = (short.holds, long.elements + 1);
            let lacks = needs.saturating_sub(holds);
            if lacks > worst.map_or(0, |worst| worst.needs - worst.holds) {
                let (waiting, awaited) = (waiting.channel, awaited.channel);
                worst = Some(ShallowJoin { join, waiting, awaited, holds, needs });
            }
        }
    }
    worst
}

/// Paths into a channel, by the instance where they begin.
struct Ways {
    channel: ChannelId,
    from: BTreeMap<InstanceId, Way>,
}

/// Summary of the paths from one instance.
#[derive(Clone, Copy)]
struct Way {
    /// Minimum number of items that the channels of a path hold.
    holds: u64,
    /// Maximum number of elements between the ends of a path.
    elements: u64,
}

impl Ways {
    /// Finds all paths into `channel`. A cycle is traversed once.
    fn to(program: &Program, channel: ChannelId) -> Self {
        let mut from: BTreeMap<InstanceId, Way> = BTreeMap::new();
        let mut left = VecDeque::new();
        let depth = |id: ChannelId| u64::from(program.graph.channels[id.index()].depth);
        left.push_back((channel, Way { holds: depth(channel), elements: 0 }, vec![]));
        let mut steps = 0;
        while let Some((channel, way, passed)) = left.pop_front() {
            let source = program.graph.channels[channel.index()].source;
            let Source::Port(writer, _) = source else { continue };
            steps += 1;
            if passed.contains(&writer) || steps > MOST_ANCESTORS {
                continue;
            }
            let known = from.entry(writer).or_insert(way);
            known.holds = known.holds.min(way.holds);
            known.elements = known.elements.max(way.elements);
            let element = program.element_of(writer);
            for port in (0..element.inputs.len()).map(PortId::new) {
                let Some(before) = program.graph.channel_to(Sink::Port(writer, port)) else {
                    continue;
                };
                let holds = way.holds + depth(before);
                let way = Way { holds, elements: way.elements + 1 };
                left.push_back((before, way, [&passed[..], &[writer]].concat()));
            }
        }
        Self { channel, from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// Builds a fork, `long` elements on one path, a channel of `depth` on the other, and a join.
    fn diamond(long: usize, depth: u32) -> Program {
        let mut text = String::from(
            "program diamond
            element Fork { in in: bits<8> out a: bits<8> out b: bits<8>
              handler { entry: %x = take in; put a, %x; put b, %x; done } }
            element Pass { in in: bits<8> out out: bits<8>
              handler { entry: %x = take in; put out, %x; done } }
            element Join { await_all; in a: bits<8> in b: bits<8> out out: bits<8>
              handler { entry: %x = take a; %y = take b; put out, %y; done } }
            graph {
              endpoint from_host: into bits<8>
              endpoint to_host: out_of bits<8>
              instance fork: Fork
              instance join: Join
              from_host -> fork.in
              join.out -> to_host\n",
        );
        let mut last = "fork.a".to_owned();
        for at in 0..long {
            text += &format!("instance pass{at}: Pass\n{last} -> pass{at}.in depth 1\n");
            last = format!("pass{at}.out");
        }
        text += &format!("{last} -> join.a\nfork.b -> join.b depth {depth}\n}}\n");
        parse(&text).expect("the text is right")
    }

    #[test]
    fn the_short_way_has_to_hold_what_is_on_the_long_one_and_one_more() {
        for (long, depth, lacks) in [(0, 1, false), (3, 3, true), (3, 4, false), (20, 16, true)] {
            let program = diamond(long, depth);
            let found = shallow_joins(&program);
            assert_eq!(!found.is_empty(), lacks, "{long} elements, depth {depth}");
            if let [found] = found[..] {
                let name =
                    |id: ChannelId| program.channel_name(&program.graph.channels[id.index()]);
                assert_eq!(name(found.waiting), "fork.b -> join.b");
                assert!(name(found.awaited).ends_with(" -> join.a"));
                assert_eq!((found.holds, found.needs), (u64::from(depth), long as u64 + 1));
            }
        }
    }

    #[test]
    fn an_element_that_fires_on_any_port_does_not_wait() {
        let mut program = diamond(5, 1);
        let join = program.elements.iter_mut().find(|it| it.await_all).expect("there is one");
        join.await_all = false;
        assert!(shallow_joins(&program).is_empty());
    }
}
