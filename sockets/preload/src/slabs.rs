// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The slabs that this process has mapped. They stay until the monitor says that they are over;
//! those of a monitor that is gone stay for good, since connections may be in them.

use crate::raw;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use freeport_sockets_proto::slab::SLAB_BYTES;

/// Slabs that a process can have at once.
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
    let is_free = |slab: &Slab| slab.start.load(Ordering::Relaxed).is_null();
    let at = TABLE.iter().position(is_free)?;
    let place = TABLE.get(at)?;
    let start = raw::map(SLAB_BYTES, true, Some(memory)).ok()?;
    place.start.store(start, Ordering::Relaxed);
    place.name.store(key, Ordering::Relaxed);
    COUNT.fetch_max(at as u32 + 1, Ordering::Relaxed);
    Some(start)
}

/// Nobody will use a slab again.
pub fn remove(name: u32) {
    let Some(key) = name.checked_add(1) else { return };
    let mut all = TABLE.iter();
    if let Some(slab) = all.find(|slab| slab.name.load(Ordering::Relaxed) == key) {
        slab.name.store(0, Ordering::Relaxed);
        raw::unmap(slab.start.swap(core::ptr::null_mut(), Ordering::Relaxed), SLAB_BYTES);
    }
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
