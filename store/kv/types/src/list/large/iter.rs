// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of a large list in order, node by node.

use std::collections::vec_deque;
use std::ops::Range;

use super::{LargeList, Node};
use crate::entry::Entry;
use crate::packed::{self, Packed};

/// Elements of a range, from both ends.
#[derive(Clone, Debug)]
pub struct LargeIter<'a> {
    front: packed::Iter<'a>,
    /// Nodes between those of `front` and `back`.
    nodes: vec_deque::Iter<'a, Node>,
    back: packed::Iter<'a>,
    left: usize,
    /// Entries after the range, which are passed when something is taken from the end.
    skipped: usize,
}

impl<'a> LargeIter<'a> {
    /// The elements of `range`, which lies within the list.
    pub(super) fn new(list: &'a LargeList, range: Range<usize>) -> Self {
        let empty = Packed::new(&[]).iter();
        if range.is_empty() {
            let nodes = list.nodes.range(0..0);
            return Self { front: empty.clone(), nodes, back: empty, left: 0, skipped: 0 };
        }
        let (first, index) = list.locate(range.start);
        let (last, last_index) = list.locate(range.end - 1);
        let packed = list.nodes[first].packed();
        let place = packed.place(index as isize).expect("the start is in the node");
        let is_one = first == last;
        Self {
            front: packed.iter_from(place),
            nodes: list.nodes.range(if is_one { 0..0 } else { first + 1..last }),
            back: if is_one { empty } else { list.nodes[last].packed().iter() },
            left: range.len(),
            skipped: list.nodes[last].len - 1 - last_index,
        }
    }

    /// The last entry, in the range or after it.
    fn last(&mut self) -> Option<Entry<'a>> {
        loop {
            if let Some(entry) = self.back.next_back() {
                return Some(entry);
            }
            match self.nodes.next_back() {
                Some(node) => self.back = node.packed().iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

impl<'a> Iterator for LargeIter<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(entry) = self.front.next() {
                return Some(entry);
            }
            match self.nodes.next() {
                Some(node) => self.front = node.packed().iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for LargeIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        for _ in 0..std::mem::take(&mut self.skipped) {
            self.last();
        }
        self.last()
    }
}

impl ExactSizeIterator for LargeIter<'_> {}
