// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a connection comes back into the kernel, for the next user of the socket: another program,
//! another process, or functions that bypass the library.
//!
//! A side that wants that *leaves* its ring, so that it sends through the kernel again; *stops*
//! reading the other ring, and announces where; and rings a last doorbell. The peer notices with
//! its next operation. It leaves its own ring, sends the bytes that were not read there again
//! through the kernel, and reads what is left in the other ring before it continues in the kernel.
//!
//! The side does not wait for a peer that does not look. If the peer is not writing at the moment,
//! and this side has passed a barrier, the peer cannot write any more without seeing that it must
//! not: so the number of its doorbells and the contents of its ring are known. If bytes were not
//! read, this side sends them in the peer's place, with a copy of the peer's socket
//! (`pidfd_getfd`). If it cannot get that copy, it waits.
//!
//! Bytes that came through the kernel before the peer switched, and were not read, lie there before
//! doorbells that have to be dropped. So they are taken out and given back to the peer, which sends
//! them again before the others.

pub mod buffer;
pub mod resending;
pub mod standing_in;
pub mod steps;
pub mod straying;

use crate::kernel::raw;
use crate::kernel::scratch::Scratch;
use crate::process::barrier;
use crate::returning::resending::Resent;
use crate::state::connection::{HeldHalf, phase};
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use crate::waiting::epoll;
use crate::waiting::looks::{LOOKS, Looks, YIELDS, are_out};
use crate::waiting::patience::{FOLLOWER_TICKS, Patience};
use core::ptr;
use core::sync::atomic::Ordering;
use freeport_ring::bytes::Read;
use freeport_ring::{ReceiverCursor, SenderCursor};
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::{REFUND_BYTES, flag};

/// Milliseconds that a side that wants a connection back waits for the peer to notice, and for
/// bytes or room in the kernel.
pub const PATIENCE: u32 = 10_000;
/// The same for a peer that is marked as writing or ringing. A peer that does not get the
/// processor, or is stopped there, may take long, but the wait is bounded.
const PATIENCE_WITH_BUSY: u32 = 30_000;
/// The same if the peer's process has exited, and another one may hold its socket; and if the peer
/// may be the one that makes this side wait.
const PATIENCE_WITH_GONE: u32 = 2_000;
/// Ticks to wait for bytes that the peer has sent already: about ten seconds.
const OWN_TICKS: u64 = 24_000_000_000;
/// Ticks to wait for the peer's part, over all calls: about half a minute. A peer may be willing
/// and not get the processor.
const PEER_TICKS: u64 = 72_000_000_000;
/// Number of looks after which a peer that has not noticed counts as one that does not look: about
/// 20 milliseconds after the yields.
const PEER_LOOKS: u32 = LOOKS + YIELDS + 20;
/// How far the connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Both streams are the kernel's.
    Done,
    /// The peer, or another thread, has to do something first.
    Waits,
    /// The rest of the ring has to be read first.
    Reads,
    /// It cannot come back: the peer is gone, and has left bytes in the ring.
    Fails,
}

/// Both directions of a socket, held.
type Halves<'a> = (HeldHalf<'a, SenderCursor>, HeldHalf<'a, ReceiverCursor>);

impl Stream {
    /// Whether an operation on the rings has to be done through the kernel instead, or tried again.
    /// Moves the connection back as far as possible.
    #[inline]
    pub fn has_left_rings(&self, descriptor: i32) -> bool {
        let is_returning = self.is_returning(self.shared.phase());
        if is_returning {
            self.proceed_returning(descriptor);
        }
        is_returning
    }

    /// Moves the connection back as far as possible now.
    #[cold]
    pub fn proceed_returning(&self, descriptor: i32) {
        if self.shared.is(phase::STRAYS) {
            return self.meets_stray(descriptor);
        }
        if self.return_now(descriptor, None) == Progress::Waits {
            // Without any lock held that others may wait for.
            raw::yield_now();
        }
    }

