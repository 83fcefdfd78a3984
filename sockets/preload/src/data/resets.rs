// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that end by a reset: the peer has not read everything, or wanted it so. The kernel
//! knows of what was not read there only, and takes doorbells for that, so both ends say and look
//! here how it is.
//!
//! Who closes its end, or ends as a process that has it, says whether that is a reset. Of a peer
//! that was killed it is known how much of the ring it had read, and whether it had read all that
//! came through the kernel.

use crate::kernel::{errno, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

impl Stream {
    /// What receiving behind the last byte gives. A reset behind the end of the stream is no news
    /// for who reads.
    #[cold]
    pub fn end_of_stream(&self) -> isize {
        let has_closed = |slot: Slot| slot.peer_said() & flag::CLOSED != 0;
        let is_dead = self.shared.is(phase::RECEIVES | phase::KERNEL_END);
        if is_dead && !self.slot().is_some_and(has_closed) {
            // Its process was killed perhaps, and the kernel has an error behind doorbells.
            let descriptor = self.local.descriptor.load(Ordering::Relaxed);
            self.take_all_doorbells(descriptor);
            self.ask_kernel(descriptor);
        }
        if self.reset() == Some(libc::EPIPE) {
            return 0;
        }
        match self.take_error() {
            0 => 0,
            error => errno::fail(error),
        }
    }

    /// What receiving gives the application where the kernel gives that. A socket whose connection
    /// was broken off is like a new one there; it has to be like one that the peer has reset.
    pub fn received_nothing(&self, result: isize) -> isize {
        if result >= 0 {
            return result;
        }
        match errno::get() {
            libc::ECONNRESET | libc::EPIPE => _ = self.shared.mark(phase::RESET_TOLD),
            libc::ENOTCONN if self.shared.is(phase::BROKEN_OFF) => {
                let before = self.shared.mark(phase::RESET_TOLD);
                let is_told = before & phase::RESET_TOLD != 0;
                return if is_told { 0 } else { errno::fail(libc::ECONNRESET) };
            }
            _ => {}
        }
        result
    }

    /// What sending so many bytes gives when the peer is gone; `kernel` does it there.
    #[cold]
    pub fn send_to_gone(
        &self,
        flags: i32,
        bytes: Option<usize>,
        kernel: impl Fn() -> isize,
    ) -> isize {
        self.ends_for_real();
        self.refusal(flags, bytes).unwrap_or_else(|| {
            let resets = bytes != Some(0) && self.says_sent_late();
            let sent = kernel();
            if sent > 0 {
                // That was the one time.
                self.shared.mark(phase::RESET_TOLD);
                epoll::has_news(self, u32::MAX);
            } else if resets && let Some(slot) = self.slot() {
                slot.unsay(flag::SENT_LATE);
            }
            sent
        })
    }

    /// Says that this side sends to a peer that has shut both halves, if that is so: its kernel
    /// answers with a reset, and is itself reset by that. Said before, since that wakes the peer.
    fn says_sent_late(&self) -> bool {
        let slot = self.slot().filter(|_| !self.is_unix() && self.shared.is(phase::ATTACHED));
        let is_late = |slot: &Slot| {
            slot.said() & flag::SENT_LATE == 0
                && slot.peer_said() & (flag::DEAF | flag::CLOSED) == flag::DEAF
        };
        slot.filter(is_late).map(|slot| slot.say(flag::SENT_LATE)).is_some()
    }

    /// Whether the kernel's error is the connection's: what was sent to a peer that is gone went
    /// through the kernel, and so did the answer.
    pub fn is_answered(&self) -> bool {
        self.shared.is(phase::PEER_GONE | phase::RESET_TOLD) && self.reset().is_none()
    }

    /// What sending gives after this side has shut its direction: an error of the connection
    /// first.
    #[cold]
    pub fn send_after_end(&self, flags: i32) -> isize {
        let mut error = if self.is_unix() { 0 } else { self.take_error() };
        if error == 0 && !self.is_unix() && self.is_answered() {
            let descriptor = self.local.descriptor.load(Ordering::Relaxed);
            _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
        }
        if matches!(error, 0 | libc::EPIPE) { broken_pipe(flags) } else { errno::fail(error) }
    }

    /// `None`: the kernel knows.
    fn refusal(&self, flags: i32, bytes: Option<usize>) -> Option<isize> {
        if self.shared.is(phase::ENDED) {
            return Some(self.send_after_end(flags));
        }
        if self.is_unix() {
            return None;
        }
        let is_reset = self.reset().is_some();
        match self.take_error() {
            0 if !is_reset => self.sends_to_nobody(bytes?),
            0 | libc::EPIPE => Some(broken_pipe(flags)),
            error => Some(errno::fail(error)),
        }
    }

    /// Of a process that was killed the kernel takes a doorbell that was left for what was not
    /// read, and refuses what it would have taken, once. `None`: this is not so.
    fn sends_to_nobody(&self, bytes: usize) -> Option<isize> {
        let descriptor = self.local.descriptor.load(Ordering::Relaxed);
        let is_over = libc::POLLERR | libc::POLLHUP;
        if bytes == 0 || raw::events(descriptor, 0) & is_over as u32 == 0 {
            return None;
        }
        let is_known = self.shared.mark(phase::RESET_TOLD) & phase::RESET_TOLD != 0;
        (!is_known).then_some(bytes.cast_signed())
    }

    /// The error that the application has not had yet, besides that which the kernel has given.
    /// `None`: there is no other.
    pub fn error_besides(&self, given: i32) -> Option<i32> {
        let is_of_reset = matches!(given, libc::ECONNRESET | libc::EPIPE);
        match self.take_error() {
            0 if is_of_reset && self.shared.is(phase::ATTACHED) && !self.is_answered() => Some(0),
            0 => None,
            error => Some(error),
        }
    }

    /// Says that who has the last descriptor resets the connection by closing it or by ending, if
    /// that is so, and makes the kernel do it. Gives whether the kernel would not have.
    pub fn says_reset(&self, slot: &Slot, descriptor: i32) -> bool {
        let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
        let has_unread = self.leaves_unread(slot, descriptor);
        if !self.is_unix() {
            _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, &mut linger);
        }
        let lingers_not = linger.l_onoff != 0 && linger.l_linger == 0;
        if !has_unread && !lingers_not {
            return false;
        }
        self.says_disconnected(slot);
        let is_forced = !self.is_unix() && !lingers_not;
        if is_forced {
            set_linger(descriptor, true);
        }
        is_forced
    }

    /// Says that the connection is reset, since the socket is to have another one.
    pub fn says_disconnected(&self, slot: &Slot) {
        let late = if self.shared.is(phase::ENDED) { flag::RESET_LATE } else { 0 };
        slot.say(flag::RESET | late);
    }

    /// Whether the kernel resets the connection when a socket is closed that it has alone.
    pub fn would_reset(&self, descriptor: i32) -> bool {
        let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, &mut linger);
        linger.l_onoff != 0 && linger.l_linger == 0
            || raw::ioctl_number(descriptor, libc::FIONREAD as libc::c_ulong)
                .is_ok_and(|bytes| bytes > 0)
    }

    /// Sees to it that closing a descriptor resets its connection.
    pub fn resets_at_close(&self, descriptor: i32) {
        if !self.is_unix() {
            set_linger(descriptor, true);
        }
    }

    /// Takes that back: the process goes on.
    #[cold]
    pub fn resets_not(&self, descriptor: i32, was_forced: bool) {
        if let Some(slot) = self.slot().filter(|_| self.shared.is(phase::ATTACHED)) {
            slot.unsay(flag::RESET | flag::RESET_LATE);
        }
        if was_forced {
            set_linger(descriptor, false);
        }
    }

    /// Whether closing leaves something that was not read: it is lost.
    fn leaves_unread(&self, slot: &Slot, descriptor: i32) -> bool {
        self.switch_receiving();
        self.has_data(slot)
            || !self.shared.is(phase::RECEIVES)
                && raw::ioctl_number(descriptor, libc::FIONREAD as libc::c_ulong)
                    .is_ok_and(|bytes| bytes > 0)
    }
}

/// Lets a socket linger for no time, so that closing resets its connection; or not at all.
fn set_linger(descriptor: i32, for_no_time: bool) {
    let linger = libc::linger { l_onoff: i32::from(for_no_time), l_linger: 0 };
    _ = raw::set_option(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
}

/// What sending gives who must not send.
pub fn broken_pipe(flags: i32) -> isize {
    if flags & libc::MSG_NOSIGNAL == 0 {
        raw::raise(libc::SIGPIPE);
    }
    errno::fail(libc::EPIPE)
}
