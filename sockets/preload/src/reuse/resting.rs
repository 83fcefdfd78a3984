// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From one connection over a stream to the next: how closing keeps the stream, and how the next
//! connection begins.
//!
//! Rings, counts and doorbells continue. Only the flags of the end are cleared, by the side that
//! closes second.

use super::entries::{self, Entry, For};
use super::{REUSED, is_allowed, listener};
use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use crate::state::table;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;
use freeport_sockets_proto::slab::rest::Step;

/// The phase of a connection whose stream can be kept, except for bits of its end.
const LEFT_KERNEL: u32 =
    phase::CLAIMED | phase::ATTACHED | phase::SENDS | phase::RECEIVES | phase::LOOKS;
/// The flags that the peer of such a connection has set, and those that it has not.
const SAID: u64 = flag::ATTACHED | flag::SWITCHED | flag::LOOKS | flag::REUSES;
const NOT_SAID: u64 = flag::STOPS
    | flag::LEAVES
    | flag::RECALLED
    | flag::GONE
    | flag::RESET
    | flag::DECLINED
    | flag::DEAF;

/// Keeps the stream of a connection whose last descriptor is about to be closed. False: it has to
/// be closed.
#[inline]
pub fn keeps(stream: &Stream, descriptor: i32) -> bool {
    stream.local.entry.load(Ordering::Relaxed) != 0 && rests(stream, descriptor)
}

fn rests(stream: &Stream, descriptor: i32) -> bool {
    let Some(entry) = entries::of(stream) else { return false };
    let can_rest = |slot: &Slot| {
        can_rest(stream, slot, entry)
            && (!stream.shared.is(phase::KEPT_ALIVE) || entry.keep_alive.put_back(descriptor))
    };
    let Some(slot) = stream.slot().filter(can_rest) else {
        let_go(entry);
        return false;
    };
    // The kernel keeps its registrations, since the socket stays open.
    epoll::forget_stream(stream, true);
    let Some(_held) = entries::hold() else {
        let_go(entry);
        return false;
    };
    stream.local.descriptor.store(entry.descriptor(), Ordering::Relaxed);
    slot.say_descriptor(entry.descriptor());
    take_doorbells(stream, &slot, descriptor);
    slot.say(flag::CLOSED | flag::ENDED | flag::RESTS);
    wake_peer(stream, &slot, entry.descriptor());
    entry.begins_to_rest();
    let is_kept = slot.rest_does(Step::Rest).is_some() || is_ready(entry, &slot);
    if is_kept {
        stream.local.copies.store(0, Ordering::Relaxed);
        entry.set_rests(true);
    } else {
        slot.unsay(flag::RESTS);
        entry.is_dropped();
    }
    is_kept
}

/// Stops keeping the stream of a connection, which continues or ends. This may run below a signal
/// handler: nothing else changes the entry of a connection that does not rest.
fn let_go(entry: &Entry) {
    let _held = entries::hold();
    if let Some((_, slot)) = entry.stream() {
        slot.rest_does(Step::Refuse);
    }
    entry.is_dropped();
}

/// A connection ends whose stream was not kept when it was closed.
pub fn has_ended(stream: &Stream) {
    if let Some(entry) = entries::of(stream) {
        let_go(entry);
    }
}

/// Whether nothing is unread or under way, and the socket is as it was at the beginning.
fn can_rest(stream: &Stream, slot: &Slot, entry: &Entry) -> bool {
    let shared = stream.shared;
    let known = phase::ENDED | phase::READ_SHUT | phase::CONNECTING | phase::KEPT_ALIVE;
    let known = LEFT_KERNEL | known;
    let phase = shared.phase();
    let said = slot.peer_said();
    let counts = [&shared.sleepers, &shared.kernel_sends, &shared.kernel_receives];
    is_allowed()
        && phase & !known == 0
        && phase & LEFT_KERNEL == LEFT_KERNEL
        && said & (SAID | NOT_SAID) == SAID
        && (said & flag::CLOSED == 0 || said & flag::RESTS != 0)
        && slot.next_header(stream) == 0
        && shared.is_alone()
        && shared.references.load(Ordering::Acquire) == 1
        && stream.local.copies.load(Ordering::Relaxed) == 1
        && counts.iter().all(|count| count.load(Ordering::SeqCst) == 0)
        && shared.low_water.load(Ordering::Relaxed) == 0
        && shared.error.load(Ordering::Relaxed) == 0
        && listens(entry)
}

