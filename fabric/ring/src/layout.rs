// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a ring consists of in memory, and how large things may be.
//!
//! | memory | of | written by | bytes |
//! |---|---|---|---|
//! | ring | the receiver | the sender | a power of two, [`CAPACITY_MIN`] to [`CAPACITY_MAX`] |
//! | sender's notes | the receiver | the sender | [`NOTES_BYTES`] |
//! | receiver's notes | the sender | the receiver | [`NOTES_BYTES`] |
//!
//! All of it is zero when a ring begins, and all words are in the byte order of the machine.

/// What a header takes, and what entries are aligned to.
pub const HEADER_BYTES: usize = 8;
/// What the notes of one side take: two cache lines, because processors fetch lines in pairs.
pub const NOTES_BYTES: usize = 128;
/// The smallest ring.
pub const CAPACITY_MIN: usize = 64;
/// The largest ring: lengths of entries are 32 bits.
pub const CAPACITY_MAX: usize = 1 << 30;

/// In the receiver's notes: how many bytes it has given back since the start.
pub(crate) const GIVEN_BACK: usize = 0;
/// In the notes of either side: how often it has gone to sleep, and how; see
/// [`sleep`](crate::sleep).
pub(crate) const ASLEEP: usize = 8;

/// Whether a ring may have that many bytes.
pub const fn is_capacity(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= CAPACITY_MIN && bytes <= CAPACITY_MAX
}

/// The bytes of a ring that an entry takes.
#[inline]
pub const fn entry_bytes(payload: usize) -> usize {
    HEADER_BYTES + ((payload + 7) & !7)
}

/// The longest payload that an entry of a ring may have: beside it, there is its header and the
/// terminator behind it.
#[inline]
pub const fn payload_max(capacity: usize) -> usize {
    capacity - 2 * HEADER_BYTES
}

/// The longest message that a ring takes wherever it is, and whatever has not been given back.
///
/// A receiver that has read everything may still hold back half of the ring. A message lies in one
/// piece; where it does not fit before the end, up to as much again is skipped.
#[inline]
pub const fn message_max(capacity: usize) -> usize {
    capacity / 4 - HEADER_BYTES
}
