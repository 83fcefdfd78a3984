// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream sockets of this process, including those it inherited by a fork.
//!
//! The state of a socket lies in memory that a fork shares, because a fork shares the socket. It
//! holds numbers only: a process that shares it, perhaps with fewer rights, can corrupt the stream,
//! as it can through the kernel, and nothing else. Addresses of mappings, and lists of waiters, are
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

/// Number of sockets in an arena.
const PER_ARENA: u32 = 1 << 12;
/// Number of arenas of a process.
const ARENAS: usize = 256;
/// Number of places that are searched for a free one before a new arena is made.
const LOOKS: u32 = 64;

/// The part of a socket's state that is this process's own. All zero at the start.
#[derive(Debug)]
pub struct Local {
    /// The ends of its rings while this process alone holds it; otherwise the shared part has their
    /// cursors.
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
    /// Number of descriptors that no longer count, because the process is about to `exec`.
    pub given_up: AtomicU32,
    /// Whether the process, which is about to `exec`, has announced that it resets the connection:
    /// 1, or 2 if the library has set `SO_LINGER` to zero for that.
    pub resets: AtomicU32,
    /// Number of descriptors of this process.
    pub copies: AtomicU32,
    /// The place of the note that a child is [expected](crate::family), counted from 1; 0: none is.
    pub expected: AtomicU32,
    /// When programs started by this process inherited it, in hundredths of a second.
    pub lent_at: AtomicU64,
    /// Calls that may wait on it while its descriptor is closed.
    pub inside: Inside,
    /// A slot that the monitor assigned and this process does not use.
    pub kept: Kept,
    /// Its place among the streams that are kept for later connections, counted from 1; 0: none.
    pub entry: AtomicU32,
    /// The first of its registrations in epoll sets, counted from 1; see
    /// [`epoll`](crate::waiting::epoll).
    pub registrations: AtomicU32,
    /// Since when its two ends, for data and for room, sleep lightly.
    pub light_since: [LightSince; 2],
}

/// A stream socket: its shared state and its local state.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// The state that a fork shares.
    pub shared: &'static Connection,
    /// The state that is this process's own.
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

    /// The token that names it to the monitor.
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
/// Where the search for a free place begins.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// The generation of the process that made the newest arena. A child of a fork makes its own.
static MADE_BY: AtomicU32 = AtomicU32::new(0);
static GROWING: Lock = Lock::new();

/// The socket of that number.
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

/// A new socket with one reference. `None`: no memory.
pub fn add() -> Option<Stream> {
    process::check();
    loop {
        let count = COUNT.load(Ordering::Acquire);
        if count > 0 && MADE_BY.load(Ordering::Acquire) == process::generation() {
            let first = (count - 1) * PER_ARENA;
            for _ in 0..LOOKS {
                // If two threads try the same place, one of them gets it.
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

/// Visits all places.
pub fn each(visit: impl FnMut(Stream)) {
    let places = COUNT.load(Ordering::Acquire) * PER_ARENA;
    (0..places).filter_map(get).for_each(visit);
}

/// Marks a place as free. The next socket takes it while it is in the cache.
pub fn is_free(number: u32) {
    if number / PER_ARENA + 1 == COUNT.load(Ordering::Relaxed) {
        NEXT.store(number % PER_ARENA, Ordering::Relaxed);
    }
}

/// Makes another arena, if there are still `count`. False: no memory.
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
