// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The large form of a stream: nodes in an ordered map by the id of their first entry, and the
//! consumer groups.

use super::group::Groups;
use super::node::{self, Node};
use super::range::Nodes;
use super::trim::{Cut, Trim};
use super::{Head, StreamId, StreamRef};
use crate::limits::Limits;
use std::collections::BTreeMap;

/// A stream with any number of nodes and groups.
#[derive(Clone, Debug, Default)]
pub struct Large {
    pub(super) head: Head,
    pub(super) log: Log,
    pub(super) groups: Groups,
}

/// The entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    nodes: BTreeMap<StreamId, Vec<u8>>,
    /// Number of live entries.
    length: u64,
    /// Capacity of all nodes together.
    node_bytes: usize,
}

impl Large {
    /// Takes over a packed stream.
    pub(super) fn from_packed(bytes: &[u8]) -> Large {
        let (head, size) = Head::read(bytes);
        let mut log = Log::default();
        if let Some(node) = Node::read(&bytes[size..]) {
            log.insert(node.first, u64::from(node.live), bytes[size..].to_vec());
        }
        Large { head, log, groups: Groups::default() }
    }

    pub(super) fn view(&self) -> StreamRef<'_> {
        StreamRef {
            groups: Some(&self.groups),
            memory_bytes: self.memory_bytes(),
            ..self.log.view(self.head)
        }
    }

    pub(super) fn set_head(&mut self, head: Head) {
        self.head = head;
    }

    pub(super) fn add(&mut self, limits: &Limits, id: StreamId, fields: &[&[u8]]) {
        self.log.add(limits, id, fields);
        self.head.note_added(id);
    }

    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        let is_deleted = self.log.delete(id);
        if is_deleted {
            self.head.note_deleted(id);
        }
        is_deleted
    }

    pub(super) fn trim(&mut self, trim: &Trim) -> u64 {
        self.log.trim(trim)
    }

    /// Bytes of memory, with this struct.
    fn memory_bytes(&self) -> usize {
        size_of::<Large>() + self.log.memory_bytes() + self.groups.memory_bytes()
    }
}

impl Log {
    /// Reads the log as a stream without groups.
    pub fn view(&self, head: Head) -> StreamRef<'_> {
        StreamRef {
            head,
            length: self.length,
            nodes: Nodes::Many(&self.nodes),
            groups: None,
            memory_bytes: self.memory_bytes(),
        }
    }

    /// Takes over a node behind all others, with this number of live entries.
    pub fn insert(&mut self, first: StreamId, live: u64, node: Vec<u8>) {
        self.length += live;
        self.node_bytes += node.capacity();
        self.nodes.insert(first, node);
    }

    fn add(&mut self, limits: &Limits, id: StreamId, fields: &[&[u8]]) {
        if let Some(mut last) = self.nodes.last_entry() {
            let node = last.get_mut();
            let before = node.capacity();
            let (most_bytes, most_entries) = (limits.stream_node_bytes, limits.stream_node_entries);
            let has_room = node::has_room(node, id, fields, most_bytes, most_entries);
            if has_room {
                node::append(node, 0, id, fields);
                self.length += 1;
            } else {
                // Nothing is appended to this node any more.
                node.shrink_to_fit();
            }
            self.node_bytes = self.node_bytes - before + node.capacity();
            if has_room {
                return;
            }
        }
        let mut node = vec![];
        node::start(&mut node, id, fields);
        node::append(&mut node, 0, id, fields);
        self.insert(id, 1, node);
    }

    fn delete(&mut self, id: StreamId) -> bool {
        let Some((first, node)) = self.nodes.range_mut(..=id).next_back() else { return false };
        if !node::delete(node, id) {
            return false;
        }
        self.length -= 1;
        if is_empty(node) {
            let first = *first;
            self.remove(first);
        }
        true
    }

    fn trim(&mut self, trim: &Trim) -> u64 {
        let mut removed = 0;
        while let Some(mut first) = self.nodes.first_entry() {
            let id = *first.key();
            let Some(node) = Node::read(first.get()) else { break };
            match trim.cut(&node, self.length, removed) {
                Cut::Nothing => break,
                Cut::Node => {
                    removed += u64::from(node.live);
                    self.length -= u64::from(node.live);
                    self.remove(id);
                }
                Cut::Front => {
                    let marked = trim.delete_front(first.get_mut(), self.length);
                    let is_empty = is_empty(first.get());
                    removed += marked;
                    self.length -= marked;
                    if is_empty {
                        self.remove(id);
                    }
                    break;
                }
            }
        }
        removed
    }

    fn remove(&mut self, first: StreamId) {
        let node = self.nodes.remove(&first);
        self.node_bytes -= node.map_or(0, |node| node.capacity());
    }

    fn memory_bytes(&self) -> usize {
        self.node_bytes + self.nodes.len() * slot_bytes(size_of::<(StreamId, Vec<u8>)>())
    }
}

fn is_empty(node: &[u8]) -> bool {
    Node::read(node).is_none_or(|node| node.live == 0)
}

/// Estimated bytes per entry of an ordered map. Ascending keys leave B-tree nodes of eleven places
/// with six entries, and every seventh entry lies in the level above.
pub(super) const fn slot_bytes(entry_bytes: usize) -> usize {
    entry_bytes * 9 / 5 + 5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of what the log counts along.
    fn sums(log: &Log) -> (u64, usize) {
        let live = log.nodes.values().map(|node| u64::from(Node::read(node).unwrap().live)).sum();
        (live, log.nodes.values().map(Vec::capacity).sum())
    }

    #[test]
    fn counters_follow_every_change() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let limits = Limits { stream_node_entries: random.usize(1..9), ..Limits::default() };
            let mut log = Log::default();
            for ms in 1..200 {
                match random.u8(0..4) {
                    0 => drop(log.delete(StreamId::new(random.u64(0..ms), 0))),
                    1 => drop(log.trim(&Trim::to_length(random.u64(0..40)))),
                    _ => log.add(&limits, StreamId::new(ms, 0), &[b"field", b"value"]),
                }
                assert_eq!((log.length, log.node_bytes), sums(&log), "seed {seed}, entry {ms}");
                assert!(log.nodes.values().all(|node| !is_empty(node)), "seed {seed}, entry {ms}");
            }
        }
    }

    #[test]
    fn a_full_node_gives_unused_memory_back() {
        let limits = Limits { stream_node_entries: 10, ..Limits::default() };
        let mut log = Log::default();
        for ms in 1..=11 {
            log.add(&limits, StreamId::new(ms, 0), &[b"field", &[b'v'; 50]]);
        }
        let first = log.nodes.values().next().unwrap();
        assert_eq!((log.nodes.len(), first.capacity()), (2, first.len()));
    }
}
