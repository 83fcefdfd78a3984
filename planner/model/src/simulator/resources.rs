// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resources with queues: servers, credits and NIC cores. Each counts how busy it was.

use crate::route::{Cores, Time};
use std::collections::VecDeque;

/// Servers that take jobs in order of arrival.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) count: u32,
    free: u32,
    queue: VecDeque<(u32, Time)>,
    /// Sum of the servers' busy times.
    pub(super) busy: u128,
}

impl Servers {
    pub(super) fn new(count: u32) -> Self {
        Self { count, free: count, queue: VecDeque::new(), busy: 0 }
    }

    /// Starts a job, or lets it wait. Returns whether it has started.
    pub(super) fn enter(&mut self, job: u32, time: Time) -> bool {
        if self.free == 0 {
            self.queue.push_back((job, time));
            return false;
        }
        self.free -= 1;
        self.busy += u128::from(time);
        true
    }

    /// Ends a job, and returns the next one that starts with its time.
    pub(super) fn leave(&mut self) -> Option<(u32, Time)> {
        let next = self.queue.pop_front();
        match next {
            Some((_, time)) => self.busy += u128::from(time),
            None => self.free += 1,
        }
        next
    }
}

/// A pool of credits, given in order of arrival.
#[derive(Debug)]
pub(super) struct Credits {
    pub(super) count: u32,
    free: u32,
    queue: VecDeque<(u32, u32)>,
    since: Time,
    /// Credits in use, multiplied by time.
    pub(super) held: u128,
}

impl Credits {
    pub(super) fn new(count: u32) -> Self {
        Self { count, free: count, queue: VecDeque::new(), since: 0, held: 0 }
    }

    /// Counts the time up to now.
    pub(super) fn account(&mut self, now: Time) {
        self.held += u128::from(now - self.since) * u128::from(self.count - self.free);
        self.since = now;
    }

    /// Takes credits for a job, or lets it wait. Returns whether it has them.
    pub(super) fn take(&mut self, now: Time, job: u32, credits: u32) -> bool {
        if self.free < credits || !self.queue.is_empty() {
            self.queue.push_back((job, credits));
            return false;
        }
        self.account(now);
        self.free -= credits;
        true
    }

    /// Takes credits back, and adds the jobs that now have theirs to `ready`.
    pub(super) fn give(&mut self, now: Time, credits: u32, ready: &mut Vec<u32>) {
        self.account(now);
        self.free += credits;
        while let Some(&(job, wanted)) = self.queue.front() {
            if self.free < wanted {
                return;
            }
            self.free -= wanted;
            self.queue.pop_front();
            ready.push(job);
        }
    }
}

/// A NIC core that a job has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Core {
    #[default]
    Shared,
    Reserved,
}

/// NIC cores: shared ones, and some for each end alone (off-path SmartNIC study, 3.2).
#[derive(Debug)]
pub(super) struct NicCores {
    pub(super) count: u32,
    shared: u32,
    reserved: [u32; 2],
    /// Jobs of each end that wait, with their times and numbers of arrival.
    queues: [VecDeque<(u32, Time, u64)>; 2],
    arrivals: u64,
    pub(super) busy: u128,
}

impl NicCores {
    pub(super) fn new(shared: u32, for_host: u32, for_soc: u32) -> Self {
        let count = shared + for_host + for_soc;
        let queues = Default::default();
        Self { count, shared, reserved: [for_host, for_soc], queues, arrivals: 0, busy: 0 }
    }

    /// Starts a job on a core, or lets it wait.
    pub(super) fn enter(&mut self, cores: Cores, job: u32, time: Time) -> Option<Core> {
        let end = cores as usize;
        let core = if self.reserved[end] > 0 {
            self.reserved[end] -= 1;
            Core::Reserved
        } else if self.shared > 0 {
            self.shared -= 1;
            Core::Shared
        } else {
            self.arrivals += 1;
            self.queues[end].push_back((job, time, self.arrivals));
            return None;
        };
        self.busy += u128::from(time);
        Some(core)
    }

    /// Frees a core, and returns the next job on it with its time.
    pub(super) fn leave(&mut self, cores: Cores, core: Core) -> Option<(u32, Time)> {
        let end = cores as usize;
        let from = match core {
            Core::Reserved => end,
            Core::Shared => self.first_in_line(),
        };
        match self.queues[from].pop_front() {
            Some((job, time, _)) => {
                self.busy += u128::from(time);
                Some((job, time))
            }
            None => {
                match core {
                    Core::Reserved => self.reserved[end] += 1,
                    Core::Shared => self.shared += 1,
                }
                None
            }
        }
    }

    /// Returns the end whose first job has waited longest.
    fn first_in_line(&self) -> usize {
        let arrival = |end: usize| self.queues[end].front().map_or(u64::MAX, |job| job.2);
        usize::from(arrival(1) < arrival(0))
    }
}
