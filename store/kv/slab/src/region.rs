// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One region of reserved address space (KV-Direct, slab allocator).
//!
//! Reserving takes no memory. A page is taken when it is first written, in huge pages where the
//! system gives them: a random access to many gigabytes then misses the TLB less often, and its
//! page walk is shorter.

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Size of a huge page. A region begins at a multiple of it, and has a multiple of it in size.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Reserved address space of one engine. It reads as zero until it is first written.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the region owns its mapping, which no thread has a special claim to.
unsafe impl Send for Region {}

impl Region {
    /// Reserves this many bytes, rounded up to 2 MiB. Memory is taken when it is first written.
    ///
    /// # Errors
    /// `InvalidInput` if `bytes` is zero or too large to round up, and the system's error if it
    /// does not give so much address space.
    pub fn reserve(bytes: usize) -> io::Result<Region> {
        let rounded = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).filter(|&bytes| bytes > 0);
        // The kernel aligns to small pages: one huge page more contains an aligned start.
        let mapped = rounded.and_then(|bytes| bytes.checked_add(HUGE_PAGE_BYTES));
        let (Some(bytes), Some(mapped)) = (rounded, mapped) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "size of a region"));
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a mapping without an address replaces no other mapping.
        let start = unsafe { libc::mmap(ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.cast::<u8>();
        let before = start.align_offset(HUGE_PAGE_BYTES);
        let base = start.wrapping_add(before);
        let after = HUGE_PAGE_BYTES - before;
        unmap(start, before);
        unmap(base.wrapping_add(bytes), after);
        // SAFETY: the range is the mapping made above. The call is advice: a system without huge
        // pages refuses it, and the region works without them.
        unsafe { libc::madvise(base.cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(Region { base: NonNull::new(base).expect("a mapping is not at address zero"), bytes })
    }

    /// Address of the first byte, a multiple of 2 MiB. The bytes are valid as long as the region
    /// lives; its owner decides who reads and writes them.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Size in bytes, a multiple of 2 MiB.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the memory of these bytes back to the system, as far as they cover whole pages. Those
    /// pages read as zero afterwards; bytes in pages at the edges keep their contents. If the
    /// process has locked its memory, all bytes keep their contents.
    ///
    /// # Panics
    /// If the range is not in the region.
    pub fn discard(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.bytes, "a range of the region");
        let page = page_bytes();
        let (start, end) = (range.start.next_multiple_of(page), range.end & !(page - 1));
        if start < end {
            let address = self.base.as_ptr().wrapping_add(start).cast();
            // SAFETY: the pages belong to this region alone, which is borrowed exclusively.
            unsafe { libc::madvise(address, end - start, libc::MADV_DONTNEED) };
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        unmap(self.base.as_ptr(), self.bytes);
    }
}

/// Removes a part of a mapping of this file, which nothing uses afterwards.
fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: callers pass parts of mappings that they own and use no more.
        let result = unsafe { libc::munmap(start.cast(), bytes) };
        debug_assert_eq!(result, 0, "a part of a mapping can be removed");
    }
}

/// Size of a small page, a power of two.
fn page_bytes() -> usize {
    // SAFETY: the call has no requirements.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the page size is positive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(region: &Region, offset: usize) -> u8 {
        assert!(offset < region.bytes());
        // SAFETY: the byte is in the region, which nothing else accesses.
        unsafe { region.base().as_ptr().wrapping_add(offset).read() }
    }

    fn write(region: &mut Region, offset: usize, byte: u8) {
        assert!(offset < region.bytes());
        // SAFETY: as above, and the region is borrowed exclusively.
        unsafe { region.base().as_ptr().wrapping_add(offset).write(byte) }
    }

    #[test]
    fn sizes_and_addresses_are_multiples_of_a_huge_page() {
        for bytes in [1, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 1, 1 << 36] {
            let mut region = Region::reserve(bytes).expect("address space");
            assert_eq!(region.base().as_ptr().align_offset(HUGE_PAGE_BYTES), 0);
            assert_eq!(region.bytes(), bytes.next_multiple_of(HUGE_PAGE_BYTES));
            let last = region.bytes() - 1;
            assert_eq!((read(&region, 0), read(&region, last)), (0, 0));
            write(&mut region, last, 7);
            assert_eq!(read(&region, last), 7);
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for bytes in [0, usize::MAX, usize::MAX - HUGE_PAGE_BYTES, isize::MAX as usize] {
            Region::reserve(bytes).expect_err("no such address space");
        }
    }

    #[test]
    fn whole_pages_of_a_discarded_range_are_zero_again() {
        let mut region = Region::reserve(4 * HUGE_PAGE_BYTES).expect("address space");
        let page = page_bytes();
        for offset in (0..region.bytes()).step_by(page / 2) {
            write(&mut region, offset, 1);
        }
        region.discard(page / 2..3 * page + 1);
        region.discard(7..page - 1);
        region.discard(0..0);
        let kept = |offset: usize| !(page..3 * page).contains(&offset);
        for offset in (0..region.bytes()).step_by(page / 2) {
            assert_eq!(read(&region, offset), u8::from(kept(offset)), "{offset}");
        }
        let all = 0..region.bytes();
        region.discard(all);
        assert_eq!(read(&region, 0), 0);
    }

    #[test]
    fn a_region_moves_to_another_thread() {
        let mut region = Region::reserve(1).expect("address space");
        write(&mut region, 5, 9);
        let read = std::thread::spawn(move || read(&region, 5)).join();
        assert_eq!(read.expect("the thread returns"), 9);
    }
}
