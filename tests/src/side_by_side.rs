// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distributes the work of one test over all cores: most of it is the C compiler's, one program
//! after another.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Returns the results of `work` for each item and its index, in the order of `items`, on as many
/// threads as the machine runs at once.
///
/// # Panics
/// If `work` panics for an item, with its payload; some other items are left out then.
pub fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = vec![];
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(at, item)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let at_work: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        let joined = at_work.into_iter().map(|it| it.join().unwrap_or_else(|it| resume_unwind(it)));
        joined.flatten().collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once_and_in_its_place() {
        let items: Vec<usize> = (100..200).collect();
        let made = side_by_side(&items, |at, item| (at, 2 * item));
        assert_eq!(made, (0..100).map(|at| (at, 200 + 2 * at)).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "the second")]
    fn one_that_fails_makes_all_fail() {
        side_by_side(&[1, 2, 3], |_, item| assert_ne!(*item, 2, "the second"));
    }
}
