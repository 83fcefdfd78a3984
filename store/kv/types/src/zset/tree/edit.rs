// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of the tree's structure: nodes split, share, and join.

use super::node::{CAPACITY, FEW, NONE, Node};
use super::{Tree, child_at, child_of, partition};

impl Tree {
    /// A tree of elements that are in order already, in O(n), with full leaves.
    pub fn from_sorted(elements: impl Iterator<Item = (f64, u32)>) -> Self {
        let mut tree = Self::new();
        let mut level = vec![tree.root];
        for element in elements {
            let mut last = *level.last().expect("the first leaf is there");
            if tree.leaves.get(last).len() == CAPACITY {
                let next = tree.leaves.add();
                tree.leaves.get_mut(last).next = next;
                tree.leaves.get_mut(next).previous = last;
                level.push(next);
                last = next;
            }
            let leaf = tree.leaves.get_mut(last);
            leaf.insert(leaf.len(), element);
        }
        if let [.., left, right] = level[..] {
            let (left, right) = tree.leaves.pair_mut(left, right);
            level_last(left, right);
        }
        while level.len() > 1 {
            let mut above = vec![];
            for group in level.chunks(CAPACITY) {
                let node = tree.inners.add();
                for (at, &child) in group.iter().enumerate() {
                    let child = tree.summary(child, tree.height);
                    tree.inners.get_mut(node).insert(at, child);
                }
                above.push(node);
            }
            if let [.., left, right] = above[..] {
                let (left, right) = tree.inners.pair_mut(left, right);
                level_last(left, right);
            }
            level = above;
            tree.height += 1;
        }
        tree.root = level[0];
        tree
    }

    /// Inserts an element before the first for which `is_before` does not hold.
    pub fn insert(&mut self, element: (f64, u32), is_before: impl Fn(f64, u32) -> bool) {
        if let Some(right) = self.insert_below(self.root, self.height, element, &is_before) {
            let children = [self.root, right].map(|child| self.summary(child, self.height));
            self.root = self.inners.add();
            let root = self.inners.get_mut(self.root);
            children.into_iter().enumerate().for_each(|(at, child)| root.insert(at, child));
            self.height += 1;
        }
    }

    /// Removes the element of rank `rank`, which is in the tree.
    pub fn remove(&mut self, rank: usize) {
        self.remove_below(self.root, self.height, rank);
        while self.height > 0 && self.inners.get(self.root).len() == 1 {
            let child = self.inners.get(self.root).children[0];
            self.inners.remove(self.root);
            self.root = child;
            self.height -= 1;
        }
    }

    /// Inserts below `node`. Returns a new node that comes after it, if it had to be split.
    fn insert_below(
        &mut self,
        node: u32,
        height: u32,
        element: (f64, u32),
        is_before: &impl Fn(f64, u32) -> bool,
    ) -> Option<u32> {
        if height == 0 {
            return self.insert_into_leaf(node, element, is_before);
        }
        let mut at = child_of(self.inners.get(node), is_before);
        if height == 1 && self.share(node, at) {
            at = child_of(self.inners.get(node), is_before);
        }
        let child = self.inners.get(node).children[at];
        let split = self.insert_below(child, height - 1, element, is_before);
        let summary = self.summary(child, height - 1);
        self.inners.get_mut(node).set(at, summary);
        let entry = self.summary(split?, height - 1);
        if self.inners.get(node).len() < CAPACITY {
            self.inners.get_mut(node).insert(at + 1, entry);
            return None;
        }
        let right = self.inners.add();
        let (left_node, right_node) = self.inners.pair_mut(node, right);
        // A node at the right edge stays nearly full, for ascending insertion.
        let middle = if at + 1 == CAPACITY { CAPACITY - 1 } else { CAPACITY / 2 };
        left_node.move_tail(middle, right_node);
        if at < middle {
            left_node.insert(at + 1, entry);
        } else {
            right_node.insert(at + 1 - middle, entry);
        }
        Some(right)
    }

    fn insert_into_leaf(
        &mut self,
        node: u32,
        element: (f64, u32),
        is_before: &impl Fn(f64, u32) -> bool,
    ) -> Option<u32> {
        let leaf = self.leaves.get_mut(node);
        let index = partition(&leaf.scores, &leaf.ids, leaf.len(), is_before);
        if leaf.len() < CAPACITY {
            leaf.insert(index, element);
            return None;
        }
        let (previous, next) = (leaf.previous, leaf.next);
        let middle = match index {
            CAPACITY if next == NONE => CAPACITY,
            0 if previous == NONE => 0,
            _ => CAPACITY / 2,
        };
        let right = self.leaves.add();
        let (left_leaf, right_leaf) = self.leaves.pair_mut(node, right);
        left_leaf.move_tail(middle, right_leaf);
        if index < middle || middle == 0 {
            left_leaf.insert(index, element);
        } else {
            right_leaf.insert(index - middle, element);
        }
        left_leaf.next = right;
        right_leaf.previous = node;
        right_leaf.next = next;
        if next != NONE {
            self.leaves.get_mut(next).previous = right;
        }
        Some(right)
    }

