// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Iteration over the live entries of an interval of ids, in both directions, without copies.

use super::StreamId;
use super::node::{Fields, Node, Slot, Slots};
use std::collections::{BTreeMap, btree_map};

/// Entries of a stream, which lie in one node or in an ordered map of nodes.
#[derive(Clone, Copy, Debug)]
pub enum Nodes<'a> {
    /// The only node, or no bytes.
    One(&'a [u8]),
    /// Nodes by the id of their first entry, live or deleted.
    Many(&'a BTreeMap<StreamId, Vec<u8>>),
}

/// An entry of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamEntry<'a> {
    /// Its id.
    pub id: StreamId,
    /// Its fields, each with its value, in the order in which they were added.
    pub fields: Fields<'a>,
}

impl<'a> Nodes<'a> {
    /// The nodes that can contain entries from `first` to `last`, in ascending order.
    fn within(self, first: StreamId, last: StreamId) -> Walk<'a> {
        match self {
            _ if first > last => Walk::One(None),
            Nodes::One(bytes) => Walk::One(Some(bytes)),
            Nodes::Many(nodes) => {
                // The node that begins before the interval can reach into it.
                let begin = nodes.range(..=first).next_back().map_or(first, |(id, _)| *id);
                Walk::Many(nodes.range(begin..=last))
            }
        }
    }

    /// Live entries from `first` to `last`, both included, in ascending order.
    pub fn range(self, first: StreamId, last: StreamId) -> Range<'a> {
        Range { walk: self.within(first, last), node: None, first, last }
    }

    /// Live entries from `last` down to `first`, both included.
    pub fn range_reversed(self, first: StreamId, last: StreamId) -> RangeReversed<'a> {
        RangeReversed { walk: self.within(first, last), node: None, positions: vec![], first, last }
    }

    /// The first live entry.
    pub fn first(self) -> Option<StreamEntry<'a>> {
        self.range(StreamId::MIN, StreamId::MAX).next()
    }

    /// The last live entry.
    pub fn last(self) -> Option<StreamEntry<'a>> {
        let mut walk = self.within(StreamId::MIN, StreamId::MAX);
        let last = |node: Node<'a>| Some(StreamEntry::of(&node, &node.live_slots().last()?));
        std::iter::from_fn(|| walk.next_back()).find_map(last)
    }

    /// The live entry with this id.
    pub fn get(self, id: StreamId) -> Option<StreamEntry<'a>> {
        self.range(id, id).next()
    }
}

impl<'a> StreamEntry<'a> {
    fn of(node: &Node<'a>, slot: &Slot<'a>) -> StreamEntry<'a> {
        StreamEntry { id: slot.id, fields: node.fields(slot) }
    }
}

/// Nodes in ascending order, from both ends.
#[derive(Clone, Debug)]
enum Walk<'a> {
    One(Option<&'a [u8]>),
    Many(btree_map::Range<'a, StreamId, Vec<u8>>),
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<Node<'a>> {
        match self {
            Walk::One(node) => Node::read(node.take()?),
            Walk::Many(nodes) => Node::read(nodes.next()?.1),
        }
    }

    fn next_back(&mut self) -> Option<Node<'a>> {
        match self {
            Walk::One(node) => Node::read(node.take()?),
            Walk::Many(nodes) => Node::read(nodes.next_back()?.1),
        }
    }
}

/// Iterator over entries in ascending order of their ids.
#[derive(Clone, Debug)]
pub struct Range<'a> {
    walk: Walk<'a>,
    /// The current node, and the rest of its entries.
    node: Option<(Node<'a>, Slots<'a>)>,
    first: StreamId,
    last: StreamId,
}

impl<'a> Iterator for Range<'a> {
    type Item = StreamEntry<'a>;

    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            let Some((node, slots)) = &mut self.node else {
                let node = self.walk.next()?;
                self.node = Some((node, node.slots()));
                continue;
            };
            // A copy stays in registers while it skips entries.
            let (mut rest, first) = (*slots, self.first);
            let found = rest.find(|slot| slot.id >= first && !slot.is_deleted());
            *slots = rest;
            match found {
                None => self.node = None,
                Some(slot) if slot.id > self.last => {
                    self.walk = Walk::One(None);
                    self.node = None;
                }
                Some(slot) => return Some(StreamEntry::of(node, &slot)),
            }
        }
    }
}

