// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mapping files at aligned addresses, and checking whether an application's address can be read.

use super::raw::{self, Result, argument, checked_call, unmap};
use crate::kernel::confined;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A part of a shared mapping.
#[derive(Clone, Copy)]
pub struct Part {
    /// The file.
    pub descriptor: i32,
    /// Its size in bytes, a multiple of the page size.
    pub bytes: usize,
    /// Its protection: `PROT_READ` and the like.
    pub access: i32,
}

/// Maps parts one behind the other, the first at a multiple of `multiple`, a power of two.
///
/// # Errors
/// Those of `mmap`. Nothing is mapped then.
pub fn map_at_multiple(multiple: usize, parts: &[Part]) -> Result<*mut u8> {
    let bytes: usize = parts.iter().map(|part| part.bytes).sum();
    let nobodys = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let all = bytes + multiple;
    let arguments = [0, all, argument(libc::PROT_NONE), argument(nobodys), argument(-1), 0];
    // SAFETY: the kernel chooses the address.
    let room = unsafe { checked_call(libc::SYS_mmap, arguments) }?;
    let start = room.next_multiple_of(multiple);
    let kind = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let mut at = start;
    for Part { descriptor, bytes, access } in parts.iter().copied() {
        let arguments = [at, bytes, argument(access), argument(kind), argument(descriptor), 0];
        // SAFETY: inside the range that was just mapped, and is not used.
        let mapped = unsafe { checked_call(libc::SYS_mmap, arguments) };
        if mapped.is_err() {
            unmap(room as *mut u8, all);
            return mapped.map(|at| at as *mut u8);
        }
        at += bytes;
    }
    let (end, behind) = (start + bytes, room + all);
    for (from, to) in [(room, start), (end, behind)] {
        if from < to {
            unmap(from as *mut u8, to - from);
        }
    }
    Ok(start as *mut u8)
}

/// Size of a page in bytes.
const PAGE_BYTES: usize = 4096;
/// Pages that could be read when they were checked, each at the place that its number gives: lists
/// and headers of programs are at the same addresses again and again.
static KNOWN: [AtomicUsize; 512] = [const { AtomicUsize::new(0) }; 512];

/// Whether lists or headers that an application has passed can be read. If not, the kernel has to
/// report it (`EFAULT`). Pages that were readable once are not checked again.
#[inline]
pub fn exists<T>(at: *const T, count: usize) -> bool {
    let first = at.addr() / PAGE_BYTES;
    let bytes = count.saturating_mul(size_of::<T>());
    let last = at.addr().saturating_add(bytes.saturating_sub(1)) / PAGE_BYTES;
    (first..=last).all(|page| {
        let known = KNOWN.get(place_of(page));
        let is_known = known.is_some_and(|known| known.load(Ordering::Relaxed) == page);
        page != 0 && (is_known || is_page(page))
    })
}

/// The place for a page. The high bits are mixed in, since stacks and heaps begin alike.
#[inline]
fn place_of(page: usize) -> usize {
    (page ^ page >> 9 ^ page >> 18) % KNOWN.len()
}

#[cold]
fn is_page(page: usize) -> bool {
    let at = page.saturating_mul(PAGE_BYTES) as *const u8;
    let exists = confined::is_confined() || raw::copy_of_own(at, &mut [0]) != Err(libc::EFAULT);
    if exists && let Some(known) = KNOWN.get(place_of(page)) {
        known.store(page, Ordering::Relaxed);
    }
    exists
}

/// Size of a file in bytes.
pub fn size(descriptor: i32) -> Result<usize> {
    let arguments = [argument(descriptor), 0, argument(libc::SEEK_END), 0, 0, 0];
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_lseek, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_there_and_nothing_else() {
        let words = [7_u64; 1024];
        assert!(exists(words.as_ptr(), words.len()) && exists(words.as_ptr(), 0));
        // SAFETY: addresses where the system finds room.
        let nowhere = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(core::ptr::null_mut(), 2 * PAGE_BYTES, libc::PROT_NONE, flags, -1, 0)
        };
        assert!(!exists(nowhere.cast::<u64>(), 1));
        assert!(
            !exists(core::ptr::null::<u8>(), 1)
                && !exists(core::ptr::without_provenance::<u64>(9), 1)
                && !exists(core::ptr::without_provenance::<u8>(usize::MAX), 9)
        );
        // The first of two pages can be read.
        // SAFETY: it was just mapped.
        unsafe { libc::mprotect(nowhere, PAGE_BYTES, libc::PROT_READ) };
        assert!(exists(nowhere.cast::<u8>(), PAGE_BYTES));
        assert!(!exists(nowhere.cast::<u8>(), PAGE_BYTES + 1));
        // SAFETY: nothing uses it.
        unsafe { libc::munmap(nowhere, 2 * PAGE_BYTES) };
    }
}
