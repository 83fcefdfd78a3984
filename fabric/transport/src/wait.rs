// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting of a side: it first polls, then yields the processor between polls, then sleeps
//! (SocksDirect 8.2).
//!
//! Polling is fastest if the peer runs on another core. Yielding is better if both share one,
//! because polling without yielding would keep the peer from running. Sleeping costs a system call
//! on both sides, and nothing while nothing arrives. So each side states on which core it waits,
//! and a side that waits on the same core yields at once.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// Waiting policy of a side, up to its sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Number of polls without yielding; skipped if the peer waited on the same core.
    pub spins: u32,
    /// Number of polls with `sched_yield` before each.
    pub yields: u32,
    /// Time-out of a call; `None` for no time-out.
    pub timeout: Option<Duration>,
}

impl Default for Waiting {
    /// Suits two sides that have a core each most of the time.
    fn default() -> Self {
        Self { spins: 400, yields: 40, timeout: None }
    }
}

impl Waiting {
    /// Sleeps as soon as there is nothing.
    pub const SLEEP: Self = Self { spins: 0, yields: 0, timeout: None };
    /// Never sleeps: occupies a core for the shortest delay.
    pub const SPIN: Self = Self { spins: u32::MAX, yields: 0, timeout: None };
    /// Never sleeps, but yields the core to others.
    pub const YIELD: Self = Self { spins: 0, yields: u32::MAX, timeout: None };
}

/// Counters of a side's waiting.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WaitCounts {
    /// Polls without yielding.
    pub spins: u64,
    /// Polls with `sched_yield` before each.
    pub yields: u64,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Doorbells rung for the peer.
    pub wakes: u64,
}

/// Polls between two checks of the clock and of the peer, for policies that never sleep.
const LOOKS_BETWEEN_CHECKS: u32 = 1 << 12;

/// One wait.
#[derive(Debug)]
pub(crate) struct Wait {
    policy: Waiting,
    /// Number of skipped polls.
    skipped: u32,
    looks: u32,
    since: Option<Instant>,
}

/// The next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Poll again.
    Look,
    /// Check the peer and the time-out, and poll again.
    Check,
    /// Sleep.
    Sleep,
}

impl Wait {
    /// Starts a wait, for a peer on the same core or on another.
    pub(crate) fn new(policy: Waiting, shares_core: bool) -> Self {
        let may_yield = policy.spins < u32::MAX;
        let skipped = if shares_core && may_yield { policy.spins } else { 0 };
        Self { policy, skipped, looks: skipped, since: None }
    }

    /// Waits briefly, unless it is time to sleep.
    pub(crate) fn step(&mut self, counts: &mut WaitCounts) -> Next {
        let Waiting { spins, yields, .. } = self.policy;
        if self.looks >= spins.saturating_add(yields) && spins.max(yields) < u32::MAX {
            return Next::Sleep;
        }
        if self.looks < spins || spins == u32::MAX {
            counts.spins += 1;
            hint::spin_loop();
        } else {
            counts.yields += 1;
            thread::yield_now();
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_BETWEEN_CHECKS) { Next::Check } else { Next::Look }
    }

    /// Returns the rest of the time-out, if there is one; zero when it has expired. The clock
    /// starts at the first call, so that a wait that succeeds while polling reads no clock.
    pub(crate) fn left(&mut self) -> Option<Duration> {
        let timeout = self.policy.timeout?;
        let since = *self.since.get_or_insert_with(Instant::now);
        Some(timeout.saturating_sub(since.elapsed()))
    }

    /// Restarts polling after a sleep.
    pub(crate) fn slept(&mut self) {
        self.looks = self.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_then_yields_then_sleeps() {
        let mut wait = Wait::new(Waiting { spins: 3, yields: 2, timeout: None }, false);
        let mut counts = WaitCounts::default();
        for _ in 0..5 {
            assert_eq!(wait.step(&mut counts), Next::Look);
        }
        assert_eq!(wait.step(&mut counts), Next::Sleep);
        assert_eq!((counts.spins, counts.yields), (3, 2));
        wait.slept();
        assert_eq!(wait.step(&mut counts), Next::Look);
    }

    #[test]
    fn who_shares_the_core_yields_at_once() {
        let mut wait = Wait::new(Waiting { spins: 3, yields: 1, timeout: None }, true);
        let mut counts = WaitCounts::default();
        for _ in 0..2 {
            assert_eq!(wait.step(&mut counts), Next::Look);
            assert_eq!(wait.step(&mut counts), Next::Sleep);
            wait.slept();
        }
        assert_eq!((counts.spins, counts.yields), (0, 2));
    }

    #[test]
    fn who_never_sleeps_looks_after_the_peer_now_and_then() {
        for policy in [Waiting::SPIN, Waiting::YIELD] {
            let (mut wait, mut counts) = (Wait::new(policy, true), WaitCounts::default());
            let steps = (0..3 * LOOKS_BETWEEN_CHECKS).map(|_| wait.step(&mut counts));
            let checks = steps.filter(|next| {
                assert_ne!(*next, Next::Sleep);
                *next == Next::Check
            });
            assert_eq!(checks.count(), 3);
            assert_eq!(counts.spins > 0, policy == Waiting::SPIN);
            assert_eq!(counts.yields > 0, policy == Waiting::YIELD);
        }
    }

    #[test]
    fn time_runs_out() {
        let timeout = Some(Duration::ZERO);
        assert_eq!(
            Wait::new(Waiting { timeout, ..Waiting::SLEEP }, false).left(),
            Some(Duration::ZERO)
        );
        assert_eq!(Wait::new(Waiting::SLEEP, false).left(), None);
    }
}
