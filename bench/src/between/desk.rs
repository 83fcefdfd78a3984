// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the processes of a measurement meet, and where they leave what they measured.

use super::processes::Reason;
use super::shared::Atomics;
use crate::harness::histogram::{BUCKETS, Histogram, bucket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pairs of processes that can be measured at once.
pub const PAIRS_MAX: usize = 64;

/// Where the processes of a measurement meet, and leave what they measured.
#[repr(C)]
pub struct Desk {
    arrived: AtomicU64,
    /// When the first began, counted from the end of time so that zero is none.
    began: AtomicU64,
    ended: AtomicU64,
    /// Processor time of who waited.
    pub waiting: AtomicU64,
    /// A process with which something is to be done.
    pub process: AtomicU64,
    /// How many of its connections who asks over many has found to be accelerated.
    pub accelerated: AtomicU64,
    /// Where the second of each pair listens, as long as it is not 0.
    pub ports: [AtomicU64; PAIRS_MAX],
    /// Why a process that runs a program of its own failed.
    pub reason: Reason,
    trips: [AtomicU64; BUCKETS],
}

// SAFETY: nothing but atomic numbers.
unsafe impl Atomics for Desk {}

impl Desk {
    /// Waits until all are there.
    pub fn meet(&self, parties: u64) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < parties {
            std::thread::yield_now();
        }
    }

    /// Says that it is there, and waits for nobody.
    pub fn arrive(&self) {
        self.meet(0);
    }

    /// How many are there.
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Acquire)
    }

    /// Says that it begins now.
    pub fn begin(&self) {
        self.began.fetch_max(u64::MAX - now(), Ordering::AcqRel);
    }

    /// Says that it has ended now.
    pub fn end(&self) {
        self.ended.fetch_max(now(), Ordering::AcqRel);
    }

    /// Whether somebody has.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// From the first that began to the last that ended.
    pub fn elapsed(&self) -> Duration {
        let began = u64::MAX - self.began.load(Ordering::Acquire);
        Duration::from_nanos(self.ended.load(Ordering::Acquire).saturating_sub(began))
    }

    /// All times that were counted.
    pub fn trips(&self) -> Histogram {
        Histogram::of_counts(self.trips.iter().map(|it| it.load(Ordering::Relaxed)))
    }

    /// Counts a time.
    #[inline]
    pub fn count(&self, nanoseconds: u64) {
        let cell = &self.trips[bucket(nanoseconds)];
        // Only one process counts.
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Nanoseconds by a clock that all processes share.
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds for which this process has had a processor.
pub fn processor_time() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the place given; these clocks are always there.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
