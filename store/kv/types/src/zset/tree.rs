// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counted B+tree of (score, member): the order of a large sorted set.
//!
//! Leaves hold scores and numbers of members; the members themselves lie in a table, and callers
//! compare them. Each inner node knows how many elements are below each child, so that ranks and
//! positions are found on one path. A search takes a predicate that holds for a prefix of the
//! order: every bound of a range, and every key, is one.
//!
//! Nodes are kept fuller than by halving alone: a full leaf first shares with a neighbour, and
//! ascending or descending insertion fills leaves completely.

use std::ops::Range;

use super::node::{CAPACITY, Child, FEW, Inner, Leaf, NONE, Node, Pool};

/// Where an element is, or would be inserted.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of elements before it.
    pub rank: usize,
    leaf: u32,
    index: u32,
}

/// Elements in order, each a score and the number of a member.
pub struct Tree {
    leaves: Pool<Leaf>,
    inners: Pool<Inner>,
    root: u32,
    /// Number of inner levels: 0 if the root is a leaf.
    height: u32,
}

impl Tree {
    /// A tree without elements.
    pub fn new() -> Self {
        let (mut leaves, inners) = (Pool::new(), Pool::new());
        let root = leaves.add();
        Self { leaves, inners, root, height: 0 }
    }

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

    /// Bytes of memory that the tree has allocated.
    pub fn memory_bytes(&self) -> usize {
        self.leaves.memory_bytes() + self.inners.memory_bytes()
    }

    /// The place of the first element for which `is_before` does not hold. `is_before` holds for a
    /// prefix of the order.
    pub fn find(&self, is_before: impl Fn(f64, u32) -> bool) -> Place {
        let (mut node, mut rank) = (self.root, 0);
        for _ in 0..self.height {
            let inner = self.inners.get(node);
            let at = child_of(inner, &is_before);
            rank += inner.counts[..at].iter().map(|&count| count as usize).sum::<usize>();
            node = inner.children[at];
        }
        let leaf = self.leaves.get(node);
        let index = partition(&leaf.scores, &leaf.ids, leaf.len(), &is_before);
        Place { rank: rank + index, leaf: node, index: index as u32 }
    }

    /// The place of the element of rank `rank`, at most the number of elements.
    pub fn at(&self, rank: usize) -> Place {
        let (mut node, mut left) = (self.root, rank);
        for _ in 0..self.height {
            let inner = self.inners.get(node);
            let at = child_at(inner, &mut left);
            node = inner.children[at];
        }
        Place { rank, leaf: node, index: left as u32 }
    }

    /// The element at `place`, if it is not the end.
    pub fn get(&self, place: Place) -> Option<(f64, u32)> {
        let mut leaf = self.leaves.get(place.leaf);
        let mut index = place.index as usize;
        if index == leaf.len() {
            leaf = (leaf.next != NONE).then(|| self.leaves.get(leaf.next))?;
            index = 0;
        }
        Some((leaf.scores[index], leaf.ids[index]))
    }

    /// The elements of the ranks `ranks`, which lie within the tree.
    pub fn range(&self, ranks: Range<usize>) -> Elements<'_> {
        let left = ranks.len();
        // The place of the end is found when something is taken from there.
        Elements { tree: self, front: self.at(ranks.start), back: None, left }
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

    /// Gives the element of rank `rank` another number; nodes that repeat it follow.
    pub fn renumber(&mut self, rank: usize, id: u32) {
        let (mut node, mut left) = (self.root, rank);
        for _ in 0..self.height {
            let inner = self.inners.get_mut(node);
            let at = child_at(inner, &mut left);
            if left == 0 {
                inner.ids[at] = id;
            }
            node = inner.children[at];
        }
        self.leaves.get_mut(node).ids[left] = id;
    }

    /// Changes the score of the element at `place` if both neighbours are in the same leaf, and the
    /// order stays as it is without looking at members. Returns whether it did.
    pub fn rescore(&mut self, place: Place, score: f64) -> bool {
        let leaf = self.leaves.get_mut(place.leaf);
        let index = place.index as usize;
        let is_inside = index > 0 && index + 1 < leaf.len();
        let fits = is_inside && leaf.scores[index - 1] < score && score < leaf.scores[index + 1];
        if fits {
            leaf.scores[index] = score;
        }
        fits
    }

