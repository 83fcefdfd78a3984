// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connecting: over a stream that is kept for the destination, if there is one and the socket is as
//! new as can be.

use super::destinations::{self, Address};
use super::entries::{self, Entry, For};
use super::{is_allowed, recruiting, resting};
use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::table::{self, What};
use core::mem;
use core::sync::atomic::{AtomicU32, Ordering};
use freeport_sockets_proto::slab::rest::Step;
use freeport_sockets_proto::slab::word;

/// Where the next stream is looked for: all of them take turns.
static TURN: AtomicU32 = AtomicU32::new(0);

/// Connects a socket over a stream that is kept. `None`: the kernel has to.
#[inline]
pub fn connect(
    stream: &Stream,
    descriptor: i32,
    to: *const libc::sockaddr,
    bytes: libc::socklen_t,
) -> Option<raw::Result> {
    if !entries::are_any() {
        return None;
    }
    connect_over_kept(stream, descriptor, &destinations::address(to, bytes)?)
}

fn connect_over_kept(stream: &Stream, descriptor: i32, to: &Address) -> Option<raw::Result> {
    entries::sweep();
    let _held = entries::hold()?;
    let what = For::Connecting(destinations::find(to)?);
    let count = entries::all_for(what).count();
    if count == 0 || !is_plain(stream, descriptor) {
        return None;
    }
    let flags = raw::fcntl(descriptor, libc::F_GETFD, 0).ok()?;
    let no_delay = has_no_delay(descriptor);
    let turn = TURN.fetch_add(1, Ordering::Relaxed) as usize % count;
    let in_turn = entries::all_for(what).skip(turn).chain(entries::all_for(what).take(turn));
    let entry = in_turn.into_iter().find(|entry| opens(entry))?;
    let (kept, slot) = entry.stream()?;
    let nonblocking = stream.shared.nonblocking.load(Ordering::Relaxed);
    let is_closed_on_exec = flags & libc::FD_CLOEXEC != 0;
    // What the number stood for is closed by that: nobody else has it.
    if raw::duplicate(entry.descriptor(), descriptor, is_closed_on_exec).is_err() {
        if slot.rest_does(Step::Retract).is_none() {
            // It was accepted: that one ends, and the kernel makes another.
            entry.is_dropped();
        }
        return None;
    }
    entry.set_rests(false);
    resting::begins(&kept, &slot, descriptor, no_delay);
    kept.sets_blocking(descriptor, !nonblocking);
    slot.count(word::REUSED, 1);
    table::set(descriptor, What::Stream(kept.number));
    stream.shared.references.store(0, Ordering::Release);
    connections::is_free(stream.number);
    if !nonblocking {
        return Some(Ok(0));
    }
    kept.shared.mark(phase::CONNECTING);
    Some(Err(libc::EINPROGRESS))
}

/// Whether a stream rests, the other side is there, and looks: then it has a connection now.
fn opens(entry: &Entry) -> bool {
    entry.rests()
        && entry.stream().is_some_and(|(_, slot)| {
            !entry.is_left_by_peer() && entry.is_alive() && slot.opens(raw::ticks())
        })
}

/// Whether nothing was done with a socket yet that another one would not have.
fn is_plain(stream: &Stream, descriptor: i32) -> bool {
    let shared = stream.shared;
    // SAFETY: an address of zeroes is valid.
    let mut own: libc::sockaddr_storage = unsafe { mem::zeroed() };
    is_allowed()
        && shared.phase() == 0
        && shared.is_alone()
        && !shared.inherited.load(Ordering::Relaxed)
        && shared.references.load(Ordering::Acquire) == 1
        && shared.operations.load(Ordering::Relaxed) == 0
        && stream.local.registrations.load(Ordering::Relaxed) == 0
        && raw::address(descriptor, false, &mut own).is_ok()
        && port(&own) == 0
}

/// The port of an address of IPv4 or IPv6: both have it in the same place.
fn port(address: &libc::sockaddr_storage) -> u16 {
    // SAFETY: there are more bytes than an address of IPv4 has.
    unsafe { (*core::ptr::from_ref(address).cast::<libc::sockaddr_in>()).sin_port }
}

fn has_no_delay(descriptor: i32) -> bool {
    let mut value = 0_i32;
    let name = libc::TCP_NODELAY;
    raw::get_option(descriptor, libc::IPPROTO_TCP, name, &mut value).is_ok() && value != 0
}

/// The kernel has connected a socket, or is about to: the next ones may do without.
pub fn is_made(
    stream: &Stream,
    descriptor: i32,
    to: *const libc::sockaddr,
    bytes: libc::socklen_t,
) {
    let Some(to) = &destinations::address(to, bytes) else { return };
    let Some(_held) = entries::hold() else { return };
    let is_kept = |number| entries::all_for(For::Connecting(number)).count() > 0;
    let Some(number) = destinations::counts(to, is_kept) else { return };
    drop(_held);
    let is_still = || destinations::find(to) == Some(number);
    recruiting::recruit(stream, descriptor, For::Connecting(number), is_still);
}

impl Stream {
    /// Whether the application connects again what it has connected without waiting: it is told
    /// once that it is connected now.
    pub fn has_just_connected(&self) -> bool {
        let is_connecting = self.shared.is(phase::CONNECTING);
        if is_connecting {
            self.shared.unmark(phase::CONNECTING);
        }
        is_connecting
    }
}
