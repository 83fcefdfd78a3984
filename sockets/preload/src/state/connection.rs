// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream socket, as far as a fork shares it: how far it has come on its way out of the kernel,
//! and where both of its streams are.

use crate::process::lock::{Held, Lock};
use crate::state::backlog::Backlog;
use crate::state::holders::Holders;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use freeport_ring::{ReceiverCursor, SenderCursor};

/// What a socket's phase consists of.
pub mod phase {
    /// The monitor was asked for a slot.
    pub const CLAIMED: u32 = 1;
    /// It has a slot.
    pub const ATTACHED: u32 = 2;
    /// It sends through the ring.
    pub const SENDS: u32 = 4;
    /// It receives through the ring.
    pub const RECEIVES: u32 = 8;
    /// It sends through the kernel again, which knows what is wrong: the peer is gone.
    pub const PEER_GONE: u32 = 16;
    /// It stays in the kernel.
    pub const NEVER: u32 = 32;
    /// The application sends nothing more.
    pub const ENDED: u32 = 64;
    /// The application receives nothing more.
    pub const READ_SHUT: u32 = 128;
    /// The kernel has nothing more for it: the peer has closed its end or is dead.
    pub const KERNEL_END: u32 = 256;
    /// It listens.
    pub const LISTENS: u32 = 512;
    /// It looks at its rings, wherever it waits.
    pub const LOOKS: u32 = 2048;
    /// The kernel says that it hung up.
    pub const HUNG_UP: u32 = 1024;
    /// It is a Unix socket.
    pub const UNIX: u32 = 1 << 20;
    /// The application knows that the peer has reset it; see [`resets`](crate::data::resets).
    pub const RESET_TOLD: u32 = 1 << 21;
    /// The kernel says that it was reset.
    pub const KERNEL_RESET: u32 = 1 << 23;
    /// This side itself has ended the connection at once; see
    /// [`break_off`](crate::data::resets).
    pub const BROKEN_OFF: u32 = 1 << 27;
    /// It sends no more through the ring: it comes back into the kernel, or has.
    pub const LEAVES: u32 = 4096;
    /// It is just leaving, so nothing can be sent.
    pub const MOVES: u32 = 1 << 16;
    /// And what the peer wants to have again before has no room in the kernel.
    pub const OWES: u32 = 1 << 17;
    /// It receives no more from the ring either.
    pub const STOPS: u32 = 1 << 15;
    /// It has come back, and still has the slot: threads may be about to look there.
    pub const HOLDS_SLOT: u32 = 8192;
    /// A fork that nobody was told of has it as well, and the process that was forked has the ends
    /// of its rings still to itself; see [`straying`](crate::returning::straying).
    pub const STRAYS: u32 = 1 << 22;
    /// It has options that are not those of a new socket.
    pub const TUNED: u32 = 1 << 24;
    /// It has others of these, which are put back before another connection gets its stream; see
    /// [`keep_alive`](crate::reuse::keep_alive).
    pub const KEPT_ALIVE: u32 = 1 << 26;
    /// It was connected without the kernel, by a call that does not block: the application has to
    /// be told of that by another one.
    pub const CONNECTING: u32 = 1 << 25;
    /// Who receives waits for several bytes: for `low_water`.
    pub const WAITS_FOR_MORE: u32 = 1 << 28;
    /// Another process was given it, which the monitor knows.
    pub const PASSED: u32 = 1 << 14;
    /// Programs have inherited it that this process began; see [`lent`](crate::family::lent).
    pub const LENT: u32 = 1 << 29;
    /// What it is no more when it has come back.
    pub const OF_RINGS: u32 = CLAIMED
        | ATTACHED
        | SENDS
        | RECEIVES
        | PEER_GONE
        | ENDED
        | READ_SHUT
        | KERNEL_END
        | LOOKS
        | MOVES
        | OWES
        | HUNG_UP
        | KERNEL_RESET
        | STRAYS
        | WAITS_FOR_MORE;
    /// Both streams are in rings.
    pub const SWITCHED: u32 = SENDS | RECEIVES;
}

