// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping on a socket whose streams are in rings: in the kernel, on the socket itself, where a
//! doorbell, the peer's end, a signal and the socket's own time-outs wake the sleeper.
//!
//! Sleepers look at doorbells without taking them, so that a thread that sleeps on the same socket
//! for another reason wakes as well. A thread that wakes as the only sleeper takes the doorbells
//! that it has seen: later ones may be for a thread that has fallen asleep since.
//!
//! The kernel does not report doorbells to a sleeping set that were taken before the set's thread
//! runs. So a thread that takes some makes such sets look; and a thread that has not slept takes
//! none while a set sleeps.

use crate::kernel::next::next;
use crate::kernel::{errno, raw, signals};
use crate::process;
use crate::process::barrier::Owed;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use crate::state::table::{self, What};
use crate::underlay::taking::{DOORBELLS, Others};
use crate::waiting::epoll;
use crate::waiting::looks::Looks;
use core::sync::atomic::{AtomicU32, Ordering};
use freeport_sockets_proto::slab::word;

/// Number of times that a receiver gives back room in a ring without sleeping, before it counts as
/// one that seldom sleeps, whose senders need no fence.
const AWAKE_FOR: u32 = 8;

/// Milliseconds of one sleep for room if others can shut the stream, which bounds the delay until
/// that is noticed.
const TURN_MILLISECONDS: i32 = 50;

/// Counts a thread as a sleeper of a socket until this is dropped.
struct Sleeper<'a> {
    sleepers: &'a AtomicU32,
}

