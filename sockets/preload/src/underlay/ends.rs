// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a connection has ended: whether the peer has reset it, and the error for the application.
//! See [`resets`](crate::data::resets) for how the sides announce resets.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

impl Stream {
    /// The error of the peer's reset, if there was one, whether it was reported or not.
    #[cold]
    pub fn reset(&self) -> Option<i32> {
        let phase = self.shared.phase();
        let slot = self.slot().filter(|_| phase & phase::ATTACHED != 0)?;
        let said = slot.peer_said();
        if self.shared.said.load(Ordering::Relaxed) & flag::SENT_LATE != 0 {
            // After sending to a peer that had shut both halves, the kernel has the error.
            return None;
        }
        if said & flag::SENT_LATE != 0 {
            return Some(libc::ECONNRESET);
        }
        // A peer that has shut both halves has ended its stream in the kernel, but is alive.
        let has_shut = !self.is_unix() && said & flag::DEAF != 0;
        let end = if has_shut { phase::KERNEL_RESET } else { phase::KERNEL_END };
        let is_dead = phase & (end | phase::READ_SHUT) == end;
        // Flags that were set without closing count once the process has exited.
        let has_left_unread = said & flag::RESET != 0
            || slot.unreceived_bytes() > 0
            || phase & phase::KERNEL_RESET != 0 && said & flag::LOOKS == 0;
        let is_reset = match said & flag::CLOSED {
            0 => is_dead && has_left_unread,
            _ => said & flag::RESET != 0,
        };
        if !is_reset {
            return None;
        }
        let had_ended =
            said & flag::RESET_LATE != 0 || said & (flag::CLOSED | flag::ENDED) == flag::ENDED;
        match had_ended && !self.is_unix() {
            // Both directions had ended before, so the connection was over.
            true if phase & phase::ENDED != 0 => None,
            true => Some(libc::EPIPE),
            false => Some(libc::ECONNRESET),
        }
    }

    /// Whether there is an error that was not reported to the application yet.
    pub fn has_error(&self) -> bool {
        self.shared.error.load(Ordering::Relaxed) != 0
            || !self.shared.is(phase::RESET_TOLD) && self.reset().is_some()
    }

    /// Whether a TCP connection is over for both sides, although its streams in the kernel, which
    /// carry doorbells, are not.
    #[cold]
    pub fn has_no_peer(&self) -> bool {
        let phase = self.shared.phase();
        if phase & (phase::ATTACHED | phase::UNIX) != phase::ATTACHED {
            return false;
        }
        let said = self.slot().map_or(0, |slot| slot.peer_said());
        let has_ended = said & (flag::ENDED | flag::CLOSED) != 0;
        has_ended && phase & phase::ENDED != 0 || self.reset().is_some()
    }

    /// Takes the error for the application; 0: none.
    pub fn take_error(&self) -> i32 {
        match self.shared.error.swap(0, Ordering::Relaxed) {
            0 => {
                let reset = self.reset().unwrap_or(0);
                let is_reported = || self.shared.mark(phase::RESET_TOLD) & phase::RESET_TOLD != 0;
                if reset == 0 || is_reported() { 0 } else { reset }
            }
            error => error,
        }
    }

    /// Aborts the connection, so that a part of the stream is not taken for all of it.
    #[cold]
    pub fn break_off(&self, descriptor: i32) {
        self.shared.mark(phase::BROKEN_OFF);
        if self.is_unix() {
            raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
        } else {
            raw::disconnect(descriptor);
        }
    }
}
