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

mod edit;
mod iter;
mod node;

use std::ops::Range;

use node::{CAPACITY, Child, Inner, Leaf, NONE, Node, Pool};

pub use iter::Elements;

/// Where an element is, or would be inserted.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of elements before it.
    pub rank: usize,
    leaf: u32,
    index: u32,
}

/// Elements in order, each a score and the number of a member.
#[derive(Clone, Debug)]
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
        Elements::new(self, self.at(ranks.start), ranks.len())
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
