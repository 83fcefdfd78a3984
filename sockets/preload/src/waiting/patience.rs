// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long somebody waits altogether, however often something happens in between: a peer that does
//! a little now and then holds nobody up for longer.

use crate::kernel::raw;

/// Milliseconds of one wait.
const WAIT: u32 = 50;

/// The [ticks](raw::ticks) for which somebody still waits.
#[derive(Debug)]
pub struct Patience(pub u64);

impl Patience {
    /// Waits for events of a descriptor, for a moment. False: patience is at its end.
    pub fn wait(&mut self, descriptor: i32, events: i16) -> bool {
        let before = raw::ticks();
        _ = raw::wait(descriptor, events, WAIT);
        self.0 = self.0.saturating_sub(raw::ticks().wrapping_sub(before));
        self.0 > 0
    }
}
