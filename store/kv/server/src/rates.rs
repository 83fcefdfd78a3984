// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands and bytes a second, over the last samples.

use std::sync::Arc;

use crate::statistics::{Statistics, sum};

/// Samples over which a rate is computed.
const SAMPLES: usize = 16;

/// Counts at some times, the oldest first.
#[derive(Debug, Default)]
pub struct Rates {
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time_ms: u64,
    calls: u64,
    received_bytes: u64,
    sent_bytes: u64,
}

/// Commands and bytes in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Commands.
    pub calls: f64,
    /// Bytes from clients.
    pub received_bytes: f64,
    /// Bytes to clients.
    pub sent_bytes: f64,
}

impl Rates {
    /// Notes the counts at a time, in milliseconds since 1970.
    pub fn sample(&mut self, time_ms: u64, workers: &[Arc<Statistics>]) {
        let workers = || workers.iter().map(|worker| &**worker);
        if self.samples.len() == SAMPLES {
            self.samples.remove(0);
        }
        self.samples.push(Sample {
            time_ms,
            calls: sum(workers(), |worker| &worker.calls),
            received_bytes: sum(workers(), |worker| &worker.received_bytes),
            sent_bytes: sum(workers(), |worker| &worker.sent_bytes),
        });
    }

    /// The present rate.
    pub fn rate(&self) -> Rate {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return Rate::default();
        };
        let seconds = last.time_ms.saturating_sub(first.time_ms) as f64 / 1_000.0;
        if seconds <= 0.0 {
            return Rate::default();
        }
        // Counts begin again when they are reset.
        let rate = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
        Rate {
            calls: rate(first.calls, last.calls),
            received_bytes: rate(first.received_bytes, last.received_bytes),
            sent_bytes: rate(first.sent_bytes, last.sent_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_last_samples() {
        let workers = [Arc::new(Statistics::new(1)), Arc::new(Statistics::new(1))];
        let mut rates = Rates::default();
        assert_eq!(rates.rate(), Rate::default());
        for time in 0..100 {
            workers[0].calls.add(10);
            workers[1].sent_bytes.add(5);
            rates.sample(time * 100, &workers);
        }
        let rate = rates.rate();
        assert_eq!((rate.calls, rate.received_bytes, rate.sent_bytes), (100.0, 0.0, 50.0));
    }
}
