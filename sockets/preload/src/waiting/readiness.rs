// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether there is something to receive in a slot, or room to send.

use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use core::sync::atomic::Ordering;
use freeport_ring::bytes::Read;
use freeport_sockets_proto::slab::flag;

/// Free bytes from which a ring of that capacity counts as writable: a third, as in the kernel.
/// Programs rely on a few kilobytes fitting then, in a call that would block for more.
pub const fn room_to_report(capacity: usize) -> usize {
    capacity / 3
}

impl Stream {
    /// Whether there is something to receive, or never will be.
    #[inline]
    pub fn is_readable(&self, slot: &Slot) -> bool {
        let low_water = self.shared.low_water.load(Ordering::Relaxed);
        if low_water > 1 && slot.next_header(self) != 0 {
            let descriptor = self.local.descriptor.load(Ordering::Relaxed);
            let bytes = self.readable_bytes(descriptor).unwrap_or(i32::MAX);
            return bytes.unsigned_abs() >= low_water || self.has_read_end(slot);
        }
        self.has_data(slot) || self.has_read_end(slot)
    }

    /// Whether there is something in the ring besides entries that move it to another area.
    #[inline]
    pub fn has_data(&self, slot: &Slot) -> bool {
        let header = slot.next_header(self);
        header != 0 && (Slot::is_data(header) || self.follow(slot))
    }

    /// Takes entries that move the ring to another area, and returns whether something follows
    /// them. Only a look at the next entry tells that: the sender may have moved once more.
    #[cold]
    fn follow(&self, slot: &Slot) -> bool {
        let Some(mut half) = self.shared.receive.take(self.shared.is_alone()) else { return true };
        let mut wake = false;
        let followed = self.with_receiver(slot, &mut half, |receiver| {
            let mut nothing = [0_u8; 1];
            loop {
                match receiver.peek(&mut nothing) {
                    Ok(Read::Moved { name, entry }) => {
                        match slot.follow(self, receiver, name, &entry) {
                            Some(also) => wake |= also,
                            None => break true,
                        }
                    }
                    Ok(Read::Nothing) => break false,
                    // Receiving reports the error.
                    Ok(Read::Bytes(_) | Read::End) | Err(_) => break true,
                }
            }
        });
        drop(half);
        if wake {
            self.wake_peer(self.local.descriptor.load(Ordering::Relaxed), slot);
        }
        followed != Some(false)
    }

    /// Whether something can be sent, or sending would report an error.
    #[inline]
    pub fn is_writable(&self, slot: &Slot) -> bool {
        let phase = self.shared.phase();
        if phase & (phase::PEER_GONE | phase::ENDED | phase::KERNEL_END) != 0
            || slot.peer_said() & (flag::CLOSED | flag::DEAF) != 0
            || !self.shared.send.was_full.load(Ordering::Relaxed)
        {
            return true;
        }
        let Some(mut half) = self.shared.send.take(self.shared.is_alone()) else { return false };
        let has_room = self.with_sender(slot, &mut half, |sender| {
            let wanted = room_to_report(sender.ring().capacity());
            slot.has_room(self, sender, wanted)
        });
        if has_room == Some(true) {
            self.shared.send.was_full.store(false, Ordering::Relaxed);
        }
        has_room != Some(false)
    }
}
