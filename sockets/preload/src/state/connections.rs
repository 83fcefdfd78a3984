// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream sockets that this process has or had from its parent.
//!
//! What belongs to a socket lies in memory that a fork shares, because a fork shares the socket. It
//! has numbers only: a process that shares it, with fewer rights perhaps, can spoil the stream, as
//! it can through the kernel, and nothing else. Where things are mapped, and who waits for them, is
//! in memory of each process.

use crate::kernel::raw;
use crate::process;
use crate::process::barrier::LightSince;
use crate::process::lock::Lock;
use crate::state::connection::{Connection, phase};
use crate::state::ends::Ends;
use crate::state::inside::Inside;
use crate::state::kept::Kept;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Sockets of an arena.
const PER_ARENA: u32 = 1 << 12;
/// Arenas of a process.
const ARENAS: usize = 256;
/// How many places are looked at for a free one before there is a new arena.
const LOOKS: u32 = 64;

/// What only this process knows of a socket. All zero at the start.
#[derive(Debug)]
pub struct Local {
    /// The ends of its rings, while it is only this process's: else what is shared has them.
    pub ends: Ends,
    /// Where its slot is mapped; null if it is not.
    pub slot: AtomicPtr<u8>,
    /// The place of the slab in which that is, counted from 1, or 0: see
    /// [`slabs`](crate::state::slabs).
    pub slab: AtomicU32,
    /// When the kernel was asked last, in [ticks](raw::ticks).
    pub asked: AtomicU64,
    /// A descriptor of this process that has it; -1 for none.
    pub descriptor: AtomicI32,
    /// Descriptors that count no more, because the process is becoming another program.
    pub given_up: AtomicU32,
    /// That the process has said, since it is becoming another program, that it resets the
    /// connection: 1, and 2 if it lingers for no time because of that.
    pub resets: AtomicU32,
    /// How many descriptors of this process have it.
    pub copies: AtomicU32,
    /// In which place it is noted that a child is [expected](crate::family), counted from
    /// 1; 0: none is.
    pub expected: AtomicU32,
    /// When it was lent to programs that this process began, in hundredths of a second.
    pub lent_at: AtomicU64,
    /// Calls that wait on it while its descriptor is closed.
    pub inside: Inside,
    /// A slot that this process was given for it and does not use.
    pub kept: Kept,
    /// Its place among the streams that are kept for other connections, counted from 1; 0: it has
    /// none.
    pub entry: AtomicU32,
    /// The first of its registrations in sets, counted from 1; see
    /// [`epoll`](crate::waiting::epoll).
    pub registrations: AtomicU32,
    /// Since when its two ends, that of bytes and that of room, sleep lightly.
    pub light_since: [LightSince; 2],
}

/// A stream socket: what is shared and what is not.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// What a fork shares.
    pub shared: &'static Connection,
    /// What it does not.
    pub local: &'static Local,
    /// Its number in this process.
    pub number: u32,
}

impl Stream {
    /// Whether it is a Unix socket.
    #[inline]
    pub fn is_unix(&self) -> bool {
        self.shared.is(phase::UNIX)
    }

    /// What the monitor knows it by.
    pub fn token(&self) -> u64 {
        u64::from(self.shared.generation.load(Ordering::Relaxed)) << 32 | u64::from(self.number)
    }

    /// Whether no other process that is known of has the socket.
    pub fn is_only_here(&self) -> bool {
        let copies = self.local.copies.load(Ordering::Relaxed);
        self.shared.references.load(Ordering::Acquire) == copies
    }

    /// Whether a call with these flags waits.
    pub fn blocks(&self, flags: i32) -> bool {
        flags & libc::MSG_DONTWAIT == 0 && !self.shared.nonblocking.load(Ordering::Relaxed)
    }
}

struct Arena {
    connections: AtomicPtr<Connection>,
    locals: AtomicPtr<Local>,
}

