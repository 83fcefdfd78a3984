// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that stay in the kernel, and why. The monitor gets the reason, for display.
//!
//! It gets it when the socket has been used so much that it would have been claimed. A socket with
//! a slot has its reason there instead.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::upgrade::monitor;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

impl Stream {
    /// Keeps the socket in the kernel. The first reason counts.
    #[cold]
    pub fn keep(&self, reason: Reason) {
        if !self.keep_unsaid(reason) {
            return;
        }
        if self.shared.phase() & (phase::CLAIMED | phase::ATTACHED) == phase::CLAIMED {
            // The monitor may still assign a slot, which will not be used.
            self.tell_reason(self.local.descriptor.load(Ordering::Relaxed));
        } else {
            self.say_reason(reason);
        }
    }

    /// The same, without writing the reason to the slot. Returns whether it is the first reason.
    pub fn keep_unsaid(&self, reason: Reason) -> bool {
        let (place, number) = (&self.shared.reason, u32::from(reason as u16));
        let kept = place.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        self.shared.mark(phase::NEVER);
        kept.is_ok()
    }

    /// The reason, if an option of a TCP socket keeps it in the kernel.
    pub fn kept_for_options(&self) -> Option<Reason> {
        let number = self.shared.reason.load(Ordering::Relaxed);
        let reason = u16::try_from(number).ok().and_then(Reason::from_number);
        let of_options = [Reason::Ancillary, Reason::Option, Reason::LowWater];
        reason.filter(|it| of_options.contains(it) && !self.is_unix())
    }

    /// Allows the socket to leave the kernel again.
    pub fn stop_keeping(&self) {
        self.shared.reason.store(0, Ordering::Relaxed);
        self.shared.claim_later();
        self.shared.unmark(phase::NEVER);
    }

    /// Records the reason for which the connection ends.
    #[cold]
    pub fn ends_for(&self, reason: Reason) {
        self.shared.reason.store(u32::from(reason as u16), Ordering::Relaxed);
        self.say_reason(reason);
    }

    /// Writes the reason to the slot, if there is one.
    fn say_reason(&self, reason: Reason) {
        if let Some(slot) = self.slot().filter(|_| self.shared.is(phase::ATTACHED)) {
            slot.say_reason(reason);
        }
    }

    /// Reports the reason to the monitor, once, unless it is in the slot.
    #[cold]
    pub fn tell_reason(&self, descriptor: i32) {
        let number = self.shared.reason.load(Ordering::Relaxed);
        let reason = u16::try_from(number).ok().and_then(Reason::from_number);
        let is_known = self.shared.is(phase::HOLDS_SLOT)
            || reason.is_none_or(|reason| tell(descriptor, reason));
        if is_known {
            self.shared.claim_at.store(u64::MAX, Ordering::Relaxed);
        } else {
            self.shared.claim_later();
        }
    }
}

/// Reports to the monitor why a socket is in the kernel now. False: the report was not sent.
pub fn tell(descriptor: i32, reason: Reason) -> bool {
    raw::inode(descriptor).is_ok_and(|inode| monitor::keep(inode, reason))
}
