// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errands: work of the server itself that needs all shards. The worker borrows them as it does for
//! a command of a client, runs the errand, and returns them. So no client sees half of it, and no
//! command is between its execution and its place in the log meanwhile.

use std::collections::VecDeque;
use std::fmt;

use super::lending::SERVER;
use super::{Core, Worker};
use crate::mail::Message;
use crate::shared::Shared;

/// Work for which a worker holds all shards.
pub struct Errand(Box<dyn FnOnce(&mut Core) + Send>);

impl Errand {
    /// An errand that calls a function. Keys may be changed, and what follows from that for clients
    /// is done after it.
    pub fn new(run: impl FnOnce(&mut Core) + Send + 'static) -> Self {
        Self(Box::new(run))
    }
}

impl fmt::Debug for Errand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Errand")
    }
}

impl Shared {
    /// Lets the first worker run an errand soon. It never runs if the server stops before.
    pub fn send_errand(&self, run: impl FnOnce(&mut Core) + Send + 'static) {
        self.mailboxes[0].send(Message::Run { errand: Errand::new(run) });
    }
}

/// Things for which a worker has asked for all shards, in the order of its loans.
#[derive(Debug, Default)]
pub(super) struct Errands(VecDeque<Task>);

#[derive(Debug)]
enum Task {
    Snapshot,
    Run(Errand),
}

impl Worker {
    /// Borrows all shards for a snapshot.
    pub(super) fn borrow_for_snapshot(&mut self) {
        self.borrow_all_for(Task::Snapshot);
    }

    /// Borrows all shards for an errand.
    pub(super) fn borrow_for_errand(&mut self, errand: Errand) {
        self.borrow_all_for(Task::Run(errand));
    }

    fn borrow_all_for(&mut self, task: Task) {
        self.errands.0.push_back(task);
        let all = u64::MAX >> (64 - self.core.store.count());
        self.borrow_for(SERVER, all);
    }

    /// All shards are here for the first task.
    pub(super) fn do_task(&mut self) {
        match self.errands.0.pop_front() {
            Some(Task::Snapshot) => self.begin_snapshot(),
            Some(Task::Run(errand)) => self.run_errand(errand),
            None => {}
        }
    }

    fn run_errand(&mut self, Errand(run): Errand) {
        self.core.begin_commands();
        run(&mut self.core);
        self.core.end_commands();
        if !self.core.effects.events.is_empty() {
            self.core.publish_events();
        }
        self.serve_waiters();
    }
}
