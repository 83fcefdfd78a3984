// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Removal of keys whose slots belong to other shards: before slots are imported, and after they
//! were given away or an import has failed.
//!
//! There is one order at a time for all workers. Each worker walks once over its shard, in small
//! steps between its commands, and records the removals in the log. A new order makes all of them
//! begin again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use freeport_kv_cluster::SlotSet;

/// The slots whose keys are removed.
#[derive(Debug, Default)]
pub struct Order {
    /// Counts the orders; 0: there was none.
    pub number: u64,
    /// The slots.
    pub slots: SlotSet,
}

/// Orders to the workers, and their progress.
#[derive(Debug)]
pub struct Purges {
    /// Number of the present order, which workers compare.
    number: AtomicU64,
    state: Mutex<State>,
    has_finished: Condvar,
}

#[derive(Debug)]
struct State {
    order: Arc<Order>,
    /// For each worker, the last order that it has carried out.
    finished: Vec<u64>,
}

impl Purges {
    /// No order so far, for a number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            number: AtomicU64::new(0),
            state: Mutex::new(State { order: Arc::default(), finished: vec![0; workers] }),
            has_finished: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the present order.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The present order.
    pub fn order(&self) -> Arc<Order> {
        self.state().order.clone()
    }

    /// Replaces the order. Slots that are not among these are left alone from now on.
    pub fn set(&self, slots: SlotSet) {
        let mut state = self.state();
        if state.order.slots != slots {
            let number = state.order.number + 1;
            state.order = Arc::new(Order { number, slots });
            self.number.store(number, Ordering::Release);
        }
    }

    /// A worker has carried out an order.
    pub fn finish(&self, worker: usize, number: u64) {
        self.state().finished[worker] = number;
        self.has_finished.notify_all();
    }

    /// Waits until all workers have carried out the present order, and it has these slots at least,
    /// for a time at most. Returns whether they have. A node orders nothing while it has no lease,
    /// so an order may be replaced before it was carried out.
    pub fn wait(&self, slots: &SlotSet, timeout: Duration) -> bool {
        let is_missing = |state: &mut State| {
            let Order { number, slots: ordered } = &*state.order;
            !slots.without(ordered).is_empty() || state.finished.iter().any(|it| it < number)
        };
        let waited = self.has_finished.wait_timeout_while(self.state(), timeout, is_missing);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_finished_by_all_workers() {
        let purges = Purges::new(2);
        let slots = |text: &str| -> SlotSet { text.parse().expect("slots") };
        let is_done = |text: &str| purges.wait(&slots(text), Duration::ZERO);
        purges.set(slots("1-5"));
        let first = purges.number();
        purges.set(slots("1-5"));
        assert_eq!(purges.number(), first);
        purges.finish(0, first);
        assert!(!is_done("1-5"));
        purges.finish(1, first);
        assert!(is_done("1-5") && is_done("2-3") && !is_done("5-6"));
        purges.set(slots("1-4"));
        let second = purges.number();
        assert!(second > first && !is_done("1-4"));
        assert_eq!((purges.order().number, &purges.order().slots), (second, &slots("1-4")));
    }

    #[test]
    fn slots_whose_order_was_taken_back_are_not_purged() {
        let purges = Purges::new(1);
        let slots: SlotSet = "1-5".parse().expect("slots");
        purges.set(slots.clone());
        purges.set(SlotSet::default());
        purges.finish(0, purges.number());
        assert!(!purges.wait(&slots, Duration::ZERO));
        purges.set(slots.clone());
        assert!(!purges.wait(&slots, Duration::ZERO));
        purges.finish(0, purges.number());
        assert!(purges.wait(&slots, Duration::ZERO));
    }
}