static TABLE: [Arena; ARENAS] = [const {
    Arena {
        connections: AtomicPtr::new(core::ptr::null_mut()),
        locals: AtomicPtr::new(core::ptr::null_mut()),
    }
}; ARENAS];
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Where the next free one is looked for.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// The generation that made the newest arena: who is forked makes its own.
static MADE_BY: AtomicU32 = AtomicU32::new(0);
static GROWING: Lock = Lock::new();

/// The one with that number.
#[inline]
pub fn get(number: u32) -> Option<Stream> {
    let arena = TABLE.get((number / PER_ARENA) as usize)?;
    let (connections, locals) =
        (arena.connections.load(Ordering::Acquire), arena.locals.load(Ordering::Acquire));
    if connections.is_null() || locals.is_null() {
        return None;
    }
    let at = (number % PER_ARENA) as usize;
    // SAFETY: an arena has `PER_ARENA` connections, and `at` is less.
    let shared = unsafe { connections.add(at) };
    // SAFETY: arenas stay, zero is a value of all that is in them, and all fields may be shared.
    let shared = unsafe { &*shared };
    // SAFETY: an arena has `PER_ARENA` of these, too.
    let local = unsafe { locals.add(at) };
    // SAFETY: as above.
    let local = unsafe { &*local };
    Some(Stream { shared, local, number })
}

/// A new one, with one reference. `None`: no memory.
pub fn add() -> Option<Stream> {
    process::check();
    loop {
        let count = COUNT.load(Ordering::Acquire);
        if count > 0 && MADE_BY.load(Ordering::Acquire) == process::generation() {
            let first = (count - 1) * PER_ARENA;
            for _ in 0..LOOKS {
                // Two threads may look at the same place: one of them gets it.
                let next = NEXT.load(Ordering::Relaxed);
                NEXT.store(next.wrapping_add(1), Ordering::Relaxed);
                let at = next % PER_ARENA;
                if let Some(stream) = get(first + at).filter(|stream| stream.shared.occupy()) {
                    stream.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
                    stream.local.descriptor.store(-1, Ordering::Relaxed);
                    stream.local.given_up.store(0, Ordering::Relaxed);
                    stream.local.resets.store(0, Ordering::Relaxed);
                    stream.local.ends.forget();
                    stream.local.copies.store(1, Ordering::Relaxed);
                    stream.local.expected.store(0, Ordering::Relaxed);
                    stream.local.inside.forget();
                    stream.local.registrations.store(0, Ordering::Relaxed);
                    stream.local.light_since.iter().for_each(LightSince::forget);
                    stream.local.entry.store(0, Ordering::Relaxed);
                    return Some(stream);
                }
            }
        }
        if !grow(count) {
            return None;
        }
    }
}

/// Visits all places that there are.
pub fn each(visit: impl FnMut(Stream)) {
    let places = COUNT.load(Ordering::Acquire) * PER_ARENA;
    (0..places).filter_map(get).for_each(visit);
}

/// The place of that number is free again: the next one takes it, while it is in the cache.
pub fn is_free(number: u32) {
    if number / PER_ARENA + 1 == COUNT.load(Ordering::Relaxed) {
        NEXT.store(number % PER_ARENA, Ordering::Relaxed);
    }
}

/// Makes another arena, if there are still so many. False: no memory.
#[cold]
fn grow(count: u32) -> bool {
    let Some(_held) = GROWING.take(true) else { return false };
    if COUNT.load(Ordering::Acquire) != count {
        return true;
    }
    let Some(arena) = TABLE.get(count as usize) else { return false };
    let places = PER_ARENA as usize;
    let connections = raw::map(places * size_of::<Connection>(), true, None);
    let locals = raw::map(places * size_of::<Local>(), false, None);
    let (Ok(connections), Ok(locals)) = (connections, locals) else { return false };
    arena.locals.store(locals.cast(), Ordering::Release);
    arena.connections.store(connections.cast(), Ordering::Release);
    NEXT.store(0, Ordering::Relaxed);
    MADE_BY.store(process::generation(), Ordering::Release);
    COUNT.store(count + 1, Ordering::Release);
    true
}
