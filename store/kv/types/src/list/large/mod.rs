// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The large form of a list: packed sequences in a deque.
//!
//! Each node is a packed sequence of at most the limit of bytes, or one element that is longer.
//! Numbers of elements lie beside each other in the deque, so that an index is found without
//! reading nodes. No node is empty, and neighbours that fit into one are joined after a removal.

mod iter;

use std::collections::VecDeque;
use std::ops::Range;

use super::{End, node};
use crate::corrupt::Corrupt;
use crate::entry::{Entry, encoded_size};
use crate::packed::{self, Packed, Place};
use crate::varint;

pub(super) use iter::LargeIter;

/// A list of any length.
#[derive(Clone, Debug, Default)]
pub struct LargeList {
    nodes: VecDeque<Node>,
    len: usize,
    /// Capacity of all nodes in bytes.
    node_bytes: usize,
}

#[derive(Clone, Debug)]
struct Node {
    bytes: Vec<u8>,
    len: usize,
}

impl Node {
    fn packed(&self) -> Packed<'_> {
        Packed::new(&self.bytes)
    }
}

impl LargeList {
    /// A list of one node.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let mut list = Self::default();
        if !bytes.is_empty() {
            list.insert_node(0, bytes);
        }
        list
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Memory of the list in bytes, as allocated, in O(1).
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.capacity() * size_of::<Node>() + self.node_bytes
    }

    /// The element at `index`.
    pub(super) fn get(&self, index: usize) -> Option<Entry<'_>> {
        let (at, index) = self.locate(index);
        self.nodes.get(at)?.packed().get(index as isize)
    }

    /// The element at `end`.
    pub(super) fn end(&self, end: End) -> Option<Entry<'_>> {
        node::get(self.nodes.get(self.end_node(end))?.packed(), end)
    }

    /// The elements of `range`, which lies within the list.
    pub(super) fn range(&self, range: Range<usize>) -> LargeIter<'_> {
        LargeIter::new(self, range)
    }

    /// Adds `entry` at `end`.
    pub(super) fn push(&mut self, limit: usize, end: End, entry: Entry<'_>) {
        let at = self.end_node(end);
        if self.node_has_room(at, entry, limit) {
            return self.edit(at, |bytes| {
                let place = node::outer(Packed::new(bytes), end);
                node::insert(bytes, place, entry, limit);
            });
        }
        if at < self.nodes.len() {
            self.edit(at, Vec::shrink_to_fit);
        }
        let at = if end == End::Front { 0 } else { self.nodes.len() };
        self.insert_single(at, entry);
    }

    /// Inserts `entry` before or after the first element equal to `pivot`. Returns whether there is
    /// one.
    pub(super) fn insert(
        &mut self,
        limit: usize,
        side: End,
        pivot: Entry<'_>,
        entry: Entry<'_>,
    ) -> bool {
        let found = self.nodes.iter().enumerate().find_map(|(at, node)| {
            let place = node.packed().find(Place::START, pivot, 1)?;
            let after = node.packed().after(place)?;
            Some((at, if side == End::Front { place } else { after }))
        });
        if let Some((at, place)) = found {
            self.insert_at(limit, at, place, entry);
        }
        found.is_some()
    }

    /// Puts `entry` in place of the element at `index`, which is in the list.
    pub(super) fn set(&mut self, limit: usize, index: usize, entry: Entry<'_>) {
        let (at, index) = self.locate(index);
        let packed = self.nodes[at].packed();
        let place = packed.place(index as isize).expect("the index is in the node");
        let old = packed.entry(place).expect("the index is in the node");
        let size = packed.size_bytes() - encoded_size(old) + encoded_size(entry);
        if size <= limit || packed.len() == 1 {
            return self.edit(at, |bytes| packed::replace(bytes, place, entry));
        }
        self.edit(at, |bytes| packed::remove(bytes, place, 1));
        self.insert_at(limit, at, place, entry);
    }

    /// Removes the elements of `range`, which lies within the list.
    pub(super) fn remove_range(&mut self, limit: usize, range: Range<usize>) {
        let (mut at, index) = self.locate(range.start);
        let mut left = range.len();
        if index > 0 && left > 0 {
            let removed = left.min(self.nodes[at].len - index);
            self.remove_within(at, index, removed);
            left -= removed;
            at += 1;
        }
        let mut end = at;
        while left > 0 && left >= self.nodes[end].len {
            let node = &self.nodes[end];
            left -= node.len;
            self.len -= node.len;
            self.node_bytes -= node.bytes.capacity();
            end += 1;
        }
        self.nodes.drain(at..end);
        if left > 0 {
            self.remove_within(at, 0, left);
        }
        // Both nodes at the gap have become smaller. The later pairs come first, for joining moves
        // what follows.
        for at in (at.saturating_sub(2)..=at).rev() {
            self.join(limit, at);
        }
        self.shrink();
    }

    /// Removes up to `count` elements equal to `value`, the nearest to `end`. Returns their number.
    pub(super) fn remove_equal(
        &mut self,
        limit: usize,
        value: Entry<'_>,
        count: usize,
        end: End,
    ) -> usize {
        let (mut left, nodes) = (count, self.nodes.len());
        for step in 0..nodes {
            let at = if end == End::Front { step } else { nodes - 1 - step };
            if left > 0 {
                left -= self.edit(at, |bytes| node::remove_equal(bytes, value, left, end));
            }
        }
        if left < count {
            self.join_all(limit);
        }
        count - left
    }

    /// Appends the nodes to `out`: their number, and the size and the bytes of each.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        varint::write(self.nodes.len() as u64, out);
        for node in &self.nodes {
            varint::write(node.bytes.len() as u64, out);
            out.extend_from_slice(&node.bytes);
        }
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// Bytes that are not whole nodes, and empty nodes.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Corrupt> {
        let (count, mut at) = varint::read(bytes).ok_or(Corrupt::at(0, "no number of nodes"))?;
        let mut list = Self::default();
        for _ in 0..count {
            let (length, size) =
                varint::read(&bytes[at..]).ok_or(Corrupt::at(at, "no size of a node"))?;
            let start = at + size;
            let node = usize::try_from(length)
                .ok()
                .filter(|&length| length > 0)
                .and_then(|length| bytes[start..].get(..length))
                .ok_or(Corrupt::at(at, "no whole node"))?;
            packed::validate(node).map_err(|corrupt| corrupt.behind(start))?;
            list.insert_node(list.nodes.len(), node.to_vec());
            at = start + node.len();
        }
        match bytes.len() == at {
            true => Ok(list),
            false => Err(Corrupt::at(at, "bytes behind the last node")),
        }
    }

    /// The node that holds element `index`, and the index within it. At the end of the list, the
    /// node after the last.
    fn locate(&self, index: usize) -> (usize, usize) {
        if index >= self.len {
            return (self.nodes.len(), 0);
        }
        if index < self.len / 2 {
            let mut left = index;
            let mut at = 0;
            while left >= self.nodes[at].len {
                left -= self.nodes[at].len;
                at += 1;
            }
            return (at, left);
        }
        let mut at = self.nodes.len() - 1;
        let mut start = self.len - self.nodes[at].len;
        while index < start {
            at -= 1;
            start -= self.nodes[at].len;
        }
        (at, index - start)
    }

    fn end_node(&self, end: End) -> usize {
        if end == End::Front { 0 } else { self.nodes.len().saturating_sub(1) }
    }

    fn node_has_room(&self, at: usize, entry: Entry<'_>, limit: usize) -> bool {
        self.nodes.get(at).is_some_and(|node| node::has_room(node.bytes.len(), entry, limit))
    }

    /// Inserts `entry` at `place` of node `at`, or nearby, if the node has no room: at the end of a
    /// neighbour, or between two halves of the node.
    fn insert_at(&mut self, limit: usize, at: usize, place: Place, entry: Entry<'_>) {
        let packed = self.nodes[at].packed();
        let (is_start, is_end) = (place == Place::START, place == packed.end());
        if self.node_has_room(at, entry, limit) {
            return self.edit(at, |bytes| node::insert(bytes, place, entry, limit));
        }
        if is_start || is_end {
            let (gap, neighbour, end) = match is_start {
                true => (at, at.wrapping_sub(1), End::Back),
                false => (at + 1, at + 1, End::Front),
            };
            if self.node_has_room(neighbour, entry, limit) {
                return self.push_to(limit, neighbour, end, entry);
            }
            return self.insert_single(gap, entry);
        }
        let index = packed.len() - packed.iter_from(place).count();
        let right = self.edit(at, |bytes| node::split(bytes, place, index));
        self.insert_node(at + 1, right);
        if self.node_has_room(at, entry, limit) {
            self.push_to(limit, at, End::Back, entry);
        } else if self.node_has_room(at + 1, entry, limit) {
            self.push_to(limit, at + 1, End::Front, entry);
        } else {
            self.insert_single(at + 1, entry);
        }
    }

    fn push_to(&mut self, limit: usize, at: usize, end: End, entry: Entry<'_>) {
        self.edit(at, |bytes| {
            let place = node::outer(Packed::new(bytes), end);
            node::insert(bytes, place, entry, limit);
        });
    }

    /// Inserts a node of one element.
    fn insert_single(&mut self, at: usize, entry: Entry<'_>) {
        let mut bytes = Vec::with_capacity(1 + encoded_size(entry));
        packed::push_back(&mut bytes, entry);
        self.insert_node(at, bytes);
    }

    fn insert_node(&mut self, at: usize, bytes: Vec<u8>) {
        let len = Packed::new(&bytes).len();
        self.len += len;
        self.node_bytes += bytes.capacity();
        self.nodes.insert(at, Node { bytes, len });
    }

    /// Changes a node, and follows its numbers. Gives memory back that it does not need any longer.
    fn edit<T>(&mut self, at: usize, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let node = &mut self.nodes[at];
        self.node_bytes -= node.bytes.capacity();
        self.len -= node.len;
        let result = change(&mut node.bytes);
        if node.bytes.capacity() > 2 * node.bytes.len() + 64 {
            node.bytes.shrink_to_fit();
        }
        node.len = node.packed().len();
        self.node_bytes += node.bytes.capacity();
        self.len += node.len;
        result
    }

    /// Removes `count` elements from `index` on in node `at`.
    fn remove_within(&mut self, at: usize, index: usize, count: usize) {
        self.edit(at, |bytes| {
            let place = Packed::new(bytes).place(index as isize);
            packed::remove(bytes, place.expect("the index is in the node"), count);
        });
    }

    /// Joins node `at` with the next if both fit into one.
    fn join(&mut self, limit: usize, at: usize) {
        let [Some(left), Some(right)] = [at, at + 1].map(|at| self.nodes.get(at)) else {
            return;
        };
        if left.bytes.len() + right.bytes.len() > limit {
            return;
        }
        let right = self.nodes.remove(at + 1).expect("the next node is there");
        self.len -= right.len;
        self.node_bytes -= right.bytes.capacity();
        self.edit(at, |bytes| append(bytes, &right));
    }

    /// Removes empty nodes, and joins neighbours that fit into one.
    fn join_all(&mut self, limit: usize) {
        let mut joined: VecDeque<Node> = VecDeque::new();
        for node in self.nodes.drain(..).filter(|node| node.len > 0) {
            match joined.back_mut() {
                Some(last) if last.bytes.len() + node.bytes.len() <= limit => {
                    append(&mut last.bytes, &node);
                    last.len += node.len;
                }
                _ => joined.push_back(node),
            }
        }
        joined.iter_mut().for_each(|node| node.bytes.shrink_to_fit());
        self.node_bytes = joined.iter().map(|node| node.bytes.capacity()).sum();
        self.nodes = joined;
        self.shrink();
    }

    /// Gives memory of the deque back if most of it is not needed any longer.
    fn shrink(&mut self) {
        if self.nodes.len() < self.nodes.capacity() / 4 {
            self.nodes.shrink_to(2 * self.nodes.len());
        }
    }
}

