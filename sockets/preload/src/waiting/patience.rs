// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long somebody waits altogether, however often something happens in between: a peer that does
//! a little now and then holds nobody up for longer.

use crate::kernel::raw;

/// How long one blocking call waits that follows a peer back into the kernel: about two seconds.
pub const FOLLOWER_TICKS: u64 = 5_000_000_000;

/// How long a non-blocking call waits nevertheless, for a connection that comes back or for room in
/// the kernel, after room was reported to the application: about twenty milliseconds.
pub const TOLD_TICKS: u64 = 48_000_000;

/// Milliseconds of one wait, at most.
const WAIT: u32 = 50;
/// Ticks of a millisecond, at least.
const LEAST_TICKS: u64 = 1_000_000;

/// The [ticks](raw::ticks) that are left for waiting.
#[derive(Debug)]
pub struct Patience(pub u64);

impl Patience {
    /// Waits for events of a descriptor, for a moment. False: no ticks are left.
    pub fn wait(&mut self, descriptor: i32, events: i16) -> bool {
        // Not longer than that, with the slowest ticks.
        let most = u32::try_from(self.0 / LEAST_TICKS).unwrap_or(WAIT).clamp(1, WAIT);
        self.spend(|| _ = raw::wait(descriptor, events, most))
    }

    /// Sleeps for a moment. False: no ticks are left.
    pub fn pause(&mut self) -> bool {
        self.spend(|| raw::sleep_milliseconds(1))
    }

    fn spend(&mut self, wait: impl FnOnce()) -> bool {
        if self.0 == 0 {
            return false;
        }
        let before = raw::ticks();
        wait();
        self.0 = self.0.saturating_sub(raw::ticks().wrapping_sub(before));
        self.0 > 0
    }
}
