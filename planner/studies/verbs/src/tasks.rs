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
    running: Rc<RefCell<BTreeMap<Place, Vec<AbortHandle>>>>,
}

/// Number of a place's tasks from which on those that have ended are forgotten.
const FORGET_FROM: usize = 64;

impl Tasks {
    /// Creates the tasks of a pool.
    pub fn new(pool: &LocalPool) -> Self {
        Self { spawner: pool.spawner(), running: Rc::default() }
    }

    /// Starts a task of a place.
    pub fn spawn(&self, place: Place, task: impl Future<Output = ()> + 'static) {
        let (task, handle) = abortable(task);
        let mut running = self.running.borrow_mut();
        let of_place = running.entry(place).or_default();
        // Amortized: half of them at least have ended, or the list may double.
        if of_place.len() >= FORGET_FROM && of_place.len().is_power_of_two() {
            of_place.retain(|other| !other.is_aborted());
        }
        of_place.push(handle.clone());
        let ended = async move {
            // An aborted task has nothing to report.
            let _ = task.await;
            handle.abort();
        };
        self.spawner.spawn_local(ended).expect("the pool outlives its tasks");
    }

    /// Ends all tasks of a place. Each is dropped when the pool runs next.
    pub fn end(&self, place: Place) {
        let tasks = self.running.borrow_mut().remove(&place).unwrap_or_default();
        tasks.iter().for_each(AbortHandle::abort);
    }
}
