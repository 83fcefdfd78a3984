// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The large form of a sorted set: a table of members, and a tree of their order.

use std::ops::Range;

use super::members::Members;
use super::tree::{Elements, Place, Tree};

/// A sorted set of any size.
#[derive(Clone, Debug)]
pub struct Large {
    members: Members,
    tree: Tree,
}

impl Large {
    /// A set of members that are in order, in O(n). `seed` keys its hash function. The error is the
    /// index of the first element that is not after the one before it, or whose member is repeated.
    pub(super) fn from_sorted<'a>(
        seed: u64,
        elements: impl Iterator<Item = (&'a [u8], f64)>,
    ) -> Result<Self, usize> {
        let mut members = Members::new(seed);
        let mut last: Option<(&[u8], f64)> = None;
        for (at, (member, score)) in elements.enumerate() {
            let is_after = |(before, low)| low < score || low == score && before < member;
            if score.is_nan() || !last.is_none_or(is_after) || members.find(member).is_some() {
                return Err(at);
            }
            members.push(member, score);
            last = Some((member, score));
        }
        let tree = Tree::from_sorted((0..members.len() as u32).map(|id| (members.score(id), id)));
        Ok(Self { members, tree })
    }

    /// Number of members.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Bytes of memory that the set has allocated, with its own structure, in O(1).
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.members.memory_bytes() + self.tree.memory_bytes()
    }

    /// The score of `member`.
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        Some(self.find(member)?.1)
    }

    /// Number of members before `member`, and its score.
    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        Some((self.place(member, score).rank, score))
    }

    /// The number and the score of `member`.
    pub(super) fn find(&self, member: &[u8]) -> Option<(u32, f64)> {
        let id = self.members.find(member)?;
        Some((id, self.members.score(id)))
    }

    /// Adds `member`, which is not in the set.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        let id = self.members.push(member, score);
        self.insert_into_tree(id, member, score);
    }

    /// Changes the score of `member`, whose number is `id`, from `old` to `score`.
    pub(super) fn update(&mut self, id: u32, member: &[u8], old: f64, score: f64) {
        let place = self.place(member, old);
        self.members.set_score(id, score);
        if !self.tree.rescore(place, score) {
            self.tree.remove(place.rank);
            self.insert_into_tree(id, member, score);
        }
    }

    /// Removes `member`, and returns its score.
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let (id, score) = self.find(member)?;
        let rank = self.place(member, score).rank;
        self.remove_element(rank, id);
        Some(score)
    }

    /// Removes the member of rank `rank`, which is in the set.
    pub(super) fn remove_rank(&mut self, rank: usize) {
        let (_, id) = self.tree.get(self.tree.at(rank)).expect("the rank is in the set");
        self.remove_element(rank, id);
    }

    /// Number of elements for which `is_before` holds, which are the first.
    pub(super) fn partition(&self, is_before: impl Fn(f64, &[u8]) -> bool) -> usize {
        self.tree.find(|score, id| is_before(score, self.members.get(id))).rank
    }

    /// Number of elements for whose score `is_before` holds, which are the first.
    pub(super) fn partition_scores(&self, is_before: impl Fn(f64) -> bool) -> usize {
        self.tree.find(|score, _| is_before(score)).rank
    }

    /// All numbers of elements are below this one, and at least half of them are taken.
    pub(super) fn numbers(&self) -> usize {
        self.members.numbers()
    }

    /// The element with the number `number`, if the number is taken. Numbers have no order.
    pub(super) fn numbered(&self, number: usize) -> Option<(&[u8], f64)> {
        self.members.numbered(number)
    }

    /// The elements of the ranks `ranks`, which are in the set.
    pub(super) fn range(&self, ranks: Range<usize>) -> LargeIter<'_> {
        LargeIter { members: &self.members, elements: self.tree.range(ranks) }
    }

    fn place(&self, member: &[u8], score: f64) -> Place {
        self.tree.find(|other, id| is_before(&self.members, (other, id), score, member))
    }

    fn insert_into_tree(&mut self, id: u32, member: &[u8], score: f64) {
        let members = &self.members;
        self.tree.insert((score, id), |other, id| is_before(members, (other, id), score, member));
    }

    fn remove_element(&mut self, rank: usize, id: u32) {
        self.tree.remove(rank);
        self.members.remove(id);
        while let Some((last, free)) = self.members.misplaced() {
            let (member, score) = self.members.entry(last);
            let rank = self.place(member, score).rank;
            self.tree.renumber(rank, free);
            self.members.renumber(last, free);
        }
    }
}

/// Whether an element of the tree is before the one of `member` and `score`.
fn is_before(members: &Members, (other, id): (f64, u32), score: f64, member: &[u8]) -> bool {
    other < score || other == score && members.get(id) < member
}

/// Elements in order, from both ends.
#[derive(Clone, Debug)]
pub(super) struct LargeIter<'a> {
    members: &'a Members,
    elements: Elements<'a>,
}

impl<'a> Iterator for LargeIter<'a> {
    type Item = (&'a [u8], f64);

    fn next(&mut self) -> Option<Self::Item> {
        let (score, id) = self.elements.next()?;
        Some((self.members.get(id), score))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.elements.size_hint()
    }
}

impl DoubleEndedIterator for LargeIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (score, id) = self.elements.next_back()?;
        Some((self.members.get(id), score))
    }
}

impl ExactSizeIterator for LargeIter<'_> {}
