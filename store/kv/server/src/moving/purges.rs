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

    /// Replaces the order; returns its number. Slots that are not among these are left alone from
    /// now on.
    pub fn set(&self, slots: SlotSet) -> u64 {
        let mut state = self.state();
        if state.order.slots != slots {
            let number = state.order.number + 1;
            state.order = Arc::new(Order { number, slots });
            self.number.store(number, Ordering::Release);
        }
        state.order.number
    }

    /// A worker has carried out an order.
    pub fn finish(&self, worker: usize, number: u64) {
        self.state().finished[worker] = number;
        self.has_finished.notify_all();
    }

    /// Waits until all workers have carried out an order or a later one, for a time at most.
    /// Returns whether they have.
    pub fn wait(&self, number: u64, timeout: Duration) -> bool {
        let is_missing = |state: &mut State| state.finished.iter().any(|it| *it < number);
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
        let slots: SlotSet = "1-5".parse().expect("slots");
        let first = purges.set(slots.clone());
        assert_eq!((purges.set(slots), purges.number()), (first, first));
        purges.finish(0, first);
        assert!(!purges.wait(first, Duration::ZERO));
        purges.finish(1, first);
        assert!(purges.wait(first, Duration::ZERO));
        let fewer: SlotSet = "1-4".parse().expect("slots");
        let second = purges.set(fewer.clone());
        assert!(second > first && !purges.wait(second, Duration::ZERO));
        assert_eq!((purges.order().number, &purges.order().slots), (second, &fewer));
    }
}
