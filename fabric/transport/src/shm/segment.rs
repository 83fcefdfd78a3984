// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that two processes have: made by one as a memfd, handed to the other as a descriptor.
//!
//! Who touches a page of a file that was cut meanwhile is killed by `SIGBUS`. So a segment is
//! sealed against that before it is handed over, and whoever gets one looks at the seals and at
//! the size before it is mapped. Huge pages are refused as well: where their pool is empty, a
//! touch is deadly too.

use crate::error::{Error, HelloError};
use freeport_ring::Mapped;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;

/// What a segment is sealed against.
pub const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// What pages are aligned to.
pub const PAGE_BYTES: usize = 4096;

/// How it is called in `/proc/self/maps`.
const NAME: &CStr = c"freeport-segment";

/// A mapped segment; unmapped when it is dropped.
#[derive(Debug)]
pub struct Segment {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a place and a size; what is there is shared with another process anyway.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a segment of zeroes, sealed and mapped, and the descriptor to hand over.
    ///
    /// # Errors
    /// The system gives no memory or no descriptor.
    pub fn create(bytes: usize) -> Result<(Self, OwnedFd), Error> {
        // SAFETY: a name that ends with zero.
        let descriptor = unsafe {
            libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if descriptor < 0 {
            return Err(Error::system("memfd_create"));
        }
        // SAFETY: just opened, and nobody else's.
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

    /// Maps a segment that a peer handed over, which has to have exactly that size.
    ///
    /// # Errors
    /// It is not what [`create`](Self::create) makes.
    pub fn import(descriptor: OwnedFd, bytes: usize) -> Result<Self, Error> {
        check_pages(&descriptor)?;
        // SAFETY: no memory is passed.
        let seals = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 {
            return Err(HelloError::NotMemory.into());
        }
        // There may be more: systems can seal all memfds against being executed.
        if seals & SEALS != SEALS {
            return Err(HelloError::Seals { expected: SEALS, found: seals }.into());
        }
        // Behind the seals: the size can change no more.
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
        // SAFETY: a new mapping, where the system finds room.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::system("mapping a segment"));
        }
        Ok(Self { start: start.cast(), bytes })
    }

    /// How large it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A place in it, for `length` bytes; `None` if they are not all inside, or if it is not
    /// aligned to words.
    pub fn at(&self, offset: usize, length: usize) -> Option<Mapped> {
        let inside = offset.checked_add(length)? <= self.bytes;
        (inside && offset.is_multiple_of(8)).then(|| {
            // SAFETY: `inside` says that the mapping reaches that far.
            let start = unsafe { self.start.add(offset) };
            // SAFETY: the offset is aligned, and nothing but rings and endpoints touches segments.
            // Those who use places in a segment keep it mapped.
            unsafe { Mapped::new(start) }
        })
    }

    /// Gives the pages that lie wholly in a part back to the system: they are zero then. Only for
    /// what neither side will use.
    pub fn release(&self, offset: usize, length: usize) {
        let end = offset.saturating_add(length).min(self.bytes) & !(PAGE_BYTES - 1);
        let start = offset.next_multiple_of(PAGE_BYTES);
        if start < end {
            // SAFETY: `start` is below `end`, which is at most the size of the mapping.
            let place = unsafe { self.start.add(start) };
            // SAFETY: whole pages of the mapping, which the caller says neither side will use. If
            // the system refuses, they only keep their memory.
            unsafe { libc::madvise(place.cast(), end - start, libc::MADV_REMOVE) };
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: what was mapped, and its places are used no more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Refuses what has no pages of memory, or huge ones.
fn check_pages(descriptor: &OwnedFd) -> Result<(), Error> {
    // SAFETY: all zero is a value of it.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer.
    if unsafe { libc::fstatfs(descriptor.as_raw_fd(), &mut about) } != 0 {
        return Err(Error::system("fstatfs"));
    }
    let ordinary = about.f_type == libc::TMPFS_MAGIC;
    if ordinary { Ok(()) } else { Err(HelloError::NotMemory.into()) }
}

/// Another descriptor of the same thing.
///
/// # Errors
/// There is none left.
pub fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    descriptor
        .try_clone_to_owned()
        .map_err(|source| Error::System { what: "another descriptor of a segment", source })
}
