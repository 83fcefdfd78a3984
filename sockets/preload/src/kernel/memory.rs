// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of files, at addresses that are multiples of something.

use super::raw::{Result, argument, checked_call, unmap};

/// What is to be mapped, shared.
#[derive(Clone, Copy)]
pub struct Part {
    /// What it is.
    pub descriptor: i32,
    /// How much of it, in whole pages.
    pub bytes: usize,
    /// What may be done with it: `PROT_READ` and the like.
    pub access: i32,
}

/// Maps parts one behind the other, the first at a multiple of some number of bytes, which is a
/// power of two.
///
/// # Errors
/// As of [`map`](super::raw::map). Nothing is mapped then.
pub fn map_at_multiple(multiple: usize, parts: &[Part]) -> Result<*mut u8> {
    let bytes: usize = parts.iter().map(|part| part.bytes).sum();
    let nobodys = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let all = bytes + multiple;
    let arguments = [0, all, argument(libc::PROT_NONE), argument(nobodys), argument(-1), 0];
    // SAFETY: addresses where the system finds room.
    let room = unsafe { checked_call(libc::SYS_mmap, arguments) }?;
    let start = room.next_multiple_of(multiple);
    let kind = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let mut at = start;
    for Part { descriptor, bytes, access } in parts.iter().copied() {
        let arguments = [at, bytes, argument(access), argument(kind), argument(descriptor), 0];
        // SAFETY: inside of what was just mapped, and is nobody's.
        let mapped = unsafe { checked_call(libc::SYS_mmap, arguments) };
        if mapped.is_err() {
            unmap(room as *mut u8, all);
            return mapped.map(|at| at as *mut u8);
        }
        at += bytes;
    }
    let (end, behind) = (start + bytes, room + all);
    for (from, to) in [(room, start), (end, behind)] {
        if from < to {
            unmap(from as *mut u8, to - from);
        }
    }
    Ok(start as *mut u8)
}

/// The bytes of a file, such as one in memory.
pub fn size(descriptor: i32) -> Result<usize> {
    let arguments = [argument(descriptor), 0, argument(libc::SEEK_END), 0, 0, 0];
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_lseek, arguments) }
}
