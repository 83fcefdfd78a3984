// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of a table in parts, and random ones.
//!
//! A cursor of [`Table::scan`] is a position in the order of reversed hashes. A bucket holds one
//! range of that order, splitting a bucket halves its range, and merging two joins neighbouring
//! ranges. So a cursor stays right however the table changes between two calls: a scan returns
//! every element that is there throughout, exactly once. The cursor that clients see has its bits
//! reversed again, which makes it a small number.

use super::{Table, elements_of};
use crate::entry::Entry;
use crate::hashing::hash;
use crate::packed::Packed;
use crate::random::{Selection, is_large_part};
use std::collections::HashSet;

/// Choices of a random element that may fail before any element is taken.
const MOST_CHOICES: usize = 1000;

impl<const WIDTH: usize> Table<WIDTH> {
    /// Calls `emit` with elements from `cursor` on, about `count` of them, and returns the cursor
    /// of the next call; 0 at the end. A scan begins with cursor 0.
    pub fn scan(&self, cursor: u64, count: usize, mut emit: impl FnMut([Entry<'_>; WIDTH])) -> u64 {
        let mut position = cursor.reverse_bits();
        let mut emitted = 0;
        for _ in 0..count.saturating_mul(10).max(1) {
            let at = self.bucket_of(position.reverse_bits());
            let depth = self.depth(at);
            // The cursor points into a bucket if buckets were merged since it was returned.
            let is_at_start = position.trailing_zeros() + depth >= 64;
            for element in elements_of(Packed::new(&self.buckets[at])) {
                if is_at_start || hash(self.seed, element[0]).reverse_bits() >= position {
                    emit(element);
                    emitted += 1;
                }
            }
            position = range_after(position, depth);
            if emitted >= count || position == 0 {
                break;
            }
        }
        position.reverse_bits()
    }

    /// Returns a random element, each with the same probability; `None` without elements.
    ///
    /// A random bucket is taken with a probability proportional to its number of elements.
    pub fn random(&self, choose: &mut impl FnMut(usize) -> usize) -> Option<[Entry<'_>; WIDTH]> {
        if self.is_empty() {
            return None;
        }
        // Numbers of elements are about Poisson distributed, with a mean of at most 4/3 of that of
        // all buckets. Less than one bucket in 100 million has more than this many.
        let most = 3 * self.len / self.buckets.len() + 12;
        for _ in 0..MOST_CHOICES {
            let bucket = Packed::new(&self.buckets[choose(self.buckets.len())]);
            let (index, len) = (choose(most), bucket.len() / WIDTH);
            if index < len {
                let index = if len > most { choose(len) } else { index };
                return elements_of(bucket).nth(index);
            }
        }
        self.iter().next()
    }

    /// Calls `emit` with `count` distinct random elements, or with all if there are less.
    pub fn random_distinct<'a>(
        &'a self,
        count: usize,
        choose: &mut impl FnMut(usize) -> usize,
        mut emit: impl FnMut([Entry<'a>; WIDTH]),
    ) {
        if is_large_part(count, self.len) {
            let mut selection = Selection::new(self.len, count);
            self.iter().filter(|_| selection.takes(choose)).for_each(emit);
            return;
        }
        let mut taken = HashSet::with_capacity(count);
        // Each choice is a new element with a probability of at least 2/3.
        for _ in 0..count * 8 + MOST_CHOICES {
            if taken.len() == count {
                return;
            }
            let chosen = self.random(choose);
            if let Some(element) = chosen.filter(|element| taken.insert(element[0])) {
                emit(element);
            }
        }
        let others = self.iter().filter(|element| !taken.contains(&element[0]));
        others.take(count - taken.len()).for_each(emit);
    }
}

/// Returns the start of the range behind that of `position`, where the first `depth` bits of a
/// position number the ranges; 0 behind the last one.
fn range_after(position: u64, depth: u32) -> u64 {
    if depth == 0 {
        return 0;
    }
    let next = (position >> (64 - depth)) + 1;
    if next >> depth == 0 { next << (64 - depth) } else { 0 }
}
