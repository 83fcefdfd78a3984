// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for a graph, in huge pages if it is large: a lookup in a table of many megabytes would
//! otherwise miss the TLB as well as the caches.
//!
//! Large memory is mapped without being populated. It is populated before the first run, so that no
//! packet waits for a page fault. Until then, pages of large variables of another graph can be
//! moved in, so that a graph that replaces another does not need the memory twice.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Alignment of large variables and tables, and of the memory that contains them.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Minimum size of a variable or table for which moving pages is worth the alignment.
pub(crate) const LEAST_MOVED_BYTES: u64 = 16 << 20;

/// Keeps the old range mapped, filled with zeros (Linux 5.7).
const MREMAP_DONTUNMAP: i32 = 4;

/// Returns the layout of a graph of that size: large memory is aligned to huge pages.
pub(crate) fn layout(size: usize, align: usize) -> Option<Layout> {
    let least = if size >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 64 };
    Layout::from_size_align(size.max(1), align.max(least)).ok()
}

/// Returns whether memory of that layout is mapped rather than allocated.
fn is_mapped(layout: Layout) -> bool {
    layout.align() >= HUGE_PAGE_BYTES
}

/// Returns zeroed memory of that layout, which must have a size.
pub(crate) fn zeroed(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "a graph has a size");
    let memory = match is_mapped(layout) {
        true => map(layout),
        // SAFETY: the layout has a nonzero size.
        false => unsafe { alloc_zeroed(layout) },
    };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Maps zeroed memory; returns null if there is no room.
