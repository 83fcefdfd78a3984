// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far a connection is on its way out of the kernel or back into it, and whether it has ended,
//! as far as the state of both sides tells.

use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

impl Stream {
    /// Whether the phase bits are still set and the slot is still that one. The lock of a direction
    /// is held, so that this stays so. While a thread waited for the lock, the connection may have
    /// come back, and may even have left the kernel again.
    #[inline]
    pub fn is_in(&self, slot: &Slot, phase: u32) -> bool {
        self.shared.is(phase) && self.local.slot.load(Ordering::Relaxed) == slot.start()
    }

    /// Whether this side or the peer wants the connection back in the kernel, or another process
    /// has brought it there.
    #[inline]
    pub fn is_returning(&self, phase: u32) -> bool {
        match phase & (phase::ATTACHED | phase::LEAVES | phase::STRAYS) {
            0 => false,
            phase::ATTACHED => self.slot().is_some_and(|slot| slot.does_peer_come_back()),
            phase::LEAVES => !self.local.slot.load(Ordering::Relaxed).is_null(),
            _ => true,
        }
    }

    /// Whether the monitor wants the connection back and it can come at once: all bytes are read,
    /// and none are being written.
    #[inline]
    pub fn is_recalled(&self, phase: u32) -> bool {
        let wrong = phase::LEAVES | phase::NEVER;
        phase & (phase::SWITCHED | wrong) == phase::SWITCHED
            && self.slot().is_some_and(|slot| {
                slot.peer_said() & flag::RECALLED != 0
                    && slot.next_header(self) == 0
                    && slot.is_peer_quiet()
            })
    }

    /// Whether its readiness no longer depends on rings, or soon will not.
    #[inline]
    pub fn leaves_rings(&self) -> bool {
        let phase = self.shared.phase();
        phase & phase::LOOKS == 0 || self.is_returning(phase)
    }

    /// Whether nothing more will arrive than what is in the ring.
    #[inline]
    pub fn has_read_end(&self, slot: &Slot) -> bool {
        self.shared.phase() & (phase::KERNEL_END | phase::READ_SHUT) != 0
            || slot.peer_said() & (flag::ENDED | flag::CLOSED) != 0
            || self.shared.error.load(Ordering::Relaxed) != 0
    }

    /// Whether sending is refused because the peer, of a Unix socket, has shut down receiving.
    #[inline]
    pub fn is_refused(&self, slot: &Slot) -> bool {
        self.is_unix() && slot.peer_said() & flag::DEAF != 0
    }
}
