// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of a worker. Only the worker changes them, so that a count costs a load and a store;
//! everyone may read them, and a sum over all workers is what a server reports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::datagrams::DatagramCounters;

/// Classes of duration: class `n` has commands of less than 2^n nanoseconds.
pub const CLASSES: usize = 40;
/// Different error codes that are counted; scripts can make up any number of them.
const CODES: usize = 128;

/// A count with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// Counts of the calls of one command.
#[derive(Debug)]
pub struct CommandCounters {
    nanoseconds: Counter,
    failed: Counter,
    rejected: Counter,
    durations: [Counter; CLASSES],
}

impl Default for CommandCounters {
    fn default() -> Self {
        let counter = Counter::default;
        let durations = std::array::from_fn(|_| counter());
        Self { nanoseconds: counter(), failed: counter(), rejected: counter(), durations }
    }
}

/// Counts of a worker.
#[derive(Debug, Default)]
pub struct Statistics {
    commands: Box<[CommandCounters]>,
    errors: Mutex<BTreeMap<String, u64>>,
    /// Number of executed commands.
    pub calls: Counter,
    /// Number of operations in packets of the batched protocol among them.
    pub batched_operations: Counter,
    /// Number of error replies.
    pub error_replies: Counter,
    /// Bytes received from clients.
    pub received_bytes: Counter,
    /// Bytes sent to clients.
    pub sent_bytes: Counter,
    /// Number of clients that were taken in.
    pub connections: Counter,
    /// Counts of datagrams.
    pub datagrams: DatagramCounters,
    /// Number of keys that reads have found.
    pub hits: Counter,
    /// Number of keys that reads have not found.
    pub misses: Counter,
    /// Number of keys that were removed because their time had passed.
    pub expired: Counter,
    /// Number of keys that were evicted.
    pub evicted: Counter,
    /// Number of changes of keys, as of a moment ago.
    pub changes: Counter,
    /// Number of keys, as of a moment ago.
    pub keys: Counter,
    /// Bytes of keys and values, as of a moment ago.
    pub memory_bytes: Counter,
}

/// Calls of one command, of all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Nanoseconds of all calls.
    pub nanoseconds: u64,
    /// Calls that replied an error.
    pub failed: u64,
    /// Calls that were refused before they were executed.
    pub rejected: u64,
    /// Number of calls by class of duration.
    pub durations: [u64; CLASSES],
}

impl Counter {
    /// Adds to the count. Only its writer calls this.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.set(self.get().wrapping_add(amount));
    }

    /// Replaces the count. Only its writer calls this.
    #[inline]
    pub fn set(&self, amount: u64) {
        self.0.store(amount, Ordering::Relaxed);
    }

    /// The count.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Statistics {
    /// Counts for a number of commands and subcommands, by their numbers in the catalog.
    pub fn new(commands: usize) -> Self {
        Self { commands: (0..commands).map(|_| Default::default()).collect(), ..Self::default() }
    }

    /// Counts executions of a command, and the nanoseconds of all of them.
    #[inline]
    pub fn executed(&self, command: u16, count: u64, nanoseconds: u64) {
        self.calls.add(count);
        let Some(counters) = self.commands.get(usize::from(command)) else { return };
        counters.nanoseconds.add(nanoseconds);
        counters.durations[class_of(nanoseconds / count.max(1))].add(count);
    }

    /// Counts an error reply, whose first word is its code, of an executed command.
    #[cold]
    pub fn failed(&self, command: u16, error: &str) {
        if let Some(counters) = self.commands.get(usize::from(command)) {
            counters.failed.add(1);
        }
        self.error(error);
    }

    /// Counts a command that was not executed, with its error reply.
    #[cold]
    pub fn rejected(&self, command: u16, error: &str) {
        if let Some(counters) = self.commands.get(usize::from(command)) {
            counters.rejected.add(1);
        }
        self.error(error);
    }

    /// Counts an error reply that belongs to no command.
    #[cold]
    pub fn error(&self, error: &str) {
        self.error_replies.add(1);
        let code = error.split(' ').next().unwrap_or_default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < CODES {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// Forgets everything but the present state. The worker may count meanwhile; such a count is
    /// kept or lost.
    pub fn reset(&self) {
        for counters in &self.commands {
            counters.nanoseconds.set(0);
            counters.failed.set(0);
            counters.rejected.set(0);
            counters.durations.iter().for_each(|count| count.set(0));
        }
        let totals = [&self.calls, &self.error_replies, &self.received_bytes, &self.sent_bytes];
        let keys = [&self.connections, &self.hits, &self.misses, &self.expired, &self.evicted];
        self.batched_operations.set(0);
        totals.into_iter().chain(keys).for_each(|count| count.set(0));
        self.datagrams.reset();
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Class of a duration.
#[inline]
fn class_of(nanoseconds: u64) -> usize {
    ((u64::BITS - nanoseconds.leading_zeros()) as usize).min(CLASSES - 1)
}

/// Sum of a count over workers.
pub fn sum<'a>(
    workers: impl IntoIterator<Item = &'a Statistics>,
    count: impl Fn(&Statistics) -> &Counter,
) -> u64 {
    workers.into_iter().map(|worker| count(worker).get()).sum()
}

/// Error replies by code, of all workers.
pub fn errors<'a>(workers: impl IntoIterator<Item = &'a Statistics>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for worker in workers {
        for (code, count) in worker.errors.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            *all.entry(code.clone()).or_default() += count;
        }
    }
    all
}

