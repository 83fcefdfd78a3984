// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a stream leaves the kernel, in the steps of `freeport-sockets-proto`.

pub mod keeping;
pub mod kept;
pub mod monitor;
pub mod options;

use crate::family::lent;
use crate::kernel::raw;
use crate::process;
use crate::process::uring;
use crate::state::connection::{Connection, phase};
use crate::state::connections::{self, Stream};
use crate::state::kept::Given;
use crate::state::slabs;
use crate::state::slot::Slot;
use crate::upgrade::monitor::Asked;
use crate::waiting::epoll;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::{self, flag};

/// Number of operations after which an end is claimed. Shorter connections gain nothing.
const CLAIM_OPERATIONS: u64 = 8;
/// Bytes that count as much as an operation.
const OPERATION_BYTES: u64 = 4096;

impl Stream {
    /// Counts an operation that has moved `bytes` through the kernel, and claims the end when it is
    /// due.
    #[inline]
    pub fn has_moved(&self, descriptor: i32, bytes: u64) {
        let shared = self.shared;
        let by = 1 + bytes / OPERATION_BYTES;
        let operations = shared.operations.fetch_add(by, Ordering::Relaxed) + by;
        let claim_at = shared.claim_at.load(Ordering::Relaxed).max(CLAIM_OPERATIONS);
        let phase = shared.phase();
        if operations >= claim_at && phase & phase::CLAIMED == 0 {
            self.claim(descriptor);
        }
    }

    /// Requests a slot from the monitor, if nothing prevents it.
    #[cold]
    pub fn claim(&self, descriptor: i32) {
        kept::sweep();
        let shared = self.shared;
        if shared.is(phase::NEVER) {
            return self.tell_reason(descriptor);
        }
        // If this fails, the next attempt comes after about as many operations.
        let operations = shared.operations.load(Ordering::Relaxed);
        shared.claim_at.store(claim_behind(operations), Ordering::Relaxed);
        if !shared.is_alone() && !self.is_only_here() {
            self.drop_dead();
        }
        if !self.is_only_here() && shared.is(phase::LENT) {
            self.takes_back(descriptor);
            shared.claim_at.store(operations + lent::AGAIN, Ordering::Relaxed);
        }
        if !self.is_only_here() {
            keeping::tell(descriptor, Reason::Shared);
            return;
        }
        if let Some(reason) = self.is_kept_for() {
            self.keep(reason);
            return self.tell_reason(descriptor);
        }
        if monitor::is_busy() {
            shared.claim_at.store(operations + 1, Ordering::Relaxed);
            return;
        }
        let (fits, else_for) = match self.is_unix() {
            true => (Some(options::is_plain(descriptor)), Reason::Ancillary),
            false => (is_peer_near(descriptor), Reason::PeerElsewhere),
        };
        match fits {
            Some(true) => {}
            Some(false) => {
                self.keep(else_for);
                return self.tell_reason(descriptor);
            }
            None => return,
        }
        match self.has_all_counted(descriptor) {
            Some(true) => {}
            Some(false) => {
                self.keep(Reason::PastLibrary);
                return self.tell_reason(descriptor);
            }
            None => {
                shared.claim_at.store(operations + 1, Ordering::Relaxed);
                return;
            }
        }
        self.release_slot();
        shared.monitor.store(monitor::epoch(), Ordering::Relaxed);
        if shared.mark(phase::CLAIMED) & phase::CLAIMED != 0 {
            return;
        }
        let inherited = shared.inherited.load(Ordering::Relaxed);
        let asked = monitor::claim(self.token(), descriptor, inherited);
        if asked != Asked::Yes {
            shared.unmark(phase::CLAIMED);
        }
        if asked == Asked::Busy {
            shared.claim_at.store(operations + 1, Ordering::Relaxed);
        }
    }

    /// Why its process keeps it in the kernel, if it does.
    fn is_kept_for(&self) -> Option<Reason> {
        if uring::is_used() {
            return Some(Reason::IoUring);
        }
        let is_given = self.shared.inherited.load(Ordering::Relaxed);
        (is_given && epoll::has_foreign()).then_some(Reason::ForeignSet)
    }

    /// Gives back the slot that it kept from its last time out of the kernel.
    pub fn release_slot(&self) {
        let shared = self.shared;
        if shared.is(phase::HOLDS_SLOT) {
            shared.unmark(phase::HOLDS_SLOT);
            self.leaves_slab();
            let number = |word: &AtomicU32| word.load(Ordering::Relaxed);
            monitor::release(number(&shared.monitor), number(&shared.slab), number(&shared.slot));
        }
    }

