// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The buffers of an operation of the application: one or several.

use crate::kernel::memory;
use core::slice;

/// Buffers that are read or written one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    parts: &'a [libc::iovec],
}

impl<'a> Parts<'a> {
    /// The buffers that an `iovec` array lists. `None`: there are too many, or the array cannot be
    /// read.
    ///
    /// # Safety
    /// The caller upholds the contract of `readv` and `writev`.
    pub unsafe fn new(parts: *const libc::iovec, count: usize) -> Option<Self> {
        if count == 0 || parts.is_null() {
            return (count == 0).then_some(Self { parts: &[] });
        }
        if count > libc::UIO_MAXIOV as usize || !memory::exists(parts, count) {
            return None;
        }
        // SAFETY: the caller upholds it.
        Some(Self { parts: unsafe { slice::from_raw_parts(parts, count) } })
    }

    /// The only part.
    pub fn one(part: &'a libc::iovec) -> Self {
        Self { parts: slice::from_ref(part) }
    }

    /// Whether there is one part only.
    pub fn is_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// Number of bytes in all; `None`: more than one operation may have.
    pub fn bytes(&self) -> Option<usize> {
        let sum = self.parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.iov_len));
        sum.filter(|bytes| *bytes <= isize::MAX as usize)
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Lists the bytes after the first `skipped`: one part that is longer than `short`, or the
    /// parts up to the next such part, of at most `most` bytes in all. Returns the number of parts
    /// and of bytes.
    ///
    /// # Safety
    /// The parts are memory to be read.
    pub unsafe fn list(
        &self,
        skipped: usize,
        (short, most): (usize, usize),
        into: &mut [&'a [u8]],
    ) -> (usize, usize) {
        let (mut skipped, mut left, mut count) = (skipped, most, 0);
        for part in self.parts {
            let Some(bytes) = part.iov_len.checked_sub(skipped).filter(|bytes| *bytes > 0) else {
                skipped -= part.iov_len;
                continue;
            };
            let Some(place) = into.get_mut(count).filter(|_| left > 0) else { break };
            if count > 0 && bytes > short {
                break;
            }
            // SAFETY: inside the part.
            let at = unsafe { part.iov_base.cast::<u8>().add(skipped) };
            // SAFETY: the caller upholds it.
            *place = unsafe { slice::from_raw_parts(at, bytes.min(left)) };
            (skipped, count, left) = (0, count + 1, left - bytes.min(left));
            if bytes > short {
                break;
            }
        }
        (count, most - left)
    }

    /// Whether a part that is not empty has a null address.
    pub fn has_null(&self) -> bool {
        self.parts.iter().any(|part| part.iov_base.is_null() && part.iov_len > 0)
    }

    /// The rest of the part that has the first byte after `skipped`; `None`: there is none.
    pub fn behind(&self, mut skipped: usize) -> Option<(*mut libc::c_void, usize)> {
        for part in self.parts {
            if skipped < part.iov_len {
                let at = part.iov_base.cast::<u8>().wrapping_add(skipped);
                return Some((at.cast(), part.iov_len - skipped));
            }
            skipped -= part.iov_len;
        }
        None
    }

    /// Calls `visit` with the bytes after the first `skipped`, part by part, until it handles fewer
    /// than it was given; returns the number of bytes handled.
    ///
    /// # Safety
    /// The parts are memory that `visit` may use.
    #[inline]
    pub unsafe fn each(
        &self,
        skipped: usize,
        mut visit: impl FnMut(*mut u8, usize, bool) -> usize,
    ) -> usize {
        let (mut skipped, mut done) = (skipped, 0);
        let last = self.parts.len().saturating_sub(1);
        for (number, part) in self.parts.iter().enumerate() {
            if skipped >= part.iov_len {
                skipped -= part.iov_len;
                continue;
            }
            // SAFETY: inside the part.
            let at = unsafe { part.iov_base.cast::<u8>().add(skipped) };
            let bytes = part.iov_len - skipped;
            skipped = 0;
            let count = visit(at, bytes, number == last);
            done += count;
            if count < bytes {
                break;
            }
        }
        done
    }
}