    /// Brings both streams back into the kernel for that reason, where they stay, and waits until
    /// they are there.
    ///
    /// False: they are not, since the peer is gone and has left bytes in the ring. If the peer is
    /// alive and does not look at such bytes, the connection ends.
    #[cold]
    pub fn bring_back(&self, descriptor: i32, reason: Reason) -> bool {
        self.ends_for_real();
        self.keep(reason);
        let (mut waited, mut looks) = (0, Looks::new());
        loop {
            match self.return_now(descriptor, Some(looks.done)) {
                Progress::Done => return true,
                Progress::Fails => return false,
                Progress::Waits | Progress::Reads if looks.again() => {}
                _ if waited < self.patience(descriptor, reason) => {
                    raw::sleep_milliseconds(1);
                    waited += 1;
                }
                _ => break,
            }
        }
        self.ends_for(Reason::PeerAway);
        self.give_up(descriptor);
        false
    }

    /// Number of milliseconds that the peer has for its part in bringing a connection back.
    fn patience(&self, descriptor: i32, reason: Reason) -> u32 {
        // The peer itself may have written that the monitor wants it.
        if reason == Reason::Recalled || self.is_peers_process_gone() {
            PATIENCE_WITH_GONE
        } else if self.is_peer_quiet(descriptor) {
            PATIENCE
        } else {
            PATIENCE_WITH_BUSY
        }
    }

    /// One attempt. `wants`: this side wants it itself, and has looked that many times already.
    fn return_now(&self, descriptor: i32, wants: Option<u32>) -> Progress {
        let shared = self.shared;
        if wants.is_some() && !self.can_ring(descriptor) {
            return Progress::Waits;
        }
        let alone = shared.is_alone();
        let (Some(send), Some(receive)) = (shared.send.take(alone), shared.receive.take(alone))
        else {
            return Progress::Waits;
        };
        let mut halves = (send, receive);
        let progress = match self.slot().filter(|_| shared.is(phase::ATTACHED)) {
            Some(slot) if wants.is_some() || shared.is(phase::STOPS) => {
                let looks = wants.unwrap_or_default();
                self.stop_and_leave(descriptor, &slot, &mut halves, looks)
            }
            Some(slot) => self.follow_peer(descriptor, &slot, &mut halves),
            None => Progress::Done,
        };
        drop(halves);
        let is_over = !shared.is(phase::ATTACHED);
        if is_over && !self.local.slot.swap(ptr::null_mut(), Ordering::Relaxed).is_null() {
            self.local.ends.forget();
        }
        if shared.is(phase::LEAVES) && !shared.is(phase::LOOKS) {
            epoll::has_left(self);
        }
        progress
    }

    /// Whether the peer is not writing or ringing, or is gone.
    fn is_peer_quiet(&self, descriptor: i32) -> bool {
        self.slot().is_none_or(|slot| slot.is_peer_quiet() || self.is_peer_gone(descriptor, &slot))
    }

    /// Whether this side can wake the peer, because it has switched, or need not.
    fn can_ring(&self, descriptor: i32) -> bool {
        let Some(slot) = self.slot().filter(|_| self.shared.is(phase::ATTACHED)) else {
            return true;
        };
        if self.shared.phase() & (phase::SENDS | phase::LEAVES) == 0 && slot.next_header(self) != 0
        {
            self.switch_sending(descriptor);
            // A side that has ended its stream in the kernel has woken the peer by that.
            return self.shared.is(phase::SENDS) || slot.said() & flag::DECLINED != 0;
        }
        true
    }

