// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resources with queues: servers, credits and NIC cores. Each counts how busy it was.

use crate::route::{Cores, Time};
use std::collections::VecDeque;

/// Busy servers or credits in use over time.
#[derive(Default, Debug)]
pub(super) struct InUse {
    now: u32,
    since: Time,
    /// Number in use, multiplied by time.
    sum: u128,
}

impl InUse {
    /// Changes the number in use.
    pub(super) fn set(&mut self, at: Time, in_use: u32) {
        self.sum += u128::from(at - self.since) * u128::from(self.now);
        (self.since, self.now) = (at, in_use);
    }

    /// Counts from now on.
    pub(super) fn reset(&mut self, at: Time) {
        self.set(at, self.now);
        self.sum = 0;
    }

    /// Returns the sum up to a time.
    pub(super) fn until(&self, at: Time) -> f64 {
        (self.sum + u128::from(at - self.since) * u128::from(self.now)) as f64
    }
}

/// Servers that take jobs in order of arrival.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) count: u32,
    free: u32,
    queue: VecDeque<(u32, Time)>,
    pub(super) in_use: InUse,
}

impl Servers {
    pub(super) fn new(count: u32) -> Self {
        Self { count, free: count, queue: VecDeque::new(), in_use: InUse::default() }
    }

    /// Starts a job, or lets it wait. Returns whether it has started.
    pub(super) fn enter(&mut self, now: Time, job: u32, time: Time) -> bool {
        if self.free == 0 {
            self.queue.push_back((job, time));
            return false;
        }
        self.free -= 1;
        self.in_use.set(now, self.count - self.free);
        true
    }

    /// Ends a job, and returns the next one that starts with its time.
    pub(super) fn leave(&mut self, now: Time) -> Option<(u32, Time)> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.free += 1;
            self.in_use.set(now, self.count - self.free);
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
    pub(super) in_use: InUse,
}

impl Credits {
    pub(super) fn new(count: u32) -> Self {
        Self { count, free: count, queue: VecDeque::new(), in_use: InUse::default() }
    }

    /// Takes credits for a job, or lets it wait. Returns whether it has them.
    pub(super) fn take(&mut self, now: Time, job: u32, credits: u32) -> bool {
        if self.free < credits || !self.queue.is_empty() {
            self.queue.push_back((job, credits));
            return false;
        }
        self.free -= credits;
        self.in_use.set(now, self.count - self.free);
        true
    }

    /// Takes credits back, and adds the jobs that now have theirs to `ready`.
    pub(super) fn give(&mut self, now: Time, credits: u32, ready: &mut Vec<u32>) {
        self.free += credits;
        while let Some(&(job, wanted)) = self.queue.front() {
            if self.free < wanted {
                break;
            }
            self.free -= wanted;
            self.queue.pop_front();
            ready.push(job);
        }
        self.in_use.set(now, self.count - self.free);
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
    busy: u32,
    pub(super) in_use: InUse,
}

impl NicCores {
    pub(super) fn new(shared: u32, for_host: u32, for_soc: u32) -> Self {
        let count = shared + for_host + for_soc;
        let (queues, in_use) = Default::default();
        Self { count, shared, reserved: [for_host, for_soc], queues, arrivals: 0, busy: 0, in_use }
    }

    /// Starts a job on a core, or lets it wait.
    pub(super) fn enter(&mut self, now: Time, cores: Cores, job: u32, time: Time) -> Option<Core> {
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
        self.busy += 1;
        self.in_use.set(now, self.busy);
        Some(core)
    }

    /// Frees a core, and returns the next job on it with its time.
    pub(super) fn leave(&mut self, now: Time, cores: Cores, core: Core) -> Option<(u32, Time)> {
        let end = cores as usize;
        let from = match core {
            Core::Reserved => end,
            Core::Shared => self.first_in_line(),
        };
        match self.queues[from].pop_front() {
            Some((job, time, _)) => Some((job, time)),
            None => {
                self.busy -= 1;
                self.in_use.set(now, self.busy);
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
