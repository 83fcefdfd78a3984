// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a stream socket that a fork shares: how far the socket is on its way out of the
//! kernel, and where its two streams are.

use crate::process::lock::{Held, Lock};
use crate::state::backlog::Backlog;
use crate::state::holders::Holders;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use freeport_ring::{ReceiverCursor, SenderCursor};

/// The bits of a socket's phase.
pub mod phase {
    /// A slot was requested from the monitor.
    pub const CLAIMED: u32 = 1;
    /// It has a slot.
    pub const ATTACHED: u32 = 2;
    /// It sends through the ring.
    pub const SENDS: u32 = 4;
    /// It receives through the ring.
    pub const RECEIVES: u32 = 8;
    /// The peer is gone. The socket sends through the kernel again, which reports the right error.
    pub const PEER_GONE: u32 = 16;
    /// It stays in the kernel.
    pub const NEVER: u32 = 32;
    /// The application has shut down sending.
    pub const ENDED: u32 = 64;
    /// The application has shut down receiving.
    pub const READ_SHUT: u32 = 128;
    /// The kernel reports the end of the stream: the peer has closed its end or has exited.
    pub const KERNEL_END: u32 = 256;
    /// It listens.
    pub const LISTENS: u32 = 512;
    /// Every wait on it looks at its rings.
    pub const LOOKS: u32 = 2048;
    /// The kernel reports a hang-up (`POLLHUP`).
    pub const HUNG_UP: u32 = 1024;
    /// It is a Unix socket.
    pub const UNIX: u32 = 1 << 20;
    /// The application has received the error of the peer's reset; see
    /// [`resets`](crate::data::resets).
    pub const RESET_TOLD: u32 = 1 << 21;
    /// The kernel reports a reset.
    pub const KERNEL_RESET: u32 = 1 << 23;
    /// This side has aborted the connection; see
    /// [`break_off`](crate::data::resets).
    pub const BROKEN_OFF: u32 = 1 << 27;
    /// It no longer sends through the ring: it comes back into the kernel, or has come back.
    pub const LEAVES: u32 = 4096;
    /// It is leaving the ring at this moment, so nothing can be sent.
    pub const MOVES: u32 = 1 << 16;
    /// The kernel has no room for what has to be sent again to the peer first.
    pub const OWES: u32 = 1 << 17;
    /// It no longer receives from the ring either.
    pub const STOPS: u32 = 1 << 15;
    /// It has come back, and keeps the slot because threads may still be about to look there.
    pub const HOLDS_SLOT: u32 = 8192;
    /// A child of a fork that the library did not see has it as well, while its parent still has
    /// the ends of the rings in its own memory; see [`straying`](crate::returning::straying).
    pub const STRAYS: u32 = 1 << 22;
    /// It has options that differ from those of a new socket.
    pub const TUNED: u32 = 1 << 24;
    /// Its keep-alive options have changed. They are restored before another connection gets its
    /// stream; see
    /// [`keep_alive`](crate::reuse::keep_alive).
    pub const KEPT_ALIVE: u32 = 1 << 26;
    /// It was connected without the kernel by a call that does not block. A later call has to
    /// report the success.
    pub const CONNECTING: u32 = 1 << 25;
    /// Receivers wait until `low_water` bytes have arrived.
    pub const WAITS_FOR_MORE: u32 = 1 << 28;
    /// It was passed to another process, and the monitor knows that.
    pub const PASSED: u32 = 1 << 14;
    /// Programs started by this process have inherited it; see [`lent`](crate::family::lent).
    pub const LENT: u32 = 1 << 29;
    /// The bits that are cleared when it has come back.
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
    /// The area that holds the ring.
    pub area: AtomicU32,
    /// Whether a process died while it used the ring, so that the cursor is lost.
    pub is_broken: AtomicBool,
    /// Sending: whether the ring was full. Unused otherwise.
    pub was_full: AtomicBool,
    /// Sending: whether room was reported to the application, and nothing has been sent since. The
    /// application relies on that room even if the stream comes back into the kernel.
    pub has_reported_room: AtomicBool,
    /// Sending: number of times that the ring was full.
    pub fulls: AtomicU32,
    /// Receiving: offset in the slab of the next header.
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
    /// The position in the ring.
    #[inline]
    pub fn cursor(&self) -> T {
        // SAFETY: the lock is held.
        unsafe { *self.half.cursor.get() }
    }

    /// Whether the position is lost.
    pub fn is_broken(&self) -> bool {
        self.half.is_broken.load(Ordering::Relaxed)
    }

