// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of memory that an operation of the application names: one buffer or several.

use crate::kernel::memory;
use core::slice;

/// What is read from or written to, part by part.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    parts: &'a [libc::iovec],
}

impl<'a> Parts<'a> {
    /// Those that an `iovec` array lists. `None`: there cannot be so many, or there is none.
    ///
    /// # Safety
    /// As for `readv` and `writev`.
    pub unsafe fn new(parts: *const libc::iovec, count: usize) -> Option<Self> {
        if count == 0 || parts.is_null() {
            return (count == 0).then_some(Self { parts: &[] });
        }
        if count > libc::UIO_MAXIOV as usize || !memory::is_there(parts, count) {
            return None;
        }
        // SAFETY: as the caller says.
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

    /// All bytes; `None`: more than can be asked for.
    pub fn bytes(&self) -> Option<usize> {
        let sum = self.parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.iov_len));
        sum.filter(|bytes| *bytes <= isize::MAX as usize)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Lists what is behind the first `skipped` bytes: one part that is longer than `short`, or
    /// those up to the next of these, of at most `most` bytes in all. Gives how many that are, and
    /// how many bytes.
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
            // SAFETY: as the caller says.
            *place = unsafe { slice::from_raw_parts(at, bytes.min(left)) };
            (skipped, count, left) = (0, count + 1, left - bytes.min(left));
            if bytes > short {
                break;
            }
        }
        (count, most - left)
    }

    /// Whether a part that is not empty is nowhere.
    pub fn has_null(&self) -> bool {
        self.parts.iter().any(|part| part.iov_base.is_null() && part.iov_len > 0)
    }

    /// What of the part that is behind the first `skipped` bytes is left; `None`: nothing.
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

    /// Calls `visit` with what is behind the first `skipped` bytes, piece by piece, until it does
    /// less than it was given; gives how much it did.
    ///
    /// # Safety
    /// The parts are memory for that.
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