/// Appends the elements of `node` to the sequence in `bytes`.
fn append(bytes: &mut Vec<u8>, node: &Node) {
    let packed = node.packed();
    packed::append(bytes, packed, Place::START..packed.end(), packed.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &LargeList, limit: usize) {
        let sum = |value: fn(&Node) -> usize| list.nodes.iter().map(value).sum::<usize>();
        assert_eq!(list.len, sum(|node| node.packed().len()));
        assert_eq!(list.len, sum(|node| node.len));
        assert_eq!(list.node_bytes, sum(|node| node.bytes.capacity()));
        for node in &list.nodes {
            assert!(node.len > 0);
            assert!(node.len == 1 || node.bytes.len() <= limit, "{} bytes", node.bytes.len());
            assert!(node.bytes.capacity() <= 2 * node.bytes.len() + 64);
        }
    }

    #[test]
    fn nodes_keep_their_limit_and_the_list_its_sums() {
        for (seed, limit) in [(1, 0), (2, 40), (3, 300)] {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut list = LargeList::default();
            for step in 0..4000 {
                let text = "x".repeat(random.usize(..if step % 50 == 0 { 500 } else { 9 }));
                let entry = Entry::new(text.as_bytes());
                let end = if random.bool() { End::Front } else { End::Back };
                let index = random.usize(..=list.len);
                match random.u8(..10) {
                    0..5 => list.push(limit, end, entry),
                    5 | 6 => _ = list.insert(limit, end, Entry::Bytes(b"xx"), entry),
                    7 if index < list.len => list.set(limit, index, entry),
                    8 if step % 20 == 0 => _ = list.remove_equal(limit, entry, 9, end),
                    _ => list.remove_range(limit, index..(index + 2).min(list.len)),
                }
                check(&list, limit);
            }
        }
    }

    #[test]
    fn what_remains_is_joined() {
        let mut list = LargeList::default();
        (0..1000).for_each(|number| list.push(100, End::Back, Entry::Integer(number)));
        let nodes = list.nodes.len();
        for index in 0..list.len / 2 {
            list.remove_range(100, index..index + 1);
        }
        check(&list, 100);
        assert!(list.nodes.len() < nodes * 2 / 3, "{} of {nodes}", list.nodes.len());
    }
}