    /// This side wants both streams back.
    fn stop_and_leave(
        &self,
        descriptor: i32,
        slot: &Slot,
        halves: &mut Halves<'_>,
        looks: u32,
    ) -> Progress {
        let shared = self.shared;
        let before = shared.phase();
        if before & phase::STOPS == 0 {
            if self.is_peer_gone(descriptor, slot) && self.has_unread(slot, halves) {
                return Progress::Fails;
            }
            if !self.leave(halves) {
                return Progress::Waits;
            }
            match self.stop(slot, halves) {
                Progress::Done => {}
                other => {
                    shared.unmark((phase::LEAVES | phase::MOVES | phase::STOPS) & !before);
                    return other;
                }
            }
        }
        if !self.says_what_it_wants(descriptor, slot, halves) {
            return Progress::Waits;
        }
        let has_left = slot.peer_said() & flag::LEAVES != 0;
        if !has_left && self.is_peer_gone(descriptor, slot) {
            if self.is_owed(slot, halves) {
                return Progress::Fails;
            }
            if slot.peer_switched().is_some() {
                self.drop_doorbells(descriptor, u64::MAX);
            }
        } else {
            let said = slot.peer_said();
            // Whether the kernel has no doorbells that the peer would take for bytes.
            let can_look = slot.tells_doorbells() || !shared.is(phase::SENDS);
            let is_followed = said & flag::LEAVES != 0;
            let is_quiet = slot.is_peer_quiet() && (can_look || is_followed);
            // A peer that has left sends unread bytes again, and ends its stream in the kernel.
            let is_owed = !is_followed && (self.is_owed(slot, halves) || said & flag::ENDED != 0);
            if !is_quiet || is_owed && !(looks > PEER_LOOKS && self.stands_in(slot, halves)) {
                return Progress::Waits;
            }
            if !self.drop_doorbells_before_stream(descriptor, slot, looks <= PEER_LOOKS) {
                return Progress::Waits;
            }
        }
        self.has_returned(descriptor, slot, halves)
    }

    /// The peer wants both streams back.
    fn follow_peer(&self, descriptor: i32, slot: &Slot, halves: &mut Halves<'_>) -> Progress {
        let shared = self.shared;
        if !shared.is(phase::LEAVES) || shared.is(phase::MOVES) {
            // A side that has begun continues, whatever the peer announces now.
            let is_asked = shared.is(phase::MOVES) || slot.does_peer_come_back();
            let is_out = shared.is(phase::LOOKS) || are_out(&shared.kernel_receives);
            if !is_asked || !is_out || !self.leave(halves) {
                return Progress::Waits;
            }
            self.say_left(slot);
            let Some(sent) = self.send_again(descriptor, slot, halves) else {
                return Progress::Waits;
            };
            self.sends_through_kernel(descriptor, sent);
        }
        self.switch_receiving();
        let is_read = shared.is(phase::RECEIVES) || slot.peer_switched().is_none();
        let has_left = slot.peer_said() & flag::LEAVES != 0;
        let is_gone = !has_left && self.is_peer_gone(descriptor, slot);
        if !is_read || self.has_unread(slot, halves) {
            return Progress::Reads;
        }
        if !has_left && !is_gone && self.is_patient(descriptor) {
            return Progress::Waits;
        }
        if is_gone {
            self.drop_doorbells(descriptor, u64::MAX);
        }
        let has_dropped = self.drop_doorbells_before_stream(descriptor, slot, true);
        if !has_dropped && self.is_patient(descriptor) {
            return Progress::Waits;
        }
        self.has_returned(descriptor, slot, halves)
    }

    /// Whether the peer's end is closed, or its process has exited.
    pub fn is_peer_gone(&self, descriptor: i32, slot: &Slot) -> bool {
        let events = raw::events(descriptor, libc::POLLRDHUP);
        // Read after that: a peer announces that it leaves before it ends its stream.
        let (said, ended) = (slot.peer_said(), libc::POLLHUP | libc::POLLERR);
        // A peer that has ended its stream in the kernel may still be alive.
        let both = flag::LEAVES | flag::ENDED;
        let has_shut = said & flag::DECLINED != 0 || said & both == both;
        let ended = if has_shut { ended } else { ended | libc::POLLRDHUP };
        said & flag::CLOSED != 0
            || self.shared.phase() & (phase::KERNEL_END | phase::PEER_GONE) != 0
            || events & ended as u32 != 0
    }

