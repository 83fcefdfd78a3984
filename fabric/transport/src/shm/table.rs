// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of zeros in a process's own memory, of which only touched pages take memory.

use crate::error::Error;
use freeport_ring::shared_queue::{Cell, Record, Slot};
use std::marker::PhantomData;
use std::ptr;

/// Size from which on tables request huge pages, if the system has some: random accesses to a large
/// table find few of its pages in the TLB.
const HUGE_FROM: usize = 4 << 20;

/// Types for which all bits zero is a valid value, equal to the default.
///
/// # Safety
/// All bits zero must be a valid value of the type.
pub unsafe trait Zero {}

// SAFETY: numbers only.
unsafe impl Zero for Record {}
// SAFETY: as above.
unsafe impl Zero for Slot {}
// SAFETY: as above.
unsafe impl Zero for Cell {}

/// A table; unmapped when it is dropped.
#[derive(Debug)]
pub struct Table<T> {
    start: *mut libc::c_void,
    length: usize,
    of: PhantomData<T>,
}

// SAFETY: a mapping belongs to no thread, and what is in it are plain values.
unsafe impl<T: Send> Send for Table<T> {}

impl<T: Zero> Table<T> {
    /// Creates a table of this number of elements.
    ///
    /// # Errors
    /// The system has no address space for them.
    pub fn new(length: usize) -> Result<Self, Error> {
        let bytes = length.saturating_mul(size_of::<T>()).max(1);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::system("memory for a table"));
        }
        Ok(Self { start, length, of: PhantomData })
    }

    /// Requests huge pages, for a table that is used all over. The request may fail without
    /// consequences.
    pub fn prefer_huge_pages(&self) {
        let bytes = self.length * size_of::<T>();
        if bytes >= HUGE_FROM {
            // SAFETY: the mapping of this table.
            unsafe { libc::madvise(self.start, bytes, libc::MADV_HUGEPAGE) };
        }
    }

    /// Returns all elements.
    ///
    /// # Safety
    /// It is called once, and the elements are not used after this is dropped.
    pub unsafe fn elements(&self) -> &'static mut [T] {
        // SAFETY: mapped, aligned to pages, and zero is a value; the caller guarantees that no
        // other reference exists, and that they are not used after the table is dropped.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length) }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, with that length.
        unsafe { libc::munmap(self.start, (self.length * size_of::<T>()).max(1)) };
    }
}
