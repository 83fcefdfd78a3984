// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of the frames of AF_XDP ports (UMEM): one area for all ports of a worker, divided into
//! chunks of equal size, registered with the kernel.
//!
//! **The life of a chunk.** A chunk belongs permanently to one half of one port.
//! 1. A receiver's chunk is with the kernel (in the fill ring or taken from it) until a frame
//!    arrives in it.
//! 2. Then it is lent, until the next `receive`.
//! 3. A transmitter that was given the frame during that time has marked the chunk, once for each
//!    time it has sent it; while a mark stands, the chunk is in flight. Reading the completion of a
//!    transmission removes a mark.
//! 4. A chunk without marks returns to the kernel at the next `receive`.
//!
//! A transmitter's chunk is free, or filled with a copy of a frame and with the kernel.
//!
//! So the halves of a port, and different ports, share only the marks, which are atomic numbers; no
//! lock is taken.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Memory for a fixed number of chunks.
#[derive(Debug)]
pub(super) struct Memory {
    mapping: NonNull<libc::c_void>,
    mapped_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
    /// Base-2 logarithm of the bytes of a chunk.
    chunk_bits: u32,
    /// By chunk: number of transmissions in flight.
    marks: Box<[AtomicU32]>,
}

// SAFETY: the memory is plain bytes. The life of a chunk determines which thread may access which
// bytes: `bytes_mut` states it as its condition.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `chunks` chunks of `chunk_bytes`, which is a power of two; all bytes are 0.
    ///
    /// # Errors
    /// The system does not have enough memory.
    pub fn new(chunks: usize, chunk_bytes: usize) -> io::Result<Self> {
        assert!(chunk_bytes.is_power_of_two(), "the kernel takes powers of two");
        let bytes = (chunks * chunk_bytes).next_multiple_of(HUGE_PAGE_BYTES);
        let mapped_bytes = bytes + HUGE_PAGE_BYTES;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), mapped_bytes, access, kind, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skipped = mapping.align_offset(HUGE_PAGE_BYTES);
        let start = mapping.cast::<u8>().wrapping_add(skipped);
        let bytes = chunks * chunk_bytes;
        // Without huge pages the memory is slower.
        // SAFETY: the range is within the mapping, and advice changes no contents.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        // If a child process shared pinned pages, the kernel would have to copy them.
        // SAFETY: as above; no child of a fork uses a port of its parent.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTFORK) };
        let (Some(mapping), Some(start)) = (NonNull::new(mapping), NonNull::new(start)) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let marks = (0..chunks).map(|_| AtomicU32::new(0)).collect();
        let chunk_bits = chunk_bytes.ilog2();
        Ok(Self { mapping, mapped_bytes, start, bytes, chunk_bits, marks })
    }

    /// Returns the address of the memory.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes of a chunk.
    #[inline]
    pub fn chunk_bytes(&self) -> usize {
        1 << self.chunk_bits
    }

    /// Returns the chunk that contains this byte; it may lie after the last.
    #[inline]
    pub fn chunk_of(&self, at: u64) -> u64 {
        at >> self.chunk_bits
    }

    /// Returns the offset of `memory` in this one, if it lies completely within.
    pub fn offset_of(&self, memory: &[u8]) -> Option<usize> {
        let offset = (memory.as_ptr() as usize).checked_sub(self.start.as_ptr() as usize)?;
        (offset.checked_add(memory.len())? <= self.bytes).then_some(offset)
    }

    /// Returns some bytes for writing.
    ///
    /// # Safety
    /// The caller is the half of a port that the chunks belong to; no other reference to these
    /// bytes exists while the returned one lives, and bytes of chunks that the kernel has are not
    /// accessed.
    #[expect(clippy::mut_from_ref, reason = "the condition is what makes it exclusive")]
    pub unsafe fn bytes_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.bytes, "within the memory");
        // SAFETY: within the mapping, as just checked.
        let start = unsafe { self.start.as_ptr().add(range.start) };
        // SAFETY: as above; exclusive, as the caller guarantees.
        unsafe { std::slice::from_raw_parts_mut(start, range.len()) }
    }

    /// Marks a chunk: one more transmission is in flight.
    #[inline]
    pub fn mark(&self, chunk: usize) {
        self.marks[chunk].fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a mark; returns false if there is none, or no such chunk.
    #[inline]
    pub fn unmark(&self, chunk: u64) -> bool {
        let mark = usize::try_from(chunk).ok().and_then(|chunk| self.marks.get(chunk));
        // A value of 1 or more cannot be reduced to 0 by another thread: each thread only removes
        // the marks that it has set.
        let Some(mark) = mark.filter(|mark| mark.load(Ordering::Relaxed) > 0) else { return false };
        mark.fetch_sub(1, Ordering::Release);
        true
    }

    /// Returns whether a transmission of a chunk is in flight.
    #[inline]
    pub fn is_marked(&self, chunk: usize) -> bool {
        self.marks[chunk].load(Ordering::Acquire) > 0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` mapped it. Every reference to the bytes borrows this value; the kernel has
        // its own references to the pages.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_counted() {
        let memory = Memory::new(4, 2_048).expect("8 KiB");
        memory.mark(2);
        memory.mark(2);
        assert!(memory.is_marked(2) && !memory.is_marked(1));
        assert!(memory.unmark(2) && memory.is_marked(2));
        assert!(memory.unmark(2) && !memory.is_marked(2));
        assert!(!memory.unmark(2), "there is none left");
        assert!(!memory.unmark(4) && !memory.unmark(u64::MAX), "there is no such chunk");
    }

    #[test]
    fn memory_within_it_is_found() {
        let memory = Memory::new(4, 2_048).expect("8 KiB");
        // SAFETY: no other reference to the memory exists.
        let all = unsafe { memory.bytes_mut(0..8_192) };
        assert!(all.iter().all(|byte| *byte == 0));
        assert_eq!(memory.offset_of(&all[100..]), Some(100));
        assert_eq!(memory.offset_of(&[0; 8]), None);
    }
}