/// One direction of a stream.
#[derive(Debug)]
#[repr(C)]
pub struct Half<T> {
    lock: Lock,
    cursor: UnsafeCell<T>,
    /// The area in which the ring is.
    pub area: AtomicU32,
    /// Whether a process has died in the middle of using it: nobody knows where it is then.
    pub is_broken: AtomicBool,
    /// Sending: whether the ring was full. Unused otherwise.
    pub was_full: AtomicBool,
    /// Sending: whether the application was told of room, and has sent nothing since. It counts on
    /// that, whether the stream comes back into the kernel in between or not.
    pub has_told_room: AtomicBool,
    /// Sending: how often it was full.
    pub fulls: AtomicU32,
    /// Receiving: where in the slot the next header will be.
    pub next_header: AtomicU64,
}

// SAFETY: the cursor is only reached with the lock held.
unsafe impl<T: Copy> Sync for Half<T> {}

/// A direction whose lock is held.
pub struct HeldHalf<'a, T> {
    half: &'a Half<T>,
    _held: Held<'a>,
}

impl<T: Copy> Half<T> {
    /// Takes the lock. `None`: this thread has it, and was interrupted.
    #[inline]
    pub fn take(&self, alone: bool) -> Option<HeldHalf<'_, T>> {
        let held = self.lock.take(alone)?;
        if held.from_dead {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        Some(HeldHalf { half: self, _held: held })
    }
}

impl<T: Copy> HeldHalf<'_, T> {
    /// Where it is.
    #[inline]
    pub fn cursor(&self) -> T {
        // SAFETY: the lock is held.
        unsafe { *self.half.cursor.get() }
    }

    /// Whether nobody knows where it is.
    pub fn is_broken(&self) -> bool {
        self.half.is_broken.load(Ordering::Relaxed)
    }

    /// Says where it is now.
    #[inline]
    pub fn set_cursor(&mut self, cursor: T) {
        // SAFETY: the lock is held.
        unsafe { *self.half.cursor.get() = cursor }
    }
}

/// A stream socket. All zero is a place for one.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Connection {
    /// See [`phase`].
    pub phase: AtomicU32,
    /// Descriptors of all processes; 0: a free place.
    pub references: AtomicU32,
    /// Which processes those are, if there may be several.
    pub holders: Holders,
    /// Changes with each socket that has this place.
    pub generation: AtomicU32,
    /// Whether the descriptor does not block.
    pub nonblocking: AtomicBool,
    /// Whether more than one process may have it.
    pub forked: AtomicBool,
    /// Whether it came from another program, so that processes may have it that nobody knows.
    pub inherited: AtomicBool,
    /// Whether both sides pass fences.
    pub fenced: AtomicBool,
    /// Which side of the slot it is.
    pub side: AtomicU32,
    /// The slab, and the slot in it.
    pub slab: AtomicU32,
    /// See `slab`.
    pub slot: AtomicU32,
    /// Which of the monitors that this process has had gave it.
    pub monitor: AtomicU32,
    /// The process that has the other end, or had it when the monitor paired both.
    pub peer: AtomicU32,
    /// What the kernel calls the other end (`SO_COOKIE`), as the monitor saw it.
    pub peer_cookie: AtomicU64,
    /// What this side has [said](freeport_sockets_proto::slab::flag) in the slot: the peer can
    /// change it there.
    pub said: AtomicU64,
    /// How many bytes this side has given back to the peer, for the same reason.
    pub refunded: AtomicU64,
    /// Why it stays in the kernel, as the number of a `freeport_sockets_proto::Reason`; 0: nothing
    /// is against its leaving.
    pub reason: AtomicU32,
    /// Threads that sleep in the kernel on the descriptor, or are about to.
    pub sleepers: AtomicU32,
    /// How many have announced that they sleep until something comes.
    pub announced: AtomicU32,
    /// `SO_RCVLOWAT`, if the application has set it since the stream left the kernel.
    pub low_water: AtomicU32,
    /// The error that the kernel had for it, until the application has it.
    pub error: AtomicI32,
    /// Operations through the kernel, and with how many it will be claimed.
    pub operations: AtomicU64,
    /// See `operations`.
    pub claim_at: AtomicU64,
    /// Bytes sent through the kernel, and calls that are about to.
    pub kernel_sent: AtomicU64,
    /// See `kernel_sent`.
    pub kernel_sends: AtomicU32,
    /// Calls that are about to receive through the kernel.
    pub kernel_receives: AtomicU32,
    /// Bytes received through the kernel.
    pub kernel_received: AtomicU64,
    /// Doorbells that were sent, and that were taken, since the stream left the kernel.
    pub rang: AtomicU64,
    /// See `rang`.
    pub rung: AtomicU64,
    /// Since when the peer is waited for, in [ticks](crate::kernel::raw::ticks); 0: it is not.
    pub waits_since: AtomicU64,
    /// What the peer wants to have again, as far as it is still to be sent.
    pub backlog: Backlog,
    /// Whether the peer has to be woken, as soon as it takes what wakes it for a doorbell.
    pub owes_doorbell: AtomicBool,
    /// `TCP_NODELAY` as the application set it.
    pub no_delay: AtomicBool,
    /// What it sends.
    pub send: Half<SenderCursor>,
    /// What it receives.
    pub receive: Half<ReceiverCursor>,
}

