// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A socket's slot in shared memory: its rings and what both sides say of themselves there.

use crate::connection::{HeldHalf, phase};
use crate::connections::Stream;
use crate::sending;
use core::sync::atomic::Ordering;
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::{
    Entry, Full, Kind, Local, Mapped, Receiver, ReceiverCursor, Remote, Sender, SenderCursor,
    Shared,
};
use freeport_sockets_proto::slab::{self, Ring, Side, flag, word};

/// The sending end of a socket's ring.
pub type Out = ByteSender<Shared, Shared>;
/// The receiving end.
pub type In = ByteReceiver<Shared, Shared>;

/// A slot that is mapped in this process.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    start: Mapped,
    side: Side,
    fenced: bool,
}

impl Stream {
    /// Its slot; `None` if this process has not mapped it.
    #[inline]
    pub fn slot(&self) -> Option<Slot> {
        let start = self.local.slot.load(Ordering::Relaxed);
        if start.is_null() {
            return None;
        }
        let side = match self.shared.side.load(Ordering::Relaxed) {
            0 => Side::First,
            _ => Side::Second,
        };
        let fenced = self.shared.fenced.load(Ordering::Relaxed);
        // SAFETY: slots stay mapped, and nothing but rings and their states is done with them.
        Some(Slot { start: unsafe { Mapped::new(start) }, side, fenced })
    }
}

impl Slot {
    #[inline]
    fn at(&self, offset: usize) -> Shared {
        // SAFETY: offsets are those of the layout, which are inside a slot and multiples of 8.
        Shared::new(unsafe { self.start.behind(offset) }, self.fenced)
    }

    /// The sending end, where `half` says.
    #[inline]
    pub fn sender(&self, stream: &Stream, half: &HeldHalf<'_, SenderCursor>) -> Option<Out> {
        let area = stream.shared.send.area.load(Ordering::Relaxed);
        let ring = Ring::to(self.side.other());
        let (notes, receiver) = (self.at(ring.sender_notes()), self.at(ring.receiver_notes()));
        let (at, capacity) = (self.at(ring.area(area)?), Ring::capacity(area));
        // SAFETY: as large as the layout says, and zero when the slot was handed out.
        let sender = unsafe { Sender::new(at, notes, receiver, capacity, half.cursor()) };
        sender.map(ByteSender::new)
    }

    /// The receiving end, where `half` says.
    #[inline]
    pub fn receiver(&self, stream: &Stream, half: &HeldHalf<'_, ReceiverCursor>) -> Option<In> {
        let area = stream.shared.receive.area.load(Ordering::Relaxed);
        let ring = Ring::to(self.side);
        let (notes, sender) = (self.at(ring.receiver_notes()), self.at(ring.sender_notes()));
        let (at, capacity) = (self.at(ring.area(area)?), Ring::capacity(area));
        // SAFETY: as above.
        let receiver = unsafe { Receiver::new(at, notes, sender, capacity, half.cursor()) };
        receiver.map(ByteReceiver::new)
    }

    /// Notes where the next header will be.
    #[inline]
    pub fn note_next_header(&self, stream: &Stream, receiver: &mut In) {
        let ring = receiver.ring();
        let area = stream.shared.receive.area.load(Ordering::Relaxed);
        if let Some(start) = Ring::to(self.side).area(area) {
            let next = start + ring.next_header();
            stream.shared.receive.next_header.store(next as u64, Ordering::Relaxed);
        }
    }

    /// Moves the sending end to the next area, and gives whether the receiver has to be woken.
    /// `None`: there is none, or no credit for saying so.
    pub fn grow(&self, stream: &Stream, sender: &mut Out) -> Option<bool> {
        let send = &stream.shared.send;
        let area = send.area.load(Ordering::Relaxed) + 1;
        let memory = self.at(Ring::to(self.side.other()).area(area)?);
        // SAFETY: as large as that; an area is used once, and zero when the slot was handed out.
        let moved = unsafe { sender.ring().move_to(memory, Ring::capacity(area), u64::from(area)) };
        match moved {
            Ok(wake) => {
                send.area.store(area, Ordering::Relaxed);
                Some(wake)
            }
            Err(Full::NoCredit | Full::TooLong | Full::Fault(_)) => None,
        }
    }

    /// Follows the sender to the area that it names. True: it has to be woken. `None`: there is no
    /// such area, or it was there before.
    pub fn follow(
        &self,
        stream: &Stream,
        receiver: &mut In,
        name: u64,
        entry: &Entry,
    ) -> Option<bool> {
        let current = stream.shared.receive.area.load(Ordering::Relaxed);
        let area = u32::try_from(name).ok().filter(|area| *area > current)?;
        let memory = self.at(Ring::to(self.side).area(area)?);
        // SAFETY: as large as that. If the peer did not leave it zero, it gets a fault for it.
        let wake = unsafe { receiver.ring().move_to(entry, memory, Ring::capacity(area)) }?;
        stream.shared.receive.area.store(area, Ordering::Relaxed);
        Some(wake)
    }

    /// The word at the place of the next entry to be received.
    #[inline]
    pub fn next_header(&self, stream: &Stream) -> u64 {
        let at = stream.shared.receive.next_header.load(Ordering::Relaxed) as usize & !7;
        if at >= slab::SLOT_BYTES {
            return 0;
        }
        // SAFETY: inside the slot and aligned.
        unsafe { self.at(at).load(0) }
    }