/// Iterator over entries in descending order of their ids.
#[derive(Clone, Debug)]
pub struct RangeReversed<'a> {
    walk: Walk<'a>,
    /// The current node.
    node: Option<Node<'a>>,
    /// Positions of its entries that are still to come, the next one last.
    positions: Vec<usize>,
    first: StreamId,
    last: StreamId,
}

impl<'a> Iterator for RangeReversed<'a> {
    type Item = StreamEntry<'a>;

    fn next(&mut self) -> Option<StreamEntry<'a>> {
        while self.positions.is_empty() {
            let (first, last) = (self.first, self.last);
            let node = self.walk.next_back()?;
            let slots = node.live_slots().skip_while(|slot| slot.id < first);
            self.positions.reserve(usize::from(node.live));
            self.positions.extend(slots.take_while(|slot| slot.id <= last).map(|slot| slot.at));
            self.node = Some(node);
        }
        let node = self.node.as_ref()?;
        let slot = node.slot(self.positions.pop()?)?;
        Some(StreamEntry::of(node, &slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::stream::node;

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    /// Nodes of three entries each with even times from 2 to `2 * count`, and a value per entry.
    fn nodes(count: u64) -> BTreeMap<StreamId, Vec<u8>> {
        let mut nodes: BTreeMap<StreamId, Vec<u8>> = BTreeMap::new();
        for number in 1..=count {
            let value = number.to_string();
            let fields: [&[u8]; 2] = [b"n", value.as_bytes()];
            let id = id(2 * number);
            if number % 3 == 1 {
                let mut bytes = vec![];
                node::start(&mut bytes, id, &fields);
                nodes.insert(id, bytes);
            }
            node::append(nodes.last_entry().unwrap().get_mut(), 0, id, &fields);
        }
        nodes
    }

    #[test]
    fn both_directions_return_the_interval() {
        let nodes = nodes(20);
        for first in 0..44 {
            for last in 0..44 {
                let expected: Vec<u64> =
                    (first..=last).filter(|ms| ms % 2 == 0 && (2..=40).contains(ms)).collect();
                let many = Nodes::Many(&nodes);
                let found: Vec<u64> = many.range(id(first), id(last)).map(|it| it.id.ms).collect();
                assert_eq!(found, expected, "{first} to {last}");
                let reversed = many.range_reversed(id(first), id(last)).map(|it| it.id.ms);
                let mut reversed: Vec<u64> = reversed.collect();
                reversed.reverse();
                assert_eq!(reversed, expected, "{last} down to {first}");
            }
        }
    }

    #[test]
    fn deleted_entries_are_passed_over() {
        let mut nodes = nodes(9);
        for ms in [2, 8, 10, 12, 18] {
            let at = *nodes.range(..=id(ms)).next_back().unwrap().0;
            assert!(node::delete(nodes.get_mut(&at).unwrap(), id(ms)));
        }
        let many = Nodes::Many(&nodes);
        let all: Vec<u64> =
            many.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id.ms).collect();
        assert_eq!(all, [4, 6, 14, 16]);
        assert_eq!(many.first().unwrap().id, id(4));
        assert_eq!(many.last().unwrap().id, id(16));
        assert!(many.get(id(8)).is_none());
        let fields: Vec<_> = many.get(id(14)).unwrap().fields.collect();
        assert_eq!(fields, [(&b"n"[..], Entry::Integer(7))]);
    }

    #[test]
    fn no_bytes_are_no_entries() {
        let none = Nodes::One(&[]);
        assert!(none.first().is_none() && none.last().is_none() && none.get(id(1)).is_none());
        assert!(none.range_reversed(StreamId::MIN, StreamId::MAX).next().is_none());
    }
}
