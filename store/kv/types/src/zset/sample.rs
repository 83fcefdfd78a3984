// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random members, and scans.
//!
//! Callers give the source of random numbers: `pick(n)` returns a number below `n`, which is at
//! least 1. The same numbers give the same members.

use std::collections::HashSet;

use super::ZSetRef;
use crate::entry::Entry;

impl<'a> ZSetRef<'a> {
    /// A random element, each with the same probability (`ZRANDMEMBER`). With a negative count,
    /// Redis calls this repeatedly.
    pub fn random(self, pick: &mut impl FnMut(usize) -> usize) -> Option<(Entry<'a>, f64)> {
        if self.is_empty() {
            return None;
        }
        self.numbered(pick(self.len()))
    }

    /// Calls `found` with `count` different random elements, or with all if there are fewer
    /// (`ZRANDMEMBER` with a positive count). The order is not random.
    pub fn random_distinct(
        self,
        count: usize,
        pick: &mut impl FnMut(usize) -> usize,
        mut found: impl FnMut(Entry<'a>, f64),
    ) {
        let len = self.len();
        let Self::Large(large) = self else {
            return sampled(len, count, pick, self.iter(), |(member, score)| found(member, score));
        };
        let mut found = |number| {
            let (member, score) = large.numbered(number);
            found(Entry::new(member), score);
        };
        if count > len / 4 {
            return sampled(len, count, pick, 0..len, found);
        }
        // Floyd's algorithm: as many picks as members, and memory for these only.
        let mut chosen = HashSet::with_capacity(count);
        for last in len - count..len {
            let number = pick(last + 1);
            let number = if chosen.insert(number) { number } else { last };
            chosen.insert(number);
            found(number);
        }
    }

    /// Calls `found` with some elements, and returns the cursor of the next call (`ZSCAN`). Scans
    /// begin and end with cursor 0. `count` is the number of elements that a call visits in a
    /// large set; a packed set is visited at once.
    ///
    /// A scan returns every element at least once that is in the set from its first to its last
    /// call. Members of a large set have dense numbers, and a scan visits them downwards: a cursor
    /// is the number of members that were not visited. A member gets another number only if it is
    /// the last, and then a lower one, so none leaves the part that was not visited by moving. An
    /// element that moves there is returned twice.
    pub fn scan(self, cursor: u64, count: usize, mut found: impl FnMut(Entry<'a>, f64)) -> u64 {
        let Self::Large(large) = self else {
            self.iter().for_each(|(member, score)| found(member, score));
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
            found(Entry::new(member), score);
        }
        start as u64
    }

    /// The element with the number `number`: an order without a meaning, in which elements are
    /// found fast.
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

/// Calls `found` with `count` of the `len` items (Knuth, "The Art of Computer Programming", 3.4.2,
/// algorithm S).
fn sampled<T>(
    len: usize,
    count: usize,
    pick: &mut impl FnMut(usize) -> usize,
    items: impl Iterator<Item = T>,
    mut found: impl FnMut(T),
) {
    let mut missing = count.min(len);
    for (visited, item) in items.enumerate() {
        let left = len - visited;
        if missing > 0 && (missing == left || pick(left) < missing) {
            found(item);
            missing -= 1;
        }
    }
}
