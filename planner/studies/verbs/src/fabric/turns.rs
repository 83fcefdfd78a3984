// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tasks that wait for a time, or for the next turn of their node.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Number of operations that all tasks together may complete at once in a turn: a task that never
/// waits lets the others run nevertheless.
const BUDGET: u32 = 64;

/// Waiting tasks of a node.
#[derive(Default)]
pub struct Turns {
    next: RefCell<Vec<Waker>>,
    budget: Cell<u32>,
    /// Times and numbers, with the tasks that wait for them.
    timers: RefCell<BTreeMap<(Duration, u64), Waker>>,
    number: Cell<u64>,
}

/// Returns the time since the machine has begun. It is the same for all processes.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Turns {
    /// Waits for the next turn.
    pub async fn next(&self) {
        let mut is_registered = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_registered, true) {
                return Poll::Ready(());
            }
            self.next.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Waits for the next turn if many operations have been completed in this one.
    pub async fn breathe(&self) {
        match self.budget.get().checked_sub(1) {
            Some(left) => self.budget.set(left),
            None => self.next().await,
        }
    }

    /// Waits for a time.
    pub async fn sleep(&self, time: Duration) {
        let end = now().saturating_add(time);
        let number = self.number.replace(self.number.get() + 1);
        poll_fn(|context| {
            if now() >= end {
                return Poll::Ready(());
            }
            self.timers.borrow_mut().insert((end, number), context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Begins a turn: wakes the tasks that wait for it, and those whose time is over. Returns
    /// whether there were any.
    pub fn begin(&self) -> bool {
        self.budget.set(BUDGET);
        let mut woken = self.next.take();
        let mut timers = self.timers.borrow_mut();
        if !timers.is_empty() {
            let later = timers.split_off(&(now(), u64::MAX));
            woken.extend(std::mem::replace(&mut *timers, later).into_values());
        }
        drop(timers);
        let is_busy = !woken.is_empty();
        woken.into_iter().for_each(Waker::wake);
        is_busy
    }

    /// Returns how long the next task waits, at most `longest`.
    pub fn rest(&self, longest: Duration) -> Duration {
        if !self.next.borrow().is_empty() {
            return Duration::ZERO;
        }
        let timers = self.timers.borrow();
        let first = timers.first_key_value();
        first.map_or(longest, |((end, _), _)| end.saturating_sub(now()).min(longest))
    }

    /// Forgets all tasks.
    pub fn clear(&self) {
        self.next.take();
        self.timers.take();
    }
}
