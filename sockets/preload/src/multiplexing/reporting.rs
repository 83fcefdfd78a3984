// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events to report of a socket whose streams are in rings.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::{In, Slot};
use crate::waiting::epoll::registration::{Registration, state};
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

/// The events for which arrived data is news.
const READING: i32 = libc::EPOLLIN | libc::EPOLLRDNORM | libc::EPOLLRDBAND | libc::EPOLLPRI;

impl Registration {
    /// The events to report now; 0: none.
    #[inline]
    pub fn ready(&mut self, stream: &Stream, slot: &Slot) -> u32 {
        if self.state & (state::DELETED | state::FIRED) != 0 {
            return 0;
        }
        let mut ready = events_of(stream, slot, self.events);
        if ready != 0 && self.events & libc::EPOLLET as u32 != 0 {
            if !self.is_news(stream, slot) {
                return 0;
            }
            // Data that arrived in the meantime counts as reported, so it has to be.
            ready = events_of(stream, slot, self.events);
        }
        if ready == 0 {
            return 0;
        }
        if self.events & libc::EPOLLONESHOT as u32 != 0 {
            self.state |= state::FIRED;
        }
        ready
    }

    /// Whether there are events to report now, without reporting them.
    pub fn would_be_ready(&mut self, stream: &Stream, slot: &Slot) -> bool {
        let (state, seen, fulls) = (self.state, self.seen, self.fulls);
        let ready = self.ready(stream, slot);
        (self.state, self.seen, self.fulls) = (state, seen, fulls);
        ready != 0
    }

    /// Edge-triggered: whether data or room has arrived since the last report, if the application
    /// waits for it.
    fn is_news(&mut self, stream: &Stream, slot: &Slot) -> bool {
        let mut is_news = self.is(state::FRESH);
        self.state &= !state::FRESH;
        if self.events & READING as u32 != 0
            && slot.next_header(stream) != 0
            && let Some(mut half) = stream.shared.receive.take(stream.shared.is_alone())
        {
            let has_news = |receiver: &mut In| slot.has_news(stream, receiver, &mut self.seen);
            is_news |= stream.with_receiver(slot, &mut half, has_news) == Some(true);
        }
        if !self.is(state::END_SEEN) && stream.has_read_end(slot) {
            self.state |= state::END_SEEN;
            is_news = true;
        }
        // The peer may end after this side has shut its own reading, and reset after either.
        let has_peer_ended = || slot.peer_said() & (flag::ENDED | flag::CLOSED) != 0;
        let seen = state::END_SEEN | state::PEER_END_SEEN | state::RESET_SEEN;
        if self.state & seen == state::END_SEEN && has_peer_ended() {
            self.state |= state::PEER_END_SEEN;
            is_news = true;
        }
        if self.is(state::END_SEEN) && !self.is(state::RESET_SEEN) && stream.reset().is_some() {
            self.state |= state::RESET_SEEN;
            is_news = true;
        }
        if stream.is_unix() && !self.is(state::DEAF_SEEN) && stream.is_refused(slot) {
            self.state |= state::DEAF_SEEN;
            is_news = true;
        }
        if !self.is(state::OWN_END_SEEN) && stream.shared.is(phase::ENDED) {
            // This process or another one that holds the socket has shut it.
            self.state |= state::OWN_END_SEEN;
            is_news = true;
        }
        let fulls = stream.shared.send.fulls.load(Ordering::Relaxed);
        let writes = self.events & (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32 != 0;
        if writes && fulls != self.fulls && stream.is_writable(slot) {
            self.fulls = fulls;
            is_news = true;
        }
        is_news
    }
}

/// The events of ends in rings, for a socket that is halfway. Bytes may be left in the kernel,
/// which does not know of the end behind them.
pub fn ends_of_rings(stream: &Stream, slot: &Slot) -> u32 {
    let ends = match (stream.has_read_end(slot), stream.shared.is(phase::ENDED)) {
        (true, true) => libc::EPOLLRDHUP | libc::EPOLLHUP,
        (true, false) => libc::EPOLLRDHUP,
        _ => 0,
    };
    ends as u32
}

/// The events, out of `events`, of a socket whose streams are in rings.
#[inline]
pub fn events_of(stream: &Stream, slot: &Slot, events: u32) -> u32 {
    let mut ready = 0;
    if events & (libc::EPOLLIN | libc::EPOLLRDNORM) as u32 != 0 && stream.is_readable(slot) {
        ready |= (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
    }
    if events & (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32 != 0 && stream.is_writable(slot) {
        ready |= (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
        stream.shared.send.has_reported_room.store(true, Ordering::Relaxed);
    }
    let phase = stream.shared.phase();
    if phase & phase::UNIX != 0 {
        ready |= stream.unix_ends(slot);
    } else if stream.has_read_end(slot) {
        ready |= libc::EPOLLRDHUP as u32;
        if phase & phase::ENDED != 0 {
            ready |= libc::EPOLLHUP as u32;
        }
        if stream.has_error() {
            ready |= libc::EPOLLERR as u32;
        }
        if stream.reset().is_some() {
            ready |= libc::EPOLLHUP as u32;
        } else if phase & phase::PEER_GONE != 0 {
            // The kernel knows the other events.
            let descriptor = stream.local.descriptor.load(Ordering::Relaxed);
            ready |= raw::errors(descriptor);
        }
    }
    ready & (events | (libc::EPOLLHUP | libc::EPOLLERR) as u32)
}

impl Stream {
    /// The events of `poll` for a Unix socket that has ended in one direction or both.
    #[cold]
    pub fn unix_ends(&self, slot: &Slot) -> u32 {
        let (phase, said) = (self.shared.phase(), slot.peer_said());
        let is_gone = phase & (phase::KERNEL_END | phase::READ_SHUT) == phase::KERNEL_END
            || said & flag::CLOSED != 0;
        let reads = !is_gone && phase & phase::READ_SHUT == 0 && said & flag::ENDED == 0;
        let writes = !is_gone && phase & phase::ENDED == 0 && said & flag::DEAF == 0;
        let mut ready = 0;
        if !reads {
            ready |= libc::EPOLLRDHUP as u32;
        }
        if !reads && !writes {
            ready |= libc::EPOLLHUP as u32;
        }
        if self.has_error() {
            ready |= libc::EPOLLERR as u32;
        }
        ready
    }
}
