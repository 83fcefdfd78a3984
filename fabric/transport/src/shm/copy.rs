// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies between segments, which other processes access at the same time.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Copies between segments. If the two places have the same offset in a word, aligned words are
/// copied atomically, and one after the other in the order of addresses: each is loaded after the
/// one before it, and visible after it. The bytes before the first and after the last aligned word
/// are copied before and after the words, each part in any order.
///
/// At different offsets, and where the two ranges overlap, neither holds.
///
/// # Safety
/// Both places have this number of bytes, in segments.
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let distance = (from as usize).abs_diff(to as usize);
    // The ranges may overlap, if one is part of the other and was imported by its own key.
    if !distance.is_multiple_of(8) || distance < bytes {
        // SAFETY: the caller guarantees `bytes` bytes at both places, and `copy` permits overlap.
        unsafe { ptr::copy(from, to, bytes) };
        return;
    }
    let head = from.align_offset(8).min(bytes);
    let words = (bytes - head) / 8;
    // SAFETY: the head is inside the ranges, which do not overlap.
    unsafe { ptr::copy_nonoverlapping(from, to, head) };
    // The head is loaded before the words.
    fence(Ordering::Acquire);
    for word in 0..words {
        let at = head + word * 8;
        // SAFETY: an aligned word inside a segment.
        let from = unsafe { AtomicU64::from_ptr(from.wrapping_add(at).cast_mut().cast()) };
        // SAFETY: as above.
        let to = unsafe { AtomicU64::from_ptr(to.wrapping_add(at).cast()) };
        // Loads keep their order by Acquire, and stores by Release.
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    }
    let tail = head + words * 8;
    // The tail is visible after the words.
    fence(Ordering::Release);
    let (from, to) = (from.wrapping_add(tail), to.wrapping_add(tail));
    // SAFETY: the tail is inside the ranges, which do not overlap.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes - tail) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies inside words of a buffer, and returns its bytes.
    fn copied(from: usize, to: usize, bytes: usize) -> Vec<u8> {
        let mut words: Vec<u64> =
            (0..16).map(|word: u64| word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let start: *mut u8 = words.as_mut_ptr().cast();
        // SAFETY: the callers' ranges are inside the buffer, which nothing else uses.
        unsafe { copy(start.wrapping_add(from), start.wrapping_add(to), bytes) };
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn all_alignments_and_overlaps_are_copied() {
        let before = copied(0, 0, 0);
        for (from, to) in [(0, 64), (64, 0), (3, 67), (5, 64), (0, 8), (8, 0), (9, 1), (1, 9)] {
            for bytes in 0..=48 {
                let mut expected = before.clone();
                expected.copy_within(from..from + bytes, to);
                assert_eq!(copied(from, to, bytes), expected, "{bytes} B from {from} to {to}");
            }
        }
    }
}
