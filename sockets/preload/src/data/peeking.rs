// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving that takes nothing out of the ring: what comes is only looked at, in one piece for
//! several parts, or there is no room for any of it.

use crate::data::parts::Parts;
use crate::kernel::{errno, raw};
use crate::socket::connections::Stream;
use crate::upgrade::slot::Slot;

/// Bytes that are received together in memory of our own.
const BYTES: usize = 1 << 20;

impl Stream {
    /// Looks at what there is, in one piece, and fills parts with it.
    pub fn peek_scattered(
        &self,
        descriptor: i32,
        slot: &Slot,
        parts: Parts<'_>,
        flags: i32,
    ) -> Option<isize> {
        let bytes = parts.bytes().unwrap_or(0).min(BYTES);
        let Ok(memory) = raw::map(bytes, false, None) else {
            return Some(errno::fail(libc::ENOMEM));
        };
        let part = libc::iovec { iov_base: memory.cast(), iov_len: bytes };
        let peeked = self.receive_by_ring(descriptor, slot, Parts::one(&part), flags, 0);
        let there = peeked.and_then(|peeked| usize::try_from(peeked).ok()).unwrap_or(0);
        let mut done = 0;
        // SAFETY: memory that the application gave to be filled, and as much as was peeked.
        unsafe {
            parts.each(0, |at, room, _| {
                let count = room.min(there - done);
                core::ptr::copy_nonoverlapping(memory.add(done), at, count);
                done += count;
                count
            });
        }
        raw::unmap(memory.cast(), bytes);
        peeked
    }

    /// Receives no bytes, which waits until there are some, or until the end.
    pub fn receive_nothing(&self, descriptor: i32, slot: &Slot, flags: i32) -> Option<isize> {
        let mut byte = [0_u8];
        let part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
        let flags = flags & !(libc::MSG_TRUNC | libc::MSG_WAITALL) | libc::MSG_PEEK;
        let there = self.receive_by_ring(descriptor, slot, Parts::one(&part), flags, 0)?;
        Some(there.min(0))
    }
}
