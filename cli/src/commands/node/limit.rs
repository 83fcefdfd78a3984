// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rate limit of a monitor's log: a process that floods the monitor with events neither fills the
//! disk nor suppresses lines about other processes.
//!
//! Each kind of line of each user has a token bucket, and all lines together share another. A line
//! takes a token from both; tokens are added over time, so the log is never silent for good. Lines
//! that were left out are counted, and the count precedes the next line.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Burst of lines of a kind that a user may cause, and the interval at which one more is allowed.
const OF_USER: Rate = Rate { at_once: 50, every: Duration::from_secs(60) };
/// The same for all lines together.
const OF_ALL: Rate = Rate { at_once: 1000, every: Duration::from_secs(10) };
/// Maximum number of buckets of users and kinds; all others share one bucket.
const KINDS_MAX: usize = 1024;

/// Kind of a line: its event, and the user who caused it.
pub type Kind = (&'static str, Option<u32>);

#[derive(Clone, Copy)]
struct Rate {
    at_once: u32,
    every: Duration,
}

/// A token bucket.
struct Bucket {
    rate: Rate,
    tokens: u32,
    since: Instant,
}

impl Bucket {
    fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.at_once, since: now }
    }

    /// Adds the tokens that have become available until now.
    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let come = passed.as_nanos() / self.rate.every.as_nanos();
        let come = u32::try_from(come).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(come).min(self.rate.at_once);
        self.since = match self.is_full() {
            true => now,
            false => self.since + self.rate.every.saturating_mul(come),
        };
    }

    fn is_full(&self) -> bool {
        self.tokens == self.rate.at_once
    }
}

/// The buckets of a log.
pub struct Limit {
    kinds: HashMap<Kind, Bucket>,
    others: Bucket,
    all: Bucket,
    left_out: u64,
}

impl Limit {
    /// Makes a limit whose buckets are full.
    pub fn new(now: Instant) -> Self {
        let others = Bucket::new(OF_USER, now);
        Self { kinds: HashMap::new(), others, all: Bucket::new(OF_ALL, now), left_out: 0 }
    }

    /// Takes the tokens for a line. Returns the number of lines left out since the last one, or
    /// `None` if this line is left out too.
    pub fn admit(&mut self, kind: Kind, now: Instant) -> Option<u64> {
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&kind) {
            // A full bucket need not be remembered.
            self.kinds.retain(|_, bucket| {
                bucket.fill(now);
                !bucket.is_full()
            });
        }
        let bucket = match self.kinds.len() < KINDS_MAX || self.kinds.contains_key(&kind) {
            true => self.kinds.entry(kind).or_insert_with(|| Bucket::new(OF_USER, now)),
            false => &mut self.others,
        };
        bucket.fill(now);
        self.all.fill(now);
        if bucket.tokens == 0 || self.all.tokens == 0 {
            self.left_out += 1;
            return None;
        }
        bucket.tokens -= 1;
        self.all.tokens -= 1;
        Some(self.left_out())
    }

    /// Returns the number of lines left out since the last call, and resets it.
    pub fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISY: Kind = ("dropped", Some(1000));
    const OTHER: Kind = ("dropped", Some(1001));

    fn admitted(limit: &mut Limit, kind: Kind, times: u32, now: Instant) -> u32 {
        (0..times).filter(|_| limit.admit(kind, now).is_some()).count() as u32
    }

    #[test]
    fn a_user_takes_no_lines_from_others() {
        let now = Instant::now();
        let mut limit = Limit::new(now);
        assert_eq!(admitted(&mut limit, NOISY, 20_000, now), OF_USER.at_once);
        assert_eq!(limit.admit(OTHER, now), Some(20_000 - u64::from(OF_USER.at_once)));
        assert_eq!(limit.admit(("turned away", Some(1000)), now), Some(0), "reported once");
    }

    #[test]
    fn nothing_is_silent_for_good() {
        let begin = Instant::now();
        let mut limit = Limit::new(begin);
        admitted(&mut limit, NOISY, 1_000_000, begin);
        let later = begin + OF_USER.every;
        assert!(limit.admit(NOISY, later - Duration::from_nanos(1)).is_none());
        assert!(limit.admit(NOISY, later).is_some_and(|left_out| left_out > 0));
        assert!(limit.admit(NOISY, later).is_none());
        // Refused lines do not delay the next token.
        let soon = |part: u32| later + OF_USER.every * part / 10;
        let some = (1..=20).filter(|part| limit.admit(NOISY, soon(*part)).is_some());
        assert_eq!(some.count(), 2);
        let much_later = later + Duration::from_secs(1_000_000);
        assert_eq!(admitted(&mut limit, NOISY, 1000, much_later), OF_USER.at_once);
    }

    #[test]
    fn many_users_together_have_a_limit_in_lines_and_memory() {
        let now = Instant::now();
        let mut limit = Limit::new(now);
        let mut admitted = 0;
        for user in 0..100_000 {
            admitted += u32::from(limit.admit(("dropped", Some(user)), now).is_some());
        }
        assert_eq!(admitted, OF_ALL.at_once);
        assert!(limit.kinds.len() <= KINDS_MAX);
        // Full buckets of idle users make room for active ones.
        let later = now + 2 * OF_USER.at_once * OF_USER.every;
        assert_eq!(self::admitted(&mut limit, ("dropped", Some(7_000_000)), 100, later), 50);
        assert!(limit.kinds.len() <= KINDS_MAX);
    }
}