fn map(layout: Layout) -> *mut u8 {
    let (size, align) = (mapped_bytes(layout), layout.align());
    let Some(all) = size.checked_add(align) else { return ptr::null_mut() };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: this creates a new mapping at an address that the kernel chooses.
    let start = unsafe { libc::mmap(ptr::null_mut(), all, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let start = start.cast::<u8>();
    let before = start.align_offset(align);
    // SAFETY: the mapping has `align` bytes more than `size`, and `before` is less than that.
    let memory = unsafe { start.add(before) };
    if before > 0 {
        // SAFETY: this is the part of the mapping before the aligned range, which is unused.
        unsafe { libc::munmap(start.cast(), before) };
    }
    // SAFETY: the aligned range ends inside the mapping.
    let behind = unsafe { memory.add(size) };
    // SAFETY: this is the part of the mapping after the aligned range, which is unused.
    unsafe { libc::munmap(behind.cast(), align - before) };
    // SAFETY: the aligned range is mapped, and the advice changes no contents. If it is refused,
    // the memory is only slower.
    unsafe { libc::madvise(memory.cast(), size, libc::MADV_HUGEPAGE) };
    memory
}

/// Returns the size of a mapping: whole huge pages.
fn mapped_bytes(layout: Layout) -> usize {
    layout.size().next_multiple_of(HUGE_PAGE_BYTES)
}

/// Populates every page.
pub(crate) fn touch(memory: NonNull<u8>, layout: Layout) {
    const PAGE_BYTES: usize = 4096;
    if !is_mapped(layout) {
        return;
    }
    let size = mapped_bytes(layout);
    // SAFETY: the range is mapped, and populating it changes no contents.
    let is_done =
        unsafe { libc::madvise(memory.as_ptr().cast(), size, libc::MADV_POPULATE_WRITE) == 0 };
    if is_done {
        return;
    }
    // The kernel is older than 5.14.
    for at in (0..size).step_by(PAGE_BYTES) {
        // SAFETY: the address is within the range, which is mapped.
        let place = unsafe { memory.as_ptr().add(at) };
        // SAFETY: as above; the caller has exclusive access to the memory.
        let byte = unsafe { place.read_volatile() };
        // SAFETY: as above.
        unsafe { place.write_volatile(byte) };
    }
}

/// Frees memory of that layout.
///
/// # Safety
/// The memory must come from [`zeroed`] with that layout, and must not be used afterwards.
pub(crate) unsafe fn free(memory: NonNull<u8>, layout: Layout) {
    match is_mapped(layout) {
        // SAFETY: the caller guarantees that the memory was mapped with this layout.
        true => unsafe {
            libc::munmap(memory.as_ptr().cast(), mapped_bytes(layout));
        },
        // SAFETY: the caller guarantees that the memory was allocated with this layout.
        false => unsafe { dealloc(memory.as_ptr(), layout) },
    }
}

/// Moves the whole huge pages of large memory; returns the range of bytes moved, which may be
/// empty. They become zeros in `from`. Both are memory of graphs, and have the same length.
pub(crate) fn move_pages(from: &mut [u8], to: &mut [u8]) -> Range<usize> {
    let start = from.as_ptr().align_offset(HUGE_PAGE_BYTES);
    if (from.len() as u64) < LEAST_MOVED_BYTES || start != to.as_ptr().align_offset(HUGE_PAGE_BYTES)
    {
        return 0..0;
    }
    let count = (from.len() - start) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | MREMAP_DONTUNMAP;
    let (source, target) = (from[start..].as_mut_ptr(), to[start..].as_mut_ptr());
    // SAFETY: both ranges are whole pages of exclusively borrowed slices, and stay mapped: the
    // target's pages are replaced by the source's, the source's by zeros.
    let moved =
        unsafe { libc::mremap(source.cast(), count, count, flags, target.cast::<libc::c_void>()) };
    match moved {
        // The kernel is older, or the memory consists of several mappings: the caller copies it.
        libc::MAP_FAILED => 0..0,
        _ => start..start + count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_aligned() {
        for (size, align) in [(0, 1), (1000, 256), (5 << 20, 64)] {
            let layout = layout(size, align).unwrap();
            let memory = zeroed(layout);
            let wanted = if size > HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { align.max(64) };
            assert_eq!(memory.as_ptr() as usize % wanted, 0, "{size}");
            touch(memory, layout);
            // SAFETY: the memory has this layout, and is initialised.
            let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), layout.size()) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            // SAFETY: the memory has this layout, and is not used afterwards.
            unsafe { free(memory, layout) };
        }
        assert!(layout(usize::MAX, 64).is_none());
    }

    #[test]
    fn pages_are_moved_with_what_is_in_them() {
        let size = LEAST_MOVED_BYTES as usize + 4 * HUGE_PAGE_BYTES;
        let layout = layout(size, HUGE_PAGE_BYTES).unwrap();
        let (first, second) = (zeroed(layout), zeroed(layout));
        // SAFETY: the memory has this layout, is initialised, and is not accessed otherwise until
        // it is freed.
        let from = unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), size) };
        // SAFETY: as above.
        let to = unsafe { std::slice::from_raw_parts_mut(second.as_ptr(), size) };
        from.chunks_mut(4096).enumerate().for_each(|(at, page)| page.fill(at as u8));
        to.fill(0xee);
        // The ranges are not aligned alike, or too small to be worth moving.
        assert!(move_pages(&mut from[1..size - 1], &mut to[2..]).is_empty());
        assert!(move_pages(&mut from[..4096], &mut to[..4096]).is_empty());
        let moved = move_pages(&mut from[5..size - 9], &mut to[5..size - 9]);
        if moved.is_empty() {
            println!("this kernel does not move pages out of a mapping that stays");
        } else {
            assert_eq!(moved.start + 5, HUGE_PAGE_BYTES);
            assert_eq!(moved.end + 5, size - HUGE_PAGE_BYTES);
            for (at, page) in to.chunks(4096).enumerate() {
                let inside = at * 4096 >= HUGE_PAGE_BYTES && (at + 1) * 4096 <= moved.end + 5;
                let wanted = if inside { at as u8 } else { 0xee };
                assert!(page.iter().all(|byte| *byte == wanted), "page {at}");
            }
            assert!(from[moved.start + 5..moved.end + 5].iter().all(|byte| *byte == 0));
        }
        // SAFETY: the memory has this layout, and is not used afterwards.
        unsafe { free(first, layout) };
        // SAFETY: as above.
        unsafe { free(second, layout) };
    }
}