/// Whether the listener still listens, if this side accepts.
fn listens(entry: &Entry) -> bool {
    match entry.is_for() {
        For::Connecting(_) => true,
        For::Accepting(number) => listener::is_open(number).is_some(),
    }
}

/// Takes all doorbells. No thread sleeps on the socket, so none is needed.
fn take_doorbells(stream: &Stream, slot: &Slot, descriptor: i32) {
    let rung = &stream.shared.rung;
    while slot.peer_rang() > rung.load(Ordering::Relaxed) {
        let mut bytes = [0; 64];
        match raw::receive(descriptor, &mut bytes, libc::MSG_DONTWAIT) {
            Ok(count @ 1..) => _ = rung.fetch_add(count as u64, Ordering::Relaxed),
            _ => break,
        }
    }
}

/// Wakes the peer if it sleeps on the connection, as the end of the kernel's stream would.
fn wake_peer(stream: &Stream, slot: &Slot, descriptor: i32) {
    let Some(mut half) = stream.shared.send.take(true) else { return };
    let wake = stream.with_sender(slot, &mut half, |sender| sender.ring().has_to_wake());
    drop(half);
    if wake == Some(true) {
        stream.ring_doorbell(descriptor, slot);
    }
}

/// Makes the stream ready for the next connection, if the peer had closed before. False: it is not.
fn is_ready(entry: &Entry, slot: &Slot) -> bool {
    if !slot.does_peer_rest() || !slot.is_drained() {
        slot.rest_is_over();
        return false;
    }
    slot.begins_anew();
    let is_open = match entry.is_for() {
        // The peer itself knows whether it looks.
        For::Connecting(_) => false,
        For::Accepting(number) => listener::is_open(number) == Some(true),
    };
    slot.rest_does(if is_open { Step::Ready } else { Step::Shut }).is_some()
}

/// Begins a new connection over a stream, with that descriptor. Entries are held.
pub fn begins(stream: &Stream, slot: &Slot, descriptor: i32, no_delay: bool) {
    let shared = stream.shared;
    shared.generation.fetch_add(1, Ordering::Relaxed);
    shared.operations.store(0, Ordering::Relaxed);
    shared.no_delay.store(no_delay, Ordering::Relaxed);
    shared.announced.store(1, Ordering::Relaxed);
    shared.send.was_full.store(false, Ordering::Relaxed);
    shared.send.has_reported_room.store(false, Ordering::Relaxed);
    shared.phase.store(LEFT_KERNEL, Ordering::SeqCst);
    stream.announce_data_awake(slot);
    slot.says_marks_are_enough(false);
    stream.announce_room_awake(slot);
    stream.local.asked.store(0, Ordering::Relaxed);
    stream.local.descriptor.store(descriptor, Ordering::Relaxed);
    stream.local.copies.store(1, Ordering::Relaxed);
    stream.local.registrations.store(0, Ordering::Relaxed);
    slot.say_descriptor(descriptor);
    REUSED.fetch_add(1, Ordering::Relaxed);
    table::clear(descriptor);
}

impl Stream {
    /// Makes the stream blocking or not, for the connection that begins over it.
    pub fn sets_blocking(&self, descriptor: i32, blocks: bool) {
        if self.shared.nonblocking.swap(!blocks, Ordering::Relaxed) == blocks {
            let flags = libc::O_RDWR | if blocks { 0 } else { libc::O_NONBLOCK };
            _ = raw::fcntl(descriptor, libc::F_SETFL, flags);
        }
    }
}
