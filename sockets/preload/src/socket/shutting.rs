// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `shutdown`: ending one direction of a connection, or both.

use crate::kernel::{errno, raw};
use crate::reuse::listener;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::flag;

/// `shutdown`. `None`: the kernel does it.
pub fn shutdown(stream: &Stream, descriptor: i32, how: i32) -> Option<isize> {
    stream.proceed(descriptor);
    let shared = stream.shared;
    if shared.is(phase::LISTENS) {
        listener::is_closed(stream);
    }
    if stream.is_unix() && !shared.is(phase::LOOKS) {
        // The peer would have to know which half is shut.
        stream.stays_in_kernel(descriptor, Reason::HalfShut);
        return None;
    }
    let writes = how == libc::SHUT_WR || how == libc::SHUT_RDWR;
    let reads = how == libc::SHUT_RD || how == libc::SHUT_RDWR;
    let slot = stream.slot().filter(|_| shared.is(phase::ATTACHED));
    if slot.is_none() && (writes || reads) {
        stream.keep(Reason::HalfShut);
    }
    let slot = slot?;
    if writes && !shared.is(phase::SENDS) {
        // The stream ends in the kernel, and stays there.
        stream.stay_in_kernel(&slot, Reason::HalfShut);
        if shared.is(phase::LOOKS) {
            epoll::has_news(stream, u32::MAX);
        }
        return None;
    }
    if !(writes || reads) {
        return None;
    }
    if stream.has_no_peer() {
        // The kernel wakes waiting threads nevertheless.
        epoll::has_news(stream, u32::MAX);
        return Some(errno::fail(libc::ENOTCONN));
    }
    if shared.phase() & (phase::PEER_GONE | phase::HUNG_UP) != 0 {
        epoll::has_news(stream, u32::MAX);
        if writes {
            // Sending has to fail without the kernel, and the peer may be alive.
            shared.mark(phase::ENDED);
            slot.say(flag::ENDED);
        }
        return None;
    }
    if writes && !shared.is(phase::ENDED) {
        // Shutting the kernel's stream would end doorbells as well, so that waits for `close`.
        shared.mark(phase::ENDED);
        slot.say(flag::ENDED);
        if slot.peer_said() & flag::CLOSED == 0 {
            // The kernel of a peer that has closed would answer with a reset.
            stream.ring_doorbell(descriptor, &slot);
        }
    }
    if reads {
        shared.mark(phase::READ_SHUT);
        if stream.is_unix() {
            slot.say(flag::DEAF);
            stream.ring_doorbell(descriptor, &slot);
        }
        wake_own(stream, &slot, descriptor);
    }
    if !stream.is_unix() && shared.is(phase::ENDED | phase::READ_SHUT) {
        // Doorbells are no longer needed, and the kernel refuses what the peer sends.
        slot.say(flag::DEAF);
        raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
    }
    epoll::has_news(stream, u32::MAX);
    Some(0)
}

/// Wakes threads of this process that sleep on a socket that was shut.
fn wake_own(stream: &Stream, _slot: &Slot, descriptor: i32) {
    if stream.shared.sleepers.load(Ordering::SeqCst) > 0 {
        // Shutting the kernel's reading wakes threads that sleep there.
        let how = libc::SHUT_RD as usize;
        raw::shutdown(descriptor, how);
        stream.shared.mark(phase::KERNEL_END);
    }
}
