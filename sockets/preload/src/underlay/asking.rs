// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asking the kernel, while the streams are in rings, whether the peer is gone.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::underlay::ASK_TICKS;
use core::sync::atomic::Ordering;

impl Stream {
    /// Asks the kernel whether the peer is gone, unless it was asked a moment ago. True: the kernel
    /// reports the end, and that is new.
    pub fn ask_kernel_at_times(&self, descriptor: i32) -> bool {
        let (now, asked) = (raw::ticks(), self.local.asked.load(Ordering::Relaxed));
        if now.wrapping_sub(asked) < ASK_TICKS {
            return false;
        }
        self.local.asked.store(now, Ordering::Relaxed);
        let had_ended = self.shared.is(phase::KERNEL_END);
        // The end lies behind doorbells that were not taken.
        if self.glance_at_underlay(descriptor) {
            self.ask_kernel(descriptor);
        }
        !had_ended && self.shared.is(phase::KERNEL_END)
    }

    /// Asks the kernel whether the peer is gone. True: the kernel reports the end, and that is new.
    pub fn ask_kernel(&self, descriptor: i32) -> bool {
        let mut byte = [0];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let result = raw::receive(descriptor, &mut byte, flags);
        if matches!(result, Ok(1..)) && self.look_behind_doorbells(descriptor) {
            return true;
        }
        self.kernel_said(result)
    }

    /// Asks whether the peer is gone where doorbells that were not taken hide the end. True: the
    /// kernel reports the end, and that is new.
    pub fn look_behind_doorbells(&self, descriptor: i32) -> bool {
        let is_in_rings = self.shared.is(phase::ATTACHED | phase::RECEIVES);
        if !is_in_rings || self.slot().is_none_or(|slot| slot.does_peer_come_back()) {
            // The bytes may belong to the stream.
            return false;
        }
        let before = self.shared.phase();
        self.kernel_reported(raw::events(descriptor, libc::POLLRDHUP));
        (self.shared.phase() ^ before) & phase::KERNEL_END != 0
    }

    /// Records the result of a look at the underlay. True: the stream has ended there, and that is
    /// new.
    pub fn kernel_said(&self, result: raw::Result) -> bool {
        if self.shared.phase() & (phase::ATTACHED | phase::STOPS) != phase::ATTACHED {
            // The kernel reports this end to the application itself.
            return false;
        }
        match result {
            Ok(0) => {}
            Ok(_) | Err(libc::EAGAIN | libc::EINTR) => return false,
            Err(libc::ECONNRESET | libc::EPIPE) => {
                // It may be the kernel's answer to doorbells that were never taken.
                self.shared.mark(phase::KERNEL_RESET);
            }
            Err(error) => self.shared.error.store(error, Ordering::Relaxed),
        }
        self.shared.mark(phase::KERNEL_END) & phase::KERNEL_END == 0
    }

    /// Records the events of `poll` that a wait on the underlay returned.
    pub fn kernel_reported(&self, events: u32) {
        let (ended, hung_up) = (libc::EPOLLRDHUP | libc::EPOLLHUP, libc::EPOLLHUP);
        if events & ended as u32 != 0 {
            self.shared.mark(phase::KERNEL_END);
        }
        if events & libc::EPOLLERR as u32 != 0 {
            self.shared.mark(phase::KERNEL_RESET);
        }
        if events & hung_up as u32 != 0 && self.reset().is_some() {
            self.shared.mark(phase::HUNG_UP);
        }
    }
}
