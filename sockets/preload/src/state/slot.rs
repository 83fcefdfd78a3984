// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A socket's slot in shared memory: its rings, and the flags and numbers of both sides.

mod again;
mod board;
mod resting;
mod shared;

use crate::process;
use crate::state::connection::{Connection, HeldHalf};
use crate::state::connections::Stream;
pub use board::{Board, Reported, Sleep};
use core::sync::atomic::Ordering;
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::{
    Claimed, Entry, Full, Kind, Local, Mapped, Receiver, ReceiverCursor, Remote, Seen, Sender,
    SenderCursor, Shared,
};
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::{self, Ring, Side, flag, word};
use shared::SharedWord;

/// The sending end of a socket's ring.
pub type Out = ByteSender<Shared, Shared>;
/// The receiving end.
pub type In = ByteReceiver<Shared, Shared>;

/// Bytes that the entry takes which moves a ring to another area, with its headers.
const GROWTH_BYTES: usize = 64;
/// The last area that a ring of a Unix socket grows into. When the connection comes back, what was
/// not read there and what was not read before it left have to find room in the kernel, which takes
/// much less than with TCP.
const UNIX_LAST_AREA: u32 = 4;

/// The side that reads a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// This side.
    Own,
    /// The peer.
    Peer,
}

/// A slot that is mapped in this process.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its page.
    page: Mapped,
    side: Side,
    fenced: bool,
    /// Values that are kept here as well, since the peer can overwrite those in the slot.
    own: &'static Connection,
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
        Some(Slot { page: unsafe { Mapped::new(start) }, side, fenced, own: self.shared })
    }
}

impl Slot {
    #[inline]
    fn at(&self, offset: usize) -> Shared {
        // SAFETY: offsets are those of the layout, which are inside a page and multiples of 8.
        Shared::new(unsafe { self.page.behind(offset) }, self.fenced)
    }

    /// Offset of the page in its slab.
    #[inline]
    fn place(&self) -> usize {
        // A slab begins at a multiple of what the pages of one take.
        self.page.start().addr() & (slab::PAGES_BYTES - 1)
    }

