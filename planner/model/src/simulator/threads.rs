// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that post requests.

use super::Load;
use super::resources::InUse;
use crate::route::{Time, ns};

/// A thread of a requester.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) load: usize,
    /// The machine among those of its load.
    pub(super) machine: u32,
    in_flight: u32,
    is_posting: bool,
    /// Time between two batches that are offered; zero for no limit.
    interval: Time,
    next_offer: Time,
    /// Time from which on the latency of the batch counts that is being posted.
    pub(super) due: Time,
    pub(super) posting: InUse,
}

/// The next action of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// It posts a batch.
    Post,
    /// It waits for a completion, or is posting already.
    Wait,
    /// It waits for the time of its next offer.
    Until(Time),
}

impl Thread {
    /// Creates the threads of a load.
    pub(super) fn all(number: usize, load: &Load) -> impl Iterator<Item = Self> {
        let threads = load.machines * load.threads;
        let batch = f64::from(load.request.batch);
        let interval = load.offered.map_or(0, |millions| {
            // Millions per second are requests per microsecond.
            ns(1000.0 * batch * f64::from(threads) / millions)
        });
        let per_machine = load.threads;
        (0..threads).map(move |thread| Self {
            load: number,
            machine: thread / per_machine,
            in_flight: 0,
            is_posting: false,
            interval,
            // Offers of the threads are spread over the interval.
            next_offer: interval / u64::from(threads) * u64::from(thread),
            due: 0,
            posting: InUse::default(),
        })
    }

    pub(super) fn next(&self, now: Time, load: &Load) -> Next {
        if self.is_posting || self.in_flight + load.request.batch > load.window {
            return Next::Wait;
        }
        if self.next_offer > now { Next::Until(self.next_offer) } else { Next::Post }
    }

    /// Begins posting a batch. Latencies count from its offer, even if that is past.
    pub(super) fn begin_posting(&mut self, now: Time, batch: u32) {
        self.is_posting = true;
        self.in_flight += batch;
        self.due = if self.interval > 0 { self.next_offer } else { now };
        self.next_offer = self.next_offer.saturating_add(self.interval);
    }

    /// Posting takes a core from now on.
    pub(super) fn has_core(&mut self, now: Time) {
        self.posting.set(now, 1);
    }

    pub(super) fn is_free(&mut self, now: Time) {
        self.is_posting = false;
        self.posting.set(now, 0);
    }

    pub(super) fn completed(&mut self) {
        self.in_flight -= 1;
    }
}
