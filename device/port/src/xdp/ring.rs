// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rings between an AF_XDP socket and the kernel: one side writes, the other reads, and each
//! owns one of two counters (`Documentation/networking/af_xdp.rst`).
//!
//! Counters only grow, and wrap at 32 bits; an entry's index is the lower bits of the counter.
//! Values that the kernel writes are not trusted: indices are masked, and a count is never more
//! than the ring holds.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Positions of the parts of a ring in its mapping, and the ring's size.
pub(super) struct Layout {
    pub offsets: libc::xdp_ring_offset,
    /// Offset to pass to `mmap`.
    pub page_offset: libc::off_t,
    /// Number of entries, a power of two.
    pub entries: u32,
}

/// A ring of the kernel that this process has mapped.
#[derive(Debug)]
struct Ring<T> {
    mapping: NonNull<u8>,
    mapped_bytes: usize,
    offsets: libc::xdp_ring_offset,
    entries: u32,
    holds: std::marker::PhantomData<T>,
}

// SAFETY: the mapping is shared with the kernel, not with other threads; only the owner of a ring
// uses it.
unsafe impl<T: Send> Send for Ring<T> {}

/// A ring that this side writes to.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Entries written, including those not yet published to the kernel.
    next: u32,
    /// The kernel's counter, as last seen.
    taken: u32,
}

/// A ring that this side reads from.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Entries read, including those whose places are not yet returned.
    next: u32,
    /// The kernel's counter, as last seen.
    filled: u32,
}

impl<T: Copy> Ring<T> {
    fn map(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let Layout { offsets, page_offset, entries } = layout;
        let table_bytes = entries as usize * size_of::<T>();
        let ends = [offsets.producer + 4, offsets.consumer + 4, offsets.flags + 4];
        let end = ends.into_iter().fold(offsets.desc + table_bytes as u64, u64::max);
        let is_aligned = offsets.desc.is_multiple_of(align_of::<T>() as u64)
            && ends.iter().all(|end| end.is_multiple_of(4));
        let mapped_bytes = usize::try_from(end).ok().filter(|_| is_aligned);
        let mapped_bytes = mapped_bytes.ok_or(io::ErrorKind::InvalidData)?;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        let file = socket.as_raw_fd();
        // SAFETY: a new mapping at an address that the kernel chooses; the kernel refuses one
        // beyond its ring.
        let mapping = unsafe {
            libc::mmap(std::ptr::null_mut(), mapped_bytes, access, kind, file, page_offset)
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { mapping, mapped_bytes, offsets, entries, holds: std::marker::PhantomData })
    }

    #[inline]
    fn counter(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `map` has checked that the counter is within the mapping.
        let place = unsafe { self.mapping.add(offset as usize) };
        // SAFETY: `map` has checked that it is aligned; the kernel and this process use it only as
        // an atomic number.
        unsafe { place.cast::<AtomicU32>().as_ref() }
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        self.counter(self.offsets.producer)
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        self.counter(self.offsets.consumer)
    }

    #[inline]
    fn place(&self, count: u32) -> *mut T {
        let at = (count & (self.entries - 1)) as usize;
        // SAFETY: `map` has checked that the entries begin within the mapping, aligned.
        let first = unsafe { self.mapping.as_ptr().add(self.offsets.desc as usize).cast::<T>() };
        // SAFETY: `map` has checked that `entries` of them are within the mapping.
        unsafe { first.add(at) }
    }

    fn needs_wakeup(&self) -> bool {
        self.counter(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: `map` mapped it, and nothing else refers to it.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped_bytes) };
    }
}

impl<T: Copy> Producer<T> {
    pub fn map(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let ring = Ring::map(socket, layout)?;
        let next = ring.producer().load(Ordering::Relaxed);
        let taken = ring.consumer().load(Ordering::Acquire);
        Ok(Self { ring, next, taken })
    }

    /// Returns the number of entries that can be written; reads the kernel's counter if there seem
    /// to be fewer than `wanted`.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> u32 {
        let room = |this: &Self| {
            this.ring.entries - this.next.wrapping_sub(this.taken).min(this.ring.entries)
        };
        if room(self) < wanted {
            self.taken = self.ring.consumer().load(Ordering::Acquire);
        }
        room(self)
    }

    /// Writes the next entry. The caller must know that there is room.
    #[inline]
    pub fn put(&mut self, entry: T) {
        // SAFETY: a place of the ring, which belongs to this side until `show`.
        unsafe { self.ring.place(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
    }

    /// Publishes the written entries to the kernel.
    #[inline]
    pub fn show(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Returns the number of entries that the kernel has not taken.
    #[inline]
    pub fn waiting(&mut self) -> u32 {
        self.taken = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(self.taken)
    }

    /// Returns whether the kernel reads the ring only after a system call.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

impl<T: Copy> Consumer<T> {
    pub fn map(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let ring = Ring::map(socket, layout)?;
        let next = ring.consumer().load(Ordering::Relaxed);
        let filled = ring.producer().load(Ordering::Acquire);
        Ok(Self { ring, next, filled })
    }

    /// Returns the number of entries that can be read; reads the kernel's counter if there seem to
    /// be none.
    #[inline]
    pub fn available(&mut self) -> u32 {
        if self.filled == self.next {
            self.filled = self.ring.producer().load(Ordering::Acquire);
        }
        self.filled.wrapping_sub(self.next).min(self.ring.entries)
    }

    /// Returns the next entry, which stays until `pass`. The caller must know that there is one.
    #[inline]
    pub fn peek(&self) -> T {
        // SAFETY: a place of the ring that the kernel has filled and does not touch until `give`.
        unsafe { self.ring.place(self.next).read() }
    }

    /// Moves to the next entry.
    #[inline]
    pub fn pass(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Returns the places of the passed entries to the kernel.
    #[inline]
    pub fn give(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}