impl Calls {
    /// Calls of a command, of all workers.
    pub fn of<'a>(workers: impl IntoIterator<Item = &'a Statistics>, command: usize) -> Self {
        let mut all = Self { nanoseconds: 0, failed: 0, rejected: 0, durations: [0; CLASSES] };
        for worker in workers {
            let Some(counters) = worker.commands.get(command) else { continue };
            all.nanoseconds += counters.nanoseconds.get();
            all.failed += counters.failed.get();
            all.rejected += counters.rejected.get();
            for (sum, count) in all.durations.iter_mut().zip(&counters.durations) {
                *sum += count.get();
            }
        }
        all
    }

    /// Number of calls.
    pub fn count(&self) -> u64 {
        self.durations.iter().sum()
    }

    /// Microseconds of all calls.
    pub fn microseconds(&self) -> u64 {
        self.nanoseconds / 1_000
    }

    /// The duration in microseconds that a share of the calls, in percent, did not exceed, rounded
    /// up to a power of two of nanoseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        let wanted = (self.count() as f64 * percent / 100.0).ceil().max(1.0);
        let mut seen = 0;
        for (class, count) in self.durations.iter().enumerate() {
            seen += count;
            if seen as f64 >= wanted {
                return (1_u64 << class) as f64 / 1_000.0;
            }
        }
        0.0
    }

    /// Calls up to each duration in microseconds, from the first class of at least one microsecond,
    /// without classes that have no call.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        const MICROSECOND_CLASS: usize = 10;
        let (mut seen, mut all) = (0, vec![]);
        for (class, count) in self.durations.iter().enumerate() {
            seen += count;
            let is_first = class == MICROSECOND_CLASS && seen > 0;
            if class >= MICROSECOND_CLASS && (*count > 0 || is_first) {
                all.push(((1_u64 << class) / 1_000, seen));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_over_workers() {
        let workers = [Statistics::new(2), Statistics::new(2)];
        workers[0].executed(1, 1, 500);
        workers[1].executed(1, 1, 3_000);
        workers[1].failed(1, "ERR x");
        workers[1].rejected(0, "NOAUTH Authentication required.");
        workers[1].executed(9, 1, 1);
        let calls = Calls::of(&workers, 1);
        assert_eq!((calls.count(), calls.nanoseconds, calls.failed), (2, 3_500, 1));
        assert_eq!(calls.cumulative(), [(1, 1), (4, 2)]);
        assert_eq!((calls.percentile(50.0), calls.percentile(99.0)), (0.512, 4.096));
        assert_eq!(Calls::of(&workers, 0).rejected, 1);
        let codes: Vec<_> = errors(&workers).into_iter().collect();
        assert_eq!(codes, [("ERR".to_owned(), 1), ("NOAUTH".to_owned(), 1)]);
        assert_eq!(sum(&workers, |worker| &worker.calls), 3);
        workers[1].reset();
        assert_eq!(Calls::of(&workers, 1).count(), 1);
    }

    #[test]
    fn any_duration_has_a_class() {
        let worker = Statistics::new(1);
        worker.executed(0, 0, 0);
        worker.executed(0, 2, u64::MAX);
        assert_eq!(Calls::of([&worker], 0).count(), 2);
    }
}
