// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The descriptors that the library tracks in this process.
//!
//! The kernel allocates the numbers; the table maps a number to a socket or a set. It is private
//! memory, so a child of a fork has its own.

use crate::kernel::raw;
use crate::process;
use crate::state::connections::{self, Stream};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// Descriptors from this number on are not tracked.
const DESCRIPTORS: usize = 1 << 20;

/// The object that a descriptor refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A stream socket, by its number among [`connections`](crate::state::connections).
    Stream(u32),
    /// A set of descriptors (`epoll`), by its number among those.
    Set(u32),
}

static TABLE: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// The highest descriptor that was ever tracked.
static HIGHEST: AtomicI32 = AtomicI32::new(-1);

const STREAM: u64 = 1 << 32;
const SET: u64 = 2 << 32;

/// The object of a descriptor; `None`: it is not tracked.
#[inline]
pub fn get(descriptor: i32) -> Option<What> {
    let word = place(descriptor)?.load(Ordering::Relaxed);
    decode(word)
}

/// The socket of a descriptor; `None`: it is not tracked, or is a set.
#[inline]
pub fn stream(descriptor: i32) -> Option<Stream> {
    match get(descriptor) {
        Some(What::Stream(number)) => {
            process::check();
            connections::get(number)
        }
        _ => None,
    }
}

/// Tracks a descriptor. False: its number is too high, or there is no memory.
pub fn set(descriptor: i32, what: What) -> bool {
    if !begin() {
        return false;
    }
    let word = match what {
        What::Stream(number) => STREAM | u64::from(number),
        What::Set(number) => SET | u64::from(number),
    };
    let Some(place) = place(descriptor) else { return false };
    if HIGHEST.load(Ordering::Relaxed) < descriptor {
        HIGHEST.fetch_max(descriptor, Ordering::Relaxed);
    }
    place.store(word, Ordering::Release);
    true
}

/// Stops tracking a descriptor, and returns its object.
#[inline]
pub fn clear(descriptor: i32) -> Option<What> {
    let place = place(descriptor)?;
    if place.load(Ordering::Relaxed) == 0 {
        return None;
    }
    decode(place.swap(0, Ordering::AcqRel))
}

/// Calls `visit` with all tracked descriptors.
pub fn each(mut visit: impl FnMut(i32, What)) {
    for descriptor in 0..=HIGHEST.load(Ordering::Relaxed) {
        if let Some(what) = get(descriptor) {
            visit(descriptor, what);
        }
    }
}

/// Visits the tracked sockets, once for each descriptor.
pub fn each_stream(visit: impl Fn(i32, Stream)) {
    each(|descriptor, what| {
        if let What::Stream(number) = what
            && let Some(stream) = connections::get(number)
        {
            visit(descriptor, stream);
        }
    });
}

fn begin() -> bool {
    if !TABLE.load(Ordering::Acquire).is_null() {
        return true;
    }
    let Ok(memory) = raw::map(DESCRIPTORS * size_of::<AtomicU64>(), false, None) else {
        return false;
    };
    let new = memory.cast();
    // Two threads may begin at once; the memory of one of them then stays unused.
    _ = TABLE.compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    true
}

#[inline]
fn place(descriptor: i32) -> Option<&'static AtomicU64> {
    let table = TABLE.load(Ordering::Acquire);
    let at = descriptor as usize;
    if table.is_null() || at >= DESCRIPTORS {
        return None;
    }
    // SAFETY: the table has `DESCRIPTORS` entries; a negative number is beyond its end.
    let entry = unsafe { table.add(at) };
    // SAFETY: the table stays, and all fields of its entries may be shared.
    Some(unsafe { &*entry })
}

#[inline]
fn decode(word: u64) -> Option<What> {
    let number = word as u32;
    match word & !u64::from(u32::MAX) {
        STREAM => Some(What::Stream(number)),
        SET => Some(What::Set(number)),
        _ => None,
    }
}
