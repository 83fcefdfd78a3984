// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Work that is due at certain times.

use std::time::Duration;

use super::{Core, Worker};

/// Time between searches for what has expired.
const EXPIRY_MS: u64 = 100;
/// Chains of keys that are looked at for expired ones at once, and how often without a pause.
const EXPIRY_BUDGET: usize = 400;
const EXPIRY_TURNS: usize = 16;
/// Longest sleep of a worker.
const SLEEP_MAX: Duration = Duration::from_millis(100);

impl Worker {
    /// Time until something has to be done without an event.
    pub(super) fn next_time(&self) -> Duration {
        let now_ms = self.core.shared.now_ms();
        let deadline_ms = self.deadlines.first().map(|&(deadline_ms, _)| deadline_ms);
        let pause = self.core.pause.filter(|_| !self.paused.is_empty());
        let times = deadline_ms.into_iter().chain(pause.map(|pause| pause.end_ms));
        let until = |time_ms: u64| Duration::from_millis(time_ms.saturating_sub(now_ms));
        let has_own = self.core.store.has(self.core.number);
        if self.is_purging() || self.core.is_evicting || self.core.notices.is_trimming && has_own {
            return Duration::ZERO;
        }
        times.map(until).chain(self.image_time()).min().unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// Does what is due.
    pub(super) fn keep_time(&mut self) {
        if self.core.now_ms >= self.next_expiry_ms {
            self.next_expiry_ms = self.core.now_ms + EXPIRY_MS;
            self.remove_keys();
            self.core.tend_uses();
            self.expire_items();
            self.core.accept_again();
            self.core.end_idle_sessions();
        }
        if self.core.is_evicting {
            self.core.follow();
            self.core.evict_more();
            self.follow_removals();
        }
        if !self.deadlines.is_empty() {
            self.end_waits();
        }
    }

    /// Removes some keys whose time has passed, and more of them while they are many, and those
    /// that are evicted. While writes are paused, nothing changes.
    fn remove_keys(&mut self) {
        let core = &mut self.core;
        core.follow();
        if core.now_ms < core.effects.paused_until_ms {
            return;
        }
        for _ in 0..EXPIRY_TURNS {
            let removed = core.store.expire_some(core.now_ms, EXPIRY_BUDGET, &mut core.effects);
            if removed * 4 < EXPIRY_BUDGET {
                break;
            }
        }
        core.evict_more();
        self.follow_removals();
    }

    /// Those that listen to events of removed keys or wait for some are told.
    fn follow_removals(&mut self) {
        let core = &mut self.core;
        core.publish_counts();
        if !core.effects.events.is_empty() {
            core.publish_events();
        }
        if core.effects.has_ready_keys {
            self.serve_waiters();
        }
    }
}

impl Core {
    /// Keeps what is known of the uses of keys right.
    fn tend_uses(&mut self) {
        if self.store.has(self.number) {
            self.store.shard_mut(self.number).tend_uses(self.now_ms);
        }
    }
}
