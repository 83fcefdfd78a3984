// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for a graph: in huge pages if it is large, because a lookup in a table of many megabytes
//! otherwise misses the processor's page tables as well as its caches.

use std::alloc::{Layout, alloc, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The layout of a graph of that size: what is large begins at a huge page.
pub(crate) fn layout(size: usize, align: usize) -> Option<Layout> {
    let least = if size >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 64 };
    Layout::from_size_align(size.max(1), align.max(least)).ok()
}

/// Zeros of that layout, which has a size.
pub(crate) fn zeroed(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "a graph has a size");
    let memory = if layout.align() < HUGE_PAGE_BYTES {
        // SAFETY: the layout has a size.
        unsafe { alloc_zeroed(layout) }
    } else {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc(layout) };
        if !memory.is_null() {
            // Zeroed after the advice, so that the first touch makes huge pages. Advice changes
            // no contents, and where it is refused the memory is only slower.
            // SAFETY: the range was just allocated, starts at a page, and is written within.
            unsafe {
                libc::madvise(memory.cast(), layout.size(), libc::MADV_HUGEPAGE);
                memory.write_bytes(0, layout.size());
            }
        }
        memory
    };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::dealloc;

    #[test]
    fn memory_is_zeroed_and_aligned() {
        for (size, align) in [(0, 1), (1000, 256), (5 << 20, 64)] {
            let layout = layout(size, align).unwrap();
            let memory = zeroed(layout);
            let wanted = if size > HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { align.max(64) };
            assert_eq!(memory.as_ptr() as usize % wanted, 0, "{size}");
            // SAFETY: allocated with this layout, and used no more after it is freed.
            unsafe {
                let bytes = std::slice::from_raw_parts(memory.as_ptr(), layout.size());
                assert!(bytes.iter().all(|byte| *byte == 0));
                dealloc(memory.as_ptr(), layout);
            }
        }
        assert!(layout(usize::MAX, 64).is_none());
    }
}
