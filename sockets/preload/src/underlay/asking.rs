// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel says of the underlay while the streams are in rings: whether the peer is gone.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::underlay::ASK_TICKS;
use core::sync::atomic::Ordering;

impl Stream {
    /// Asks the kernel whether the peer is gone, if it was not asked just now; true: it knows
    /// something new.
    pub fn ask_kernel_at_times(&self, descriptor: i32) -> bool {
        let (now, asked) = (raw::ticks(), self.local.asked.load(Ordering::Relaxed));
        if now.wrapping_sub(asked) < ASK_TICKS {
            return false;
        }
        self.local.asked.store(now, Ordering::Relaxed);
        let had_ended = self.shared.is(phase::KERNEL_END);
        // With the doorbells that nobody has taken, since the end is behind those.
        if self.glance_at_underlay(descriptor) {
            self.ask_kernel(descriptor);
        }
        !had_ended && self.shared.is(phase::KERNEL_END)
    }

    /// Asks the kernel whether the peer is gone. True: it is, and that is new.
    pub fn ask_kernel(&self, descriptor: i32) -> bool {
        let mut byte = [0];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let result = raw::receive(descriptor, &mut byte, flags);
        if matches!(result, Ok(1..)) && self.look_behind_doorbells(descriptor) {
            return true;
        }
        self.kernel_said(result)
    }

    /// Asks whether the peer is gone where doorbells that nobody has taken hide what is behind
    /// them. True: it is, and that is new.
    pub fn look_behind_doorbells(&self, descriptor: i32) -> bool {
        let is_in_rings = self.shared.is(phase::ATTACHED | phase::RECEIVES);
        if !is_in_rings || self.slot().is_none_or(|slot| slot.does_peer_come_back()) {
            // They may be bytes of the stream.
            return false;
        }
        let before = self.shared.phase();
        self.kernel_reported(raw::events(descriptor, libc::POLLRDHUP));
        (self.shared.phase() ^ before) & phase::KERNEL_END != 0
    }

    /// Takes note of what a look at the underlay gave. True: the stream has ended there.
    pub fn kernel_said(&self, result: raw::Result) -> bool {
        if self.shared.phase() & (phase::ATTACHED | phase::STOPS) != phase::ATTACHED {
            // Its end is the application's to be told of.
            return false;
        }
        match result {
            Ok(0) => {}
            Ok(_) | Err(libc::EAGAIN | libc::EINTR) => return false,
            Err(libc::ECONNRESET | libc::EPIPE) => {
                // It may be what the kernel makes of doorbells that nobody took.
                self.shared.mark(phase::KERNEL_RESET);
            }
            Err(error) => self.shared.error.store(error, Ordering::Relaxed),
        }
        self.shared.mark(phase::KERNEL_END) & phase::KERNEL_END == 0
    }

    /// Takes note of what waiting for the underlay gave, in the events of `poll`.
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
