// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of the tree in order, along the chain of leaves.

use super::node::Node;
use super::{Place, Tree};

/// Elements of a range of ranks, from both ends.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    tree: &'a Tree,
    front: Place,
    /// After the last element; `None` before the first is taken from this end.
    back: Option<Place>,
    left: usize,
}

impl<'a> Elements<'a> {
    /// The `len` elements from `front` on, which are in the tree.
    pub(super) fn new(tree: &'a Tree, front: Place, len: usize) -> Self {
        Self { tree, front, back: None, left: len }
    }
}

impl Iterator for Elements<'_> {
    type Item = (f64, u32);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut leaf = self.tree.leaves.get(self.front.leaf);
        if self.front.index as usize == leaf.len() {
            self.front.leaf = leaf.next;
            self.front.index = 0;
            leaf = self.tree.leaves.get(leaf.next);
        }
        let index = self.front.index as usize;
        self.front.index += 1;
        self.front.rank += 1;
        Some((leaf.scores[index], leaf.ids[index]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Elements<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let rank = self.front.rank + self.left;
        self.left = self.left.checked_sub(1)?;
        let back = self.back.get_or_insert_with(|| self.tree.at(rank));
        let mut leaf = self.tree.leaves.get(back.leaf);
        if back.index == 0 {
            back.leaf = leaf.previous;
            leaf = self.tree.leaves.get(leaf.previous);
            back.index = leaf.len() as u32;
        }
        back.index -= 1;
        let index = back.index as usize;
        Some((leaf.scores[index], leaf.ids[index]))
    }
}

impl ExactSizeIterator for Elements<'_> {}
