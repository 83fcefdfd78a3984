// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that two processes share: created by one as a memfd, and sent to the other as a
//! descriptor.
//!
//! A process that accesses a page of a file that was truncated is killed by `SIGBUS`. So a segment
//! is sealed against that before it is sent, and its receiver checks the seals and the size before
//! it maps the segment. Huge pages are refused as well: if their pool is empty, an access is also
//! fatal.

use crate::error::{Error, HelloError};
use freeport_ring::Mapped;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;

/// Seals of a segment.
pub const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Alignment of pages, in bytes.
pub const PAGE_BYTES: usize = 4096;

/// Name in `/proc/self/maps`.
const NAME: &CStr = c"freeport-segment";

/// A mapped segment; unmapped when it is dropped.
#[derive(Debug)]
pub struct Segment {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: an address and a size; the memory is shared with another process anyway.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates a sealed and mapped segment of zeros, and returns it with the descriptor to send.
    ///
    /// # Errors
    /// The system provides no memory or no descriptor.
    pub fn create(bytes: usize) -> Result<(Self, OwnedFd), Error> {
        // SAFETY: the name ends with a zero.
        let descriptor = unsafe {
            libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if descriptor < 0 {
            return Err(Error::system("memfd_create"));
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(bytes as u64)
            .map_err(|source| Error::System { what: "the size of a segment", source })?;
        // SAFETY: no memory is passed.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(Error::system("F_ADD_SEALS"));
        }
        let segment = Self::map(file.as_raw_fd(), bytes)?;
        Ok((segment, file.into()))
    }

    /// Maps a segment that a peer has sent, which has to have exactly this size.
    ///
    /// # Errors
    /// The segment is not one that [`create`](Self::create) makes.
    pub fn import(descriptor: OwnedFd, bytes: usize) -> Result<Self, Error> {
        check_pages(&descriptor)?;
        // SAFETY: no memory is passed.
        let seals = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 {
            return Err(HelloError::NotMemory.into());
        }
        // There may be more: a system can seal all memfds against execution.
        if seals & SEALS != SEALS {
            return Err(HelloError::Seals { expected: SEALS, found: seals }.into());
        }
        // After the check of the seals, the size cannot change any more.
        let file = File::from(descriptor);
        let metadata = file
            .metadata()
            .map_err(|source| Error::System { what: "the size of the peer's segment", source })?;
        if metadata.size() != bytes as u64 {
            let (expected, found) = (bytes as u64, metadata.size());
            return Err(HelloError::SegmentBytes { expected, found }.into());
        }
        Self::map(file.as_raw_fd(), bytes)
    }

    fn map(descriptor: i32, bytes: usize) -> Result<Self, Error> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::system("mapping a segment"));
        }
        Ok(Self { start: start.cast(), bytes })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory at `offset`, with `length` bytes; `None` if they are not all inside, or
    /// the offset is not aligned to words.
    pub fn at(&self, offset: usize, length: usize) -> Option<Mapped> {
        let inside = offset.checked_add(length)? <= self.bytes;
        (inside && offset.is_multiple_of(8)).then(|| {
            // SAFETY: `inside` states that the mapping reaches that far.
            let start = unsafe { self.start.add(offset) };
            // SAFETY: the offset is aligned, and only rings and endpoints access segments. The
            // users of a place in a segment keep it mapped.
            unsafe { Mapped::new(start) }
        })
    }

    /// Returns the pages that lie completely in a part to the system, which makes them zero. Only
    /// for memory that neither side will use.
    pub fn release(&self, offset: usize, length: usize) {
        let end = offset.saturating_add(length).min(self.bytes) & !(PAGE_BYTES - 1);
        let start = offset.next_multiple_of(PAGE_BYTES);
        if start < end {
            // SAFETY: `start` is below `end`, which is at most the size of the mapping.
            let place = unsafe { self.start.add(start) };
            // SAFETY: whole pages of the mapping, which the caller guarantees that neither side
            // will use. If the system refuses, they only keep their memory.
            unsafe { libc::madvise(place.cast(), end - start, libc::MADV_REMOVE) };
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping made at creation, whose places are no longer used.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Refuses a descriptor without memory pages, or with huge ones.
fn check_pages(descriptor: &OwnedFd) -> Result<(), Error> {
    // SAFETY: the structure is plain data, for which all zeros is a value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the structure has room for the answer.
    if unsafe { libc::fstatfs(descriptor.as_raw_fd(), &mut about) } != 0 {
        return Err(Error::system("fstatfs"));
    }
    let ordinary = about.f_type == libc::TMPFS_MAGIC;
    if ordinary { Ok(()) } else { Err(HelloError::NotMemory.into()) }
}

/// Duplicates a descriptor.
///
/// # Errors
/// No descriptor is available.
pub fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    descriptor
        .try_clone_to_owned()
        .map_err(|source| Error::System { what: "another descriptor of a segment", source })
}
