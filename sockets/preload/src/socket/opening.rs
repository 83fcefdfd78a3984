// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How sockets begin and end, as far as the library has to do with them.

use crate::kernel::confined;
use crate::kernel::raw;
use crate::kernel::{errno, memory};
use crate::multiplexing;
use crate::process;
use crate::reuse::{listener, resting};
use crate::socket::unix;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::holders::Parent;
use crate::state::slabs;
use crate::state::slot::Slot;
use crate::state::table::{self, What, each_stream, stream};
use crate::upgrade::monitor;
use crate::waiting::epoll;
use core::cell::LazyCell;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::flag;

/// Notes a new stream socket, as `socket` and `accept` give it.
///
/// Who makes one as the guest of its parent, below `vfork`, leaves a mark there that means nothing:
/// the number is not open, and whoever opens it says anew what it is.
#[cold]
pub fn note(descriptor: i32, nonblocking: bool) {
    if descriptor < 0 || confined::is_confined() || !process::begin() {
        return;
    }
    is_new(descriptor);
    monitor::read_mail_at_times();
    let Some(stream) = connections::add() else { return };
    stream.gives_back_kept();
    stream.shared.nonblocking.store(nonblocking, Ordering::Relaxed);
    stream.local.descriptor.store(descriptor, Ordering::Relaxed);
    if !table::set(descriptor, What::Stream(stream.number)) {
        stream.shared.references.store(0, Ordering::Release);
    }
}

/// A descriptor is new. What is known of its number is of one that was closed behind our back.
pub fn is_new(descriptor: i32) {
    if let Some(old) = table::clear(descriptor) {
        forget(descriptor, old, false);
    }
}

/// How a descriptor is noted, if it is a stream socket with a peer.
pub fn note_of_connected(descriptor: i32) -> Option<fn(i32, bool)> {
    let option = |name| {
        let mut value = 0_i32;
        raw::get_option(descriptor, libc::SOL_SOCKET, name, &mut value).map(|_| value)
    };
    let (kind, family) = (option(libc::SO_TYPE).ok()?, option(libc::SO_DOMAIN).ok()?);
    // SAFETY: an address of zeroes is valid.
    let mut peer: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    raw::address(descriptor, true, &mut peer).ok()?;
    note_of(family, kind, option(libc::SO_PROTOCOL).unwrap_or(-1))
}

/// How a socket of a kind is noted; `None`: it is of none that may leave the kernel.
pub fn note_of(family: i32, kind: i32, protocol: i32) -> Option<fn(i32, bool)> {
    if is_stream(family, kind, protocol) {
        Some(note)
    } else if unix::is_stream(family, kind, protocol) {
        Some(unix::note)
    } else {
        None
    }
}

/// Whether a socket is of a kind that may leave the kernel.
fn is_stream(family: i32, kind: i32, protocol: i32) -> bool {
    let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    matches!(family, libc::AF_INET | libc::AF_INET6)
        && kind == libc::SOCK_STREAM
        && matches!(protocol, 0 | libc::IPPROTO_TCP)
}

/// Notes that another descriptor is the same as one that is known. This process is no guest.
pub fn note_same(old: i32, new: i32) {
    if new < 0 || old == new {
        return;
    }
    let what = table::get(old);
    is_new(new);
    if let Some(What::Stream(number)) = what {
        let Some(stream) = connections::get(number) else { return };
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.local.copies.fetch_add(1, Ordering::Relaxed);
        stream.note_copies();
        if new <= libc::STDERR_FILENO {
            // The C library has streams on those, which go past this one.
            stream.bring_back(old, Reason::Stdio);
        }
        table::set(new, What::Stream(number));
    }
    if let Some(set) = what.filter(|what| matches!(what, What::Set(_))) {
        table::set(new, set);
    }
}

/// Before a descriptor is closed, or replaced by another.
#[inline]
pub fn is_closing(descriptor: i32) {
    if table::get(descriptor).is_some() && !process::is_guest() {
        process::check();
        if let Some(stream) = stream(descriptor) {
            stream.goes_on_for_callers(descriptor);
        }
        if let Some(what) = table::clear(descriptor) {
            forget(descriptor, what, true);
        }
    }
}

/// What a socket was before its connection was taken apart.
pub struct Before {
    /// Sets had it.
    is_in_sets: bool,
    /// The connection was over, and the application had every error of it.
    is_over: bool,
}

