// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Doorbells: bytes through the kernel's connection that do not belong to the stream, and wake
//! threads that sleep there.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::{Reported, Slot};
use core::sync::atomic::{Ordering, fence};
use freeport_sockets_proto::slab::{flag, word};

impl Stream {
    /// Wakes the peer, if it sleeps, and makes it look at this connection.
    #[cold]
    pub fn wake_peer(&self, descriptor: i32, slot: &Slot) {
        match slot.marks_for_peer() {
            Reported::ByMark => {}
            Reported::NotAtAll => _ = self.ring_doorbell(descriptor, slot),
            Reported::ToRing(sleep) => {
                if self.ring_doorbell(descriptor, slot) {
                    slot.has_rung_for_board(sleep);
                }
            }
        }
    }

    /// Wakes the peer, wherever it sleeps on this connection. Returns whether a doorbell was sent.
    #[cold]
    pub fn ring_doorbell(&self, descriptor: i32, slot: &Slot) -> bool {
        if slot.said() & flag::SWITCHED == 0 {
            // It would be taken for a byte of the stream. It rings when that has left the kernel.
            self.shared.owes_doorbell.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if slot.said() & flag::SWITCHED == 0 {
                return false;
            }
        }
        self.shared.owes_doorbell.store(false, Ordering::SeqCst);
        if !self.is_unix() && slot.peer_said() & flag::DEAF != 0 {
            // The peer no longer sleeps, and its kernel would answer with a reset.
            return false;
        }
        slot.count(word::DOORBELLS, 1);
        // Coming back into the kernel waits for all threads that are counted here.
        self.shared.kernel_sends.fetch_add(1, Ordering::SeqCst);
        let can_ring = self.shared.phase() & (phase::ATTACHED | phase::LEAVES) == phase::ATTACHED;
        let has_rung = can_ring && self.ring_once(descriptor, slot);
        self.shared.kernel_sends.fetch_sub(1, Ordering::SeqCst);
        has_rung
    }

    /// Rings, unless the peer would take the doorbell for a byte of the stream. Returns whether it
    /// has rung.
    pub fn ring_once(&self, descriptor: i32, slot: &Slot) -> bool {
        let mut has_rung = false;
        if slot.begin_ringing() {
            // Counted first: the peer may run before this thread continues, and it takes counted
            // doorbells only.
            slot.counts_doorbell();
            match raw::send(descriptor, &[0], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
                Ok(_) => {
                    self.shared.rang.fetch_add(1, Ordering::Relaxed);
                    has_rung = true;
                }
                Err(error) => {
                    slot.has_not_rung();
                    // Without room for another doorbell, there are many that wake the peer.
                    if error != libc::EAGAIN {
                        self.shared.mark(phase::PEER_GONE);
                    }
                }
            }
        }
        slot.end_ringing();
        has_rung
    }

    /// Drops the doorbells before the place where the peer's stream is in the kernel again. False:
    /// some have not arrived yet, or, if `waits`, first have to wake other threads that sleep on
    /// the socket.
    pub fn drop_doorbells_before_stream(&self, descriptor: i32, slot: &Slot, waits: bool) -> bool {
        let Some(at) = slot.peer_left_at() else { return true };
        let taken = self.shared.kernel_received.load(Ordering::Acquire);
        let taken = taken + self.shared.rung.load(Ordering::Relaxed);
        let left = at.saturating_sub(taken);
        if waits && left > 0 && self.shared.sleepers.load(Ordering::SeqCst) > 0 {
            return false;
        }
        self.drop_doorbells(descriptor, left)
    }

    /// Drops `count` doorbells, or all if that is `u64::MAX`. False: not all have arrived. The
    /// kernel may hold back a doorbell for a moment, and a caller that does not wait for it would
    /// take it for a byte of the stream.
    pub fn drop_doorbells(&self, descriptor: i32, count: u64) -> bool {
        let (mut bytes, mut left) = ([0_u8; 64], count);
        while left > 0 {
            let room = bytes.get_mut(..left.min(64) as usize).unwrap_or_default();
            match raw::receive(descriptor, room, libc::MSG_DONTWAIT) {
                Ok(0) => return true,
                Ok(count) => {
                    left -= count as u64;
                    self.shared.rung.fetch_add(count as u64, Ordering::Relaxed);
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => return count == u64::MAX,
                // The connection is gone.
                Err(_) => return true,
            }
        }
        true
    }
}
