// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The slabs that this process has mapped. A slab stays until the monitor retires it, or exits, and
//! no connection of this process is in it.

use crate::kernel::memory::{self, Part};
use crate::kernel::raw;
use crate::process;
use crate::state::readers;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::{NOTICES_BYTES, PAGES_BYTES, SLAB_BYTES};

/// Slabs that a process can have at once.
pub const SLABS: usize = 4096;
/// Ticks for which a slab has to be unused before it is unmapped, about a second: another thread
/// may still be in a call on a connection that was closed since.
const UNUSED_TICKS: u64 = 2_400_000_000;

struct Slab {
    /// The monitor's name of it, counted from 1; 0: it has none, or an earlier monitor named it.
    name: AtomicU32,
    start: AtomicPtr<u8>,
    /// Number of connections of this process in it, and when that changed last, in ticks.
    used: AtomicU32,
    changed: AtomicU64,
    /// Slots to be given back that the monitor does not know of yet: a bit each.
    owed: AtomicU64,
    /// It was mapped when this process, or one of its ancestors, forked: others have it mapped as
    /// well.
    has_forked: AtomicBool,
}

static TABLE: [Slab; SLABS] = [const {
    Slab {
        name: AtomicU32::new(0),
        start: AtomicPtr::new(core::ptr::null_mut()),
        used: AtomicU32::new(0),
        changed: AtomicU64::new(0),
        owed: AtomicU64::new(0),
        has_forked: AtomicBool::new(false),
    }
}; SLABS];
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Number of slots to be given back in all.
static OWED: AtomicU32 = AtomicU32::new(0);
/// Whether there may be slabs to unmap.
static MAY_BE_UNUSED: AtomicBool = AtomicBool::new(false);
/// Whether there may be slabs without a connection that the monitor has not retired yet.
static MAY_BE_IDLE: AtomicBool = AtomicBool::new(false);

/// A slab that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its first byte.
    pub start: *mut u8,
    /// Its place in this process's table.
    pub place: u32,
}

/// The slab of that name. If its memory has come with this message, it is mapped now. `None`: it
/// is not known, its memory is not as it has to be, or a child has it as well. Callers take turns.
pub fn find(name: u32, memory: Option<[i32; 2]>) -> Option<Found> {
    if let Some((place, known)) = known(name) {
        let is_ours = !known.has_forked.load(Ordering::Relaxed);
        let start = known.start.load(Ordering::Relaxed);
        return is_ours.then_some(Found { start, place });
    }
    let (key, [memory, notices]) = (name.checked_add(1)?, memory?);
    if !is_sealed(memory, SLAB_BYTES, 0)
        || !is_sealed(notices, NOTICES_BYTES, libc::F_SEAL_FUTURE_WRITE)
    {
        return None;
    }
    let is_free = |slab: &Slab| slab.start.load(Ordering::Relaxed).is_null();
    let at = TABLE.iter().position(is_free)?;
    let slab = TABLE.get(at)?;
    let write = libc::PROT_READ | libc::PROT_WRITE;
    let slab_part = Part { descriptor: memory, bytes: SLAB_BYTES, access: write };
    let notices_part = Part { descriptor: notices, bytes: NOTICES_BYTES, access: libc::PROT_READ };
    let parts = [slab_part, notices_part];
    let start = memory::map_at_multiple(PAGES_BYTES, &parts).ok()?;
    slab.used.store(0, Ordering::Relaxed);
    slab.changed.store(raw::ticks(), Ordering::Relaxed);
    slab.owed.store(0, Ordering::Relaxed);
    slab.has_forked.store(false, Ordering::Relaxed);
    readers::is_new(at as u32);
    // After the time: another thread that closes a connection may look for unused slabs.
    slab.start.store(start, Ordering::Release);
    slab.name.store(key, Ordering::Relaxed);
    COUNT.fetch_max(at as u32 + 1, Ordering::Relaxed);
    Some(Found { start, place: at as u32 })
}

/// Number of places in use, with gaps.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed) as usize
}

/// Whether a connection of this process is in the slab at a place.
pub fn is_in_use(place: u32) -> bool {
    TABLE.get(place as usize).is_some_and(|slab| slab.used.load(Ordering::Relaxed) > 0)
}

/// All places in use, with gaps.
fn all() -> &'static [Slab] {
    TABLE.get(..count()).unwrap_or_default()
}

fn known(name: u32) -> Option<(u32, &'static Slab)> {
    let key = name.checked_add(1)?;
    let at = all().iter().position(|slab| slab.name.load(Ordering::Relaxed) == key)?;
    Some((at as u32, TABLE.get(at)?))
}