    /// Where it is mapped.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.page.start()
    }

    /// Its number in its slab.
    #[inline]
    pub fn number(&self) -> u32 {
        (self.place() / slab::PAGE_BYTES) as u32
    }

    /// Another place of its slab.
    #[inline]
    fn in_slab(&self, offset: usize) -> Shared {
        // SAFETY: the page lies so far behind the start of its slab, which is mapped as a whole.
        let start = unsafe { self.page.start().sub(self.place()) };
        // SAFETY: offsets are inside the slab.
        let start = unsafe { start.add(offset) };
        // SAFETY: slabs stay mapped, offsets are multiples of 8, and nothing but rings and their
        // states is done with slabs.
        let at = unsafe { Mapped::new(start) };
        Shared::new(at, self.fenced)
    }

    #[inline]
    fn area(&self, ring: Ring, area: u32) -> Option<Shared> {
        Some(self.in_slab(ring.area(self.number(), area)?))
    }

    /// The sending end, at the cursor of `half`.
    #[inline]
    pub fn sender(&self, stream: &Stream, half: &HeldHalf<'_, SenderCursor>) -> Option<Out> {
        let area = stream.shared.send.area.load(Ordering::Relaxed);
        let ring = Ring::to(self.side.other());
        let (notes, receiver) = (self.at(ring.sender_notes()), self.at(ring.receiver_notes()));
        let (at, capacity) = (self.area(ring, area)?, Ring::capacity(area));
        // SAFETY: as large as the layout says, and zero when the slot was handed out.
        let sender = unsafe { Sender::new(at, notes, receiver, capacity, half.cursor()) };
        sender.map(ByteSender::new)
    }

    /// The receiving end, at the cursor of `half`.
    #[inline]
    pub fn receiver(&self, stream: &Stream, half: &HeldHalf<'_, ReceiverCursor>) -> Option<In> {
        let area = stream.shared.receive.area.load(Ordering::Relaxed);
        let ring = Ring::to(self.side);
        let (notes, sender) = (self.at(ring.receiver_notes()), self.at(ring.sender_notes()));
        let (at, capacity) = (self.area(ring, area)?, Ring::capacity(area));
        // SAFETY: as above.
        let receiver = unsafe { Receiver::new(at, notes, sender, capacity, half.cursor()) };
        receiver.map(ByteReceiver::new)
    }

    /// Records where the next header will be.
    #[inline]
    pub fn note_next_header(&self, stream: &Stream, receiver: &mut In) {
        let ring = receiver.ring();
        let area = stream.shared.receive.area.load(Ordering::Relaxed);
        if let Some(start) = Ring::to(self.side).area(self.number(), area) {
            let next = start + ring.next_header();
            stream.shared.receive.next_header.store(next as u64, Ordering::Relaxed);
        }
    }

    fn side_of(&self, reader: Reader) -> Side {
        match reader {
            Reader::Own => self.side,
            Reader::Peer => self.side.other(),
        }
    }

    /// Another receiving end of a ring whose reader has stopped: it gives the unread bytes.
    pub fn unread(&self, of: Reader, area: u32, stopped: ReceiverCursor) -> Option<In> {
        let ring = Ring::to(self.side_of(of));
        let (notes, sender) = (self.at(ring.receiver_notes()), self.at(ring.sender_notes()));
        let (at, capacity) = (self.area(ring, area)?, Ring::capacity(area));
        // SAFETY: as large as the layout says.
        let receiver = unsafe { Receiver::new(at, notes, sender, capacity, stopped) };
        receiver.map(ByteReceiver::new)
    }

    /// Moves the end that [`unread`](Self::unread) returned to another area. False: there is none.
    pub fn follow_unread(&self, of: Reader, unread: &mut In, area: u32, entry: &Entry) -> bool {
        let Some(at) = self.area(Ring::to(self.side_of(of)), area) else { return false };
        // SAFETY: as large as that.
        unsafe { unread.ring().move_to(entry, at, Ring::capacity(area)) }.is_some()
    }

    /// The area after that of the sending end. `None`: it was the last.
    fn next_area(&self, stream: &Stream) -> Option<u32> {
        let area = stream.shared.send.area.load(Ordering::Relaxed) + 1;
        (area <= Self::last_area(stream)).then_some(area)
    }

    fn last_area(stream: &Stream) -> u32 {
        if stream.is_unix() { UNIX_LAST_AREA } else { slab::AREAS - 1 }
    }

    /// Whether no area has room for `bytes`.
    pub fn exceeds_areas(&self, stream: &Stream, bytes: usize) -> bool {
        bytes > Ring::capacity(Self::last_area(stream))
    }

    /// Whether the sending end can be moved to a larger area.
    pub fn can_grow(&self, stream: &Stream) -> bool {
        self.next_area(stream).is_some()
    }

    /// Whether there is that much room, or would be in the next area. In the second case there has
    /// to be room here for the entry that moves the ring.
    pub fn has_room(&self, stream: &Stream, sender: &mut Out, room: usize) -> bool {
        let wanted = if self.can_grow(stream) { GROWTH_BYTES } else { room };
        sender.ring().free(room).is_ok_and(|free| free >= wanted.min(room))
    }

    /// Moves the sending end to the next area, and returns whether the receiver has to be woken.
    /// `None`: there is no next area, or no credit for the entry.
    pub fn grow(&self, stream: &Stream, sender: &mut Out) -> Option<bool> {
        let send = &stream.shared.send;
        let area = self.next_area(stream)?;
        let memory = self.area(Ring::to(self.side.other()), area)?;
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

    /// Follows the sender to the area that it names. True: the sender has to be woken. `None`:
    /// there is no such area, or it is not behind the current one.
    pub fn follow(
        &self,
        stream: &Stream,
        receiver: &mut In,
        name: u64,
        entry: &Entry,
    ) -> Option<bool> {
        let current = stream.shared.receive.area.load(Ordering::Relaxed);
        let area = u32::try_from(name).ok().filter(|area| *area > current)?;
        let memory = self.area(Ring::to(self.side), area)?;
        // SAFETY: as large as that. If the peer did not leave it zero, it gets a fault for it.
        let wake = unsafe { receiver.ring().move_to(entry, memory, Ring::capacity(area)) }?;
        stream.shared.receive.area.store(area, Ordering::Relaxed);
        Some(wake)
    }

    /// Memory and size of the area that the sender names, for a look at its entries; `area` becomes
    /// its number. `None`: there is no such area, or it is not behind `area`.
    pub fn area_behind(&self, area: &mut u32, name: u64) -> Option<(Shared, usize)> {
        let next = u32::try_from(name).ok().filter(|next| *next > *area)?;
        let memory = self.area(Ring::to(self.side), next)?;
        *area = next;
        Some((memory, Ring::capacity(next)))
    }

    /// Number of bytes that have arrived, in all areas.
    pub fn available(&self, stream: &Stream, receiver: &mut In) -> Option<usize> {
        let mut area = stream.shared.receive.area.load(Ordering::Relaxed);
        // SAFETY: areas are as large as the layout says. If the peer did not leave one zero, it
        // gets a fault for it. Each is behind the one before.
        unsafe { receiver.available_through(|name| self.area_behind(&mut area, name)) }.ok()
    }

    /// Copies what has arrived, in all areas, without taking it.
    pub fn peek(&self, stream: &Stream, receiver: &mut In, into: &mut [u8]) -> Option<Read> {
        let mut area = stream.shared.receive.area.load(Ordering::Relaxed);
        // SAFETY: see above.
        unsafe { receiver.peek_through(into, |name| self.area_behind(&mut area, name)) }.ok()
    }

    /// Whether something has arrived, in any area, since `seen`.
    pub fn has_news(&self, stream: &Stream, receiver: &mut In, seen: &mut Seen) -> bool {
        let mut area = stream.shared.receive.area.load(Ordering::Relaxed);
        // SAFETY: see above.
        unsafe { receiver.ring().has_news(seen, |name| self.area_behind(&mut area, name)) }
    }

    /// The word at the place of the next entry to be received.
    #[inline]
    pub fn next_header(&self, stream: &Stream) -> u64 {
        let at = stream.shared.receive.next_header.load(Ordering::Relaxed) as usize & !7;
        if at >= slab::SLAB_BYTES {
            return 0;
        }
        // SAFETY: inside the slab and aligned.
        let word = unsafe { self.in_slab(at).load(0) };
        // CLAIM: it only tells whether there is something to look at; the receiver checks that.
        word.raw()
    }

    /// Whether such a word is the header of bytes, not of a sender that has wrapped or moved.
    #[inline]
    pub fn is_data(header: u64) -> bool {
        (header >> 32) as u8 == Kind::Data as u8
    }

    #[inline]
    fn state(&self, of: Side) -> Shared {
        self.at(slab::state(of))
    }

    /// The flags that this side has set.
    #[inline]
    pub fn said(&self) -> u64 {
        self.own.said.load(Ordering::Relaxed)
    }

    /// Sets flags of this side.
    pub fn say(&self, flags: u64) {
        self.own.said.fetch_or(flags, Ordering::Relaxed);
        self.shared_word(self.side, word::FLAGS).set(flags);
    }

    /// Clears flags of this side.
    pub fn unsay(&self, flags: u64) {
        self.own.said.fetch_and(!flags, Ordering::Relaxed);
        self.shared_word(self.side, word::FLAGS).clear(flags);
    }

    /// The flags that the peer has set, and those that the monitor has set about it.
    #[inline]
    pub fn peer_said(&self) -> u64 {
        // SAFETY: a word of the slot; so are those below.
        let said = unsafe { self.state(self.side.other()).load(word::FLAGS) };
        said.bits(!flag::OF_MONITOR) | self.notice()
    }

    /// The flags that the monitor has set about the peer.
    #[inline]
    fn notice(&self) -> u64 {
        let at = slab::SLAB_BYTES + slab::notice(self.number(), self.side.other()).unwrap_or(0);
        // SAFETY: notices are mapped behind the slab.
        let notice = unsafe { self.in_slab(at).load(0) };
        notice.bits(flag::OF_MONITOR)
    }

    /// Announces that bytes after the first `at`, which went through the kernel, come through the
    /// ring.
    pub fn say_switched(&self, at: u64) {
        // SAFETY: as above.
        unsafe { self.state(self.side).set(word::SWITCHED_AT, at) };
        self.say(flag::SWITCHED);
    }

    /// Number of bytes that the peer sent through the kernel before it switched, if it has.
    #[inline]
    pub fn peer_switched(&self) -> Option<u64> {
        if self.peer_said() & flag::SWITCHED == 0 {
            return None;
        }
        // SAFETY: as above.
        let at = unsafe { self.state(self.side.other()).load(word::SWITCHED_AT) };
        // CLAIM: a place in the peer's own stream, which a wrong one garbles.
        Some(at.raw())
    }

    /// Announces that this side sends through the kernel again, where it has sent `sent` bytes.
    pub fn say_left(&self, sent: u64) {
        // SAFETY: a word of the slot, which only this side writes.
        unsafe { self.state(self.side).set(word::LEFT_AT, sent) };
        self.say(flag::LEAVES);
    }

    /// Whether the peer wants the connection back in the kernel. A peer that announces that it has
    /// left its ring, unasked, without announcing that it stops reading the other one, has broken
    /// the protocol. It is followed into the kernel nevertheless: otherwise this side could not
    /// tell doorbells there from bytes of the stream, and would not see the end behind them.
    #[inline]
    pub fn does_peer_come_back(&self) -> bool {
        self.peer_said() & (flag::STOPS | flag::LEAVES) != 0
    }

    /// Announces why this side wants the connection back in the kernel, or keeps it there.
    pub fn say_reason(&self, reason: Reason) {
        // SAFETY: a word of the slot, which only this side writes.
        unsafe { self.state(self.side).set(word::REASON, u64::from(reason as u16)) };
    }

    /// Whether the peer has finished all writes that it began before it could see that this side
    /// stops, so that it will not switch any more. This side has passed a barrier after announcing
    /// that.
    pub fn has_peer_written(&self) -> bool {
        self.peer_said() & flag::LEAVES != 0 || self.peer_word(word::WRITING).bits(1) == 0
    }

    /// Whether the peer no longer writes to the ring, and no longer rings. This side has announced
    /// that it stops, and passed a barrier after that.
    pub fn is_peer_quiet(&self) -> bool {
        let rang = self.peer_word(word::RANG).bits(u64::from(u32::MAX));
        let ringing = self.peer_word(word::RINGING);
        self.peer_said() & flag::LEAVES != 0
            || self.peer_word(word::WRITING).bits(1) == 0 && ringing.is(rang)
    }

    /// Number of bytes that the peer, which is quiet, has sent through the kernel before its stream
    /// came back there. `None`: all of them are bytes of the stream.
    pub fn peer_left_at(&self) -> Option<u64> {
        let switched = self.peer_switched()?;
        let has_said = self.peer_said() & flag::LEAVES != 0;
        let rang = || switched.wrapping_add(self.peer_rang());
        // CLAIM: a place in the peer's own stream, which a wrong one garbles.
        Some(if has_said { self.peer_word(word::LEFT_AT).raw() } else { rang() })
    }

    /// Number of doorbells that the peer has rung, without one that it is ringing now.
    pub fn peer_rang(&self) -> u64 {
        // CLAIM: as above.
        self.peer_word(word::RANG).raw() >> 32
    }

    /// The process that holds the peer's end, and its descriptor there, as the peer announces them.
    pub fn peer_descriptor(&self) -> Option<(u32, i32)> {
        // CLAIM: where to look; the socket there has to have the cookie that the monitor saw.
        let said = self.peer_word(word::DESCRIPTOR).raw();
        let number = (said as u32).checked_sub(1)?;
        Some(((said >> 32) as u32, i32::try_from(number).ok()?))
    }

    /// Announces the descriptor that this side has in this process.
    pub fn say_descriptor(&self, descriptor: i32) {
        let number = u64::try_from(descriptor + 1).unwrap_or(0);
        let number = u64::from(process::number().unsigned_abs()) << 32 | number;
        // SAFETY: a word of the slot, which only this side writes.
        unsafe { self.state(self.side).set(word::DESCRIPTOR, number) };
    }

    fn peer_word(&self, at: usize) -> Claimed {
        // SAFETY: a word of the slot.
        unsafe { self.state(self.side.other()).load(at) }
    }

    /// Writes to the ring, with its lock held, unless the peer has announced that it stops reading,
    /// or one of `refusing`. `write` returns `None` if it did not write.
    #[inline]
    pub fn write<T>(&self, refusing: u64, write: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut state = self.state(self.side);
        // SAFETY: words of the slot; only this side writes it, with the lock held.
        let before = unsafe { state.load(word::WRITING) };
        // CLAIM: it only tells the peer whether it has to wait for this side.
        let before = before.raw();
        // SAFETY: see above.
        unsafe { state.set(word::WRITING, before | 1) };
        // A peer that has stopped passes a barrier, and then looks at this word.
        state.barrier();
        let may_write = self.peer_said() & (flag::STOPS | refusing) == 0;
        let written = if may_write { write() } else { None };
        let step = if written.is_some() { 1 } else { u64::MAX };
        let after = (before | 1).wrapping_add(step);
        // SAFETY: see above.
        unsafe { state.store(word::WRITING, after) };
        written
    }

    /// Begins to receive through the kernel. False: the peer has stopped, which has to be handled
    /// first.
    pub fn begin_receiving(&self) -> bool {
        self.shared_word(self.side, word::RECEIVING).add(1);
        let is_asked = self.peer_said() & flag::STOPS != 0;
        if is_asked {
            self.end_receiving();
        }
        !is_asked
    }

    /// Ends receiving through the kernel.
    pub fn end_receiving(&self) {
        self.shared_word(self.side, word::RECEIVING).sub(1);
    }

    /// Whether the peer can tell doorbells from bytes of the stream, whenever it looks next. This
    /// side has announced that it stops.
    pub fn tells_doorbells(&self) -> bool {
        let receiving = self.shared_word(self.side.other(), word::RECEIVING).load();
        let said = self.peer_said();
        said & flag::LOOKS != 0 || said & flag::COUNTS != 0 && receiving.is(0)
    }

    /// Begins to ring a doorbell. False: the peer would take it for a byte of the stream.
    pub fn begin_ringing(&self) -> bool {
        self.shared_word(self.side, word::RINGING).add(1);
        self.peer_said() & flag::STOPS == 0
    }

    /// Counts the doorbell that is about to ring. While it rings, this side's stream cannot come
    /// back into the kernel, so all bytes there are doorbells.
    pub fn counts_doorbell(&self) {
        self.shared_word(self.side, word::RANG).add(1 << 32);
    }

    /// Takes back the count of a doorbell that was not sent.
    pub fn has_not_rung(&self) {
        self.shared_word(self.side, word::RANG).sub(1 << 32);
    }

    /// Ends ringing, whether the doorbell was sent or not.
    pub fn end_ringing(&self) {
        self.shared_word(self.side, word::RANG).add(1);
    }

    /// A word that both sides write.
    fn shared_word(&self, of: Side, word: usize) -> SharedWord<'_> {
        let at = self.state(of).at().start();
        // SAFETY: words are offsets in the state of a side, which is inside the slot.
        let place = unsafe { at.add(word) };
        // SAFETY: slots stay mapped, words are aligned, and both sides access this one only as an
        // atomic.
        unsafe { SharedWord::at(place) }
    }

    /// Records the core on which this side waits, and returns whether the peer waited on the same
    /// one.
    pub fn shares_core(&self) -> bool {
        let (core, by_board) = (process::core(), self.core_of_peer_board());
        let mut state = self.state(self.side);
        // SAFETY: a word of the slot.
        if !unsafe { state.load(word::CORE) }.is(core) {
            // SAFETY: as above.
            unsafe { state.set(word::CORE, core) };
        }
        let peer = self.state(self.side.other());
        // SAFETY: as above.
        core != 0 && by_board.unwrap_or_else(|| unsafe { peer.load(word::CORE) }).is(core)
    }

    /// Number of bytes in this side's ring that the peer has not taken.
    pub fn unreceived_bytes(&self) -> u64 {
        // SAFETY: a word of the slot.
        let sent = unsafe { self.state(self.side).load(word::SENT_BYTES) };
        let received = self.peer_word(word::RECEIVED_BYTES);
        // CLAIM: it tells a program about the peer's progress, or that the peer has reset the
        // connection. Both are the peer's to decide.
        sent.raw().saturating_sub(received.raw())
    }

    /// Number of bytes in the peer's ring that this side has not taken.
    pub fn unread_bytes(&self) -> u64 {
        // SAFETY: a word of the slot.
        let received = unsafe { self.state(self.side).load(word::RECEIVED_BYTES) };
        // CLAIM: compared with what is in the ring.
        self.peer_word(word::SENT_BYTES).raw().saturating_sub(received.raw())
    }

    /// Adds to one of the counters. The lock of its direction has to be held for an exact count.
    #[inline]
    pub fn count(&self, word: usize, by: u64) {
        let mut state = self.state(self.side);
        // SAFETY: a word of the slot.
        let before = unsafe { state.load(word) };
        // CLAIM: counters are only displayed.
        let before = before.raw();
        // SAFETY: as above.
        unsafe { state.set(word, before.wrapping_add(by)) };
    }
}
