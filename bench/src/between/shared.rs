// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that a process shares with those that it forks.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Values that may be zero to begin with, and that several processes may use at once.
///
/// # Safety
/// All bits zero is a value, and everything in it is atomic.
pub unsafe trait Atomics {}

// SAFETY: atomic, and 0 is a number.
unsafe impl Atomics for std::sync::atomic::AtomicU64 {}

/// A mapping of whole pages, zero at first; it is there in the forked processes as well.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to no thread; what is in it is shared between processes anyway.
unsafe impl Send for Memory {}

impl Memory {
    /// That of a descriptor, which holds at least so many bytes.
    ///
    /// # Errors
    /// It cannot be mapped, or is too short.
    pub fn of(descriptor: &OwnedFd, bytes: usize) -> Result<Self> {
        let file = File::from(descriptor.try_clone()?);
        let there = file.metadata()?.len();
        ensure!(there >= bytes as u64, "{there} bytes are shared, and {bytes} needed");
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let number = descriptor.as_raw_fd();
        // SAFETY: a new mapping, of nothing that is there already; nobody makes the file shorter.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, number, 0) };
        Self::mapped(start, bytes)
    }

    fn mapped(start: *mut libc::c_void, bytes: usize) -> Result<Self> {
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("shared memory cannot be mapped");
        }
        let start = NonNull::new(start.cast()).context("a mapping at address 0")?;
        Ok(Self { start, bytes })
    }

    /// So many bytes, in place already, so that no measurement waits for pages.
    ///
    /// # Errors
    /// The system has not as much.
    pub fn new(bytes: usize) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping, of nothing that is there already.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        Self::mapped(start, bytes)
    }

    /// Where it starts.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made by `new`, with that length.
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
    /// All zero.
    ///
    /// # Errors
    /// The system has not as much memory.
    pub fn new() -> Result<Self> {
        Ok(Self { memory: Memory::new(size_of::<T>())?, value: std::marker::PhantomData })
    }

    /// All zero, with a descriptor of the memory, which programs inherit that are started.
    ///
    /// # Errors
    /// As above.
    pub fn inherited() -> Result<(Self, OwnedFd)> {
        // SAFETY: a name in, a new descriptor out.
        let descriptor = unsafe { libc::memfd_create(c"freeport-bench".as_ptr(), 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error()).context("no shared memory can be made");
        }
        // SAFETY: new, and nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        File::from(descriptor.try_clone()?).set_len(size_of::<T>() as u64)?;
        Ok((Self::of(&descriptor)?, descriptor))
    }

    /// What another process has made so.
    ///
    /// # Errors
    /// It is something else.
    pub fn of(descriptor: &OwnedFd) -> Result<Self> {
        let memory = Memory::of(descriptor, size_of::<T>())?;
        Ok(Self { memory, value: std::marker::PhantomData })
    }
}

impl<T: Atomics> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: large enough, at the start of a page, and a value whatever others write.
        unsafe { &*self.memory.start().cast() }
    }
}
