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
    is_closed: bool,
}

/// A permit, which is given back when it is dropped.
pub(crate) struct Permit {
    pub(crate) number: usize,
    of: Permits,
}

impl Permits {
    pub(crate) fn new(count: usize) -> Self {
        let (free, waiting) = ((0..count).collect(), VecDeque::new());
        let state = State { free, waiting, is_closed: false };
        Self { state: Rc::new(RefCell::new(state)) }
    }

    /// Returns a permit if one is free now.
    pub(crate) fn try_take(&self) -> Option<Permit> {
        let number = self.state.borrow_mut().free.pop_front()?;
        Some(Permit { number, of: self.clone() })
    }

    /// Waits for a permit.
    ///
    /// # Panics
    /// They are closed.
    pub(crate) async fn take(&self) -> Permit {
        self.take_unless_closed().await.expect("these permits are never closed")
    }

    /// Waits for a permit, or until they are closed.
    pub(crate) async fn take_unless_closed(&self) -> Option<Permit> {
        if self.state.borrow().is_closed {
            return None;
        }
        if let Some(permit) = self.try_take() {
            return Some(permit);
        }
        let (sender, receiver) = oneshot::channel();
        self.state.borrow_mut().waiting.push_back(sender);
        receiver.await.ok()
    }

    /// Returns whether a task waits for a permit.
    pub(crate) fn has_waiting(&self) -> bool {
        self.state.borrow().waiting.iter().any(|task| !task.is_canceled())
    }

    /// Ends all waiting for permits.
    pub(crate) fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.is_closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
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

/// A number that grows, and tasks that wait for it, until it breaks: then nothing is reached any
/// more. A clone is the same.
pub(crate) struct Watermark<E> {
    now: Rc<Cell<u64>>,
    waiting: Rc<RefCell<Vec<Waiting<E>>>>,
    broken: Rc<RefCell<Option<E>>>,
}

/// A task that waits for a number to be reached.
type Waiting<E> = (u64, oneshot::Sender<Result<(), E>>);

impl<E> Clone for Watermark<E> {
    fn clone(&self) -> Self {
        let Self { now, waiting, broken } = self;
        Self { now: Rc::clone(now), waiting: Rc::clone(waiting), broken: Rc::clone(broken) }
    }
}

impl<E: Clone> Watermark<E> {
    pub(crate) fn new(now: u64) -> Self {
        Self { now: Rc::new(Cell::new(now)), waiting: Rc::default(), broken: Rc::default() }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Raises the number to a value, unless it is larger already.
    pub(crate) fn raise(&self, to: u64) {
        self.now.set(self.now().max(to));
        let now = self.now();
        let ready = self.waiting.borrow_mut().extract_if(.., |(value, _)| *value <= now).collect();
        tell(ready, &Ok(()));
    }

    /// Breaks it, unless it is broken already. All that wait get the reason.
    pub(crate) fn break_with(&self, reason: E) {
        let reason = self.broken.borrow_mut().get_or_insert(reason).clone();
        tell(self.waiting.take(), &Err(reason));
    }

    /// Returns the reason of the break, if it is broken.
    pub(crate) fn broken(&self) -> Option<E> {
        self.broken.borrow().clone()
    }

    /// Waits until the number is at least a value.
    ///
    /// # Errors
    /// It is broken.
    pub(crate) async fn reached(&self, value: u64) -> Result<(), E> {
        if let Some(reason) = self.broken() {
            return Err(reason);
        }
        if self.now() >= value {
            return Ok(());
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push((value, sender));
        receiver.await.expect("this task holds the number")
    }
}

/// Tells tasks the result of their wait. One that has ended does not wait any more.
fn tell<E: Clone>(tasks: Vec<Waiting<E>>, result: &Result<(), E>) {
    tasks.into_iter().for_each(|(_, task)| drop(task.send(result.clone())));
}
