// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reserves of disk space: a command is admitted when its bytes have a place on the disk.
//!
//! ```text
//!          written      end                       reserved
//!    log ────┴───────────┴──────────────┬──────────────┴
//!                        │ of workers   │ free         │
//! ```
//!
//! The filesystem reserves blocks up to the position `reserved`. Workers have allowances of the
//! bytes beyond `end`, and the counter `free` has the rest. A worker takes [`CHUNK_BYTES`] at a
//! time. If nothing is free, it has the filesystem reserve more, with the lock held.

use crate::disk::{File, words};
use crate::error::Refusal;
use crate::frame::{FILE_BYTES, LENGTH_BYTES, MAX_ITEM_BYTES};
use crate::shared::{Shared, Tail};
use crate::units::Units;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes that a unit takes besides its contents.
pub(crate) const UNIT_BYTES: u64 = LENGTH_BYTES as u64;

/// The least that a worker takes at once, in bytes.
const CHUNK_BYTES: u64 = 64 << 10;

/// A worker gives back what it has beyond this, in bytes.
const KEPT_BYTES: u64 = 1 << 20;

/// Free bytes on a filesystem that cannot reserve. Writing finds out whether there is room.
const UNLIMITED: i64 = i64::MAX / 2;

/// Takes from the shared reserve until the allowance is `needed` bytes.
#[cold]
pub(crate) fn admit(shared: &Shared, units: &mut Units, needed: u64) -> Result<(), Refusal> {
    if needed > MAX_ITEM_BYTES {
        return Err(Refusal { reason: "a command changes more than 2 GiB".to_owned() });
    }
    reserve(shared, units, needed)
}

/// The same for a batch of any size.
#[cold]
pub(crate) fn reserve(shared: &Shared, units: &mut Units, needed: u64) -> Result<(), Refusal> {
    if shared.is_failing.load(Ordering::Acquire)
        && let Some(failure) = shared.tail().faults.current()
    {
        return Err(Refusal { reason: failure.reason.clone() });
    }
    let missing = needed.saturating_sub(units.allowance);
    if missing == 0 {
        return Ok(());
    }
    let asked = missing.max(CHUNK_BYTES);
    if take(shared, asked) {
        units.allowance += asked;
        return Ok(());
    }
    let mut tail = shared.tail();
    // Other workers take without the lock, so what was reserved here may be gone.
    for _ in 0..ATTEMPTS {
        if take(shared, asked) {
            units.allowance += asked;
            return Ok(());
        }
        if take(shared, missing) {
            units.allowance += missing;
            return Ok(());
        }
        reserve_more(shared, &mut tail, asked, missing)?;
    }
    Err(Refusal { reason: "other writes have used the reserved space".to_owned() })
}

/// More than the number of workers that can take at the same time.
const ATTEMPTS: usize = 64;

/// Subtracts from the appended units' allowance what they took.
pub(crate) fn settle(shared: &Shared, units: &mut Units, bytes: u64) {
    match units.allowance.checked_sub(bytes) {
        Some(left) => units.allowance = left,
        None => {
            // The units are larger than was admitted. The next worker reserves the difference.
            give(shared, -((bytes - units.allowance) as i64));
            units.allowance = 0;
        }
    }
    if units.allowance > KEPT_BYTES {
        give(shared, (units.allowance - CHUNK_BYTES) as i64);
        units.allowance = CHUNK_BYTES;
    }
}

fn take(shared: &Shared, bytes: u64) -> bool {
    let Ok(bytes) = i64::try_from(bytes) else { return false };
    let is_enough = |free: i64| free.checked_sub(bytes).filter(|&left| left >= 0);
    shared.free.fetch_update(Ordering::AcqRel, Ordering::Relaxed, is_enough).is_ok()
}

fn give(shared: &Shared, bytes: i64) {
    shared.free.fetch_add(bytes, Ordering::AcqRel);
}

fn reserve_more(shared: &Shared, tail: &mut Tail, asked: u64, missing: u64) -> Result<(), Refusal> {
    if !tail.can_reserve {
        shared.free.store(UNLIMITED, Ordering::Release);
        return Ok(());
    }
    if let Some((at, reason)) = &tail.refusal
        && at.elapsed() < shared.retry_interval
    {
        return Err(Refusal { reason: reason.clone() });
    }
    let debt = shared.free.load(Ordering::Acquire).min(0).unsigned_abs();
    let usual = asked.max(shared.preallocate_bytes).saturating_add(debt);
    let result = allocate(tail, usual).or_else(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            allocate(tail, missing.saturating_add(debt))
        }
        _ => Err(error),
    });
    match result {
        Ok(bytes) => {
            tail.refusal = None;
            shared.is_short.store(false, Ordering::Relaxed);
            give(shared, bytes);
            Ok(())
        }
        Err(error) => {
            let reason = words(&error);
            tail.refusal = Some((Instant::now(), reason.clone()));
            shared.is_short.store(true, Ordering::Relaxed);
            Err(Refusal { reason })
        }
    }
}

/// Has the filesystem reserve more behind the reserve. Returns by how much more is free.
fn allocate(tail: &mut Tail, bytes: u64) -> io::Result<i64> {
    let offset = tail.offset(tail.reserved);
    match tail.file.allocate(offset, bytes) {
        Ok(()) => {
            tail.reserved += bytes;
            Ok(i64::try_from(bytes).unwrap_or(i64::MAX / 4))
        }
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            tail.can_reserve = false;
            Ok(UNLIMITED)
        }
        Err(error) => Err(error),
    }
}

/// Reserves in a new segment, which begins at `position`, what the old one has reserved beyond it.
pub(crate) fn carry_over(tail: &Tail, file: &dyn File, position: u64) -> io::Result<()> {
    let bytes = tail.reserved.saturating_sub(position);
    if !tail.can_reserve || bytes == 0 {
        return Ok(());
    }
    file.allocate(FILE_BYTES, bytes)
}

/// Before the log continues at `position` in another segment, which has the same reserve; see
/// [`carry_over`].
pub(crate) fn restart(shared: &Shared, tail: &mut Tail, position: u64) {
    match tail.reserved.checked_sub(tail.end) {
        Some(ahead) => tail.reserved = position + ahead,
        None => {
            give(shared, (tail.end - tail.reserved) as i64);
            tail.reserved = position;
        }
    }
}

/// After a change of segments: nothing is reserved before the beginning of the new one.
pub(crate) fn rebase(shared: &Shared, tail: &mut Tail) {
    if let Some(missing) = tail.segment.position.checked_sub(tail.reserved) {
        give(shared, missing as i64);
        tail.reserved += missing;
    }
}