    /// Whether the monitor has reported that the process with the peer's end has exited.
    fn is_peers_process_gone(&self) -> bool {
        self.slot().is_some_and(|slot| slot.peer_said() & flag::GONE != 0)
    }

    /// Whether the ring has unread bytes.
    fn has_unread(&self, slot: &Slot, (send, receive): &mut Halves<'_>) -> bool {
        self.leave_ends(send, receive);
        // An entry that moves the ring counts as well, to be sure.
        let receiver = slot.receiver(self, receive);
        let peeked = receiver.map(|mut receiver| receiver.peek(&mut [0]));
        matches!(peeked, Some(Ok(Read::Bytes(_) | Read::Moved { .. })))
    }

    /// Whether the peer has to send bytes again to this side, which has stopped.
    fn is_owed(&self, slot: &Slot, halves: &mut Halves<'_>) -> bool {
        slot.refunded() > 0 || self.has_unread(slot, halves)
    }

    /// Stops writing to the ring. False: a thread is sending through the kernel.
    fn leave(&self, (send, receive): &mut Halves<'_>) -> bool {
        let shared = self.shared;
        let before = shared.mark(phase::LEAVES | phase::MOVES);
        if !are_out(&shared.kernel_sends) {
            // Bits that were set before stay: the bytes owed were not sent again, and until then
            // nothing else is sent.
            shared.unmark((phase::MOVES | phase::LEAVES) & !before);
            return false;
        }
        self.leave_ends(send, receive);
        true
    }

    /// Announces that this side sends through the kernel from now on.
    fn say_left(&self, slot: &Slot) {
        if slot.said() & flag::LEAVES != 0 {
            // That was announced before.
            return;
        }
        let rang = self.shared.rang.load(Ordering::Relaxed);
        slot.say_left(self.shared.kernel_sent.load(Ordering::Acquire) + rang);
    }

    /// Stops reading the peer's ring, and announces that. It waits while other threads receive
    /// through the kernel, or have to first.
    fn stop(&self, slot: &Slot, halves: &mut Halves<'_>) -> Progress {
        let shared = self.shared;
        shared.mark(phase::STOPS);
        if !shared.is(phase::LOOKS) && !are_out(&shared.kernel_receives) {
            return Progress::Waits;
        }
        let left = self.unread_before_ring(slot);
        if !slot.prepares_again() {
            // A peer that was done before sends nothing again.
            if left > 0 || self.has_unread(slot, halves) {
                return Progress::Fails;
            }
        } else if left > REFUND_BYTES as u64 {
            // The application has to read some of the bytes first.
            slot.wants_nothing_yet();
            return Progress::Waits;
        }
        slot.say(flag::STOPS);
        barrier::pass();
        Progress::Done
    }

    /// Announces what the peer has to send again, and that this side sends through the kernel,
    /// unless that was announced. False: the peer may still be about to switch, so that the number
    /// of bytes in the kernel before that is unknown.
    fn says_what_it_wants(&self, descriptor: i32, slot: &Slot, halves: &Halves<'_>) -> bool {
        let is_asking = slot.is_asking_again();
        if !is_asking && slot.said() & flag::LEAVES != 0 {
            return true;
        }
        if is_asking && !slot.has_peer_written() && !self.is_peer_gone(descriptor, slot) {
            return false;
        }
        let left = if is_asking { self.unread_before_ring(slot) } else { 0 };
        let refunded = self.refund(descriptor, slot, left);
        let area = self.shared.receive.area.load(Ordering::Relaxed);
        let stopped = halves.1.cursor().stop().map(|stopped| (area, stopped));
        slot.say_stopped(stopped, refunded);
        if self.shared.is(phase::SENDS) && slot.peer_said() & flag::CLOSED == 0 {
            // A peer that closes would leave the doorbell unread, and the kernel would reset a
            // connection that has ended well.
            self.ring_once(descriptor, slot);
        }
        self.say_left(slot);
        true
    }

