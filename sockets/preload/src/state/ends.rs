// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two ends of a socket's rings, ready for use.
//!
//! While one process alone holds a socket, the ends are in that process's own memory. The state
//! that a fork shares has only their cursors, from which each process makes them anew for each
//! operation.

use crate::kernel::raw;
use crate::state::connection::{HeldHalf, phase};
use crate::state::connections::Stream;
use crate::state::slot::{In, Out, Slot};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use freeport_ring::{ReceiverCursor, SenderCursor};
use freeport_sockets_proto::slab::flag;

/// The ends of a socket's rings. All zero: none.
#[derive(Debug)]
pub struct Ends {
    are_here: AtomicBool,
    /// They are copies of ends that another process may use; see
    /// [`straying`](crate::returning::straying).
    are_copies: AtomicBool,
    sender: UnsafeCell<MaybeUninit<Out>>,
    receiver: UnsafeCell<MaybeUninit<In>>,
}

// SAFETY: an end is only reached with the lock of its half held.
unsafe impl Sync for Ends {}

impl Ends {
    /// Drops the ends, for a new socket.
    pub fn forget(&self) {
        self.are_here.store(false, Ordering::Relaxed);
        self.are_copies.store(false, Ordering::Relaxed);
    }

    /// Whether the ends are here.
    pub fn are_here(&self) -> bool {
        self.are_here.load(Ordering::Relaxed)
    }

    /// Turns the ends into copies. False: there were none.
    pub fn become_copies(&self) -> bool {
        let had = self.are_here.swap(false, Ordering::Relaxed);
        self.are_copies.store(had, Ordering::Relaxed);
        had
    }

    /// Uses the copies as ends. False: there are none.
    pub fn are_right(&self) -> bool {
        let are_copies = self.are_copies.swap(false, Ordering::Relaxed);
        self.are_here.store(are_copies, Ordering::Relaxed);
        are_copies
    }

    /// The sending end, if it is here.
    #[inline(always)]
    pub fn sender<'a>(&'a self, _held: &'a mut HeldHalf<'_, SenderCursor>) -> Option<&'a mut Out> {
        let are_here = self.are_here.load(Ordering::Relaxed);
        are_here.then(|| {
            // SAFETY: the lock is held for as long as this is used, so there is no other reference.
            let sender = unsafe { &mut *self.sender.get() };
            // SAFETY: the end is here.
            unsafe { sender.assume_init_mut() }
        })
    }

    /// The receiving end, if it is here.
    #[inline(always)]
    pub fn receiver<'a>(
        &'a self,
        _held: &'a mut HeldHalf<'_, ReceiverCursor>,
    ) -> Option<&'a mut In> {
        let are_here = self.are_here.load(Ordering::Relaxed);
        are_here.then(|| {
            // SAFETY: the lock is held for as long as this is used, so there is no other reference.
            let receiver = unsafe { &mut *self.receiver.get() };
            // SAFETY: the end is here.
            unsafe { receiver.assume_init_mut() }
        })
    }

    /// The cursor of the sending end, if it is here. Its half is held.
    pub fn sender_cursor(&self, _held: &HeldHalf<'_, SenderCursor>) -> Option<SenderCursor> {
        let are_here = self.are_here.load(Ordering::Relaxed);
        are_here.then(|| {
            // SAFETY: the lock is held, so there is no other reference.
            let sender = unsafe { &mut *self.sender.get() };
            // SAFETY: the end is here.
            unsafe { sender.assume_init_mut() }.ring().cursor()
        })
    }

    /// The cursor of the receiving end, if it is here. Its half is held.
    pub fn receiver_cursor(&self, _held: &HeldHalf<'_, ReceiverCursor>) -> Option<ReceiverCursor> {
        let are_here = self.are_here.load(Ordering::Relaxed);
        are_here.then(|| {
            // SAFETY: the lock is held, so there is no other reference.
            let receiver = unsafe { &mut *self.receiver.get() };
            // SAFETY: the end is here.
            unsafe { receiver.assume_init_mut() }.ring().cursor()
        })
    }
}

