// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving that takes nothing out of the ring: `MSG_PEEK`, in one piece for several parts, and
//! receiving without room.

use crate::data::receiving::Attempt;
use crate::kernel::parts::Parts;
use crate::kernel::{errno, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::{In, Slot};
use crate::waiting::sleep;
use core::slice;
use core::sync::atomic::Ordering;
use freeport_ring::bytes::Read;

/// Largest number of bytes that are received together in memory of the library.
const BYTES: usize = 1 << 20;

/// Lets `look` fill one piece of memory, and copies that to the parts after their first `before`
/// bytes. Returns the result of `look`.
pub fn in_one_piece(
    parts: Parts<'_>,
    before: usize,
    look: impl FnOnce(Parts<'_>) -> Option<isize>,
) -> Option<isize> {
    let bytes = parts.bytes().unwrap_or(0).saturating_sub(before).min(BYTES);
    let Ok(memory) = raw::map(bytes, false, None) else {
        return Some(errno::fail(libc::ENOMEM));
    };
    let part = libc::iovec { iov_base: memory.cast(), iov_len: bytes };
    let seen = look(Parts::one(&part));
    let there = seen.and_then(|seen| usize::try_from(seen).ok()).unwrap_or(0);
    let mut done = 0;
    let fill = |at: *mut u8, room: usize, _| {
        let count = room.min(there - done);
        // SAFETY: `done` is at most `there`, which is at most the size of the memory.
        let from = unsafe { memory.add(done) };
        // SAFETY: `count` is at most what is left of the memory, and at most the part's room. The
        // memory was just mapped, so the application's is elsewhere.
        unsafe { core::ptr::copy_nonoverlapping(from, at, count) };
        done += count;
        count
    };
    // SAFETY: the application gave the parts to be filled.
    unsafe { parts.each(before, fill) };
    raw::unmap(memory.cast(), bytes);
    seen
}

impl Stream {
    /// Copies bytes of the ring into one part without taking them.
    pub fn peek_ring(&self, slot: &Slot, parts: Parts<'_>) -> Attempt {
        let shared = self.shared;
        let Some(mut half) = shared.receive.take(shared.is_alone()) else { return Attempt::Nested };
        if !self.is_in(slot, phase::RECEIVES) {
            return Attempt::Left;
        }
        let mut last = Attempt::Nothing;
        let peeked = self.with_receiver(slot, &mut half, |receiver| {
            self.peek_first(slot, receiver, parts, &mut last)
        });
        drop(half);
        match peeked {
            Some(0) => last,
            Some(count) => Attempt::Received(count),
            None => self.without_ring(),
        }
    }

    fn peek_first(
        &self,
        slot: &Slot,
        receiver: &mut In,
        parts: Parts<'_>,
        last: &mut Attempt,
    ) -> usize {
        let Some((at, bytes)) = parts.behind(0) else { return 0 };
        // SAFETY: memory that the application gave to be filled.
        let into = unsafe { slice::from_raw_parts_mut(at.cast::<u8>(), bytes) };
        match slot.peek(self, receiver, into) {
            Some(Read::Bytes(count)) => return count,
            Some(Read::Nothing) => *last = Attempt::Nothing,
            Some(Read::End) => *last = Attempt::End,
            Some(Read::Moved { .. }) | None => *last = Attempt::Broken,
        }
        0
    }

    /// Copies bytes of the ring without taking them, after `before` bytes of the kernel that are in
    /// the parts already, if the kernel has no more.
    #[cold]
    pub fn peek_behind_kernel(&self, parts: Parts<'_>, before: usize) -> Option<usize> {
        let shared = self.shared;
        let exists = || shared.phase() & (phase::ATTACHED | phase::STOPS) == phase::ATTACHED;
        let slot = self.slot().filter(|_| exists())?;
        let mut half = shared.receive.take(shared.is_alone())?;
        let taken = shared.kernel_received.load(Ordering::Acquire);
        if !exists() || slot.peer_switched()? != taken + before as u64 {
            return None;
        }
        let look = |part: Parts<'_>| {
            let (at, bytes) = part.behind(0)?;
            // SAFETY: memory given to be filled.
            let into = unsafe { slice::from_raw_parts_mut(at.cast::<u8>(), bytes) };
            let peek = |receiver: &mut In| slot.peek(self, receiver, into);
            match self.with_receiver(&slot, &mut half, peek)? {
                Some(Read::Bytes(count)) => Some(count.cast_signed()),
                _ => None,
            }
        };
        in_one_piece(parts, before, look).and_then(|seen| usize::try_from(seen).ok())
    }

    /// Waits until more than `seen` bytes are there, which is `None`; or returns that number, if
    /// the wait fails.
    #[cold]
    pub fn wait_for_more(&self, descriptor: i32, slot: &Slot, seen: usize) -> Option<isize> {
        let is_over =
            || self.has_read_end(slot) || self.come(slot).is_none_or(|bytes| bytes > seen);
        match sleep::until(self, descriptor, slot, is_over) {
            Ok(()) => None,
            Err(_) => Some(seen.cast_signed()),
        }
    }

    /// Number of bytes that have arrived. `None`: not known now.
    fn come(&self, slot: &Slot) -> Option<usize> {
        let mut half = self.shared.receive.take(self.shared.is_alone())?;
        self.with_receiver(slot, &mut half, |receiver| slot.available(self, receiver))?
    }

    /// Receives into no room, which waits until there are bytes, or until the end.
    pub fn receive_nothing(&self, descriptor: i32, slot: &Slot, flags: i32) -> Option<isize> {
        let mut byte = [0_u8];
        let part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
        let flags = flags & !(libc::MSG_TRUNC | libc::MSG_WAITALL) | libc::MSG_PEEK;
        let there = self.receive_by_ring(descriptor, slot, Parts::one(&part), flags, 0)?;
        // After its wait, TCP has nothing to receive, whatever has ended the wait.
        let is_over = matches!(errno::get(), libc::EAGAIN | libc::EINTR);
        if there < 0 && is_over && self.blocks(flags) && !self.is_unix() {
            return Some(0);
        }
        Some(there.min(0))
    }
}
