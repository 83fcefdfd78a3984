// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of rings: local memory that the other side writes, and memory of the other side that
//! this side writes.
//!
//! The methods are unsafe because they do not check the offsets; a ring's cursors are always taken
//! modulo its capacity. Offsets of words are multiples of 8.

use crate::Claimed;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};

/// Memory of this side, which the other side writes.
pub trait Local {
    /// Loads a word; all that the other side wrote before it stored the word is visible afterwards.
    ///
    /// # Safety
    /// The word is inside the memory and aligned.
    unsafe fn load(&self, offset: usize) -> Claimed;

    /// Copies bytes out. If the other side writes to them concurrently, against the protocol, old
    /// and new bytes may be mixed.
    ///
    /// # Safety
    /// `offset` and as many bytes as `into` has are inside the memory.
    unsafe fn read(&self, offset: usize, into: &mut [u8]);
}

/// Memory of the other side, which this side writes.
pub trait Remote {
    /// Copies bytes in. They become visible at the latest with the next store.
    ///
    /// # Safety
    /// `offset` and as many bytes as there are in `bytes` are inside the memory.
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]);

    /// Copies bytes in past the caches of this core, if the memory has such stores: a distant
    /// reader then does not have to fetch the bytes from these caches.
    ///
    /// # Safety
    /// The obligations of [`write`](Self::write).
    #[inline]
    unsafe fn write_non_temporal(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write`.
        unsafe { self.write(offset, bytes) }
    }

    /// Reads a clock of this side's processor, to compare the two kinds of stores. Returns `None`
    /// if there is only one kind.
    #[inline]
    fn ticks(&self) -> Option<u64> {
        None
    }

    /// Writes a word atomically; it becomes visible only after everything written before.
    ///
    /// # Safety
    /// The word is inside the memory and aligned.
    unsafe fn store(&mut self, offset: usize, word: u64);

    /// Writes a word that becomes visible at the latest with the next store.
    ///
    /// # Safety
    /// The word is inside the memory and aligned.
    #[inline]
    unsafe fn set(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds this contract, and a word has 8 bytes.
        unsafe { self.write(offset, &word.to_ne_bytes()) }
    }

    /// Announces that a word will be written soon, so that the processor may fetch its line. Does
    /// nothing by default.
    #[inline]
    fn will_write(&self, _offset: usize) {}

    /// Orders earlier stores of this side before its later loads; see [`sleep`](crate::sleep).
    ///
    /// Where each side can make the other execute a barrier, it suffices that the compiler keeps
    /// that order. This is the default.
    #[inline]
    fn barrier(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    /// Orders earlier stores of this side before its later loads without help from the other side.
    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// Copies to memory that another core has read.
///
/// # Safety
/// Both ranges have `bytes.len()` bytes, and do not overlap.
#[inline]
unsafe fn copy_out(bytes: &[u8], to: *mut u8) {
    if (WORD_BYTES..=2 * WORD_BYTES).contains(&bytes.len()) {
        // SAFETY: the caller upholds the same contract; the two words may overlap each other.
        unsafe { copy_words(bytes.as_ptr(), to, bytes.len()) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if STRING_COPY_BYTES.contains(&bytes.len()) {
        // SAFETY: the caller upholds the contract; the direction flag is clear, by the calling
        // convention.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") bytes.len() => _,
                inout("rsi") bytes.as_ptr() => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags),
            )
        };
        return;
    }
    // SAFETY: the caller upholds the contract.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
}

const WORD_BYTES: usize = size_of::<u64>();

/// Cache line size of nearly all machines. Non-temporal stores have to fill whole lines.
pub(crate) const LINE_BYTES: usize = 64;

/// Copies whole lines past the caches, and keeps later stores from becoming visible before them.
///
/// # Safety
/// `to` begins a line; both ranges have `bytes` bytes, a multiple of a line and not zero, and do
/// not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_lines(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller upholds the contract. The fence is included because the compiler knows no
    // order of such stores.
    unsafe {
        core::arch::asm!(
            "2:",
            "movdqu {a}, [{from}]",
            "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]",
            "movdqu {d}, [{from} + 48]",
            "movntdq [{to}], {a}",
            "movntdq [{to} + 16], {b}",
            "movntdq [{to} + 32], {c}",
            "movntdq [{to} + 48], {d}",
            "add {from}, 64",
            "add {to}, 64",
            "sub {left}, 64",
            "jnz 2b",
            "sfence",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            left = inout(reg) bytes => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// Copies one or two words, for which a call would cost as much as everything else.
///
/// # Safety
/// Both ranges have this number of bytes, from one word to two, and do not overlap.
#[inline]
unsafe fn copy_words(from: *const u8, to: *mut u8, bytes: usize) {
    let last = bytes - WORD_BYTES;
    // SAFETY: `last` is a word less than the caller's `bytes`, so this is still inside.
    let from_last = unsafe { from.add(last) };
    // SAFETY: as above, for the other range.
    let to_last = unsafe { to.add(last) };
    // SAFETY: the caller guarantees at least one readable word; it may be unaligned.
    let first = unsafe { from.cast::<u64>().read_unaligned() };
    // SAFETY: one word is left from `last` on.
    let second = unsafe { from_last.cast::<u64>().read_unaligned() };
    // SAFETY: the caller guarantees at least one writable word.
    unsafe { to.cast::<u64>().write_unaligned(first) };
    // SAFETY: one word is left from `last` on.
    unsafe { to_last.cast::<u64>().write_unaligned(second) };
}

/// Lengths that are copied out by a string instruction. It fills whole lines without reading them
/// from the other core, which outweighs its start-up cost from this length on; the C library copies
/// longer ranges in the same way.
#[cfg(target_arch = "x86_64")]
const STRING_COPY_BYTES: core::ops::Range<usize> = 1024..4096;

/// A part of a mapping that both sides share: writes of one side are visible to the other.
///
/// It is an address, not an owner: its creator keeps the mapping while it is used.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    start: *mut u8,
}

// SAFETY: an address in memory that is shared with other processes anyway; all accesses are either
// atomic or to bytes that the protocol assigns to one side at a time.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Creates a reference to memory that starts there, aligned to 8 bytes.
    ///
    /// # Safety
    /// As long as this value or a copy of it is used, the memory that is accessed through it is
    /// mapped for reading and writing; in this process only rings access it.
    pub const unsafe fn new(start: *mut u8) -> Self {
        Self { start }
    }

    /// Returns the start address.
    pub const fn start(self) -> *mut u8 {
        self.start
    }

    /// Returns the memory `bytes` further on.
    ///
    /// # Safety
    /// The result is inside the mapping, and `bytes` is a multiple of 8.
    pub const unsafe fn behind(self, bytes: usize) -> Self {
        // SAFETY: the caller guarantees that it is inside the mapping.
        Self { start: unsafe { self.start.add(bytes) } }
    }

    #[inline]
    unsafe fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the caller guarantees that the word is inside the memory.
        let place = unsafe { self.start.add(offset) };
        // SAFETY: the word is mapped, by the contract of `new`, and aligned, as the caller
        // guarantees. Both sides access it only as an atomic.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }
}

impl Local for Mapped {
    #[inline]
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: the caller upholds the contract of `load`.
        Claimed::new(unsafe { self.word(offset) }.load(Ordering::Acquire))
    }

    #[inline]
    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        let bytes = into.len();
        // SAFETY: the caller guarantees that the bytes are inside the memory.
        let from = unsafe { self.start.add(offset) };
        if (WORD_BYTES..=2 * WORD_BYTES).contains(&bytes) {
            // SAFETY: both have `bytes` bytes, one word to two. No reference to shared memory
            // exists, so `into` does not overlap.
            unsafe { copy_words(from, into.as_mut_ptr(), bytes) };
        } else {
            // SAFETY: both have `bytes` bytes; `into` does not overlap, as above.
            unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), bytes) };
        }
    }
}

impl Remote for Mapped {
    #[inline]
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller guarantees that the bytes are inside the memory.
        let to = unsafe { self.start.add(offset) };
        // SAFETY: there is room for all of `bytes`. No reference to shared memory exists, so they
        // do not overlap.
        unsafe { copy_out(bytes, to) }
    }

    #[cfg(target_arch = "x86_64")]
    unsafe fn write_non_temporal(&mut self, offset: usize, bytes: &[u8]) {
        let to_line = (self.start as usize + offset).wrapping_neg() % LINE_BYTES;
        let (first, rest) = bytes.split_at(to_line.min(bytes.len()));
        let (lines, last) = rest.split_at(rest.len() / LINE_BYTES * LINE_BYTES);
        // SAFETY: `first` is the start of the bytes, which the caller guarantees to be inside the
        // memory.
        unsafe { self.write(offset, first) };
        if !lines.is_empty() {
            // SAFETY: `lines` is the next part of those bytes.
            let to = unsafe { self.start.add(offset + first.len()) };
            // SAFETY: a line begins after `first`, and `lines` is whole lines and not empty. No
            // reference to shared memory exists, so `lines` does not overlap.
            unsafe { copy_lines(lines.as_ptr(), to, lines.len()) };
        }
        // SAFETY: `last` is the rest of those bytes.
        unsafe { self.write(offset + first.len() + lines.len(), last) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn ticks(&self) -> Option<u64> {
        // SAFETY: every processor of this architecture has this counter.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }

    #[inline]
    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `store`.
        unsafe { self.word(offset) }.store(word, Ordering::Release);
    }

    #[inline]
    unsafe fn set(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `set`.
        unsafe { self.word(offset) }.store(word, Ordering::Relaxed);
    }

    #[inline]
    fn will_write(&self, offset: usize) {
        will_write(self.start.wrapping_add(offset));
    }
}

/// Prefetches the line at an address for writing.
#[inline]
pub(crate) fn will_write<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which does nothing for an unmapped address, or on a processor that does not
    // support it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags))
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::{Mapped, Remote};
    use std::vec::Vec;

    const PLACES: usize = 1024;

    #[test]
    fn stores_of_either_kind_write_these_bytes_and_no_others() {
        let bytes: Vec<u8> = (0..512).map(|at| (at % 251) as u8 + 1).collect();
        for start in 0..72 {
            for length in [0, 1, 7, 8, 16, 63, 64, 65, 127, 128, 129, 200, 256, 511, 512] {
                for way in [Mapped::write, Mapped::write_non_temporal] {
                    let mut memory = [0_u64; PLACES / 8];
                    // SAFETY: the array outlives it, and nothing else accesses the array in the
                    // meantime.
                    let mut at = unsafe { Mapped::new(memory.as_mut_ptr().cast()) };
                    // SAFETY: `start` and `length` together stay below the array's size.
                    unsafe { way(&mut at, start, &bytes[..length]) };
                    let found: Vec<u8> =
                        memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
                    let mut wanted = [0; PLACES];
                    wanted[start..start + length].copy_from_slice(&bytes[..length]);
                    assert_eq!(found, wanted, "{length} at {start}");
                }
            }
        }
    }
}
