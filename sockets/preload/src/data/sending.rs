// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending: through the kernel as long as the stream is there, then through the ring.

use crate::data::receiving::ATTEMPTS;
use crate::data::resets::broken_pipe;
use crate::kernel::next::next;
use crate::kernel::parts::Parts;
use crate::kernel::{errno, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::{Out, Slot};
use crate::underlay::ASK_TICKS;
use crate::waiting::Wait;
use crate::waiting::patience::{Patience, TOLD_TICKS};
use crate::waiting::readiness::room_to_report;
use crate::waiting::{epoll, sleep};
use core::sync::atomic::Ordering;
use freeport_ring::bytes::JOINED_MAX;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::{flag, word};

/// Largest number of bytes that [`Stream::send_at_once`] sends.
const AT_ONCE: usize = 2048;

/// The result of an attempt to send.
enum Attempt {
    /// That number of bytes.
    Sent(usize),
    /// The peer is gone: the kernel has to report the error.
    PeerGone,
    /// The thread itself holds the lock, below a signal handler.
    Nested,
    /// The stream is about to come back into the kernel, or has come back.
    Left,
}

/// The result of sending through the ring.
enum Sent {
    /// The result for the application.
    Result(isize),
    /// The call continues elsewhere, after that number of bytes.
    Left(usize),
}

/// Bytes of a ring that are kept free for headers, and for the entry that moves the ring.
pub const KEPT: usize = 128;
/// The same for the largest number of parts.
const KEPT_OF_PARTS: usize = KEPT + libc::UIO_MAXIOV as usize / 2 + WHOLE / 64;
/// Parts that are longer have a header of their own.
const LONG_PART: usize = 2048;
/// Length of the longest message that is sent as a whole or not at all.
pub const WHOLE: usize = 4096;

/// Largest size of the headers of `bytes` in these parts, and of what is kept free. Each
/// [`JOINED_MAX`] short parts have one header, and each long part has one.
fn overhead(parts: Parts<'_>, bytes: usize) -> usize {
    let among = if parts.is_one() { 0 } else { parts.count() / 2 + bytes / 64 };
    KEPT + among
}

/// The result of putting some parts into a ring.
#[derive(Default)]
struct Put {
    /// Number of bytes that there were, and number of those that had room.
    wanted: usize,
    written: usize,
    wake: bool,
    /// The peer has broken the protocol.
    faulty: bool,
}

/// Puts one long part into a ring, or some consecutive short ones, of at most `room` bytes. The
/// receiver sees them after the next [`publish`](freeport_ring::Sender::publish): short parts all
/// at once.
fn put_some(sender: &mut Out, parts: Parts<'_>, skipped: usize, room: usize) -> Put {
    let mut pieces = [&[][..]; JOINED_MAX];
    // SAFETY: the application gave the parts to be sent, and does not change them until then.
    let (count, wanted) = unsafe { parts.list(skipped, (LONG_PART, room), &mut pieces) };
    let mut put = Put { wanted, ..Put::default() };
    let result = match pieces.get(..count) {
        // Nothing follows: a long part is seen piece by piece.
        Some([piece]) if parts.behind(skipped + wanted).is_none() => {
            sender.write(piece).map(|done| {
                put.wake = done.wake;
                done.outcome
            })
        }
        Some([piece]) => sender.put(piece),
        Some(pieces) => sender.put_parts(pieces),
        None => Ok(0),
    };
    put.faulty = result.is_err();
    put.written = result.unwrap_or(0);
    put
}

/// Writes all of the bytes, if there is enough room. `None`: there is not, and nothing was written.
#[inline(never)]
fn write_with_room(sender: &mut Out, bytes: &[u8]) -> Option<bool> {
    let wanted = bytes.len() + KEPT + room_to_report(sender.ring().capacity());
    sender.ring().free(wanted).ok().filter(|free| *free >= wanted)?;
    sender.write(bytes).ok().map(|done| done.wake)
}

impl Stream {
    /// Sends. `kernel` does it through the kernel, and returns what the C library's function does.
    #[inline]
    pub fn send(
        &self,
        descriptor: i32,
        parts: Parts<'_>,
        flags: i32,
        kernel: impl Fn() -> isize,
    ) -> isize {
        if flags & libc::MSG_OOB != 0 {
            // There is no urgent data in rings.
            self.bring_back(descriptor, Reason::Urgent);
        }
        self.proceed(descriptor);
        let _caller = self.enter(flags);
        let kernel = || self.unless_closed(&kernel);
        let (mut done, mut attempts, mut patience) = (0, 0, Patience(TOLD_TICKS));
        loop {
            let descriptor = self.open_as(descriptor);
            attempts += 1;
            if attempts > ATTEMPTS && !self.blocks(flags) {
                // The peer is slow to bring the connection back.
                if done > 0 {
                    return done as isize;
                }
                if !self.has_reported_room() || !patience.pause() {
                    self.shared.send.has_reported_room.store(false, Ordering::Relaxed);
                    return errno::fail(libc::EAGAIN);
                }
            }
            if self.sends_by_ring()
                && flags & libc::MSG_OOB == 0
                && let Some(slot) = self.slot()
            {
                match self.send_by_ring(descriptor, &slot, parts, flags, done, kernel) {
                    Sent::Result(result) => return result,
                    Sent::Left(sent) => done = sent,
                }
            } else if done > 0 {
                match self.send_rest(descriptor, parts, flags, done) {
                    None => {}
                    Some(1..) if !self.blocks(flags) => return done as isize,
                    Some(sent @ 1..) => done += sent as usize,
                    Some(_) => return done as isize,
                }
                if parts.behind(done).is_none() {
                    return done as isize;
                }
            } else if let Some(result) =
                self.send_by_kernel(descriptor, flags, parts.bytes(), kernel)
            {
                return result;
            }
        }
    }

    /// Sends some of the bytes after the first `done` through the kernel. Those went through the
    /// ring.
    #[cold]
    fn send_rest(
        &self,
        descriptor: i32,
        parts: Parts<'_>,
        flags: i32,
        done: usize,
    ) -> Option<isize> {
        let (at, count) = parts.behind(done)?;
        let at = at.cast_const();
        self.send_by_kernel(descriptor, flags, Some(count), || {
            next!(send(descriptor: i32, at: *const libc::c_void, count: usize, flags: i32)
                -> isize)
        })
    }

    #[inline]
    fn sends_by_ring(&self) -> bool {
        let phase = self.shared.phase.load(Ordering::SeqCst);
        phase & (phase::SENDS | phase::PEER_GONE) == phase::SENDS
    }

    /// Sends through the kernel. `None`: the stream has left the kernel in the meantime.
    pub fn send_by_kernel(
        &self,
        descriptor: i32,
        flags: i32,
        bytes: Option<usize>,
        kernel: impl Fn() -> isize,
    ) -> Option<isize> {
        let shared = self.shared;
        shared.kernel_sends.fetch_add(1, Ordering::SeqCst);
        let is_by_ring = self.sends_by_ring() && flags & libc::MSG_OOB == 0;
        if is_by_ring || shared.is(phase::MOVES) {
            shared.kernel_sends.fetch_sub(1, Ordering::SeqCst);
            self.has_left_rings(descriptor);
            return None;
        }
        let is_gone = shared.is(phase::PEER_GONE);
        let mut sent = match is_gone {
            true => self.send_to_gone(flags, bytes, &kernel),
            false => kernel(),
        };
        if self.has_reported_room() && !self.blocks(flags) {
            sent = self.send_as_reported(descriptor, sent, &kernel);
        }
        if sent > 0 {
            shared.kernel_sent.fetch_add(sent as u64, Ordering::Release);
        }
        shared.kernel_sends.fetch_sub(1, Ordering::SeqCst);
        if sent > 0 {
            self.has_moved(descriptor, sent as u64);
        }
        if shared.phase() & (phase::ATTACHED | phase::SENDS) == phase::ATTACHED {
            // The stream could not leave the kernel during this call.
            self.proceed(descriptor);
        }
        Some(sent)
    }

    /// Whether room in a ring was reported to the application, which relies on it.
    #[inline]
    fn has_reported_room(&self) -> bool {
        self.shared.send.has_reported_room.load(Ordering::Relaxed)
    }

    /// The result of a non-blocking call that relies on room reported before. Bytes sent again to
    /// the peer may have taken the kernel's room a moment ago, so this waits for more.
    #[cold]
    fn send_as_reported(
        &self,
        descriptor: i32,
        mut sent: isize,
        kernel: impl Fn() -> isize,
    ) -> isize {
        let mut patience = Patience(TOLD_TICKS);
        let is_full = |sent| sent < 0 && errno::get() == libc::EAGAIN;
        while is_full(sent) && patience.wait(descriptor, libc::POLLOUT) {
            sent = kernel();
        }
        self.shared.send.has_reported_room.store(false, Ordering::Relaxed);
        sent
    }

    /// Sends the bytes after the first `before`, which were sent, through the ring.
    fn send_by_ring(
        &self,
        descriptor: i32,
        slot: &Slot,
        parts: Parts<'_>,
        flags: i32,
        before: usize,
        kernel: impl Fn() -> isize,
    ) -> Sent {
        let fails = |error| Sent::Result(errno::fail(error));
        if self.shared.is(phase::ENDED) {
            // Another thread may have shut it after some bytes were sent.
            let sent = if before > 0 { before as isize } else { self.send_after_end(flags) };
            return Sent::Result(sent);
        }
        if before == 0 && self.is_refused(slot) {
            return Sent::Result(broken_pipe(flags));
        }
        let Some(wanted) = parts.bytes() else { return fails(libc::EINVAL) };
        if parts.has_null() {
            return fails(libc::EFAULT);
        }
        let blocks = self.blocks(flags);
        let (mut sent, mut wait) = (before, Wait::new());
        loop {
            let descriptor = self.open_as(descriptor);
            match self.attempt(descriptor, slot, parts, sent) {
                Attempt::Left => {
                    self.has_left_rings(descriptor);
                    return Sent::Left(sent);
                }
                Attempt::Sent(count) => {
                    sent += count;
                    if count > 0 {
                        wait = Wait::new();
                    }
                }
                Attempt::PeerGone if sent == 0 => {
                    self.shared.mark(phase::PEER_GONE);
                    return Sent::Result(self.send_to_gone(flags, Some(wanted), &kernel));
                }
                Attempt::PeerGone => break,
                Attempt::Nested if sent == 0 => return fails(libc::EINTR),
                Attempt::Nested => break,
            }
            if sent == wanted {
                break;
            }
            if self.is_refused(slot) {
                return Sent::Result(if sent > 0 { sent as isize } else { broken_pipe(flags) });
            }
            if !blocks {
                if self.waits_in_kernel() {
                    if self.prepare_kernel_wait(descriptor, slot, true) {
                        continue;
                    }
                } else if sent == 0 && self.learns_of_end(descriptor, slot) {
                    // A caller that only retries learns of the end nowhere else.
                    self.shared.mark(phase::PEER_GONE);
                    return Sent::Result(self.send_to_gone(flags, Some(wanted), &kernel));
                }
                epoll::look_again(self, libc::EPOLLOUT);
                return if sent > 0 { Sent::Result(sent as isize) } else { fails(libc::EAGAIN) };
            }
            if !wait.step(|| slot.shares_core()) {
                match sleep::for_room(self, descriptor, slot) {
                    // The slot may be another one, or none, by now.
                    Ok(()) => return Sent::Left(sent),
                    Err(_) if sent > 0 => break,
                    Err(error) => return fails(error),
                }
            }
        }
        Sent::Result(sent as isize)
    }

    /// Puts as many bytes into the ring as there is room for.
    #[inline]
    fn attempt(&self, descriptor: i32, slot: &Slot, parts: Parts<'_>, skipped: usize) -> Attempt {
        let shared = self.shared;
        // If this side itself has shut the kernel's reading, the end there says nothing of the
        // peer.
        let is_end = shared.phase() & (phase::KERNEL_END | phase::READ_SHUT) == phase::KERNEL_END;
        // The kernel refuses to send to a peer that has shut both halves, as to one that has
        // closed.
        let over = if self.is_unix() { flag::CLOSED } else { flag::CLOSED | flag::DEAF };
        let said = slot.peer_said() & (over | flag::GONE);
        let is_over = said & over != 0 || is_end;
        if is_over || said != 0 && self.learns_of_end(descriptor, slot) {
            return Attempt::PeerGone;
        }
        let Some(mut half) = shared.send.take(shared.is_alone()) else { return Attempt::Nested };
        if !self.is_in(slot, phase::SENDS) {
            return Attempt::Left;
        }
        let done = self.with_sender(slot, &mut half, |sender| {
            slot.write(0, || Some(self.write_parts(slot, sender, parts, skipped)))
        });
        let Some((sent, wake, faulty)) = done.flatten() else {
            drop(half);
            return if self.leaves_rings() { Attempt::Left } else { Attempt::PeerGone };
        };
        if sent > 0 {
            slot.count(word::SENT_BYTES, sent as u64);
            shared.send.has_reported_room.store(false, Ordering::Relaxed);
        }
        drop(half);
        if wake {
            self.wake_peer(descriptor, slot);
        }
        if faulty && sent == 0 { Attempt::PeerGone } else { Attempt::Sent(sent) }
    }

    /// Asks the kernel whether the peer is gone, unless it was asked a moment ago: a process that
    /// has exited may have left the socket to another one.
    #[cold]
    fn learns_of_end(&self, descriptor: i32, slot: &Slot) -> bool {
        let (now, asked) = (raw::ticks(), self.local.asked.load(Ordering::Relaxed));
        if now.wrapping_sub(asked) < ASK_TICKS {
            return false;
        }
        self.local.asked.store(now, Ordering::Relaxed);
        let is_gone = self.is_peer_gone(descriptor, slot);
        if is_gone {
            self.ask_kernel(descriptor);
        }
        is_gone
    }

    /// Writes parts as far as there is room; returns the number of bytes, whether to wake the peer,
    /// and whether the peer has broken the protocol.
    fn write_parts(
        &self,
        slot: &Slot,
        sender: &mut Out,
        parts: Parts<'_>,
        skipped: usize,
    ) -> (usize, bool, bool) {
        let send = &self.shared.send;
        let left = parts.bytes().unwrap_or(0).saturating_sub(skipped);
        if left == 0 {
            return (0, false, false);
        }
        let wanted = left.saturating_add(overhead(parts, left));
        if slot.exceeds_areas(self, wanted) && slot.can_grow(self) {
            let (sent, wake) = self.fill_areas(slot, sender, parts, skipped);
            if sent > 0 {
                let (more, also, faulty) = self.write_parts(slot, sender, parts, skipped + sent);
                return (sent + more, wake | also, faulty);
            }
        }
        let (mut wake, mut faulty, mut is_full) = (false, false, false);
        let fits = loop {
            match sender.ring().free(wanted) {
                Ok(free) if free >= wanted => break true,
                Ok(_) => {}
                Err(_) => faulty = true,
            }
            match slot.grow(self, sender) {
                Some(also) => wake |= also,
                None => break false,
            }
        };
        // Short messages are not cut, so that several senders do not interleave theirs.
        is_full |= !fits && skipped == 0 && left <= WHOLE;
        let mut sent = 0;
        while !is_full && sent < left {
            let put = put_some(sender, parts, skipped + sent, usize::MAX);
            wake |= put.wake;
            faulty |= put.faulty;
            is_full |= put.written < put.wanted || put.wanted == 0;
            sent += put.written;
        }
        wake |= sender.ring().publish();
        let capacity = sender.ring().capacity();
        let mut has_less = |room| !slot.has_room(self, sender, room);
        // Reported room has to suffice for a message that is not cut.
        is_full |= has_less(WHOLE + KEPT_OF_PARTS);
        if is_full || has_less(room_to_report(capacity)) {
            send.was_full.store(true, Ordering::Relaxed);
        }
        if is_full {
            send.fulls.fetch_add(1, Ordering::Relaxed);
        }
        (sent, wake, faulty)
    }

    /// Fills one area after the other, up to the last one, with a message that exceeds all areas:
    /// as many bytes as a connection takes before the peer reads. Returns their number, and whether
    /// to wake the peer.
    #[cold]
    fn fill_areas(
        &self,
        slot: &Slot,
        sender: &mut Out,
        parts: Parts<'_>,
        skipped: usize,
    ) -> (usize, bool) {
        let (mut sent, mut wake) = (0, false);
        while slot.can_grow(self) {
            loop {
                let free = sender.ring().free(usize::MAX).unwrap_or(0);
                // Besides headers, there has to be room for the entry that moves the ring.
                let room = free.saturating_sub(free / 1024 + 2 * KEPT);
                let put = put_some(sender, parts, skipped + sent, room);
                wake |= put.wake;
                sent += put.written;
                if put.written < put.wanted || put.wanted == 0 {
                    break;
                }
            }
            wake |= sender.ring().publish();
            match slot.grow(self, sender) {
                Some(also) => wake |= also,
                None => break,
            }
        }
        (sent, wake)
    }

    /// Sends a few bytes through the ring, if nothing else is to be done. `None`: something is, and
    /// nothing has happened.
    #[inline(always)]
    pub fn send_at_once(&self, descriptor: i32, bytes: &[u8], flags: i32) -> Option<isize> {
        let shared = self.shared;
        let is_plain = flags & !(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_MORE) == 0;
        if !is_plain || bytes.len() > AT_ONCE || bytes.is_empty() || !shared.is(phase::LOOKS) {
            return None;
        }
        let mut half = shared.send.take(shared.is_alone())?;
        let wrong = phase::PEER_GONE | phase::ENDED | phase::KERNEL_END;
        let wrong = wrong | phase::LEAVES | phase::STRAYS;
        if shared.phase() & (phase::LOOKS | wrong) != phase::LOOKS {
            return None;
        }
        let slot = self.slot()?;
        let sender = self.local.ends.sender(&mut half)?;
        let wake = slot.write(flag::CLOSED | flag::DEAF | flag::GONE | flag::RECALLED, || {
            let left = room_to_report(sender.ring().capacity());
            sender.write_short(bytes, left).or_else(|| write_with_room(sender, bytes))
        })?;
        slot.count(word::SENT_BYTES, bytes.len() as u64);
        shared.send.has_reported_room.store(false, Ordering::Relaxed);
        drop(half);
        if wake {
            self.wake_peer(descriptor, &slot);
        }
        Some(bytes.len() as isize)
    }

    /// Number of bytes that the peer has not received yet; `None`: the kernel knows.
    pub fn unreceived_bytes(&self) -> Option<i32> {
        let slot = self.slot().filter(|_| self.shared.is(phase::SENDS))?;
        let _half = self.shared.send.take(self.shared.is_alone())?;
        i32::try_from(slot.unreceived_bytes()).ok()
    }
}