/// Counts a connection of this process in the slab at a place.
pub fn is_used(place: u32) {
    if let Some(slab) = TABLE.get(place as usize) {
        slab.used.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection of this process is no longer in the slab at a place.
pub fn is_left(place: u32) {
    if let Some(slab) = TABLE.get(place as usize) {
        slab.changed.store(raw::ticks(), Ordering::Relaxed);
        let less = |count: u32| count.checked_sub(1);
        let before = slab.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if before == Ok(1) {
            let is_over = slab.name.load(Ordering::Relaxed) == 0;
            let may_be = if is_over { &MAY_BE_UNUSED } else { &MAY_BE_IDLE };
            may_be.store(true, Ordering::Relaxed);
        }
    }
}

/// Before a fork. True: the child will have slabs in which the monitor could assign this process
/// further slots.
pub fn fork() -> bool {
    all().iter().fold(false, |are_any, slab| {
        let is_known = slab.name.load(Ordering::Relaxed) != 0;
        let is_mapped = !slab.start.load(Ordering::Relaxed).is_null();
        are_any | (is_mapped && !slab.has_forked.swap(true, Ordering::Relaxed) && is_known)
    })
}

/// Whether a slab was mapped when this process or one of its ancestors forked.
pub fn has_forked(place: u32) -> bool {
    TABLE.get(place as usize).is_some_and(|slab| slab.has_forked.load(Ordering::Relaxed))
}

/// Records that a slot is to be given back. False: the slab is not known.
pub fn owe(name: u32, slot: u32) -> bool {
    let Some((_, slab)) = known(name) else { return false };
    if slab.owed.fetch_or(1 << (slot & 63), Ordering::Relaxed) & 1 << (slot & 63) == 0 {
        OWED.fetch_add(1, Ordering::Relaxed);
    }
    true
}

/// A slot that is to be given back, with the name of its slab.
pub fn owed() -> Option<(u32, u32)> {
    if OWED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    all().iter().find_map(|slab| {
        let owed = slab.owed.load(Ordering::Relaxed);
        let name = slab.name.load(Ordering::Relaxed).checked_sub(1)?;
        (owed != 0).then_some((name, owed.trailing_zeros()))
    })
}

/// The slot was given back to the monitor.
pub fn is_paid(name: u32, slot: u32) {
    if let Some((_, slab)) = known(name) {
        slab.owed.fetch_and(!(1 << (slot & 63)), Ordering::Relaxed);
        OWED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The monitor has retired a slab.
pub fn is_over(name: u32) {
    if let Some((_, slab)) = known(name) {
        slab.changed.store(raw::ticks(), Ordering::Relaxed);
        slab.forget_name();
        MAY_BE_UNUSED.store(true, Ordering::Relaxed);
    }
}

/// Whether slabs may have to be unmapped soon, perhaps after a message of the monitor.
#[inline]
pub fn may_be_unused() -> bool {
    MAY_BE_UNUSED.load(Ordering::Relaxed) || MAY_BE_IDLE.load(Ordering::Relaxed)
}

/// Unmaps unused slabs that are retired, or came from a monitor that has exited, if there may be
/// some.
pub fn sweep_if_due() {
    if MAY_BE_UNUSED.swap(false, Ordering::Relaxed) {
        let are_left = take_away(|slab| slab.name.load(Ordering::Relaxed) == 0);
        MAY_BE_UNUSED.fetch_or(are_left, Ordering::Relaxed);
    }
}

/// After the monitor's mail was read: unmaps unused slabs that are retired.
pub fn sweep_behind_mail() {
    if MAY_BE_IDLE.swap(false, Ordering::Relaxed) {
        let is_idle = |slab: &Slab| {
            let is_mapped = !slab.start.load(Ordering::Relaxed).is_null();
            let is_known = slab.name.load(Ordering::Relaxed) != 0;
            is_mapped && is_known && slab.used.load(Ordering::Relaxed) == 0
        };
        MAY_BE_IDLE.fetch_or(all().iter().any(is_idle), Ordering::Relaxed);
    }
    sweep_if_due();
}

/// Unmaps unused slabs that are retired.
pub fn sweep() {
    take_away(|slab| slab.name.load(Ordering::Relaxed) == 0);
}

/// Unmaps all unused slabs, also those in which the monitor could assign further slots.
pub fn sweep_all() {
    take_away(|_| true);
}

/// Unmaps the unused ones of these slabs. True: some have to stay for a moment, since another
/// thread may be in a call on a closed connection.
fn take_away(which: impl Fn(&Slab) -> bool) -> bool {
    let (now, mut are_left) = (raw::ticks(), false);
    let is_alone = process::has_one_thread();
    for (place, slab) in all().iter().enumerate() {
        if !which(slab)
            || slab.used.load(Ordering::Relaxed) > 0
            || slab.start.load(Ordering::Relaxed).is_null()
        {
            continue;
        }
        let unused_for = now.wrapping_sub(slab.changed.load(Ordering::Relaxed));
        let is_unused = is_alone || unused_for > UNUSED_TICKS;
        are_left |= !is_unused;
        if is_unused && !readers::is_read(place as u32) {
            slab.forget_name();
            let start = slab.start.swap(core::ptr::null_mut(), Ordering::Relaxed);
            raw::unmap(start, SLAB_BYTES + NOTICES_BYTES);
        }
    }
    are_left
}

impl Slab {
    /// Removes its name, so that no message to the monitor names it.
    fn forget_name(&self) {
        self.name.store(0, Ordering::Relaxed);
        let owed = self.owed.swap(0, Ordering::Relaxed).count_ones();
        OWED.fetch_sub(owed, Ordering::Relaxed);
    }
}

/// Whether memory has that size, and is sealed against a change of size and against `more`: the
/// kernel kills a process that touches truncated memory.
fn is_sealed(memory: i32, bytes: usize, more: i32) -> bool {
    let needed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL | more;
    let seals = raw::fcntl(memory, libc::F_GET_SEALS, 0);
    seals.is_ok_and(|seals| seals & needed == needed) && memory::size(memory) == Ok(bytes)
}

/// Removes all names, since the next monitor does not know them.
pub fn forget_names() {
    all().iter().for_each(Slab::forget_name);
}
