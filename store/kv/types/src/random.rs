// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random choices among elements. The caller gives the randomness as a function `choose(n)`, which
//! returns a number below `n`, each with the same probability; so a run can be repeated exactly.

/// Chooses `count` of `len` elements that pass by one after the other, each set of elements with
/// the same probability (Knuth, The Art of Computer Programming 3.4.2, algorithm S).
#[derive(Clone, Debug)]
pub struct Selection {
    passing: usize,
    wanted: usize,
}

impl Selection {
    /// Begins before the first of `len` elements.
    pub fn new(len: usize, count: usize) -> Self {
        Self { passing: len, wanted: count.min(len) }
    }

    /// Whether the next element is chosen.
    pub fn takes(&mut self, choose: &mut impl FnMut(usize) -> usize) -> bool {
        if self.wanted == 0 {
            return false;
        }
        let is_taken = choose(self.passing) < self.wanted;
        self.passing -= 1;
        self.wanted -= usize::from(is_taken);
        is_taken
    }
}

/// Whether `count` distinct ones of `len` elements are better chosen while all of them pass by
/// than by repeated choices of one, which would often be one that was chosen before.
pub fn is_large_part(count: usize, len: usize) -> bool {
    count >= len / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_the_same_probability() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut choose = |n: usize| random.usize(0..n);
        let mut times = [0; 10];
        for _ in 0..10_000 {
            let mut selection = Selection::new(10, 3);
            let taken: Vec<usize> = (0..10).filter(|_| selection.takes(&mut choose)).collect();
            assert_eq!(taken.len(), 3);
            taken.into_iter().for_each(|at| times[at] += 1);
        }
        assert!(times.iter().all(|times| (2700..3300).contains(times)), "{times:?}");
    }

    #[test]
    fn more_than_all_are_all() {
        let mut choose = |n: usize| n - 1;
        let mut selection = Selection::new(3, 9);
        assert!((0..3).all(|_| selection.takes(&mut choose)));
        assert!(!Selection::new(0, 1).takes(&mut choose));
    }
}