impl<'a> Sleeper<'a> {
    fn new(stream: &Stream) -> Self {
        let sleepers = &stream.shared.sleepers;
        sleepers.fetch_add(1, Ordering::SeqCst);
        Self { sleepers }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stream {
    /// Announces that a thread sleeps on the socket itself until something arrives.
    pub fn announce_data_sleep(&self, descriptor: i32, slot: &Slot) -> Owed {
        self.announce(descriptor, slot, false)
    }

    /// Announces that a set sleeps, for which a mark on its board may be enough.
    pub fn announce_set_sleep(&self, descriptor: i32, slot: &Slot, takes_marks: bool) -> Owed {
        self.announce(descriptor, slot, takes_marks)
    }

    fn announce(&self, descriptor: i32, slot: &Slot, takes_marks: bool) -> Owed {
        let is_alone = self.shared.is_alone();
        let others = self.shared.announced.fetch_add(1, Ordering::SeqCst);
        let Some(mut half) = self.shared.receive.take(is_alone) else {
            slot.says_marks_are_enough(false);
            return Owed(true);
        };
        let is_only = others == 0
            && self.shared.announced.load(Ordering::SeqCst) == 1
            && self.shared.sleepers.load(Ordering::SeqCst) == 0;
        slot.says_marks_are_enough(takes_marks && is_only);
        let announced = self.with_receiver(slot, &mut half, |receiver| {
            receiver.ring().announce_light_sleep(AWAKE_FOR)
        });
        let [light, _] = &self.local.light_since;
        let owed = light.owes(announced.is_none_or(|announced| announced.is_new), is_alone);
        drop(half);
        slot.count(word::SLEEPS, 1);
        if announced.is_some_and(|announced| announced.wake) {
            self.ring_doorbell(descriptor, slot);
        }
        owed
    }

    /// Takes the announcement back, unless other threads sleep as well.
    pub fn announce_data_awake(&self, slot: &Slot) {
        if self.shared.announced.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        let Some(mut half) = self.shared.receive.take(self.shared.is_alone()) else { return };
        // With the lock held: a thread counted since then may have announced its sleep already.
        if self.shared.announced.load(Ordering::SeqCst) == 0 {
            self.with_receiver(slot, &mut half, |receiver| receiver.ring().announce_awake());
        }
    }

    /// A thread that is counted goes to sleep on the socket itself, and a mark does not wake it.
    pub fn needs_doorbells(&self, slot: &Slot) {
        let _half = self.shared.receive.take(self.shared.is_alone());
        slot.says_marks_are_enough(false);
    }

    /// Announces that a thread sleeps until there is room.
    pub fn announce_room_sleep(&self, slot: &Slot) -> Owed {
        let is_alone = self.shared.is_alone();
        let Some(mut half) = self.shared.send.take(is_alone) else { return Owed(true) };
        let announced = self
            .with_sender(slot, &mut half, |sender| sender.ring().announce_light_sleep(AWAKE_FOR));
        let [_, light] = &self.local.light_since;
        light.owes(announced.is_none_or(|announced| announced.is_new), is_alone)
    }

    /// Takes the announcement back, unless other threads sleep: they may wait for room as well.
    pub fn announce_room_awake(&self, slot: &Slot) {
        let Some(mut half) = self.shared.send.take(self.shared.is_alone()) else { return };
        // With the lock held: a sleeper is counted before it announces its sleep.
        let others = [&self.shared.announced, &self.shared.sleepers];
        if others.iter().all(|count| count.load(Ordering::SeqCst) == 0) {
            self.with_sender(slot, &mut half, |sender| sender.ring().announce_awake());
        }
    }

    /// Whether waits for this socket are in the kernel alone, because it has not switched in both
    /// directions.
    #[inline]
    pub fn waits_in_kernel(&self) -> bool {
        !self.shared.is(phase::LOOKS)
    }

    /// Before the application learns that it has to wait, while such waits are in the kernel alone:
    /// makes the peer ring a doorbell there. True: the socket is ready now.
    #[cold]
    pub fn prepare_kernel_wait(&self, descriptor: i32, slot: &Slot, for_room: bool) -> bool {
        let owed = if for_room {
            // Doorbells stay for threads that wait for data.
            self.glance_at_underlay(descriptor);
            self.needs_doorbells(slot);
            self.announce_room_sleep(slot)
        } else {
            self.look_at_underlay(descriptor, 0);
            let owed = self.announce_data_sleep(descriptor, slot);
            // One announcement counts for all waits in the kernel.
            self.shared.announced.fetch_sub(1, Ordering::SeqCst);
            owed
        };
        owed.pass();
        if for_room { self.is_writable(slot) } else { self.is_readable(slot) }
    }
}

/// Sleeps until `exists` is true, or until something arrives that may change it.
///
/// # Errors
/// Those of a sleeping `recv`: `EINTR`, or `EAGAIN` after its time-out.
#[cold]
pub fn until(
    stream: &Stream,
    descriptor: i32,
    slot: &Slot,
    exists: impl Fn() -> bool,
) -> Result<(), i32> {
    let _sleeper = Sleeper::new(stream);
    stream.announce_data_sleep(descriptor, slot).pass();
    let result = if exists() { Ok(Woken::ToLook) } else { in_kernel(stream, descriptor) };
    let descriptor = stream.open_as(descriptor);
    let result = match result {
        Ok(Woken::ByWhatStays) => beside_doorbell(stream, descriptor, slot, &exists),
        other => other.map(|_| ()),
    };
    stream.announce_data_awake(slot);
    match result {
        Err(_) if exists() => Ok(()),
        result => result,
    }
}

/// Sleeps until there is room to send.
///
/// # Errors
/// Those of a sleeping `send`: `EINTR`, or `EAGAIN` after its time-out.
#[cold]
pub fn for_room(stream: &Stream, descriptor: i32, slot: &Slot) -> Result<(), i32> {
    let sleeper = Sleeper::new(stream);
    stream.needs_doorbells(slot);
    stream.announce_room_sleep(slot).pass();
    let result = if stream.is_writable(slot) {
        Ok(())
    } else {
        match milliseconds(descriptor, libc::SO_SNDTIMEO) {
            None if may_be_shut_by_others(stream) => in_turns(stream, descriptor, slot),
            None => in_kernel(stream, descriptor).map(|_| ()),
            Some(milliseconds) => for_some_time(stream, descriptor, milliseconds),
        }
    };
    drop(sleeper);
    stream.announce_room_awake(slot);
    match result {
        Err(_) if stream.is_writable(slot) => Ok(()),
        result => result,
    }
}

/// Why a sleeper in the kernel has woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// To look at the ring.
    ToLook,
    /// By a doorbell that it must not take, which would wake it again at once.
    ByWhatStays,
}

/// Polls while a doorbell stays: another thread is about to take it, or the peer has not counted it
/// and perhaps never will. This time counts towards the time-out of `recv`.
#[cold]
fn beside_doorbell(
    stream: &Stream,
    descriptor: i32,
    slot: &Slot,
    exists: impl Fn() -> bool,
) -> Result<(), i32> {
    let most = milliseconds(descriptor, libc::SO_RCVTIMEO);
    let (mut looks, mut waited) = (Looks::new(), 0);
    let is_over = || exists() || stream.leaves_rings() || stream.has_read_end(slot);
    while !is_over() {
        let descriptor = stream.open_as(descriptor);
        if looks.again() {
            continue;
        }
        if most.is_some_and(|most| waited >= most) {
            return Err(libc::EAGAIN);
        }
        // Behind the doorbell the kernel reports only the end. Whether a signal ends a `recv`
        // depends on its handler, which is not known here: this one continues.
        if raw::wait(descriptor, libc::POLLRDHUP, 1) != Err(libc::EINTR) {
            waited += 1;
        }
        if stream.take_doorbells_that_stay(descriptor) {
            return Ok(());
        }
    }
    Ok(())
}

/// Sleeps in the kernel as `recv` does.
fn in_kernel(stream: &Stream, descriptor: i32) -> Result<Woken, i32> {
    let mut bytes = [0_u8; DOORBELLS];
    let (at, count) = (bytes.as_mut_ptr().cast::<libc::c_void>(), bytes.len());
    let flags = libc::MSG_PEEK;
    let before = errno::get();
    let seen =
        next!(recv(descriptor: i32, at: *mut libc::c_void, count: usize, flags: i32) -> isize);
    let descriptor = stream.open_as(descriptor);
    if seen >= 0 {
        let stays = !stream.has_looked(descriptor, Ok(seen as usize), Others::Beyond(1));
        // It may have rung for a set as well, to which the kernel no longer reports it.
        epoll::look_again(stream, libc::EPOLLIN | libc::EPOLLOUT);
        return Ok(if stays { Woken::ByWhatStays } else { Woken::ToLook });
    }
    let error = errno::get();
    errno::set(before);
    if matches!(error, libc::EINTR | libc::EAGAIN) {
        return Err(error);
    }
    stream.kernel_said(Err(error));
    Ok(Woken::ToLook)
}

/// Whether another thread or process can shut the stream that this thread sends on. The kernel
/// would wake a sender then; here the sender waits for bytes that only the peer can send.
fn may_be_shut_by_others(stream: &Stream) -> bool {
    !process::has_one_thread() || !stream.shared.is_alone()
}

/// Whether a descriptor still refers to that stream. A thread that closes or replaces it may have
/// sent a signal to make this thread notice.
fn is_open(stream: &Stream, descriptor: i32) -> bool {
    table::get(descriptor) == Some(What::Stream(stream.number))
}

/// Sleeps for room, and checks at intervals whether the stream was shut.
fn in_turns(stream: &Stream, descriptor: i32, slot: &Slot) -> Result<(), i32> {
    loop {
        match for_some_time(stream, stream.open_as(descriptor), TURN_MILLISECONDS) {
            _ if stream.is_writable(slot) || stream.leaves_rings() => return Ok(()),
            Err(libc::EAGAIN) => {}
            // `poll` ends with each signal, `send` only with those without `SA_RESTART`.
            Err(libc::EINTR) if signals::do_calls_continue() && is_open(stream, descriptor) => {}
            result => return result,
        }
    }
}

/// Sleeps in the kernel for at most that time.
fn for_some_time(stream: &Stream, descriptor: i32, milliseconds: i32) -> Result<(), i32> {
    let mut waited = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let (at, count): (*mut libc::pollfd, libc::nfds_t) = (&mut waited, 1);
    let before = errno::get();
    let ready = next!(poll(at: *mut libc::pollfd, count: libc::nfds_t, milliseconds: i32) -> i32);
    let error = errno::get();
    errno::set(before);
    match ready {
        0 => Err(libc::EAGAIN),
        1.. => {
            stream.look_at_underlay(stream.open_as(descriptor), 1);
            epoll::look_again(stream, libc::EPOLLIN | libc::EPOLLOUT);
            Ok(())
        }
        _ => Err(error),
    }
}

/// The time-out of a call in milliseconds, from a socket option; `None`: no limit.
fn milliseconds(descriptor: i32, option: i32) -> Option<i32> {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    raw::get_option(descriptor, libc::SOL_SOCKET, option, &mut time).ok()?;
    if time.tv_sec == 0 && time.tv_usec == 0 {
        return None;
    }
    let milliseconds = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_usec / 1000);
    Some(i32::try_from(milliseconds.max(1)).unwrap_or(i32::MAX))
}
