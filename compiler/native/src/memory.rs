// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for a graph: in huge pages if it is large, because a lookup in a table of many megabytes
//! otherwise misses the processor's page tables as well as its caches.
//!
//! Large memory is mapped and at first takes no room. It is touched before the first run, so that
//! no packet waits for the kernel; until then the pages of large variables of another graph can be
//! moved in, so that a graph that replaces another one does not need them twice.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::{self, NonNull};

/// What large variables and tables are aligned to, as is the memory that they are in.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes of a variable or table from which on moving its pages is worth their alignment.
pub(crate) const LEAST_MOVED_BYTES: u64 = 16 << 20;

/// Keeps the old range mapped, with zeros in it (Linux 5.7).
const MREMAP_DONTUNMAP: i32 = 4;

/// The layout of a graph of that size: what is large begins at a huge page.
pub(crate) fn layout(size: usize, align: usize) -> Option<Layout> {
    let least = if size >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 64 };
    Layout::from_size_align(size.max(1), align.max(least)).ok()
}

/// Whether memory of that layout is mapped, not allocated.
fn is_mapped(layout: Layout) -> bool {
    layout.align() >= HUGE_PAGE_BYTES
}

/// Zeros of that layout, which has a size.
pub(crate) fn zeroed(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "a graph has a size");
    let memory = match is_mapped(layout) {
        true => map(layout),
        // SAFETY: the layout has a size.
        false => unsafe { alloc_zeroed(layout) },
    };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Maps zeros; null if there is no room.
fn map(layout: Layout) -> *mut u8 {
    let (size, align) = (mapped_bytes(layout), layout.align());
    let Some(all) = size.checked_add(align) else { return ptr::null_mut() };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, wherever there is room for it.
    let start = unsafe { libc::mmap(ptr::null_mut(), all, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let start = start.cast::<u8>();
    let before = start.align_offset(align);
    // SAFETY: the mapping has `align` bytes more than `size`, and `before` is less than that.
    let memory = unsafe { start.add(before) };
    if before > 0 {
        // SAFETY: the part of the mapping in front of the aligned range, which is not used.
        unsafe { libc::munmap(start.cast(), before) };
    }
    // SAFETY: the aligned range ends inside the mapping.
    let behind = unsafe { memory.add(size) };
    // SAFETY: the part of the mapping behind the aligned range, which is not used.
    unsafe { libc::munmap(behind.cast(), align - before) };
    // SAFETY: the aligned range is mapped, and advice changes no contents. Where it is refused the
    // memory is only slower.
    unsafe { libc::madvise(memory.cast(), size, libc::MADV_HUGEPAGE) };
    memory
}

/// Bytes of a mapping: whole huge pages.
fn mapped_bytes(layout: Layout) -> usize {
    layout.size().next_multiple_of(HUGE_PAGE_BYTES)
}

/// Makes every page be there.
pub(crate) fn touch(memory: NonNull<u8>, layout: Layout) {
    const PAGE_BYTES: usize = 4096;
    if !is_mapped(layout) {
        return;
    }
    let size = mapped_bytes(layout);
    // SAFETY: the range is mapped; this changes no contents.
    let is_done =
        unsafe { libc::madvise(memory.as_ptr().cast(), size, libc::MADV_POPULATE_WRITE) == 0 };
    if is_done {
        return;
    }
    // A kernel older than 5.14.
    for at in (0..size).step_by(PAGE_BYTES) {
        // SAFETY: within the range, which is mapped.
        let place = unsafe { memory.as_ptr().add(at) };
        // SAFETY: as above; the memory is the caller's alone.
        let byte = unsafe { place.read_volatile() };
        // SAFETY: as above.
        unsafe { place.write_volatile(byte) };
    }
}

/// Gives memory of that layout back.
///
/// # Safety
/// It is from [`zeroed`], with that layout, and not used any more.
pub(crate) unsafe fn free(memory: NonNull<u8>, layout: Layout) {
    match is_mapped(layout) {
        // SAFETY: mapped with as many bytes, by the caller's promise.
        true => unsafe {
            libc::munmap(memory.as_ptr().cast(), mapped_bytes(layout));
        },
        // SAFETY: allocated with this layout, by the caller's promise.
        false => unsafe { dealloc(memory.as_ptr(), layout) },
    }
}

/// Moves the whole huge pages of large memory; gives which bytes were moved, at most all. These are
/// zeros in `from` then. Both are memory of graphs, and as long.
pub(crate) fn move_pages(from: &mut [u8], to: &mut [u8]) -> Range<usize> {
    let start = from.as_ptr().align_offset(HUGE_PAGE_BYTES);
    if (from.len() as u64) < LEAST_MOVED_BYTES || start != to.as_ptr().align_offset(HUGE_PAGE_BYTES)
    {
        return 0..0;
    }
    let count = (from.len() - start) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | MREMAP_DONTUNMAP;
    let (source, target) = (from[start..].as_mut_ptr(), to[start..].as_mut_ptr());
    // SAFETY: both ranges are whole pages of slices that are borrowed exclusively, and stay mapped:
    // the target's pages are replaced by the source's, the source's by zeros.
    let moved =
        unsafe { libc::mremap(source.cast(), count, count, flags, target.cast::<libc::c_void>()) };
    match moved {
        // An older kernel, or memory that was mapped piece by piece: then it is copied.
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
            // SAFETY: of this layout, and initialised.
            let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), layout.size()) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            // SAFETY: of this layout, and not used after this.
            unsafe { free(memory, layout) };
        }
        assert!(layout(usize::MAX, 64).is_none());
    }

    #[test]
    fn pages_are_moved_with_what_is_in_them() {
        let size = LEAST_MOVED_BYTES as usize + 4 * HUGE_PAGE_BYTES;
        let layout = layout(size, HUGE_PAGE_BYTES).unwrap();
        let (first, second) = (zeroed(layout), zeroed(layout));
        // SAFETY: of this layout, initialised, and used in no other way until it is freed.
        let from = unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), size) };
        // SAFETY: as above.
        let to = unsafe { std::slice::from_raw_parts_mut(second.as_ptr(), size) };
        from.chunks_mut(4096).enumerate().for_each(|(at, page)| page.fill(at as u8));
        to.fill(0xee);
        // Not aligned alike, and too little to be worth it.
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
        // SAFETY: of this layout, and not used after this.
        unsafe { free(first, layout) };
        // SAFETY: as above.
        unsafe { free(second, layout) };
    }
}
