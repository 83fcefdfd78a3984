// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared memory in which the processes of a measurement meet and leave their results.

use super::processes::Reason;
use super::shared::Atomics;
use crate::harness::histogram::{BUCKETS, Histogram, bucket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of pairs of processes in one measurement.
pub const PAIRS_MAX: usize = 64;

/// Shared memory in which the processes of a measurement meet and leave their results.
#[repr(C)]
pub struct Desk {
    arrived: AtomicU64,
    /// Time of the first start, subtracted from the maximum so that zero means none.
    began: AtomicU64,
    ended: AtomicU64,
    /// Processor time of the waiting process.
    pub waiting: AtomicU64,
    /// ID of a process that the bench acts on.
    pub process: AtomicU64,
    /// Number of connections that the client found to be accelerated.
    pub accelerated: AtomicU64,
    /// Port on which the second process of each pair listens; 0 until it does.
    pub ports: [AtomicU64; PAIRS_MAX],
    /// Why a process that runs another program failed.
    pub reason: Reason,
    trips: [AtomicU64; BUCKETS],
}

// SAFETY: all fields are atomic numbers.
unsafe impl Atomics for Desk {}

impl Desk {
    /// Waits until all parties have arrived.
    pub fn meet(&self, parties: u64) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < parties {
            std::thread::yield_now();
        }
    }

    /// Registers the arrival without waiting for others.
    pub fn arrive(&self) {
        self.meet(0);
    }

    /// Number of parties that have arrived.
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Acquire)
    }

    /// Records that this process begins now.
    pub fn begin(&self) {
        self.began.fetch_max(u64::MAX - now(), Ordering::AcqRel);
    }

    /// Records that this process has ended now.
    pub fn end(&self) {
        self.ended.fetch_max(now(), Ordering::AcqRel);
    }

    /// Returns whether any process has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// Returns the time from the first start to the last end.
    pub fn elapsed(&self) -> Duration {
        let began = u64::MAX - self.began.load(Ordering::Acquire);
        Duration::from_nanos(self.ended.load(Ordering::Acquire).saturating_sub(began))
    }

    /// Returns all counted times.
    pub fn trips(&self) -> Histogram {
        Histogram::of_counts(self.trips.iter().map(|it| it.load(Ordering::Relaxed)))
    }

    /// Counts a time.
    #[inline]
    pub fn count(&self, nanoseconds: u64) {
        let cell = &self.trips[bucket(nanoseconds)];
        // Only one process writes here.
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Returns nanoseconds of a clock that all processes share.
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Returns the processor time of this process in nanoseconds.
pub fn processor_time() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the given place; these clocks always exist.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
