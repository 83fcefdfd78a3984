// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory image of an engine: one region, the index at its start and blocks behind it. All
//! places in it are *offsets*, bytes from its start, and pointers in the image are units, so the
//! image does not depend on where it is mapped.
//!
//! This is the only file that turns offsets into references. Every offset comes from the index or
//! from the allocator of blocks, which one engine owns alone.

use std::ops::Range;

use freeport_kv_slab::Region;

use crate::bucket::{BUCKET_BYTES, Bucket};

/// The region of an engine, and where blocks begin.
#[derive(Debug)]
pub struct Memory {
    region: Region,
    blocks: usize,
    unit_shift: u32,
}

impl Memory {
    /// A region whose index takes `index_bytes`, and whose blocks take `block_bytes`.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn reserve(
        index_bytes: usize,
        block_bytes: usize,
        unit_shift: u32,
    ) -> std::io::Result<Self> {
        assert!(index_bytes.is_multiple_of(BUCKET_BYTES), "the index has whole buckets");
        let region = Region::reserve(index_bytes + block_bytes)?;
        Ok(Self { region, blocks: index_bytes, unit_shift })
    }

    /// Offset of a block.
    #[inline(always)]
    pub fn offset_of(&self, unit: u32) -> usize {
        self.blocks + ((unit as usize) << self.unit_shift)
    }

    /// Bytes of the index at most.
    pub fn index_bytes(&self) -> usize {
        self.blocks
    }

    /// The bucket at an offset.
    #[inline(always)]
    pub fn bucket(&self, offset: usize) -> &Bucket {
        debug_assert!(offset.is_multiple_of(BUCKET_BYTES), "buckets are aligned to lines");
        debug_assert!(offset + BUCKET_BYTES <= self.region.bytes(), "bucket inside the region");
        // SAFETY: offsets of buckets lie in the region.
        let bucket = unsafe { self.region.base().as_ptr().add(offset) }.cast::<Bucket>();
        // SAFETY: all bytes of the region are initialized, every bit pattern is a bucket, and only
        // `self` refers to the region.
        unsafe { &*bucket }
    }

    /// The bucket at an offset, to be changed.
    #[inline(always)]
    pub fn bucket_mut(&mut self, offset: usize) -> &mut Bucket {
        debug_assert!(offset.is_multiple_of(BUCKET_BYTES), "buckets are aligned to lines");
        debug_assert!(offset + BUCKET_BYTES <= self.region.bytes(), "bucket inside the region");
        // SAFETY: offsets of buckets lie in the region.
        let bucket = unsafe { self.region.base().as_ptr().add(offset) }.cast::<Bucket>();
        // SAFETY: as for `bucket`, and `self` is borrowed alone.
        unsafe { &mut *bucket }
    }

    /// Bytes from an offset on.
    #[inline(always)]
    pub fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        debug_assert!(offset + length <= self.region.bytes(), "bytes inside the region");
        // SAFETY: places of pairs lie in the region.
        let start = unsafe { self.region.base().as_ptr().add(offset) };
        // SAFETY: all bytes of the region are initialized, and only `self` refers to them.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    /// Bytes from an offset on, to be changed.
    #[inline(always)]
    pub fn bytes_mut(&mut self, offset: usize, length: usize) -> &mut [u8] {
        debug_assert!(offset + length <= self.region.bytes(), "bytes inside the region");
        // SAFETY: places of pairs lie in the region.
        let start = unsafe { self.region.base().as_ptr().add(offset) };
        // SAFETY: as for `bytes`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }

    /// Has the processor fetch the line at an offset.
    #[inline(always)]
    pub fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line = self.region.base().as_ptr().wrapping_add(offset);
            // SAFETY: prefetching reads nothing; SSE belongs to every x86-64 processor.
            unsafe { _mm_prefetch(line.cast(), _MM_HINT_T0) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Gives all pages back to the system.
    pub fn discard_all(&mut self) {
        self.discard(0..self.region.bytes());
    }

    /// Gives the pages inside a range of offsets back to the system; they read as zero.
    pub fn discard(&mut self, range: Range<usize>) {
        self.region.discard(range);
    }
}