impl Connection {
    /// Takes the place, if it is free.
    pub fn occupy(&self) -> bool {
        let taken =
            self.references.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if taken {
            // Nobody else has the place, so nobody else writes there.
            let generation = self.generation.load(Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Relaxed);
            self.reset();
        }
        taken
    }

    fn reset(&self) {
        for word in [&self.phase, &self.side, &self.slab, &self.slot, &self.monitor, &self.sleepers]
        {
            word.store(0, Ordering::Relaxed);
        }
        for word in [&self.kernel_sends, &self.kernel_receives, &self.announced, &self.reason] {
            word.store(0, Ordering::Relaxed);
        }
        for word in [&self.operations, &self.claim_at, &self.kernel_sent, &self.kernel_received] {
            word.store(0, Ordering::Relaxed);
        }
        for flag in [&self.nonblocking, &self.forked, &self.fenced, &self.no_delay] {
            flag.store(false, Ordering::Relaxed);
        }
        self.inherited.store(false, Ordering::Relaxed);
        self.holders.forget();
        self.error.store(0, Ordering::Relaxed);
        // A thread that was slow may still have a lock of the socket before, no other process.
        if let Some((mut send, mut receive)) = self.send.take(true).zip(self.receive.take(true)) {
            self.begin_rings(&mut send, &mut receive);
        }
    }

    /// What belongs to rings is as at their start. Both halves are held.
    pub fn begin_rings(
        &self,
        send: &mut HeldHalf<'_, SenderCursor>,
        receive: &mut HeldHalf<'_, ReceiverCursor>,
    ) {
        send.reset();
        receive.reset();
        for word in [&self.rang, &self.rung, &self.waits_since] {
            word.store(0, Ordering::Relaxed);
        }
        self.backlog.forget();
        self.owes_doorbell.store(false, Ordering::Relaxed);
        self.low_water.store(0, Ordering::Relaxed);
        self.unmark(phase::WAITS_FOR_MORE);
    }

    /// What it is, now.
    #[inline]
    pub fn phase(&self) -> u32 {
        self.phase.load(Ordering::Acquire)
    }

    /// Whether it is all of that.
    #[inline]
    pub fn is(&self, flags: u32) -> bool {
        self.phase() & flags == flags
    }

    /// Makes it that as well.
    pub fn mark(&self, flags: u32) -> u32 {
        self.phase.fetch_or(flags, Ordering::SeqCst)
    }

    /// Makes it that no more.
    pub fn unmark(&self, flags: u32) {
        self.phase.fetch_and(!flags, Ordering::SeqCst);
    }

    /// Whether only this process has it.
    #[inline]
    pub fn is_alone(&self) -> bool {
        !self.forked.load(Ordering::Relaxed)
    }
}

impl<T: Copy + Default> HeldHalf<'_, T> {
    fn reset(&mut self) {
        self.set_cursor(T::default());
        self.half.is_broken.store(false, Ordering::Relaxed);
        self.half.area.store(0, Ordering::Relaxed);
        self.half.was_full.store(false, Ordering::Relaxed);
        self.half.has_told_room.store(false, Ordering::Relaxed);
        self.half.fulls.store(0, Ordering::Relaxed);
        self.half.next_header.store(0, Ordering::Relaxed);
    }
}