    /// Takes the bytes that came through the kernel before the peer switched, and gives them back.
    fn refund(&self, descriptor: i32, slot: &Slot, left: u64) -> u64 {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let mut patience = Patience(OWN_TICKS);
        let (mut scratch, mut done) = (Scratch::new(), 0);
        if left > REFUND_BYTES {
            self.break_off(descriptor);
            return 0;
        }
        while done < left {
            let room = scratch.bytes();
            let count = room.len().min(left - done);
            let room = room.get_mut(..count).unwrap_or_default();
            match raw::receive(descriptor, room, libc::MSG_DONTWAIT) {
                Ok(0) => break,
                Ok(count) => {
                    slot.give_back(done, room.get(..count).unwrap_or_default());
                    done += count;
                }
                Err(libc::EAGAIN) if patience.wait(descriptor, libc::POLLIN) => {}
                Err(libc::EAGAIN) => {
                    // Bytes that arrive later would be taken for something else.
                    self.break_off(descriptor);
                    break;
                }
                Err(_) => break,
            }
        }
        self.shared.kernel_received.fetch_add(done as u64, Ordering::Release);
        done as u64
    }

    /// Number of unread bytes that came through the kernel before the peer switched.
    fn unread_before_ring(&self, slot: &Slot) -> u64 {
        if self.shared.is(phase::RECEIVES) {
            return 0;
        }
        let read = self.shared.kernel_received.load(Ordering::Acquire);
        slot.peer_switched().map_or(0, |at| at.saturating_sub(read))
    }

    /// Sends the bytes again that the peer wants through the kernel, unless that was done; returns
    /// their number. `None`: the peer is about to announce what it wants, or to take it, or has no
    /// room now.
    fn send_again(&self, descriptor: i32, slot: &Slot, (send, _): &mut Halves<'_>) -> Option<u64> {
        let is_under_way = self.shared.backlog.is_under_way();
        if !is_under_way && slot.owes_again() {
            let sent = self.shared.kernel_sent.load(Ordering::Acquire);
            if !resending::begin(slot, &self.shared.backlog, sent) {
                self.break_off(descriptor);
                return Some(0);
            }
        } else if !is_under_way {
            let is_busy = slot.is_peer_busy_again() && !self.is_peer_gone(descriptor, slot);
            return if is_busy && self.is_patient(descriptor) {
                None
            } else {
                Some(slot.sent_by_peer())
            };
        }
        let backlog = &self.shared.backlog;
        let last = self.shared.send.area.load(Ordering::Relaxed);
        let waits = !self.shared.nonblocking.load(Ordering::Relaxed);
        let patience = Patience(if waits { FOLLOWER_TICKS } else { 0 });
        let until = (&send.cursor(), last);
        match resending::proceed(descriptor, slot, backlog, until, patience) {
            Resent::All => {}
            Resent::NoRoom if self.is_patient(descriptor) => {
                self.shared.mark(phase::OWES);
                epoll::waits_for_room(self);
                return None;
            }
            Resent::NoRoom => backlog.forget(),
            // The kernel accepts nothing, or the peer has broken the protocol.
            Resent::Failed => self.break_off(descriptor),
        }
        if self.shared.is(phase::OWES) {
            self.shared.unmark(phase::OWES);
            epoll::has_room(self);
        }
        Some(backlog.sent())
    }

    /// Whether the peer still has time for its part. If not, the connection is aborted.
    fn is_patient(&self, descriptor: i32) -> bool {
        let (now, since) = (raw::ticks(), self.shared.waits_since.load(Ordering::Relaxed));
        if since == 0 {
            self.shared.waits_since.store(now.max(1), Ordering::Relaxed);
            return true;
        }
        let ticks = if self.is_peers_process_gone() { FOLLOWER_TICKS } else { PEER_TICKS };
        let is_patient = now.wrapping_sub(since) < ticks;
        if !is_patient {
            self.break_off(descriptor);
        }
        is_patient
    }

