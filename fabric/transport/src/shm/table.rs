// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of zeroes in a process's own memory, of which only what is touched takes any.

use crate::error::Error;
use freeport_ring::shared_queue::{Cell, Record, Slot};
use std::marker::PhantomData;
use std::ptr;

/// Tables from this size on are asked for in huge pages, where the system has some: who goes to
/// elements of a large one at random finds few of its pages in the processor's tables.
const HUGE_FROM: usize = 4 << 20;

/// What is a value with all bits zero, that of its default.
///
/// # Safety
/// It is so.
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
    /// So many elements.
    ///
    /// # Errors
    /// The system has no address space for them.
    pub fn new(length: usize) -> Result<Self, Error> {
        let bytes = length.saturating_mul(size_of::<T>()).max(1);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, where the system finds room.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::system("memory for a table"));
        }
        Ok(Self { start, length, of: PhantomData })
    }

    /// Asks for huge pages, for a table that is used all over. Whether it gets them is of no
    /// importance.
    pub fn prefer_huge_pages(&self) {
        let bytes = self.length * size_of::<T>();
        if bytes >= HUGE_FROM {
            // SAFETY: the mapping of this table.
            unsafe { libc::madvise(self.start, bytes, libc::MADV_HUGEPAGE) };
        }
    }

    /// All elements.
    ///
    /// # Safety
    /// It is called once, and the elements are not used when this is dropped.
    pub unsafe fn elements(&self) -> &'static mut [T] {
        // SAFETY: mapped, aligned to pages, and zero is a value; nobody else has them, and they
        // are not used behind the mapping, says the caller.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length) }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, with that length.
        unsafe { libc::munmap(self.start, (self.length * size_of::<T>()).max(1)) };
    }
}