impl Stream {
    /// Makes the ends in this process's own memory. Both halves are held.
    pub fn take_ends(
        &self,
        slot: &Slot,
        send: &HeldHalf<'_, SenderCursor>,
        receive: &HeldHalf<'_, ReceiverCursor>,
    ) {
        let made = slot.sender(self, send).zip(slot.receiver(self, receive));
        if let Some((sender, receiver)) = made.filter(|_| self.shared.is_alone()) {
            let ends = &self.local.ends;
            // SAFETY: the lock of this direction is held, so there is no other reference.
            unsafe { &mut *ends.sender.get() }.write(sender);
            // SAFETY: as above, for the other direction.
            unsafe { &mut *ends.receiver.get() }.write(receiver);
            ends.are_here.store(true, Ordering::Release);
        }
    }

    /// Before a fork: the shared state has the cursors from now on.
    pub fn share_ends(&self) {
        let (send, receive) = (self.shared.send.take(false), self.shared.receive.take(false));
        if let Some((mut send, mut receive)) = send.zip(receive) {
            self.leave_ends(&mut send, &mut receive);
        }
        self.shared.forked.store(true, Ordering::Release);
    }

    /// Writes the cursors to the shared state, and drops the ends here. Both halves are held.
    pub fn leave_ends(
        &self,
        send: &mut HeldHalf<'_, SenderCursor>,
        receive: &mut HeldHalf<'_, ReceiverCursor>,
    ) {
        let ends = &self.local.ends;
        let cursors = ends.sender_cursor(send).zip(ends.receiver_cursor(receive));
        if let Some((sender, receiver)) = cursors {
            send.set_cursor(sender);
            receive.set_cursor(receiver);
        }
        ends.forget();
    }

    /// Calls `act` with the sending end. `None`: there is none, or it was left.
    #[inline]
    pub fn with_sender<T>(
        &self,
        slot: &Slot,
        half: &mut HeldHalf<'_, SenderCursor>,
        act: impl FnOnce(&mut Out) -> T,
    ) -> Option<T> {
        if self.shared.is(phase::LEAVES) {
            return None;
        }
        if let Some(sender) = self.local.ends.sender(half) {
            return Some(act(sender));
        }
        if half.is_broken() {
            self.breaks(slot);
            return None;
        }
        let mut sender = slot.sender(self, half)?;
        let result = act(&mut sender);
        half.set_cursor(sender.ring().cursor());
        Some(result)
    }

    /// Calls `act` with the receiving end. `None`: there is none, or it has stopped.
    #[inline]
    pub fn with_receiver<T>(
        &self,
        slot: &Slot,
        half: &mut HeldHalf<'_, ReceiverCursor>,
        act: impl FnOnce(&mut In) -> T,
    ) -> Option<T> {
        if self.shared.is(phase::STOPS) {
            return None;
        }
        if let Some(receiver) = self.local.ends.receiver(half) {
            let result = act(receiver);
            slot.note_next_header(self, receiver);
            return Some(result);
        }
        if half.is_broken() {
            self.breaks(slot);
            return None;
        }
        let mut receiver = slot.receiver(self, half)?;
        let result = act(&mut receiver);
        slot.note_next_header(self, &mut receiver);
        half.set_cursor(receiver.ring().cursor());
        Some(result)
    }

    /// Ends the connection. A process that shared it has died while it used a ring, and any further
    /// use would take or send bytes twice, or lose them.
    #[cold]
    fn breaks(&self, slot: &Slot) {
        let shared = self.shared;
        if shared.mark(phase::KERNEL_END | phase::PEER_GONE) & phase::PEER_GONE == 0 {
            shared.error.store(libc::ECONNRESET, Ordering::Relaxed);
            slot.say(flag::CLOSED | flag::ENDED | flag::RESET);
            let descriptor = self.local.descriptor.load(Ordering::Relaxed);
            raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
        }
    }
}