    /// This side sends through the kernel: restores the socket's options and counts.
    fn sends_through_kernel(&self, descriptor: i32, sent_again: u64) {
        let shared = self.shared;
        let before = shared.phase();
        if before & phase::SENDS != 0 {
            let no_delay = i32::from(shared.no_delay.load(Ordering::Relaxed));
            _ = raw::set_option(descriptor, libc::IPPROTO_TCP, libc::TCP_NODELAY, &no_delay);
        }
        if before & phase::ENDED != 0 {
            raw::shutdown(descriptor, libc::SHUT_WR as usize);
        }
        let rang = shared.rang.swap(0, Ordering::Relaxed);
        shared.kernel_sent.fetch_add(rang.wrapping_add(sent_again), Ordering::Release);
        let of_sending =
            phase::SENDS | phase::PEER_GONE | phase::ENDED | phase::MOVES | phase::OWES;
        shared.unmark(of_sending | phase::LOOKS);
    }

    /// Both streams are in the kernel, unless the peer is about to announce what it wants.
    fn has_returned(&self, descriptor: i32, slot: &Slot, halves: &mut Halves<'_>) -> Progress {
        let shared = self.shared;
        let is_done = slot.refuses_again();
        let sent = if is_done { Some(0) } else { self.send_again(descriptor, slot, halves) };
        let Some(sent) = sent else { return Progress::Waits };
        self.sends_through_kernel(descriptor, sent);
        shared.mark(phase::STOPS | phase::HOLDS_SLOT);
        let low_water = shared.low_water.swap(0, Ordering::Relaxed);
        if low_water > 0 {
            let low_water = low_water.cast_signed();
            _ = raw::set_option(descriptor, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &low_water);
        }
        if shared.is(phase::READ_SHUT) {
            raw::shutdown(descriptor, libc::SHUT_RD as usize);
        }
        let rung = shared.rung.swap(0, Ordering::Relaxed);
        shared.kernel_received.fetch_add(rung, Ordering::Release);
        shared.claim_later();
        if self.is_unix() {
            // The kernel does not tell whether all bytes were counted.
            self.keep_unsaid(Reason::Uncounted);
        }
        shared.unmark(phase::OF_RINGS);
        Progress::Done
    }

    /// Sends again, in the peer's place, the bytes that this side has not read. False: the kernel
    /// does not allow it, or the peer has begun itself.
    fn stands_in(&self, slot: &Slot, (_, receive): &mut Halves<'_>) -> bool {
        if slot.has_been_taken_again() {
            return true;
        }
        let Some(socket) = standing_in::take(self) else { return false };
        let is_taken = slot.takes_again();
        if is_taken {
            let area = self.shared.receive.area.load(Ordering::Relaxed);
            let stopped = (area, receive.cursor());
            let (sent, is_all) = resending::send_for_peer(socket, slot, stopped);
            if !is_all {
                raw::shutdown(socket, libc::SHUT_RDWR as usize);
            } else if slot.peer_said() & flag::ENDED != 0 {
                raw::shutdown(socket, libc::SHUT_WR as usize);
            }
            slot.has_taken_again(sent);
        }
        _ = raw::close(socket);
        is_taken
    }

    /// The peer does not send what it owes: the connection ends, so that a part of the stream is
    /// not taken for all of it.
    pub fn give_up(&self, descriptor: i32) {
        raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
        let alone = self.shared.is_alone();
        let held = self.shared.send.take(alone).zip(self.shared.receive.take(alone));
        let slot = self.slot().filter(|_| self.shared.is(phase::ATTACHED));
        if let Some((mut halves, slot)) = held.zip(slot) {
            slot.say(flag::CLOSED | flag::ENDED | flag::RESET);
            self.shared.mark(phase::LEAVES);
            _ = self.has_returned(descriptor, &slot, &mut halves);
        }
        self.proceed(descriptor);
    }
}
