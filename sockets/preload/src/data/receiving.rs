// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving: through the kernel as long as it has bytes of the stream, then through the ring.

use crate::data::peeking::in_one_piece;
use crate::kernel::next::next;
use crate::kernel::parts::Parts;
use crate::kernel::scratch::Scratch;
use crate::kernel::{errno, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::{In, Slot};
use crate::waiting::Wait;
use crate::waiting::sleep;
use core::slice;
use core::sync::atomic::Ordering;
use freeport_ring::bytes::Read;
use freeport_sockets_proto::slab::word;

/// The result of an attempt to receive.
pub enum Attempt {
    /// That number of bytes.
    Received(usize),
    /// There is nothing now.
    Nothing,
    /// There will be nothing more.
    End,
    /// The peer has broken the protocol.
    Broken,
    /// The thread itself holds the lock, below a signal handler.
    Nested,
    /// The stream is about to come back into the kernel, or has come back.
    Left,
}

/// Number of attempts of a non-blocking call while the connection comes back.
pub const ATTEMPTS: u32 = 100;

impl Stream {
    /// Receives. `kernel` does it through the kernel, and returns what the C library's function
    /// does.
    #[inline]
    pub fn receive(
        &self,
        descriptor: i32,
        parts: Parts<'_>,
        flags: i32,
        kernel: impl Fn() -> isize,
    ) -> isize {
        let _caller = self.enter(flags);
        let kernel = || self.unless_closed(&kernel);
        for attempt in 0_u32.. {
            let descriptor = self.open_as(descriptor);
            if let Some(received) = self.receive_anywhere(descriptor, parts, flags, kernel) {
                return received;
            }
            if attempt > ATTEMPTS && !self.blocks(flags) {
                break;
            }
        }
        // The peer is slow to bring the connection back.
        errno::fail(libc::EAGAIN)
    }

    /// Receives once. `None`: the stream has left the kernel in the meantime, or has come back.
    fn receive_anywhere(
        &self,
        descriptor: i32,
        parts: Parts<'_>,
        flags: i32,
        kernel: impl Fn() -> isize,
    ) -> Option<isize> {
        self.proceed(descriptor);
        if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
            return Some(kernel());
        }
        if self.shared.is(phase::RECEIVES)
            && let Some(slot) = self.slot()
        {
            return self.receive_by_ring(descriptor, &slot, parts, flags, 0);
        }
        // `MSG_PEEK` may stay with the kernel, unless the stream is about to leave it.
        let phase = self.shared.phase();
        let may_leave = match flags & libc::MSG_PEEK {
            0 => phase & phase::NEVER == 0,
            _ => phase & (phase::NEVER | phase::CLAIMED) == phase::CLAIMED,
        };
        if flags & libc::MSG_WAITALL != 0 && may_leave && parts.bytes() != Some(0) {
            return Some(self.receive_all(descriptor, parts, flags & !libc::MSG_WAITALL, 0));
        }
        let is_taken = flags & libc::MSG_PEEK == 0;
        if let Some(left) = self.left_before_ring()
            && let Some((at, count)) = parts.behind(0)
        {
            let count = count.min(left);
            return self.receive_once(descriptor, is_taken, true, || {
                next!(recv(descriptor: i32, at: *mut libc::c_void, count: usize, flags: i32)
                    -> isize)
            });
        }
        let received = self.receive_once(descriptor, is_taken, false, kernel)?;
        Some(self.with_rest_in_ring(descriptor, parts, flags, received))
    }

    /// Adds bytes from the ring to those that the kernel has returned. Otherwise the caller would
    /// take a short result for all there was.
    fn with_rest_in_ring(
        &self,
        descriptor: i32,
        parts: Parts<'_>,
        flags: i32,
        received: isize,
    ) -> isize {
        let Some(before @ 1..) = usize::try_from(received).ok() else { return received };
        let continues = parts.bytes().is_some_and(|wanted| before < wanted);
        if !continues {
            return received;
        }
        if flags & libc::MSG_PEEK != 0 {
            let behind = self.peek_behind_kernel(parts, before).unwrap_or(0);
            return (before + behind).cast_signed();
        }
        self.switch_receiving();
        let Some(slot) = self.slot().filter(|_| self.shared.is(phase::RECEIVES)) else {
            return received;
        };
        let flags = flags | libc::MSG_DONTWAIT;
        if flags & libc::MSG_TRUNC != 0 && !self.is_unix() {
            if slot.next_header(self) == 0 {
                return received;
            }
            let wanted = parts.bytes().unwrap_or(before);
            return self
                .receive_nowhere(descriptor, &slot, wanted, flags, before)
                .unwrap_or(received);
        }
        self.receive_by_ring(descriptor, &slot, parts, flags, before).unwrap_or(received)
    }

    /// Whether the connection comes back before this side has begun to read from the ring. It has
    /// to read exactly the bytes from the kernel that came before the ring, since later ones follow
    /// there.
    fn comes_back_before_ring(&self) -> bool {
        let (coming_back, ring) = (phase::ATTACHED | phase::LEAVES, phase::RECEIVES);
        self.shared.phase() & (coming_back | ring) == coming_back
            && self.slot().is_some_and(|slot| slot.peer_switched().is_some())
    }

    /// Number of those bytes that are left.
    fn left_before_ring(&self) -> Option<usize> {
        let at = self.slot().filter(|_| self.comes_back_before_ring())?.peer_switched()?;
        let left = at.saturating_sub(self.shared.kernel_received.load(Ordering::Acquire));
        usize::try_from(left).ok().filter(|left| *left > 0)
    }

    /// Receives through the kernel until all bytes are there, for `MSG_WAITALL`; `before` are there
    /// already. The kernel itself would keep waiting when the stream continues in the ring.
    fn receive_all(&self, descriptor: i32, parts: Parts<'_>, flags: i32, before: usize) -> isize {
        let Some(wanted) = parts.bytes() else { return errno::fail(libc::EINVAL) };
        let mut received = before;
        loop {
            let descriptor = self.open_as(descriptor);
            if self.shared.is(phase::RECEIVES)
                && let Some(slot) = self.slot()
            {
                let flags = flags | libc::MSG_WAITALL;
                match self.receive_by_ring(descriptor, &slot, parts, flags, received) {
                    Some(received) => return received,
                    None => continue,
                }
            }
            let Some((at, count)) = parts.behind(received) else { return received as isize };
            let left = self.left_before_ring();
            let (count, is_bounded) = (count.min(left.unwrap_or(count)), left.is_some());
            let more =
                self.receive_once(descriptor, flags & libc::MSG_PEEK == 0, is_bounded, || {
                    next!(recv(descriptor: i32, at: *mut libc::c_void, count: usize, flags: i32)
                    -> isize)
                });
            match more {
                None => {}
                Some(1..) => received += more.unwrap_or(0) as usize,
                Some(result) if received == 0 => return result,
                Some(_) => return received as isize,
            }
            if received == wanted || received > 0 && flags & libc::MSG_PEEK != 0 {
                return received as isize;
            }
            self.proceed(descriptor);
        }
    }

    /// Calls the kernel once, and returns the number of bytes of the stream. `None`: only doorbells
    /// came, for data in the ring; or the stream is coming back.
    fn receive_once(
        &self,
        descriptor: i32,
        is_taken: bool,
        is_bounded: bool,
        kernel: impl Fn() -> isize,
    ) -> Option<isize> {
        let shared = self.shared;
        shared.kernel_receives.fetch_add(1, Ordering::SeqCst);
        // A thread that moves the stream looks at this count after it has changed the phase.
        let must_be_bounded = !is_bounded && self.comes_back_before_ring();
        let is_elsewhere = shared.is(phase::RECEIVES) || shared.is(phase::ATTACHED | phase::STOPS);
        if must_be_bounded || is_elsewhere {
            shared.kernel_receives.fetch_sub(1, Ordering::SeqCst);
            self.has_left_rings(descriptor);
            return None;
        }
        let counts = phase::ATTACHED | phase::LOOKS | phase::LEAVES;
        let is_counted = shared.phase.load(Ordering::SeqCst) & counts == phase::ATTACHED;
        let counted = self.slot().filter(|_| is_counted);
        if counted.is_some_and(|slot| !slot.begin_receiving()) {
            shared.kernel_receives.fetch_sub(1, Ordering::SeqCst);
            self.has_left_rings(descriptor);
            return None;
        }
        let received = kernel();
        if let Some(slot) = counted {
            slot.end_receiving();
        }
        let data = match received {
            1.. => self.without_doorbells(received as usize) as isize,
            other => self.received_nothing(other),
        };
        if data > 0 && is_taken {
            shared.kernel_received.fetch_add(data as u64, Ordering::Release);
        }
        if received > data && is_taken {
            shared.rung.fetch_add((received - data) as u64, Ordering::Relaxed);
        }
        shared.kernel_receives.fetch_sub(1, Ordering::SeqCst);
        if received > 0 && data == 0 {
            self.switch_receiving();
            return None;
        }
        if received > data {
            // A doorbell came with the last bytes, and will not ring for the ring again.
            self.proceed(descriptor);
        }
        if data > 0 && is_taken {
            self.has_moved(descriptor, data as u64);
        }
        Some(data)
    }

    /// Number of the received bytes that belong to the stream: those after the place where it left
    /// the kernel are doorbells.
    fn without_doorbells(&self, received: usize) -> usize {
        let slot = self.slot().filter(|_| self.shared.is(phase::ATTACHED));
        let Some(at) = slot.and_then(|slot| slot.peer_switched()) else { return received };
        let before = self.shared.kernel_received.load(Ordering::Acquire);
        let left = at.saturating_sub(before);
        usize::try_from(left).map_or(received, |left| received.min(left))
    }

    /// Receives through the ring, after `before` bytes that are there already.
    pub fn receive_by_ring(
        &self,
        descriptor: i32,
        slot: &Slot,
        parts: Parts<'_>,
        flags: i32,
        before: usize,
    ) -> Option<isize> {
        let Some(wanted) = parts.bytes() else { return Some(errno::fail(libc::EINVAL)) };
        if wanted == 0 {
            return self.receive_nothing(descriptor, slot, flags);
        }
        if flags & libc::MSG_TRUNC != 0 && !self.is_unix() {
            return self.receive_nowhere(descriptor, slot, wanted, flags, before);
        }
        if parts.has_null() {
            return Some(errno::fail(libc::EFAULT));
        }
        let peeks = flags & libc::MSG_PEEK != 0;
        if peeks && !parts.is_one() {
            return in_one_piece(parts, 0, |part| {
                self.receive_by_ring(descriptor, slot, part, flags, 0)
            });
        }
        let blocks =
            flags & libc::MSG_DONTWAIT == 0 && !self.shared.nonblocking.load(Ordering::Relaxed);
        let all = flags & libc::MSG_WAITALL != 0 && !peeks;
        let least = if all { wanted } else { self.least_bytes().min(wanted) };
        let (mut received, mut wait) = (before, Wait::new());
        loop {
            let descriptor = self.open_as(descriptor);
            // Before the look at the ring: bytes written before the end are there.
            let has_end = self.has_read_end(slot);
            let attempt = if peeks {
                self.peek_ring(slot, parts)
            } else {
                self.take_from_ring(descriptor, slot, parts, received)
            };
            match attempt {
                Attempt::Received(count) if peeks => {
                    // Unix sockets return what is there.
                    let waits = flags & libc::MSG_WAITALL != 0 && !self.is_unix();
                    let is_enough = count == wanted || !waits && count >= least;
                    if is_enough || !blocks || has_end {
                        return Some(count.cast_signed());
                    }
                    return self.wait_for_more(descriptor, slot, count);
                }
                Attempt::Received(count) => {
                    received += count;
                    if received >= least || !blocks {
                        break;
                    }
                    wait = Wait::new();
                    continue;
                }
                Attempt::Left | Attempt::Nothing if self.has_left_rings(descriptor) => {
                    if received == 0 {
                        return None;
                    }
                    if !all || !blocks {
                        break;
                    }
                    if !self.shared.is(phase::RECEIVES) {
                        let flags = flags & !libc::MSG_WAITALL;
                        return Some(self.receive_all(descriptor, parts, flags, received));
                    }
                    continue;
                }
                Attempt::Left if received == 0 => return None,
                Attempt::Left => break,
                Attempt::End | Attempt::Nothing if received == 0 && has_end => {
                    return Some(self.end_of_stream());
                }
                Attempt::End => return Some(received as isize),
                Attempt::Nothing if has_end => break,
                Attempt::Broken if received == 0 => return Some(errno::fail(libc::ECONNRESET)),
                Attempt::Nested if received == 0 => return Some(errno::fail(libc::EAGAIN)),
                Attempt::Broken | Attempt::Nested => break,
                Attempt::Nothing => {}
            }
            if !blocks {
                if received > 0 {
                    break;
                }
                if self.waits_in_kernel() {
                    if self.prepare_kernel_wait(descriptor, slot, false) {
                        continue;
                    }
                } else if self.ask_kernel_at_times(descriptor) {
                    continue;
                }
                return Some(errno::fail(libc::EAGAIN));
            }
            if !wait.step(|| slot.shares_core()) {
                let exists = || match received {
                    0 => self.is_readable(slot),
                    // After the first bytes, each further one counts.
                    _ => self.has_data(slot) || self.has_read_end(slot),
                };
                match sleep::until(self, descriptor, slot, exists) {
                    // The slot may be another one, or none, by now.
                    Ok(()) if received == 0 => return None,
                    Ok(()) => {}
                    Err(_) if received > 0 => break,
                    Err(error) => return Some(errno::fail(error)),
                }
            }
        }
        let falls_short = flags & libc::MSG_WAITALL != 0 && !peeks && received < wanted;
        if falls_short && self.is_unix() && self.has_read_end(slot) && slot.next_header(self) == 0 {
            // The kernel looks for more, and consumes the error that it finds.
            self.take_error();
        }
        Some(received as isize)
    }

    /// Number of bytes that have to arrive before a waiting call receives them (`SO_RCVLOWAT`).
    fn least_bytes(&self) -> usize {
        if !self.shared.is(phase::WAITS_FOR_MORE) {
            return 1;
        }
        self.shared.low_water.load(Ordering::Relaxed) as usize
    }

    /// Sets that number.
    pub fn waits_for(&self, bytes: u32) {
        self.shared.low_water.store(bytes, Ordering::Relaxed);
        match bytes {
            0 | 1 => self.shared.unmark(phase::WAITS_FOR_MORE),
            _ => _ = self.shared.mark(phase::WAITS_FOR_MORE),
        }
    }

    /// Receives and discards bytes (`MSG_TRUNC`), as the kernel does with TCP: those that are
    /// there, or with `MSG_WAITALL` as many as are wanted; `before` have come already.
    #[inline(never)]
    fn receive_nowhere(
        &self,
        descriptor: i32,
        slot: &Slot,
        wanted: usize,
        flags: i32,
        before: usize,
    ) -> Option<isize> {
        let mut scratch = Scratch::new();
        let nowhere = scratch.bytes();
        let (at, room) = (nowhere.as_mut_ptr().cast(), nowhere.len());
        let peeks = flags & libc::MSG_PEEK != 0;
        let waits_for_all = flags & libc::MSG_WAITALL != 0 && !peeks;
        let mut received = before;
        while received < wanted {
            let iov_len = (wanted - received).min(room);
            let part = libc::iovec { iov_base: at, iov_len };
            let waits = if waits_for_all || received == 0 { 0 } else { libc::MSG_DONTWAIT };
            let flags = flags & !(libc::MSG_TRUNC | libc::MSG_WAITALL) | waits;
            if received > 0 && !waits_for_all && slot.next_header(self) == 0 {
                // An error of the connection is left for the next call.
                break;
            }
            match self.receive_by_ring(descriptor, slot, Parts::one(&part), flags, 0) {
                Some(more @ 1..) if !peeks => received += more.cast_unsigned(),
                Some(more) if more.cast_unsigned() == room => {
                    // There may be more than fits the scratch buffer.
                    let all = self.readable_bytes(descriptor).map_or(more, |all| all as isize);
                    return Some(all.clamp(more, wanted.cast_signed()));
                }
                result if received == 0 => return result,
                _ => break,
            }
        }
        Some(received.cast_signed())
    }

    #[inline]
    fn take_from_ring(
        &self,
        descriptor: i32,
        slot: &Slot,
        parts: Parts<'_>,
        skipped: usize,
    ) -> Attempt {
        let shared = self.shared;
        let Some(mut half) = shared.receive.take(shared.is_alone()) else { return Attempt::Nested };
        if !self.is_in(slot, phase::RECEIVES) {
            return Attempt::Left;
        }
        let done = self.with_receiver(slot, &mut half, |receiver| {
            self.read_parts(slot, receiver, parts, skipped)
        });
        let Some((received, wake, last)) = done else { return self.without_ring() };
        if received > 0 {
            slot.count(word::RECEIVED_BYTES, received as u64);
            slot.count(word::RECEIVES, 1);
        }
        drop(half);
        if wake {
            self.wake_peer(descriptor, slot);
        }
        if received > 0 { Attempt::Received(received) } else { last }
    }

    /// The result of an attempt if there is no ring to be read.
    #[cold]
    pub fn without_ring(&self) -> Attempt {
        if self.shared.is(phase::STOPS) { Attempt::Left } else { Attempt::Broken }
    }

    /// Fills parts with what is there; returns the number of bytes, whether to wake the peer, and
    /// the result if there were none.
    fn read_parts(
        &self,
        slot: &Slot,
        receiver: &mut In,
        parts: Parts<'_>,
        skipped: usize,
    ) -> (usize, bool, Attempt) {
        let (mut wake, mut last) = (false, Attempt::Nothing);
        let fill = |at: *mut u8, bytes: usize, _| {
            // SAFETY: a part that the application gave to be filled, and does not use until then.
            let into = unsafe { slice::from_raw_parts_mut(at, bytes) };
            let mut filled = 0;
            // Up to the last byte that is there: a caller takes a short result for all.
            while let Some(room) = into.get_mut(filled..).filter(|room| !room.is_empty()) {
                let done = match receiver.read(room) {
                    Ok(done) => done,
                    Err(_) => {
                        last = Attempt::Broken;
                        break;
                    }
                };
                wake |= done.wake;
                match done.outcome {
                    Read::Bytes(count) => {
                        filled += count;
                        continue;
                    }
                    Read::Nothing => last = Attempt::Nothing,
                    Read::End => last = Attempt::End,
                    Read::Moved { name, entry } => {
                        if let Some(also) = slot.follow(self, receiver, name, &entry) {
                            wake |= also;
                            continue;
                        }
                        last = Attempt::Broken;
                    }
                }
                break;
            }
            filled
        };
        // SAFETY: the application gave the parts to be filled.
        let received = unsafe { parts.each(skipped, fill) };
        (received, wake, last)
    }

    /// Receives bytes from the ring, if nothing else is to be done. `None`: something is, and
    /// nothing has happened.
    #[inline(always)]
    pub fn receive_at_once(&self, descriptor: i32, into: &mut [u8], flags: i32) -> Option<isize> {
        let shared = self.shared;
        let is_plain = flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) == 0;
        let wrong = phase::STRAYS | phase::WAITS_FOR_MORE;
        if shared.phase() & (phase::LOOKS | wrong) != phase::LOOKS || !is_plain {
            return None;
        }
        let slot = self.slot().filter(|slot| slot.next_header(self) != 0)?;
        let mut half = shared.receive.take(shared.is_alone())?;
        if !self.is_in(&slot, phase::LOOKS) {
            return None;
        }
        let receiver = self.local.ends.receiver(&mut half)?;
        let done = receiver.read(into).ok()?;
        slot.note_next_header(self, receiver);
        let count = match done.outcome {
            Read::Bytes(count) => Some(count),
            _ => None,
        };
        if let Some(count) = count {
            slot.count(word::RECEIVED_BYTES, count as u64);
            slot.count(word::RECEIVES, 1);
        }
        drop(half);
        if done.wake {
            self.wake_peer(descriptor, &slot);
        }
        let mut count = count?;
        if count < into.len() && slot.next_header(self) != 0 {
            count += self.receive_rest(descriptor, &slot, into.get_mut(count..)?);
        }
        Some(count.cast_signed())
    }

    /// Receives the bytes after a place where the ring moves to another area. A caller that got
    /// less than it had room for takes it for all, and waits for news.
    #[cold]
    fn receive_rest(&self, descriptor: i32, slot: &Slot, into: &mut [u8]) -> usize {
        let part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        match self.take_from_ring(descriptor, slot, Parts::one(&part), 0) {
            Attempt::Received(count) => count,
            _ => 0,
        }
    }

    /// Number of bytes that can be read at once; `None`: the kernel knows.
    pub fn readable_bytes(&self, descriptor: i32) -> Option<i32> {
        self.proceed(descriptor);
        let shared = self.shared;
        let slot = self.slot().filter(|_| shared.is(phase::ATTACHED))?;
        let in_kernel = if shared.is(phase::RECEIVES) {
            0
        } else {
            // Bytes in the kernel come before those in the ring.
            let there = raw::ioctl_number(descriptor, libc::FIONREAD as libc::c_ulong).ok()?;
            let received = shared.kernel_received.load(Ordering::Acquire);
            let left = slot.peer_switched()?.saturating_sub(received);
            if u64::from(there.unsigned_abs()) < left {
                return Some(there);
            }
            i32::try_from(left).ok()?
        };
        let mut half = shared.receive.take(shared.is_alone())?;
        let bytes =
            self.with_receiver(&slot, &mut half, |receiver| slot.available(self, receiver))??;
        i32::try_from(bytes).ok()?.checked_add(in_kernel)
    }
}
