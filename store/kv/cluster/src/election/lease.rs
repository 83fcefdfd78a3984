// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lease of a node, as the node knows it.

use std::time::Duration;

/// The lease of a node, as the node knows it. All times are of one clock, which does not stop.
#[derive(Debug)]
pub(super) struct Lease {
    /// Time that the registry keeps it, at least.
    time: Duration,
    /// When the last call began that has prolonged it.
    began: Option<Duration>,
    /// Number of the uninterrupted lease.
    series: u64,
}

impl Lease {
    /// There is none yet.
    pub fn new(time: Duration) -> Self {
        Self { time, began: None, series: 0 }
    }

    /// The registry has prolonged it, by a call that lasted from one time to another. If the lease
    /// before may have ended meanwhile, this is another one.
    pub fn prolong(&mut self, began: Duration, ended: Duration) {
        if !self.is_valid(ended) {
            self.series += 1;
        }
        self.began = self.began.max(Some(began));
    }

    /// It is over for certain, or belongs to another process.
    pub fn end(&mut self) {
        self.began = None;
    }

    /// The node has it for certain until this time. A tenth of its time is for clocks that differ.
    pub fn valid_until(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began + self.time - self.time / 10)
    }

    /// The node has it for certain.
    pub fn is_valid(&self, now: Duration) -> bool {
        now < self.valid_until()
    }

    /// When it is prolonged, unless something else has to be published before.
    pub fn next(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began + self.time / 3)
    }

    /// Number of the uninterrupted lease.
    pub fn series(&self) -> u64 {
        self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_another_lease() {
        let ms = Duration::from_millis;
        let mut lease = Lease::new(ms(1_000));
        assert!(!lease.is_valid(ms(0)));
        lease.prolong(ms(5_000), ms(5_100));
        assert_eq!((lease.series(), lease.valid_until()), (1, ms(5_900)));
        lease.prolong(ms(5_600), ms(5_899));
        assert_eq!((lease.series(), lease.valid_until()), (1, ms(6_500)));
        lease.prolong(ms(6_000), ms(6_500));
        assert_eq!(lease.series(), 2, "the registry may have ended the first before the answer");
        assert!(lease.is_valid(ms(6_899)) && !lease.is_valid(ms(6_900)));
        lease.end();
        assert!(!lease.is_valid(ms(6_500)));
    }
}
