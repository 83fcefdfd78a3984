// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random members, and scans.
//!
//! Callers give the source of random numbers as [`random`](crate::random) says: the same numbers
//! give the same members.

use std::collections::HashSet;

use super::ZSetRef;
use crate::entry::Entry;
use crate::random::{Selection, is_large_part};

impl<'a> ZSetRef<'a> {
    /// A random element, each with the same probability (`ZRANDMEMBER`). With a negative count,
    /// Redis calls this repeatedly.
    pub fn random(self, choose: &mut impl FnMut(usize) -> usize) -> Option<(Entry<'a>, f64)> {
        if self.is_empty() {
            return None;
        }
        self.numbered(choose(self.len()))
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
        let mut selection = Selection::new(len, count);
        let Self::Large(large) = self else {
            let chosen = self.iter().filter(|_| selection.takes(choose));
            return chosen.for_each(|(member, score)| emit(member, score));
        };
        let mut emit = |number| {
            let (member, score) = large.numbered(number);
            emit(Entry::new(member), score);
        };
        if is_large_part(count, len) {
            return (0..len).filter(|_| selection.takes(choose)).for_each(emit);
        }
        // Floyd's algorithm: as many chooses as members, and memory for these only.
        let mut chosen = HashSet::with_capacity(count);
        for last in len - count..len {
            let number = choose(last + 1);
            let number = if chosen.insert(number) { number } else { last };
            chosen.insert(number);
            emit(number);
        }
    }

    /// Calls `emit` with some elements, and returns the cursor of the next call (`ZSCAN`). Scans
    /// begin and end with cursor 0. `count` is the number of elements that a call visits in a
    /// large set; a packed set is visited at once.
    ///
    /// A scan returns every element at least once that is in the set from its first to its last
    /// call. Members of a large set have dense numbers, and a scan visits them downwards: a cursor
    /// is the number of members that were not visited. A member gets another number only if it is
    /// the last, and then a lower one, so none leaves the part that was not visited by moving. An
    /// element that moves there is returned twice.
    pub fn scan(self, cursor: u64, count: usize, mut emit: impl FnMut(Entry<'a>, f64)) -> u64 {
        let Self::Large(large) = self else {
            self.iter().for_each(|(member, score)| emit(member, score));
            return 0;
        };
        let len = large.len();
        let end = match cursor {
            0 => len,
            _ => usize::try_from(cursor).unwrap_or(len).min(len),
        };
        let start = end.saturating_sub(count.max(1));
        for number in (start..end).rev() {
            let (member, score) = large.numbered(number);
            emit(Entry::new(member), score);
        }
        start as u64
    }

    /// The element with the number `number`: an order without a meaning, in which elements are
    /// emit fast.
    fn numbered(self, number: usize) -> Option<(Entry<'a>, f64)> {
        match self {
            Self::Packed(_) => self.range(number..number + 1).next(),
            Self::Large(large) => {
                let (member, score) = large.numbered(number);
                Some((Entry::new(member), score))
            }
        }
    }
}
