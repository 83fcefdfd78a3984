// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Visiting each element of a list once, from any start, while elements are removed by moving the
//! last one into their place.

/// A position in such a tour.
#[derive(Debug)]
pub struct Tour {
    start: usize,
    place: usize,
    /// Number of elements that were not visited.
    left: usize,
    /// Whether the end was reached, so that the last element was visited.
    has_wrapped: bool,
}

impl Tour {
    /// A tour of `count` elements, from a place that may be outside.
    pub fn new(count: usize, start: usize) -> Self {
        let start = start.checked_rem(count).unwrap_or(0);
        Self { start, place: start, left: count, has_wrapped: false }
    }

    /// The next place to be visited, of a list that has `count` elements now.
    #[inline]
    pub fn next(&mut self, count: usize) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        if self.place >= count {
            (self.place, self.has_wrapped) = (0, true);
        }
        self.place += 1;
        (count > 0).then(|| self.place - 1)
    }

    /// The visited element was removed, and the one at `last` has moved into its place.
    #[inline]
    pub fn is_taken_out(&mut self, last: usize) {
        let was_visited = self.has_wrapped && last >= self.start;
        if !was_visited {
            self.place -= 1;
        }
    }

    /// The place where the next tour may begin, for fairness.
    pub fn place(&self) -> usize {
        self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes round, and takes out those whose bits are set; the others, as they were visited.
    fn visit(count: usize, start: usize, taken_out: u32) -> Vec<usize> {
        let mut list: Vec<usize> = (0..count).collect();
        let mut visited = vec![];
        let mut tour = Tour::new(count, start);
        while let Some(at) = tour.next(list.len()) {
            if taken_out & 1 << list[at] != 0 {
                list.swap_remove(at);
                tour.is_taken_out(list.len());
            } else {
                visited.push(list[at]);
            }
        }
        visited
    }

    #[test]
    fn each_is_visited_once_whatever_is_taken_out() {
        for count in 0..8 {
            for start in 0..count + 2 {
                for taken_out in 0..1_u32 << count {
                    let mut visited = visit(count, start, taken_out);
                    visited.sort_unstable();
                    let stays = |at: &usize| taken_out & 1 << at == 0;
                    let expected: Vec<usize> = (0..count).filter(stays).collect();
                    assert_eq!(visited, expected, "{count} from {start}, without {taken_out:b}");
                }
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_list_from_the_start() {
        assert_eq!(visit(4, 2, 0), [2, 3, 0, 1]);
        assert_eq!(visit(4, 6, 0), [2, 3, 0, 1]);
        // The first goes, and the last, which was visited, comes into its place.
        assert_eq!(visit(4, 2, 1), [2, 3, 1]);
    }
}
