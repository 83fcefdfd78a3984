// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random members, and scans.
//!
//! Callers give the source of random numbers as [`random`](crate::random) says: the same numbers
//! give the same members.

use std::collections::HashSet;

use super::{Large, ZSetRef};
use crate::entry::Entry;
use crate::random::{Selection, is_large_part};

/// Choices of a number that may fail before the next one that is taken is used instead. At least
/// half of the numbers are taken, so that never happens by chance.
const MOST_CHOICES: usize = 100;

impl<'a> ZSetRef<'a> {
    /// A random element, each with the same probability (`ZRANDMEMBER`). With a negative count,
    /// Redis calls this repeatedly.
    pub fn random(self, choose: &mut impl FnMut(usize) -> usize) -> Option<(Entry<'a>, f64)> {
        if self.is_empty() {
            return None;
        }
        match self {
            Self::Packed(_) => self.range(choose(self.len())..self.len()).next(),
            Self::Large(large) => {
                let number = random_number(large, &HashSet::new(), choose);
                large.numbered(number).map(|(member, score)| (Entry::new(member), score))
            }
        }
    }

    /// Calls `emit` with `count` different random elements, or with all if there are fewer
    /// (`ZRANDMEMBER` with a positive count). The order is not random.
    pub fn random_distinct(
        self,
        count: usize,
        choose: &mut impl FnMut(usize) -> usize,
        mut emit: impl FnMut(Entry<'a>, f64),
    ) {
        let len = self.len();
        match self {
            Self::Large(large) if !is_large_part(count, len) => {
                let mut chosen = HashSet::with_capacity(count);
                while chosen.len() < count {
                    let number = random_number(large, &chosen, choose);
                    chosen.insert(number);
                    let (member, score) = large.numbered(number).expect("the number is taken");
                    emit(Entry::new(member), score);
                }
            }
            _ => {
                let mut selection = Selection::new(len, count);
                let elements = self.iter().filter(|_| selection.takes(choose));
                elements.for_each(|(member, score)| emit(member, score));
            }
        }
    }

    /// Calls `emit` with some elements, and returns the cursor of the next call (`ZSCAN`). Scans
    /// begin and end with cursor 0. `count` is about the number of elements that a call visits in a
    /// large set; a packed set is visited at once.
    ///
    /// A scan returns every element at least once that is in the set from its first to its last
    /// call. Members of a large set have numbers, and a scan visits them downwards: a cursor is the
    /// first number that was visited, and those below were not. A member that gets another number
    /// gets a lower one, so none leaves the part that was not visited by moving. An element that
    /// moves there is returned twice.
    pub fn scan(self, cursor: u64, count: usize, mut emit: impl FnMut(Entry<'a>, f64)) -> u64 {
        let Self::Large(large) = self else {
            self.iter().for_each(|(member, score)| emit(member, score));
            return 0;
        };
        let numbers = large.numbers();
        let end = match cursor {
            0 => numbers,
            _ => usize::try_from(cursor).unwrap_or(numbers).min(numbers),
        };
        let start = end.saturating_sub(count.max(1));
        for (member, score) in (start..end).rev().filter_map(|number| large.numbered(number)) {
            emit(Entry::new(member), score);
        }
        start as u64
    }
}

/// The number of a random element of a set, which has one that is not among `chosen`.
fn random_number(
    large: &Large,
    chosen: &HashSet<usize>,
    choose: &mut impl FnMut(usize) -> usize,
) -> usize {
    let numbers = large.numbers();
    let is_new = |number: &usize| large.numbered(*number).is_some() && !chosen.contains(number);
    let first = choose(numbers);
    let others = (1..MOST_CHOICES).map(|_| choose(numbers));
    let found = std::iter::once(first).chain(others).find(is_new);
    found
        .or_else(|| (first..numbers).chain(0..first).find(is_new))
        .expect("there is an element that is not chosen")
}