    /// Counts the socket in the slab at that place.
    fn uses_slab(&self, place: u32) {
        self.leaves_slab();
        slabs::is_used(place);
        self.local.slab.store(place + 1, Ordering::Relaxed);
    }

    /// This process no longer uses its slot. If a thread still sleeps on it, which will look at the
    /// slot when it wakes, the slab stays mapped.
    pub fn leaves_slab(&self) {
        let place = self.local.slab.swap(0, Ordering::Relaxed).checked_sub(1);
        if let Some(place) = place.filter(|_| self.shared.sleepers.load(Ordering::SeqCst) == 0) {
            slabs::is_left(place);
        }
    }

    /// Whether the kernel has moved as many bytes as were counted; `None`: other threads are moving
    /// some now.
    fn has_all_counted(&self, descriptor: i32) -> Option<bool> {
        let shared = self.shared;
        if self.is_unix() {
            // The kernel does not count bytes of Unix sockets.
            return Some(true);
        }
        let (sent, received) = kernel_counts(descriptor)?;
        if sent == shared.kernel_sent.load(Ordering::Acquire)
            && received == shared.kernel_received.load(Ordering::Acquire)
        {
            return Some(true);
        }
        let others = [&shared.kernel_sends, &shared.kernel_receives];
        let is_busy = others.iter().any(|calls| calls.load(Ordering::Acquire) > 0);
        if is_busy { None } else { Some(false) }
    }

    /// Sets the counts to the bytes that the kernel has moved so far. False: they are unknown.
    pub fn takes_counts(&self, descriptor: i32) -> bool {
        let Some((sent, received)) = kernel_counts(descriptor) else { return false };
        self.shared.kernel_sent.store(sent, Ordering::Relaxed);
        self.shared.kernel_received.store(received, Ordering::Relaxed);
        true
    }

    /// Goes further on the way out of the kernel, from that phase.
    #[cold]
    pub fn proceed_from(&self, descriptor: i32, phase: u32) {
        if phase & phase::ATTACHED == 0 {
            monitor::read_mail_at_times();
            if let Some(given) = self.take_kept() {
                self.leaves_slab();
                if !self.attaches(&given) {
                    monitor::release(given.monitor, given.slab, given.slot);
                }
            }
            self.forget_lost_claim();
        }
        let Some(slot) = self.slot().filter(|_| self.shared.is(phase::ATTACHED)) else { return };
        let peer = slot.peer_said() & (flag::ATTACHED | flag::DECLINED);
        if phase & (phase::SENDS | phase::NEVER) == 0 && peer == flag::ATTACHED {
            self.switch_sending(descriptor);
        }
        self.counts_receives(&slot);
        self.switch_receiving();
        let has_left_kernel = self.shared.is(phase::RECEIVES)
            && self.shared.kernel_receives.load(Ordering::SeqCst) == 0;
        if has_left_kernel && slot.said() & flag::LOOKS == 0 {
            slot.say(flag::LOOKS);
        }
        // Threads that still wait in the kernel have to be woken there; the last one does this.
        let is_switched = self.shared.is(phase::SWITCHED);
        if is_switched && self.shared.kernel_receives.load(Ordering::SeqCst) == 0 {
            self.has_switched(&slot);
        }
    }

    /// Announces that calls that receive through the kernel are counted in the slot, as soon as the
    /// earlier ones have returned, which began before there was a slot.
    fn counts_receives(&self, slot: &Slot) {
        let is_alone = self.shared.kernel_receives.load(Ordering::SeqCst) == 0;
        if is_alone && slot.said() & flag::COUNTS == 0 {
            slot.say(flag::COUNTS);
        }
    }

    /// Forgets a claim at a monitor that has exited and never answers. The next one gets a new
    /// claim.
    fn forget_lost_claim(&self) {
        let shared = self.shared;
        let is_lost = shared.monitor.load(Ordering::Relaxed) != monitor::epoch();
        if is_lost && self.is_only_here() && !shared.is(phase::ATTACHED) && !self.keeps_slot() {
            shared.unmark(phase::CLAIMED);
        }
    }

    /// Keeps sending through the kernel, although there is a ring.
    pub fn stay_in_kernel(&self, slot: &Slot, reason: Reason) {
        self.keep(reason);
        slot.say(flag::DECLINED);
    }

    /// All waits look at the rings from now on.
    fn has_switched(&self, slot: &Slot) {
        let before = self.shared.mark(phase::LOOKS);
        if before & phase::LOOKS == 0 && epoll::has_switched(self, slot) {
            self.announce_data_awake(slot);
            self.announce_room_awake(slot);
        }
    }

