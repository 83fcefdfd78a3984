// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that a process shares with its forked children.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Types of which all bits zero is a valid value, and which several processes may use at once.
///
/// # Safety
/// All bits zero is a valid value, and every field is atomic.
pub unsafe trait Atomics {}

// SAFETY: an atomic number, for which 0 is valid.
unsafe impl Atomics for std::sync::atomic::AtomicU64 {}

/// A mapping of whole pages, initially zero, that forked children share.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to no thread, and processes share its contents anyway.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps the memory of a descriptor, which holds at least this many bytes.
    ///
    /// # Errors
    /// The memory cannot be mapped, or is too short.
    pub fn of(descriptor: &OwnedFd, bytes: usize) -> Result<Self> {
        let file = File::from(descriptor.try_clone()?);
        let there = file.metadata()?.len();
        ensure!(
            there >= bytes as u64,
            "the shared memory has {there} bytes, but {bytes} are needed"
        );
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let number = descriptor.as_raw_fd();
        // SAFETY: a new mapping, which replaces no other; nothing truncates the file.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, number, 0) };
        Self::mapped(start, bytes)
    }

    fn mapped(start: *mut libc::c_void, bytes: usize) -> Result<Self> {
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("shared memory cannot be mapped");
        }
        let start = NonNull::new(start.cast()).context("shared memory was mapped at address 0")?;
        Ok(Self { start, bytes })
    }

    /// Maps new memory and populates it, so that no measurement waits for page faults.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(bytes: usize) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping, which replaces no other.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        Self::mapped(start, bytes)
    }

    /// Returns its address.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` or `of` has mapped it with that length.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A value in shared memory.
#[derive(Debug)]
pub struct Shared<T> {
    memory: Memory,
    value: std::marker::PhantomData<T>,
}

impl<T: Atomics> Shared<T> {
    /// Creates a value of zeros.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new() -> Result<Self> {
        Ok(Self { memory: Memory::new(size_of::<T>())?, value: std::marker::PhantomData })
    }

    /// Creates a value of zeros, with a descriptor of its memory that child processes inherit
    /// across exec.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn inherited() -> Result<(Self, OwnedFd)> {
        // SAFETY: the call takes a name and returns a new descriptor.
        let descriptor = unsafe { libc::memfd_create(c"freeport-bench".as_ptr(), 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error()).context("shared memory cannot be created");
        }
        // SAFETY: the descriptor is new and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        File::from(descriptor.try_clone()?).set_len(size_of::<T>() as u64)?;
        Ok((Self::of(&descriptor)?, descriptor))
    }

    /// Maps a value that another process has created by `inherited`.
    ///
    /// # Errors
    /// The descriptor is of something else.
    pub fn of(descriptor: &OwnedFd) -> Result<Self> {
        let memory = Memory::of(descriptor, size_of::<T>())?;
        Ok(Self { memory, value: std::marker::PhantomData })
    }
}

impl<T: Atomics> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping is large enough and page-aligned, and any contents are a valid value.
        unsafe { &*self.memory.start().cast() }
    }
}