    /// Whether such a word is that of bytes, and not of a sender that has wrapped or moved.
    #[inline]
    pub fn is_data(header: u64) -> bool {
        (header >> 32) as u8 == Kind::Data as u8
    }

    #[inline]
    fn state(&self, of: Side) -> Shared {
        self.at(slab::state(of))
    }

    /// What this side has said of itself.
    #[inline]
    pub fn said(&self) -> u64 {
        // SAFETY: a word of the slot; so are those below.
        unsafe { self.state(self.side).load(word::FLAGS) }
    }

    /// Says something of this side, for good.
    pub fn say(&self, flags: u64) {
        // SAFETY: as above. Only this side writes it.
        unsafe { self.state(self.side).store(word::FLAGS, self.said() | flags) };
    }

    /// What the peer has said of itself.
    #[inline]
    pub fn peer_said(&self) -> u64 {
        // SAFETY: as above.
        unsafe { self.state(self.side.other()).load(word::FLAGS) }
    }

    /// Says that what comes behind so many bytes through the kernel comes through the ring.
    pub fn say_switched(&self, at: u64) {
        // SAFETY: as above.
        unsafe { self.state(self.side).set(word::SWITCHED_AT, at) };
        self.say(flag::SWITCHED);
    }

    /// Behind how many bytes the peer has switched, if it has.
    #[inline]
    pub fn peer_switched(&self) -> Option<u64> {
        if self.peer_said() & flag::SWITCHED == 0 {
            return None;
        }
        // SAFETY: as above.
        Some(unsafe { self.state(self.side.other()).load(word::SWITCHED_AT) })
    }

    /// Says on which core this side waits; gives whether the peer waited on the same one.
    pub fn shares_core(&self) -> bool {
        // SAFETY: a plain number; where there is none, it is below 0.
        let core = u64::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or_default();
        let mut state = self.state(self.side);
        // SAFETY: words of the slot.
        unsafe {
            if state.load(word::CORE) != core {
                state.set(word::CORE, core);
            }
            core != 0 && self.state(self.side.other()).load(word::CORE) == core
        }
    }

    /// How many of the bytes that this side has put into its ring the peer has not taken.
    pub fn unreceived_bytes(&self) -> u64 {
        // SAFETY: words of the slot.
        let (sent, received) = unsafe {
            let peer = self.state(self.side.other()).load(word::RECEIVED_BYTES);
            (self.state(self.side).load(word::SENT_BYTES), peer)
        };
        sent.saturating_sub(received)
    }

    /// Adds to one of the numbers, with the lock of its direction held if it is to be exact.
    #[inline]
    pub fn count(&self, word: usize, by: u64) {
        let mut state = self.state(self.side);
        // SAFETY: as above.
        unsafe { state.set(word, state.load(word) + by) };
    }
}

impl Stream {
    /// Whether there is something to receive, or will be no more.
    #[inline]
    pub fn is_readable(&self, slot: &Slot) -> bool {
        let header = slot.next_header(self);
        if header != 0 {
            let low_water = self.shared.low_water.load(Ordering::Relaxed);
            if low_water > 1 {
                let descriptor = self.local.descriptor.load(Ordering::Relaxed);
                let bytes = self.readable_bytes(descriptor).unwrap_or(i32::MAX);
                return bytes.unsigned_abs() >= low_water || self.has_read_end(slot);
            }
            return Slot::is_data(header) || self.follow(slot);
        }
        self.has_read_end(slot)
    }

    /// Whether nothing more will come but what is in the ring.
    #[inline]
    pub fn has_read_end(&self, slot: &Slot) -> bool {
        self.shared.phase() & (phase::KERNEL_END | phase::READ_SHUT) != 0
            || slot.peer_said() & (flag::ENDED | flag::CLOSED) != 0
            || self.shared.error.load(Ordering::Relaxed) != 0
    }

    /// Takes entries that only say that the ring goes on elsewhere; gives whether something is
    /// behind them.
    #[cold]
    fn follow(&self, slot: &Slot) -> bool {
        let Some(mut half) = self.shared.receive.take(self.shared.is_alone()) else { return true };
        let mut wake = false;
        let followed = self.with_receiver(slot, &mut half, |receiver| {
            let mut nothing = [0_u8; 1];
            while let Ok(Read::Moved { name, entry }) = receiver.peek(&mut nothing) {
                match slot.follow(self, receiver, name, &entry) {
                    Some(also) => wake |= also,
                    None => return false,
                }
            }
            true
        });
        drop(half);
        if wake {
            self.ring_doorbell(self.local.descriptor.load(Ordering::Relaxed), slot);
        }
        followed != Some(true) || slot.next_header(self) != 0 || self.has_read_end(slot)
    }

    /// Whether something can be sent, or an error be had for it.
    #[inline]
    pub fn is_writable(&self, slot: &Slot) -> bool {
        let phase = self.shared.phase();
        if phase & (phase::PEER_GONE | phase::ENDED | phase::KERNEL_END) != 0
            || slot.peer_said() & flag::CLOSED != 0
            || !self.shared.send.was_full.load(Ordering::Relaxed)
        {
            return true;
        }
        let Some(mut half) = self.shared.send.take(self.shared.is_alone()) else { return false };
        let wanted = sending::WHOLE + sending::KEPT;
        let free = self.with_sender(slot, &mut half, |sender| sender.ring().free(wanted));
        let is_writable = matches!(free, Some(Ok(free)) if free >= wanted);
        if is_writable {
            self.shared.send.was_full.store(false, Ordering::Relaxed);
        }
        is_writable || free.is_none()
    }
}