    /// Sets the position in the ring.
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
    /// Number of descriptors in all processes; 0: a free place.
    pub references: AtomicU32,
    /// The processes that hold them, if there may be several.
    pub holders: Holders,
    /// Changes with each socket that has this place.
    pub generation: AtomicU32,
    /// Whether the descriptor does not block.
    pub nonblocking: AtomicBool,
    /// Whether more than one process may have it.
    pub forked: AtomicBool,
    /// Whether it came from another program, so that unknown processes may hold it.
    pub inherited: AtomicBool,
    /// Whether both sides pass fences.
    pub fenced: AtomicBool,
    /// Which side of the slot it is.
    pub side: AtomicU32,
    /// The slab, and the slot in it.
    pub slab: AtomicU32,
    /// See `slab`.
    pub slot: AtomicU32,
    /// The epoch of the monitor that assigned the slot.
    pub monitor: AtomicU32,
    /// The process that held the peer's end when the monitor paired both.
    pub peer: AtomicU32,
    /// The kernel's name of the peer's socket (`SO_COOKIE`), as the monitor saw it.
    pub peer_cookie: AtomicU64,
    /// The [flags](freeport_sockets_proto::slab::flag) that this side has set in the slot. Kept
    /// here because the peer can change the slot.
    pub said: AtomicU64,
    /// Number of bytes that this side has given back to the peer, kept here for the same reason.
    pub refunded: AtomicU64,
    /// Why it stays in the kernel, as the number of a `freeport_sockets_proto::Reason`; 0: it may
    /// leave.
    pub reason: AtomicU32,
    /// Number of threads that sleep in the kernel on the descriptor, or are about to.
    pub sleepers: AtomicU32,
    /// Number of sleepers that have announced that they wait for data.
    pub announced: AtomicU32,
    /// `SO_RCVLOWAT`, if the application has set it since the stream left the kernel.
    pub low_water: AtomicU32,
    /// The error that the kernel reported, until the application receives it.
    pub error: AtomicI32,
    /// Number of operations through the kernel, and the number at which it will be claimed.
    pub operations: AtomicU64,
    /// See `operations`.
    pub claim_at: AtomicU64,
    /// Number of bytes sent through the kernel, and number of calls that are about to send there.
    pub kernel_sent: AtomicU64,
    /// See `kernel_sent`.
    pub kernel_sends: AtomicU32,
    /// Number of calls that are about to receive through the kernel.
    pub kernel_receives: AtomicU32,
    /// Number of bytes received through the kernel.
    pub kernel_received: AtomicU64,
    /// Number of doorbells sent, and number taken, since the stream left the kernel.
    pub rang: AtomicU64,
    /// See `rang`.
    pub rung: AtomicU64,
    /// When waiting for the peer began, in [ticks](crate::kernel::raw::ticks); 0: nothing waits.
    pub waits_since: AtomicU64,
    /// The bytes that are still to be sent again to the peer.
    pub backlog: Backlog,
    /// Whether a doorbell is owed. It can ring once the peer no longer takes it for a byte of the
    /// stream.
    pub owes_doorbell: AtomicBool,
    /// `TCP_NODELAY` as the application set it.
    pub no_delay: AtomicBool,
    /// The sending direction.
    pub send: Half<SenderCursor>,
    /// The receiving direction.
    pub receive: Half<ReceiverCursor>,
}

impl Connection {
    /// Takes the place, if it is free.
    pub fn occupy(&self) -> bool {
        let taken =
            self.references.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if taken {
            // No other thread has the place, so this one alone writes there.
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
        // A slow thread of this process may still hold a lock of the previous socket; no other
        // process does.
        if let Some((mut send, mut receive)) = self.send.take(true).zip(self.receive.take(true)) {
            self.begin_rings(&mut send, &mut receive);
        }
    }

    /// Resets the state of the rings. Both halves are held.
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

    /// The current phase.
    #[inline]
    pub fn phase(&self) -> u32 {
        self.phase.load(Ordering::Acquire)
    }

    /// Whether all these bits are set.
    #[inline]
    pub fn is(&self, flags: u32) -> bool {
        self.phase() & flags == flags
    }

    /// Sets bits, and returns the phase before.
    pub fn mark(&self, flags: u32) -> u32 {
        self.phase.fetch_or(flags, Ordering::SeqCst)
    }

    /// Clears bits.
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
        self.half.has_reported_room.store(false, Ordering::Relaxed);
        self.half.fulls.store(0, Ordering::Relaxed);
        self.half.next_header.store(0, Ordering::Relaxed);
    }
}
