// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting of tasks of one thread: for one of a number of permits, and for a number to be reached.

use futures::channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Numbered permits, given in order of asking. A clone is the same.
#[derive(Clone)]
pub(crate) struct Permits {
    state: Rc<RefCell<State>>,
}

struct State {
    free: VecDeque<usize>,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// A permit, which is given back when it is dropped.
pub(crate) struct Permit {
    pub(crate) number: usize,
    of: Permits,
}

impl Permits {
    pub(crate) fn new(count: usize) -> Self {
        let state = State { free: (0..count).collect(), waiting: VecDeque::new() };
        Self { state: Rc::new(RefCell::new(state)) }
    }

    /// Returns a permit if one is free now.
    pub(crate) fn try_take(&self) -> Option<Permit> {
        let number = self.state.borrow_mut().free.pop_front()?;
        Some(Permit { number, of: self.clone() })
    }

    /// Waits for a permit.
    pub(crate) async fn take(&self) -> Permit {
        if let Some(permit) = self.try_take() {
            return permit;
        }
        let (sender, receiver) = oneshot::channel();
        self.state.borrow_mut().waiting.push_back(sender);
        receiver.await.expect("this task holds the permits")
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.of.state.borrow_mut();
        // Tasks that have ended do not wait any more.
        while state.waiting.front().is_some_and(oneshot::Sender::is_canceled) {
            state.waiting.pop_front();
        }
        match state.waiting.pop_front() {
            Some(next) => {
                drop(state);
                let permit = Self { number: self.number, of: self.of.clone() };
                // It is not refused: all tasks are on this thread.
                drop(next.send(permit));
            }
            None => state.free.push_back(self.number),
        }
    }
}

/// A task that waits for a number to be reached.
type Waiting = (u64, oneshot::Sender<()>);

/// A number that grows, and tasks that wait for it. A clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Watermark {
    now: Rc<Cell<u64>>,
    waiting: Rc<RefCell<Vec<Waiting>>>,
}

impl Watermark {
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Raises the number to a value, unless it is larger already.
    pub(crate) fn raise(&self, to: u64) {
        self.now.set(self.now().max(to));
        let now = self.now();
        let ready = self.waiting.borrow_mut().extract_if(.., |(value, _)| *value <= now).collect();
        let ready: Vec<Waiting> = ready;
        // A task that has ended does not wait any more.
        ready.into_iter().for_each(|(_, task)| task.send(()).unwrap_or_default());
    }

    /// Waits until the number is at least a value.
    pub(crate) async fn reached(&self, value: u64) {
        if self.now() >= value {
            return;
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push((value, sender));
        receiver.await.expect("this task holds the number");
    }
}