    /// Sends through the ring from now on, unless a thread is sending through the kernel.
    pub fn switch_sending(&self, descriptor: i32) {
        let Some(slot) = self.slot() else { return };
        let shared = self.shared;
        let Some(half) = shared.send.take(shared.is_alone()) else { return };
        if shared.phase() & (phase::SENDS | phase::ENDED | phase::LEAVES) != 0 {
            return;
        }
        // A thread that sends through the kernel is counted and then looks at the phase; here it
        // is the other way round.
        shared.mark(phase::SENDS);
        if shared.kernel_sends.load(Ordering::SeqCst) != 0 {
            shared.unmark(phase::SENDS);
            return;
        }
        let switched = slot.write(0, || {
            if !self.is_unix() {
                // Without it, doorbells would wait for each other.
                let (level, name, mut value) = (libc::IPPROTO_TCP, libc::TCP_NODELAY, 0_i32);
                _ = raw::get_option(descriptor, level, name, &mut value);
                shared.no_delay.store(value != 0, Ordering::Relaxed);
                _ = raw::set_option(descriptor, level, name, &1_i32);
            }
            slot.say_switched(shared.kernel_sent.load(Ordering::Acquire));
            Some(())
        });
        if switched.is_none() {
            // The peer wants the connection back at this moment.
            shared.unmark(phase::SENDS);
            return;
        }
        drop(half);
        fence(Ordering::SeqCst);
        if shared.owes_doorbell.load(Ordering::SeqCst) {
            self.ring_doorbell(descriptor, &slot);
        }
    }

    /// Receives through the ring from now on, if the peer sends there and all its bytes in the
    /// kernel are read.
    pub fn switch_receiving(&self) {
        let shared = self.shared;
        if shared.is(phase::RECEIVES) || !shared.is(phase::ATTACHED) {
            return;
        }
        let Some(at) = self.slot().and_then(|slot| slot.peer_switched()) else { return };
        if shared.kernel_received.load(Ordering::Acquire) >= at {
            shared.mark(phase::RECEIVES);
        }
    }
}

impl Connection {
    /// Delays the next claim until there are twice as many operations.
    pub fn claim_later(&self) {
        let operations = self.operations.load(Ordering::Relaxed);
        self.claim_at.store(claim_behind(operations), Ordering::Relaxed);
    }
}

/// The number of operations at which an end is claimed again. It is the same for both ends, whose
/// numbers are close, so that their claims reach the monitor at about the same time.
fn claim_behind(operations: u64) -> u64 {
    (operations + 1).next_power_of_two()
}

/// The monitor has refused a slot.
pub fn is_refused(token: u64, reason: Reason) {
    let Some(stream) = claimed(token) else { return };
    let may_change = [
        Reason::PeerPlain,
        Reason::Resources,
        Reason::UserLimit,
        Reason::NoMonitor,
        Reason::Shared,
    ]
    .contains(&reason);
    stream.shared.claim_later();
    if !may_change {
        stream.keep(reason);
        // The monitor knows the reason.
        stream.shared.claim_at.store(u64::MAX, Ordering::Relaxed);
    }
    stream.shared.unmark(phase::CLAIMED);
}

/// The monitor has assigned a slot of the slab that begins at `given.start`. False: it is not
/// wanted any more.
pub fn is_paired(token: u64, given: Given) -> bool {
    let Some((stream, at)) = claimed(token).zip(slab::page(given.slot)) else { return false };
    if !given.fenced && !process::has_membarrier() {
        return false;
    }
    // SAFETY: the slot is inside the slab.
    let start = unsafe { given.start.add(at) };
    let given = Given { start, ..given };
    if stream.local.copies.load(Ordering::Relaxed) == 0 {
        // Only a child holds it now, which may claim it itself.
        stream.shared.unmark(phase::CLAIMED);
        return false;
    }
    if !stream.is_only_here() {
        // This process alone held it when it was claimed, and will again when a child has exited.
        stream.keeps(&given);
        return true;
    }
    stream.attaches(&given)
}

