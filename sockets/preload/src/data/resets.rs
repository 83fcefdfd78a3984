// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that end by a reset: the peer has not read everything, or has requested it. The
//! kernel only knows of unread bytes in its own buffers, and counts doorbells among them, so both
//! sides announce resets in the slot.
//!
//! A side that closes its end, or a process that exits with it, announces whether that is a reset.
//! For a killed peer it is known how much of the ring it had read, and whether it had read all
//! bytes that came through the kernel.

use crate::kernel::{errno, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

impl Stream {
    /// The result of receiving after the last byte. A reset after the end of the stream is not
    /// reported to a reader.
    #[cold]
    pub fn end_of_stream(&self) -> isize {
        let has_closed = |slot: Slot| slot.peer_said() & flag::CLOSED != 0;
        let is_dead = self.shared.is(phase::RECEIVES | phase::KERNEL_END);
        if is_dead && !self.slot().is_some_and(has_closed) {
            // The peer's process may have been killed, and the kernel has an error behind
            // doorbells.
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

    /// The application's result of receiving, from that of the kernel. For the kernel a socket
    /// whose connection was aborted is like a new one; here it has to be like one that the peer has
    /// reset.
    pub fn received_nothing(&self, result: isize) -> isize {
        if result >= 0 {
            return result;
        }
        match errno::get() {
            libc::ECONNRESET | libc::EPIPE => _ = self.shared.mark(phase::RESET_TOLD),
            libc::ENOTCONN if self.shared.is(phase::BROKEN_OFF) => {
                let before = self.shared.mark(phase::RESET_TOLD);
                let is_reported = before & phase::RESET_TOLD != 0;
                return if is_reported { 0 } else { errno::fail(libc::ECONNRESET) };
            }
            _ => {}
        }
        result
    }

    /// The result of sending `bytes` when the peer is gone. `kernel` sends through the kernel.
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
                // The kernel accepts that once.
                self.shared.mark(phase::RESET_TOLD);
                epoll::has_news(self, u32::MAX);
            } else if resets && let Some(slot) = self.slot() {
                slot.unsay(flag::SENT_LATE);
            }
            sent
        })
    }

    /// Announces that this side sends to a peer that has shut both halves, if so: the peer's kernel
    /// answers with a reset, and its own socket is reset as well. Announced before sending, which
    /// wakes the peer.
    fn says_sent_late(&self) -> bool {
        let slot = self.slot().filter(|_| !self.is_unix() && self.shared.is(phase::ATTACHED));
        let is_late = |slot: &Slot| {
            slot.said() & flag::SENT_LATE == 0
                && slot.peer_said() & (flag::DEAF | flag::CLOSED) == flag::DEAF
        };
        slot.filter(is_late).map(|slot| slot.say(flag::SENT_LATE)).is_some()
    }

    /// Whether the kernel's error is that of the connection: the bytes sent to a peer that is gone
    /// went through the kernel, and so did the answer.
    pub fn is_answered(&self) -> bool {
        self.shared.is(phase::PEER_GONE | phase::RESET_TOLD) && self.reset().is_none()
    }

    /// The result of sending after this side has shut that direction: an error of the connection
    /// comes first.
    #[cold]
    pub fn send_after_end(&self, flags: i32) -> isize {
        let mut error = if self.is_unix() { 0 } else { self.take_error() };
        if error == 0 && !self.is_unix() && self.is_answered() {
            let descriptor = self.local.descriptor.load(Ordering::Relaxed);
            _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
        }
        if matches!(error, 0 | libc::EPIPE) { broken_pipe(flags) } else { errno::fail(error) }
    }

    /// The result of sending to a peer that is gone. `None`: the kernel knows.
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

    /// After the peer was killed, the kernel counts a doorbell that was left as unread, and refuses
    /// bytes that it would have accepted once. `None`: this is not the case.
    fn sends_to_nobody(&self, bytes: usize) -> Option<isize> {
        let descriptor = self.local.descriptor.load(Ordering::Relaxed);
        let is_over = libc::POLLERR | libc::POLLHUP;
        if bytes == 0 || raw::events(descriptor, 0) & is_over as u32 == 0 {
            return None;
        }
        let is_known = self.shared.mark(phase::RESET_TOLD) & phase::RESET_TOLD != 0;
        (!is_known).then_some(bytes.cast_signed())
    }

    /// The error that was not reported to the application yet, instead of the one that the kernel
    /// has given. `None`: there is no other.
    pub fn error_besides(&self, given: i32) -> Option<i32> {
        let is_of_reset = matches!(given, libc::ECONNRESET | libc::EPIPE);
        match self.take_error() {
            0 if is_of_reset && self.shared.is(phase::ATTACHED) && !self.is_answered() => Some(0),
            0 => None,
            error => Some(error),
        }
    }

    /// Announces that closing the last descriptor resets the connection, if so, and makes the
    /// kernel do it. Returns whether the kernel would not have done it.
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

    /// Announces that the connection is reset.
    pub fn says_disconnected(&self, slot: &Slot) {
        let late = if self.shared.is(phase::ENDED) { flag::RESET_LATE } else { 0 };
        slot.say(flag::RESET | late);
    }

    /// Whether the kernel would reset the connection of a socket that is not in rings by closing
    /// it.
    pub fn would_reset(&self, descriptor: i32) -> bool {
        let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, &mut linger);
        linger.l_onoff != 0 && linger.l_linger == 0
            || raw::ioctl_number(descriptor, libc::FIONREAD as libc::c_ulong)
                .is_ok_and(|bytes| bytes > 0)
    }

    /// Makes closing a descriptor reset its connection.
    pub fn resets_at_close(&self, descriptor: i32) {
        if !self.is_unix() {
            set_linger(descriptor, true);
        }
    }

    /// Takes the announcement back, since the process keeps running.
    #[cold]
    pub fn resets_not(&self, descriptor: i32, was_forced: bool) {
        if let Some(slot) = self.slot().filter(|_| self.shared.is(phase::ATTACHED)) {
            slot.unsay(flag::RESET | flag::RESET_LATE);
        }
        if was_forced {
            set_linger(descriptor, false);
        }
    }

    /// Whether closing would discard unread bytes.
    fn leaves_unread(&self, slot: &Slot, descriptor: i32) -> bool {
        self.switch_receiving();
        self.has_data(slot)
            || !self.shared.is(phase::RECEIVES)
                && raw::ioctl_number(descriptor, libc::FIONREAD as libc::c_ulong)
                    .is_ok_and(|bytes| bytes > 0)
    }
}

/// Sets `SO_LINGER` to no time, so that closing resets the connection; or turns it off.
fn set_linger(descriptor: i32, for_no_time: bool) {
    let linger = libc::linger { l_onoff: i32::from(for_no_time), l_linger: 0 };
    _ = raw::set_option(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
}

/// The result of sending after the end: `EPIPE`, with `SIGPIPE` unless the flags prevent it.
pub fn broken_pipe(flags: i32) -> isize {
    if flags & libc::MSG_NOSIGNAL == 0 {
        raw::raise(libc::SIGPIPE);
    }
    errno::fail(libc::EPIPE)
}