    /// The entry that describes `node`, which has `height` inner levels.
    fn summary(&self, node: u32, height: u32) -> Child {
        if height == 0 {
            let leaf = self.leaves.get(node);
            return Child {
                score: leaf.scores[0],
                id: leaf.ids[0],
                node,
                count: leaf.len() as u32,
            };
        }
        let inner = self.inners.get(node);
        Child { score: inner.scores[0], id: inner.ids[0], node, count: inner.total() }
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

/// The first of `len` entries for which `is_before` does not hold.
fn partition(
    scores: &[f64; CAPACITY],
    ids: &[u32; CAPACITY],
    len: usize,
    is_before: &impl Fn(f64, u32) -> bool,
) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(scores[middle], ids[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The child in which, or at the end of which, the first element lies for which `is_before` does
/// not hold.
fn child_of(inner: &Inner, is_before: &impl Fn(f64, u32) -> bool) -> usize {
    partition(&inner.scores, &inner.ids, inner.len(), is_before).saturating_sub(1)
}

/// The child that holds the element of rank `left`, which becomes the rank within the child. The
/// last child also has the end.
fn child_at(inner: &Inner, left: &mut usize) -> usize {
    let mut at = 0;
    while at + 1 < inner.len() && *left >= inner.counts[at] as usize {
        *left -= inner.counts[at] as usize;
        at += 1;
    }
    at
}

/// Elements of a range of ranks, from both ends.
#[derive(Clone)]
pub struct Elements<'a> {
    tree: &'a Tree,
    front: Place,
    /// After the last element; `None` before the first is taken from this end.
    back: Option<Place>,
    left: usize,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the elements below `node`, and checks what inner nodes repeat.
    fn check(tree: &Tree, node: u32, height: u32, is_root: bool) -> u32 {
        if height == 0 {
            let leaf = tree.leaves.get(node);
            assert!(leaf.len() > 0 || is_root);
            return leaf.len() as u32;
        }
        let inner = tree.inners.get(node);
        assert!(inner.len() > 1);
        for at in 0..inner.len() {
            let summary = tree.summary(inner.children[at], height - 1);
            assert_eq!((summary.score, summary.id), (inner.scores[at], inner.ids[at]));
            assert_eq!(summary.count, inner.counts[at]);
            assert_eq!(check(tree, inner.children[at], height - 1, false), inner.counts[at]);
        }
        inner.total()
    }

    fn elements(tree: &Tree, len: usize) -> Vec<(f64, u32)> {
        assert_eq!(check(tree, tree.root, tree.height, true) as usize, len);
        tree.range(0..len).collect()
    }

    #[test]
    fn a_tree_keeps_the_order_of_a_vector() {
        for seed in 0..6 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut model: Vec<(f64, u32)> = vec![];
            let mut tree = Tree::new();
            for step in 0..30_000 {
                // Grow to some thousands, then shrink to nothing.
                if random.u8(..10) < if step < 15_000 { 7 } else { 2 } {
                    let score = f64::from(random.u32(..50_000));
                    let rank = model.partition_point(|&(other, _)| other < score);
                    model.insert(rank, (score, step));
                    assert_eq!(tree.find(|other, _| other < score).rank, rank, "seed {seed}");
                    tree.insert((score, step), |other, _| other < score);
                } else if !model.is_empty() {
                    let rank = random.usize(..model.len());
                    assert_eq!(tree.get(tree.at(rank)), Some(model.remove(rank)), "seed {seed}");
                    tree.remove(rank);
                }
                if step % 5_000 == 0 {
                    assert_eq!(elements(&tree, model.len()), model, "seed {seed}");
                }
            }
            assert_eq!(elements(&tree, model.len()), model, "seed {seed}");
            let backwards: Vec<_> = tree.range(0..model.len()).rev().collect();
            assert!(backwards.iter().eq(model.iter().rev()), "seed {seed}");
            (0..model.len()).for_each(|_| tree.remove(0));
            assert_eq!((tree.height, tree.leaves.len(), tree.inners.len()), (0, 1, 0));
        }
    }

    #[test]
    fn trees_of_sorted_elements_are_full() {
        for len in [0, 1, 64, 65, 4096, 4097, 4100, 300_000] {
            let mut tree = Tree::from_sorted((0..len).map(|id| (f64::from(id), id)));
            assert!(elements(&tree, len as usize).iter().map(|&(_, id)| id).eq(0..len));
            assert!(tree.leaves.len() <= len as usize / CAPACITY + 1, "{len}");
            (0..len.min(10_000)).for_each(|_| tree.remove(0));
            check(&tree, tree.root, tree.height, true);
        }
    }

    #[test]
    fn leaves_stay_full_however_elements_arrive() {
        let mut random = fastrand::Rng::with_seed(5);
        let len = 50_000;
        let fill = |score_of: &mut dyn FnMut(u32) -> f64| {
            let mut tree = Tree::new();
            for step in 0..len {
                let score = score_of(step);
                tree.insert((score, step), |other, _| other < score);
            }
            f64::from(len) / (tree.leaves.len() * CAPACITY) as f64
        };
        let ascending = fill(&mut f64::from);
        assert!(ascending > 0.99, "{ascending}");
        let descending = fill(&mut |step| -f64::from(step));
        assert!(descending > 0.95, "{descending}");
        let at_random = fill(&mut |_| random.f64());
        assert!(at_random > 0.75, "{at_random}");
    }
}
