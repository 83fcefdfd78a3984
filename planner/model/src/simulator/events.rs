// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events to come, in order of time; events of one time in the order of their scheduling, so
//! that every run is the same.

use crate::route::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// A job leaves the stage that it is in.
    Leaves(u32),
    /// A thread may post.
    Posts(u32),
    /// A thread has posted a batch.
    Posted(u32),
    /// A thread is done with a doorbell.
    Free(u32),
    /// A time that a driver waits for has come.
    Due(u64),
}

/// The events to come.
#[derive(Default, Debug)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
}

impl Events {
    pub(super) fn schedule(&mut self, at: Time, event: Event) {
        self.scheduled += 1;
        self.heap.push(Reverse((at, self.scheduled, event)));
    }

    pub(super) fn time_of_next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    pub(super) fn next(&mut self) -> Option<(Time, Event)> {
        self.heap.pop().map(|Reverse((time, _, event))| (time, event))
    }

    /// Number of events that were scheduled so far.
    pub(super) fn scheduled(&self) -> u64 {
        self.scheduled
    }
}
