// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The slabs that this process has mapped. They stay: a connection may be in each.

use crate::raw;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use freeport_sockets_proto::slab::SLAB_BYTES;

/// Slabs that a process can have.
const SLABS: usize = 4096;

struct Slab {
    /// What the monitor calls it, counted from 1; 0: nothing, or it was another monitor.
    name: AtomicU32,
    start: AtomicPtr<u8>,
}

static TABLE: [Slab; SLABS] =
    [const { Slab { name: AtomicU32::new(0), start: AtomicPtr::new(core::ptr::null_mut()) } };
        SLABS];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Where a slab is mapped; if it has come with this message, it is mapped now. `None`: it is not
/// known, or is not what a slab has to be. Callers take turns.
pub fn find(name: u32, memory: Option<i32>) -> Option<*mut u8> {
    let key = name.checked_add(1)?;
    let count = COUNT.load(Ordering::Relaxed) as usize;
    let known = TABLE.get(..count)?.iter().find(|slab| slab.name.load(Ordering::Relaxed) == key);
    if let Some(known) = known {
        return Some(known.start.load(Ordering::Relaxed));
    }
    let memory = memory?;
    if !is_slab(memory) {
        return None;
    }
    let place = TABLE.get(count)?;
    let start = raw::map(SLAB_BYTES, true, Some(memory)).ok()?;
    place.start.store(start, Ordering::Relaxed);
    place.name.store(key, Ordering::Relaxed);
    COUNT.store(count as u32 + 1, Ordering::Relaxed);
    Some(start)
}

/// Whether memory is sealed and as large as a slab: who touches what was cut is killed.
fn is_slab(memory: i32) -> bool {
    let needed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let seals = raw::fcntl(memory, libc::F_GET_SEALS, 0);
    seals.is_ok_and(|seals| seals & needed == needed) && raw::size(memory) == Ok(SLAB_BYTES)
}

/// Another monitor will give its slabs names of its own.
pub fn forget_names() {
    for slab in &TABLE {
        slab.name.store(0, Ordering::Relaxed);
    }
}