    /// Moves entries of a full leaf, the child `at` of `parent`, to a neighbour with room. Returns
    /// whether it did. Leaves at both ends are not shared, for ascending and descending insertion.
    fn share(&mut self, parent: u32, at: usize) -> bool {
        let inner = self.inners.get(parent);
        let count = |at: usize| inner.counts[at] as usize;
        let leaf = self.leaves.get(inner.children[at]);
        if count(at) < CAPACITY || leaf.next == NONE || leaf.previous == NONE {
            return false;
        }
        let has_room = |at: usize| count(at) <= CAPACITY - CAPACITY / 8;
        let first = if at > 0 && has_room(at - 1) {
            at - 1
        } else if at + 1 < inner.len() && has_room(at + 1) {
            at
        } else {
            return false;
        };
        self.level(parent, 1, first);
        true
    }

    fn remove_below(&mut self, node: u32, height: u32, rank: usize) {
        if height == 0 {
            self.leaves.get_mut(node).remove(rank);
            return;
        }
        let mut left = rank;
        let at = child_at(self.inners.get(node), &mut left);
        let child = self.inners.get(node).children[at];
        self.remove_below(child, height - 1, left);
        let summary = self.summary(child, height - 1);
        self.inners.get_mut(node).set(at, summary);
        let len = match height {
            1 => self.leaves.get(child).len(),
            _ => self.inners.get(child).len(),
        };
        if len < FEW && self.inners.get(node).len() > 1 {
            let first = at.saturating_sub(1);
            self.join(node, height, first);
        }
    }

    /// Joins the children `first` and `first + 1` of `parent` into one node if that leaves room,
    /// and makes them equally full otherwise.
    fn join(&mut self, parent: u32, height: u32, first: usize) {
        let inner = self.inners.get(parent);
        let (left, right) = (inner.children[first], inner.children[first + 1]);
        let total = match height {
            1 => self.leaves.get(left).len() + self.leaves.get(right).len(),
            _ => self.inners.get(left).len() + self.inners.get(right).len(),
        };
        if total > CAPACITY * 3 / 4 {
            return self.level(parent, height, first);
        }
        if height == 1 {
            let (left_leaf, right_leaf) = self.leaves.pair_mut(left, right);
            right_leaf.move_head(right_leaf.len(), left_leaf);
            let next = right_leaf.next;
            left_leaf.next = next;
            if next != NONE {
                self.leaves.get_mut(next).previous = left;
            }
            self.leaves.remove(right);
        } else {
            let (left_node, right_node) = self.inners.pair_mut(left, right);
            right_node.move_head(right_node.len(), left_node);
            self.inners.remove(right);
        }
        let summary = self.summary(left, height - 1);
        let inner = self.inners.get_mut(parent);
        inner.remove(first + 1);
        inner.set(first, summary);
    }

    /// Makes the children `first` and `first + 1` of `parent` equally full.
    fn level(&mut self, parent: u32, height: u32, first: usize) {
        let inner = self.inners.get(parent);
        let (left, right) = (inner.children[first], inner.children[first + 1]);
        if height == 1 {
            let (left, right) = self.leaves.pair_mut(left, right);
            level_pair(left, right);
        } else {
            let (left, right) = self.inners.pair_mut(left, right);
            level_pair(left, right);
        }
        for (at, child) in [(first, left), (first + 1, right)] {
            let summary = self.summary(child, height - 1);
            self.inners.get_mut(parent).set(at, summary);
        }
    }
}

/// Makes the last two nodes of a level equally full if the last has few entries.
fn level_last<T: Node>(left: &mut T, right: &mut T) {
    if right.len() < FEW {
        level_pair(left, right);
    }
}

/// Moves entries between two neighbours until both have half of them.
fn level_pair<T: Node>(left: &mut T, right: &mut T) {
    let half = (left.len() + right.len()) / 2;
    if left.len() > half {
        left.move_tail(half, right);
    } else {
        right.move_head(half - left.len(), left);
    }
}
