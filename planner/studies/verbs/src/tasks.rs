// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tasks of places on one thread, which end when their place dies.

use crate::place::Place;
use futures::executor::{LocalPool, LocalSpawner};
use futures::future::{AbortHandle, abortable};
use futures::task::LocalSpawnExt;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

/// Starts and ends tasks; a clone is the same.
#[derive(Clone)]
pub struct Tasks {
    spawner: LocalSpawner,
    running: Rc<RefCell<BTreeMap<Place, Running>>>,
}

/// Tasks of a place.
#[derive(Default)]
struct Running {
    handles: Vec<AbortHandle>,
    /// Number of tasks that were left when those that have ended were last forgotten.
    left: usize,
}

/// Number of a place's tasks from which on those that have ended are forgotten.
const FORGET_FROM: usize = 64;

impl Running {
    /// Adds a task. Those that have ended are forgotten whenever the list has doubled, so the
    /// effort for a task is constant, and the list has at most twice the tasks that once ran.
    fn add(&mut self, handle: AbortHandle) {
        if self.handles.len() >= FORGET_FROM.max(2 * self.left) {
            self.handles.retain(|other| !other.is_aborted());
            self.left = self.handles.len();
        }
        self.handles.push(handle);
    }
}

impl Tasks {
    /// Creates the tasks of a pool.
    pub fn new(pool: &LocalPool) -> Self {
        Self { spawner: pool.spawner(), running: Rc::default() }
    }

    /// Starts a task of a place. It is dropped at once if the pool is gone, with all its places.
    pub fn spawn(&self, place: Place, task: impl Future<Output = ()> + 'static) {
        let (task, handle) = abortable(task);
        let ended_with = handle.clone();
        let ended = async move {
            // An aborted task has nothing to report.
            let _ = task.await;
            ended_with.abort();
        };
        if self.spawner.spawn_local(ended).is_ok() {
            self.running.borrow_mut().entry(place).or_default().add(handle);
        }
    }

    /// Ends all tasks of a place. Each is dropped when the pool runs next.
    pub fn end(&self, place: Place) {
        let tasks = self.running.borrow_mut().remove(&place).unwrap_or_default();
        tasks.handles.iter().for_each(AbortHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[test]
    fn tasks_that_have_ended_are_forgotten() {
        let mut pool = LocalPool::new();
        let tasks = Tasks::new(&pool);
        for _ in 0..100 {
            tasks.spawn(Place::Host, pending());
        }
        for _ in 0..1000 {
            tasks.spawn(Place::Host, ready(()));
            pool.run_until_stalled();
        }
        let kept = tasks.running.borrow()[&Place::Host].handles.len();
        assert!((100..=200).contains(&kept), "{kept}");
        tasks.end(Place::Host);
        pool.run_until_stalled();
        assert!(tasks.running.borrow().is_empty());
    }

    #[test]
    fn a_task_without_a_pool_is_dropped() {
        let tasks = Tasks::new(&LocalPool::new());
        let held = Rc::new(());
        let task = Rc::clone(&held);
        tasks.spawn(Place::Soc, async move { drop(task) });
        assert_eq!(Rc::strong_count(&held), 1);
        assert!(tasks.running.borrow().is_empty());
    }
}
