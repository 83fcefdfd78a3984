// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for many frames, in huge pages where the system provides them.
//!
//! A ring of 4,096 frames 2 KiB apart touches a page of 4 KiB for every two frames, more than the
//! processor's first-level TLB holds; with pages of 2 MiB it needs four.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;
const CACHE_LINE_BYTES: usize = 64;

/// A fixed number of bytes, initially 0.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

impl Pages {
    /// Allocates this number of bytes, at least one cache line.
    ///
    /// # Panics
    /// If the number exceeds the address space.
    pub fn new(bytes: usize) -> Self {
        let is_large = bytes >= HUGE_PAGE_BYTES;
        let align = if is_large { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
        let layout = Layout::from_size_align(bytes.max(CACHE_LINE_BYTES), align);
        let layout = layout.expect("fewer bytes than an address space has");
        // SAFETY: the layout has at least one byte.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        if is_large {
            // SAFETY: the range was just allocated and starts at a page. The advice changes no
            // contents; where it is refused the memory is only slower.
            unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        // Written after the advice, so that the first touch allocates huge pages.
        // SAFETY: all bytes of the allocation are ours.
        unsafe { start.as_ptr().write_bytes(0, layout.size()) };
        Self { start, layout }
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `new` wrote that many bytes, which live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` rules out other references.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Clone for Pages {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.layout.size());
        copy.copy_from_slice(self);
        copy
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout, and this is the only owner.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

// SAFETY: the bytes belong to this value alone, as those of a `Vec` do.
unsafe impl Send for Pages {}
// SAFETY: shared references only read.
unsafe impl Sync for Pages {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_pieces_are_zero_and_copied_whole() {
        for bytes in [0, 1, 64, 4_097, HUGE_PAGE_BYTES + 1] {
            let mut pages = Pages::new(bytes);
            assert!(pages.len() >= bytes && pages.iter().all(|byte| *byte == 0));
            let last = pages.len() - 1;
            pages[last] = 7;
            let copy = pages.clone();
            pages[last] = 8;
            assert_eq!((copy.len(), copy[last]), (pages.len(), 7));
        }
    }
}