/// Whether a call of `connect` takes a TCP connection apart, which was brought to its end then: the
/// peer gets a reset, and the socket is a new one.
///
/// Where other descriptors or processes have it as well, it is the kernel's from then on.
pub fn is_disconnected(
    descriptor: i32,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> Option<Before> {
    let stream = stream(descriptor).filter(|stream| !stream.is_unix())?;
    let is_named = length as usize >= size_of::<libc::sa_family_t>();
    if !is_named || !memory::is_there(address.cast::<u8>(), length as usize) {
        return None;
    }
    // SAFETY: the application's address has so many bytes.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    if i32::from(family) != libc::AF_UNSPEC {
        return None;
    }
    if stream.shared.references.load(Ordering::Acquire) > 1 {
        stream.bring_back(descriptor, Reason::Shared);
        return None;
    }
    let before = Before {
        is_in_sets: stream.local.registrations.load(Ordering::Relaxed) != 0,
        is_over: stream.has_no_peer() && !stream.has_error(),
    };
    // The kernel reports the new socket in its sets, which the library does not know for it.
    epoll::leaves_to_others(&stream);
    if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
        stream.says_disconnected(&slot);
    }
    Some(before)
}

/// A descriptor is that of a socket without a connection now.
pub fn is_anew(descriptor: i32, before: &Before) {
    let nonblocking =
        stream(descriptor).is_some_and(|stream| stream.shared.nonblocking.load(Ordering::Relaxed));
    note(descriptor, nonblocking);
    if before.is_over {
        // The kernel still had its stream, for doorbells, and notes that it was reset.
        let mut error = 0;
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
    }
    if before.is_in_sets
        && let Some(anew) = stream(descriptor)
    {
        anew.keep(Reason::ForeignSet);
    }
}

/// Before all descriptors of a range are closed.
pub fn are_closing(first: u32, last: u32) {
    table::each(|descriptor, _| {
        if (first..=last).contains(&descriptor.cast_unsigned()) {
            is_closing(descriptor);
        }
    });
}

/// Forgets what was behind a descriptor. `is_open`: it is not closed yet.
#[cold]
fn forget(descriptor: i32, what: What, is_open: bool) {
    match what {
        What::Set(number) => match another(what) {
            -1 => multiplexing::forget_set(number),
            copy => epoll::goes_on_as(number, copy),
        },
        What::Stream(number) => {
            let Some(stream) = connections::get(number) else { return };
            stream.parts_from_stray();
            stream.leaves_to_borrowers();
            if is_last_but_for_dead(&stream) {
                stream.drop_dead();
            }
            if stream.shared.references.load(Ordering::Acquire) == 1 {
                if is_open {
                    stream.lingers(descriptor);
                }
                if is_open && resting::keeps(&stream, descriptor) {
                    return;
                }
                resting::has_ended(&stream);
                end(&stream, descriptor, is_open);
            } else if stream.local.descriptor.load(Ordering::Relaxed) == descriptor {
                let other = another(what);
                stream.local.descriptor.store(other, Ordering::Relaxed);
                let slot = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED));
                // Where this process has none any more, another one has it by its own number.
                if let Some(slot) = slot.filter(|_| other >= 0) {
                    slot.say_descriptor(other);
                }
            }
            if stream.local.copies.load(Ordering::Relaxed) > 1
                && epoll::loses_descriptor(&stream, descriptor)
            {
                stream.keep(Reason::ForeignSet);
            }
            let is_last_here = stream.local.copies.fetch_sub(1, Ordering::Relaxed) == 1;
            if is_last_here {
                if stream.shared.references.load(Ordering::Acquire) > 1 {
                    epoll::leaves_to_others(&stream);
                }
                stream.gives_back_kept();
                stream.leaves_slab();
                stream.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
                slabs::sweep_if_due();
            }
            stream.note_copies();
            let has_slot = stream.shared.phase() & (phase::ATTACHED | phase::HOLDS_SLOT) != 0;
            let is_last = stream.shared.references.load(Ordering::Acquire) == 1;
            if is_last_here && has_slot && !is_last {
                stream.leaves_slot_to_others();
            }
            if stream.shared.references.fetch_sub(1, Ordering::AcqRel) == 1 {
                connections::is_free(number);
            }
        }
    }
}

/// Whether it is the last descriptor of this process, others are counted, and it matters whether
/// those are there.
pub fn is_last_but_for_dead(stream: &Stream) -> bool {
    let of_slot = phase::CLAIMED | phase::ATTACHED | phase::HOLDS_SLOT | phase::PASSED;
    !stream.shared.is_alone()
        && stream.local.copies.load(Ordering::Relaxed) == 1
        && stream.shared.references.load(Ordering::Acquire) > 1
        && stream.shared.phase() & of_slot != 0
}

/// Another descriptor of the same in this process; -1: there is none.
fn another(of: What) -> i32 {
    let mut found = -1;
    table::each(|descriptor, what| {
        if what == of {
            found = descriptor;
        }
    });
    found
}