impl Stream {
    /// Uses the slot. False: it is not wanted any more.
    fn attaches(&self, given: &Given) -> bool {
        let shared = self.shared;
        let Some(mut send) = shared.send.take(false) else { return false };
        let Some(mut receive) = shared.receive.take(false) else { return false };
        shared.begin_rings(&mut send, &mut receive);
        shared.unmark(phase::LEAVES | phase::STOPS);
        shared.peer.store(given.peer, Ordering::Relaxed);
        shared.peer_cookie.store(given.cookie, Ordering::Relaxed);
        shared.said.store(0, Ordering::Relaxed);
        shared.refunded.store(0, Ordering::Relaxed);
        shared.slab.store(given.slab, Ordering::Relaxed);
        shared.slot.store(given.slot, Ordering::Relaxed);
        shared.monitor.store(given.monitor, Ordering::Relaxed);
        shared.side.store(given.side as u32, Ordering::Relaxed);
        shared.fenced.store(given.fenced, Ordering::Relaxed);
        self.local.slot.store(given.start, Ordering::Release);
        self.uses_slab(given.place);
        let Some(slot) = self.slot() else { return false };
        self.take_ends(&slot, &send, &receive);
        // Threads that wait for this socket now are waiting in the kernel.
        shared.announced.fetch_add(1, Ordering::SeqCst);
        // The mark of the previous connection in this slot is void.
        slot.says_marks_are_enough(false);
        // Nothing was read, so no sleeper has to be woken.
        _ = self.with_receiver(&slot, &mut receive, |receiver| receiver.ring().announce_sleep());
        if shared.mark(phase::ATTACHED) & phase::NEVER != 0 {
            // Another thread has brought it back in the meantime.
            shared.unmark(phase::ATTACHED | phase::CLAIMED);
            self.local.ends.forget();
            self.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
            self.leaves_slab();
            return false;
        }
        drop((send, receive));
        epoll::has_attached(self);
        slot.say_descriptor(self.local.descriptor.load(Ordering::Relaxed));
        slot.say(flag::ATTACHED);
        self.counts_receives(&slot);
        true
    }
}

/// The socket that was claimed with that token and waits for the answer.
fn claimed(token: u64) -> Option<Stream> {
    let stream = connections::get(token as u32)?;
    let shared = stream.shared;
    let is_same = shared.generation.load(Ordering::Relaxed) == (token >> 32) as u32;
    let phase = shared.phase();
    let is_waiting = phase & (phase::CLAIMED | phase::ATTACHED | phase::NEVER) == phase::CLAIMED;
    let is_open = shared.references.load(Ordering::Acquire) > 0;
    (is_same && is_waiting && is_open).then_some(stream)
}

/// Whether the peer of a TCP socket is on this machine; `None`: it is not connected.
fn is_peer_near(descriptor: i32) -> Option<bool> {
    // SAFETY: addresses of zeroes are valid.
    let (mut own, mut peer): (libc::sockaddr_storage, libc::sockaddr_storage) =
        unsafe { core::mem::zeroed() };
    raw::address(descriptor, false, &mut own).ok()?;
    raw::address(descriptor, true, &mut peer).ok()?;
    Some(host(&own)? == host(&peer)?)
}

/// The host of an address, with all loopback addresses as one, and IPv4 in IPv6 as IPv4.
fn host(address: &libc::sockaddr_storage) -> Option<[u8; 16]> {
    const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let at: *const libc::sockaddr_storage = address;
    let host = match i32::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is what the storage holds, which is larger and as
            // aligned.
            let address = unsafe { (*at.cast::<libc::sockaddr_in>()).sin_addr };
            let [a, b, c, d] = address.s_addr.to_ne_bytes();
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, a, b, c, d]
        }
        // SAFETY: as above.
        libc::AF_INET6 => unsafe { (*at.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr },
        _ => return None,
    };
    let is_loopback = matches!(host, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, ..]);
    Some(if is_loopback { LOOPBACK } else { host })
}

/// Number of bytes that a TCP socket has sent and received through its calls; `None`: they are
/// changing now, or unknown.
fn kernel_counts(descriptor: i32) -> Option<(u64, u64)> {
    for _ in 0..4 {
        let before = tcp_info(descriptor)?;
        let unread = raw::ioctl_number(descriptor, libc::FIONREAD as libc::c_ulong).ok()?;
        let after = tcp_info(descriptor)?;
        if before.received == after.received {
            let received = before.received.checked_sub(u64::try_from(unread).ok()?)?;
            return Some((after.sent, received));
        }
    }
    None
}

struct Counts {
    sent: u64,
    received: u64,
}

/// The byte counts of `struct tcp_info`, at their offsets in `linux/tcp.h`.
fn tcp_info(descriptor: i32) -> Option<Counts> {
    const RECEIVED: usize = 128;
    const NOT_SENT: usize = 144;
    const SENT: usize = 200;
    const SENT_AGAIN: usize = 208;
    const BYTES: usize = 216;
    #[repr(C, align(8))]
    struct Info([u8; 256]);
    let mut info = Info([0; 256]);
    let bytes = raw::get_option(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
    if bytes < BYTES {
        return None;
    }
    let word = |at: usize| info.0.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let half = |at: usize| info.0.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let sent = word(SENT)?.checked_sub(word(SENT_AGAIN)?)? + u64::from(half(NOT_SENT)?);
    Some(Counts { sent, received: word(RECEIVED)? })
}
