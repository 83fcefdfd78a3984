// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a ring in memory, and their sizes.
//!
//! | memory | of | written by | bytes |
//! |---|---|---|---|
//! | ring | the receiver | the sender | a power of two, [`CAPACITY_MIN`] to [`CAPACITY_MAX`] |
//! | sender's notes | the receiver | the sender | [`NOTES_BYTES`] |
//! | receiver's notes | the sender | the receiver | [`NOTES_BYTES`] |
//!
//! All of it is zero when a ring begins, and all words are in the byte order of the machine.

/// Bytes of a header, and alignment of entries.
pub const HEADER_BYTES: usize = 8;
/// Bytes of the notes of one side: two cache lines, because processors fetch lines in pairs.
pub const NOTES_BYTES: usize = 128;
/// Capacity of the smallest ring, in bytes.
pub const CAPACITY_MIN: usize = 64;
/// Capacity of the largest ring, in bytes: lengths of entries have 32 bits.
pub const CAPACITY_MAX: usize = 1 << 30;

/// Offset in the receiver's notes of the number of bytes given back since the start.
pub(crate) const GIVEN_BACK: usize = 0;
/// Offset in the notes of either side of the number of its sleeps, and their kind; see
/// [`sleep`](crate::sleep).
pub(crate) const ASLEEP: usize = 8;

/// Returns whether a ring may have this number of bytes.
pub const fn is_capacity(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= CAPACITY_MIN && bytes <= CAPACITY_MAX
}

/// Returns the number of bytes of a ring that an entry takes.
#[inline]
pub const fn entry_bytes(payload: usize) -> usize {
    HEADER_BYTES + ((payload + 7) & !7)
}

/// Returns the longest payload of an entry of a ring: the ring also has to hold its header and the
/// terminator after it.
#[inline]
pub const fn payload_max(capacity: usize) -> usize {
    capacity - 2 * HEADER_BYTES
}

/// Returns the longest message that a ring accepts at any position, regardless of bytes not yet
/// given back.
///
/// A receiver that has read everything may still hold back half of the ring. A message lies in one
/// piece; if it does not fit before the end, up to its length is skipped in addition.
#[inline]
pub const fn message_max(capacity: usize) -> usize {
    capacity / 4 - HEADER_BYTES
}
