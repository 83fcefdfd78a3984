// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Estimates of requests on a machine: arithmetic with measured parameters.

use super::parameters::Copying;
use super::time::{Weight, copy_weights, message_weights, shares, word_weights};
use super::{Machine, Operation, Request, RequestError};

/// Limit of requests whose time is mostly that of the core and its caches.
const CORE: &str = "core of the requester";
/// Limit of requests whose addresses only the last-level cache holds.
const LAST: &str = "last-level cache";
/// Limit of requests whose addresses only memory holds.
const MEMORY: &str = "memory";
/// Limit of messages.
const BOTH: &str = "cores of both sides";

/// Expected results of requests of one kind, modelled from measured parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The requests.
    pub request: Request,
    /// Time of a request in nanoseconds, one at a time and by one thread.
    pub latency: f64,
    /// Requests of all threads per second, in millions.
    pub rate: f64,
    /// Payload of all threads in Gbit/s.
    pub goodput: f64,
    /// The resource that takes most of the time.
    pub limit: &'static str,
}

/// Time of a request in nanoseconds, by what it is spent on.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Parts {
    /// The core, with its own caches.
    pub core: f64,
    /// The last-level cache.
    pub last: f64,
    /// Memory.
    pub memory: f64,
}

impl Machine {
    /// Estimates requests of one kind.
    ///
    /// # Errors
    /// The profile does not cover them.
    pub fn estimate(&self, request: Request) -> Result<Estimate, RequestError> {
        request.check(self)?;
        let (latency, time, limit) = match request.operation {
            Operation::Send => (
                self.message_time(&Request { batch: 1, threads: 1, ..request }),
                self.message_time(&request),
                BOTH,
            ),
            _ => {
                let parts = self.parts(&request);
                (self.latency(&request), self.time_together(&request), parts.largest())
            }
        };
        let rate = 1e3 / time;
        let goodput = rate * request.bytes as f64 * 8.0 / 1e3;
        Ok(Estimate { request, latency, rate, goodput, limit })
    }

    /// Returns the time of a one-sided request by one thread, in nanoseconds.
    pub fn parts(&self, request: &Request) -> Parts {
        let Request { operation, bytes, batch, range, .. } = *request;
        let Self { cache, read, write, atomic, .. } = self;
        let copying = |section: &Copying| {
            Parts::of(&copy_weights(cache, section.ahead, bytes, batch, range), |name| {
                section.value(name)
            })
        };
        match operation {
            Operation::Read => copying(read),
            Operation::Write => copying(write),
            Operation::Atomic | Operation::Send => {
                Parts::of(&word_weights(cache, batch, range), |name| atomic.value(name))
            }
        }
    }

    /// Returns the time of a one-sided request, one at a time, in nanoseconds. The completion of a
    /// write does not wait, and nothing overlaps atomic operations. A read has to wait for its data
    /// before the next one is posted.
    fn latency(&self, request: &Request) -> f64 {
        let single = Request { batch: 1, threads: 1, ..*request };
        let time = self.parts(&single).sum();
        if request.operation != Operation::Read {
            return time;
        }
        let shares = shares(&self.cache, request.range);
        let wait = shares.last * self.wait.last + shares.memory * self.wait.memory;
        time.max(self.lone_read(request, wait))
    }

    /// Returns the time of a read that waits so long for its first bytes, in nanoseconds: half of
    /// its bytes move meanwhile.
    pub fn lone_read(&self, request: &Request, wait: f64) -> f64 {
        let Self { cache, read, .. } = self;
        let weights = copy_weights(cache, read.ahead, request.bytes, 1, request.range);
        let of_bytes = weights.iter().filter(|(name, _)| name.ends_with("_byte"));
        let moving: f64 =
            of_bytes.map(|(name, weight)| weight * read.value(name).unwrap_or(0.0)).sum();
        read.post + read.alone + wait + moving / 2.0
    }

    /// Returns the time between one-sided requests of all threads, in nanoseconds.
    fn time_together(&self, request: &Request) -> f64 {
        let Parts { core, last, memory } = self.parts(request);
        let threads = f64::from(request.threads);
        let together = &self.together;
        core / together.near.min(threads)
            + last / together.last.min(threads)
            + memory / together.memory.min(threads)
    }

    /// Returns the time between messages of all threads, in nanoseconds. While each side has a core
    /// of its own, a batch takes a round trip and the time of its further messages; where sides
    /// share cores, they take turns.
    fn message_time(&self, request: &Request) -> f64 {
        let (batch, threads) = (f64::from(request.batch), f64::from(request.threads));
        let apart = self.message_sum(request.bytes, request.batch) / threads;
        if 2.0 * threads <= self.measured.cores {
            return apart;
        }
        let turn = self.message.turn / batch;
        apart.max(2.0 * (self.next_message(request.bytes) + turn) / self.measured.cores)
    }

    /// Returns the time of a further message of a batch, in nanoseconds, where each side has a
    /// core.
    pub fn next_message(&self, bytes: u64) -> f64 {
        let (one, two) = (self.message_sum(bytes, 1), self.message_sum(bytes, 2));
        2.0 * two - one
    }

    fn message_sum(&self, bytes: u64, batch: u32) -> f64 {
        let of = |name: &str| self.message.value(name).unwrap_or(0.0);
        message_weights(bytes, batch).into_iter().map(|(name, weight)| weight * of(name)).sum()
    }
}

impl Parts {
    fn of(weights: &[Weight], value: impl Fn(&str) -> Option<f64>) -> Self {
        let mut parts = Self::default();
        for (name, weight) in weights {
            let place = match *name {
                "last" | "last_alone" | "last_byte" => &mut parts.last,
                "memory" | "memory_alone" | "memory_byte" => &mut parts.memory,
                _ => &mut parts.core,
            };
            *place += weight * value(name).unwrap_or(0.0);
        }
        parts
    }

    fn sum(&self) -> f64 {
        self.core + self.last + self.memory
    }

    fn largest(&self) -> &'static str {
        match self {
            Self { core, last, memory } if memory > core && memory > last => MEMORY,
            Self { core, last, .. } if last > core => LAST,
            _ => CORE,
        }
    }
}