/// The last descriptor is closed: the peer gets what was sent, and then the end.
fn end(stream: &Stream, descriptor: i32, is_open: bool) {
    let shared = stream.shared;
    if shared.is(phase::LISTENS) {
        listener::is_closed(stream);
    }
    let is_claimed = shared.phase() & (phase::CLAIMED | phase::ATTACHED) == phase::CLAIMED;
    epoll::forget_stream(stream, is_open && is_claimed);
    if is_claimed && !stream.gives_back_kept() {
        monitor::withdraw(stream.token());
        if is_open {
            ends_claimed(stream, descriptor);
        }
    }
    if is_open && stream.is_returning(shared.phase()) {
        // The peer may want to have what it has not read.
        stream.go_on(descriptor);
    }
    stream.release_slot();
    if shared.is(phase::PASSED) {
        monitor::part(stream.token());
    }
    if !shared.is(phase::ATTACHED) {
        return;
    }
    let Some(slot) = stream.slot() else { return };
    if is_open {
        stream.says_reset(&slot, descriptor);
    }
    slot.say(flag::CLOSED | flag::ENDED);
    if is_open {
        // Doorbells that are left would make the kernel reset what has ended well.
        stream.take_all_doorbells(descriptor);
    }
    stream.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
    let number = |word: &core::sync::atomic::AtomicU32| word.load(Ordering::Relaxed);
    monitor::release(number(&shared.monitor), number(&shared.slab), number(&shared.slot));
}

/// The last descriptor but the monitor's is about to be closed, which may have it open for a moment
/// still, or as long as it is stopped: the peer shall know at once.
pub fn ends_claimed(stream: &Stream, descriptor: i32) {
    let phase = stream.shared.phase();
    let is_waiting = phase & (phase::CLAIMED | phase::ATTACHED) == phase::CLAIMED;
    if !is_waiting || phase & (phase::NEVER | phase::PASSED) != 0 {
        return;
    }
    if !stream.is_unix() && stream.would_reset(descriptor) {
        raw::disconnect(descriptor);
    } else {
        raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
    }
}

/// Before a fork: the child will have what this process has. `expects`: it will be told which one
/// it is.
pub fn share_all(expects: bool) {
    epoll::sharing::begins();
    each_stream(|_, stream| {
        stream.share_ends();
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.note_copies();
        if expects {
            stream.expect_child();
        }
    });
}

/// In the parent, behind a fork whose child was expected: which one it has, if that is known.
pub fn knows_child(child: impl FnOnce() -> Option<i32>) {
    let child = LazyCell::new(child);
    each_stream(|_, stream| stream.knows_child(*child));
}

/// There was no fork after all.
#[cold]
pub fn has_no_child() {
    each_stream(|_, stream| _ = stream.shared.references.fetch_sub(1, Ordering::AcqRel));
}

/// In the child of a fork that nobody was told of, as soon as it is noticed: it has its parent's
/// sockets, which the parent takes for its own alone.
#[cold]
pub fn has_strayed() {
    epoll::sharing::begins();
    each_stream(|_, stream| {
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.strays();
    });
}

/// In the child of a fork, which has what its parent had; `parent`: who has expected it.
pub fn note_in_child(parent: Option<Parent>) {
    each_stream(|descriptor, stream| {
        stream.note_in_child(parent);
        // Its parent may close its own, and this process may not look for long.
        if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
            slot.say_descriptor(descriptor);
        }
    });
    each_stream(|_, stream| stream.has_no_callers());
}

/// `shutdown`. `None`: the kernel does it.
pub fn shutdown(stream: &Stream, descriptor: i32, how: i32) -> Option<isize> {
    stream.go_on(descriptor);
    let shared = stream.shared;
    if shared.is(phase::LISTENS) {
        listener::is_closed(stream);
    }
    if stream.is_unix() && !shared.is(phase::LOOKS) {
        // The peer would have to know of either half.
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
        // It ends where it is, and stays there.
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
        // The kernel wakes whoever waits, nevertheless.
        epoll::has_news(stream, u32::MAX);
        return Some(errno::fail(libc::ENOTCONN));
    }
    if shared.phase() & (phase::PEER_GONE | phase::HUNG_UP) != 0 {
        epoll::has_news(stream, u32::MAX);
        if writes {
            // Sending fails without asking the kernel, and the peer may live.
            shared.mark(phase::ENDED);
            slot.say(flag::ENDED);
        }
        return None;
    }
    if writes && !shared.is(phase::ENDED) {
        // The kernel's end would be the end of doorbells as well, so it comes when it is closed.
        shared.mark(phase::ENDED);
        slot.say(flag::ENDED);
        if slot.peer_said() & flag::CLOSED == 0 {
            // The kernel of who has closed would answer with a reset.
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
        // No doorbell is needed any more, and the kernel refuses whoever writes to it.
        slot.say(flag::DEAF);
        raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
    }
    epoll::has_news(stream, u32::MAX);
    Some(0)
}

/// Who sleeps on the socket in this process has to know that it was shut.
fn wake_own(stream: &Stream, _slot: &Slot, descriptor: i32) {
    if stream.shared.sleepers.load(Ordering::SeqCst) > 0 {
        // The kernel wakes who sleeps there if its own reading is shut.
        let how = libc::SHUT_RD as usize;
        raw::shutdown(descriptor, how);
        stream.shared.mark(phase::KERNEL_END);
    }
}
