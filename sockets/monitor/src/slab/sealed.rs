// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared memory that no process can truncate: a process that accesses a truncated page is killed.

use crate::Error;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

/// Creates a zeroed memory file of this size, which can be [sealed](seal).
///
/// # Errors
/// [`Error::System`]: no memory, or no descriptor.
pub fn memory(name: &CStr, bytes: usize) -> Result<File, Error> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends with a zero byte.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if descriptor < 0 {
        return Err(Error::system("memfd_create"));
    }
    // SAFETY: the descriptor is new and has no other owner.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let sized = file.set_len(bytes as u64);
    sized.map_err(|source| Error::System { what: "setting the size of shared memory", source })?;
    Ok(file)
}

/// Seals the file against changes of its size, against further seals, and against `more`.
///
/// # Errors
/// [`Error::System`]: the kernel does not know such a seal.
pub fn seal(file: &File, more: i32) -> Result<(), Error> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL | more;
    // SAFETY: no memory is passed.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(Error::system("F_ADD_SEALS")),
    }
}
