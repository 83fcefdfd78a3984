// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The verilated card of `shim.cpp`: the only calls into C++, with all the unsafe code.

use crate::{Moment, NicError, Stamp, Tags};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

type At = *mut c_void;

/// The functions of `shim.cpp` for a number of cores, in its order.
#[repr(C)]
struct Functions {
    create: unsafe extern "C" fn() -> At,
    destroy: unsafe extern "C" fn(card: At),
    reset: unsafe extern "C" fn(card: At),
    cycles: unsafe extern "C" fn(card: At) -> u64,
    step: unsafe extern "C" fn(card: At, count: u64),
    host_write: unsafe extern "C" fn(At, u32, words: *const u64, count: u64, cycles: u64) -> u64,
    host_read: unsafe extern "C" fn(At, u32, words: *mut u64, count: u64, cycles: u64) -> u64,
    send: unsafe extern "C" fn(At, *const u8, length: u64, ifindex: u32, queue: u32),
    run_until_left: unsafe extern "C" fn(card: At, count: u64, cycles_max: u64) -> u64,
    run_until_done: unsafe extern "C" fn(card: At, count: u64, cycles_max: u64) -> u64,
    peek: unsafe extern "C" fn(card: At, tags: *mut Tags) -> c_int,
    take: unsafe extern "C" fn(card: At, bytes: *mut u8),
    stamps: unsafe extern "C" fn(card: At, to: *mut Stamp, count: u64) -> u64,
    forget: unsafe extern "C" fn(card: At),
    pauses: unsafe extern "C" fn(card: At, seed: u64, rx: u32, tx: u32),
    watch: unsafe extern "C" fn(card: At, is_watched: c_int),
    moments: unsafe extern "C" fn(card: At, to: *mut Moment, count: u64) -> u64,
    moments_lost: unsafe extern "C" fn(card: At) -> u64,
    open_waveform: unsafe extern "C" fn(card: At, path: *const c_char) -> c_int,
}

unsafe extern "C" {
    static nic1: Functions;
    static nic4: Functions;
}

/// A verilated card.
pub struct Card {
    at: NonNull<c_void>,
    functions: &'static Functions,
}

// SAFETY: a card has no thread and no thread-local state of its own, and only its owner calls it.
unsafe impl Send for Card {}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: `create` returned the card, and it is not used after this.
        unsafe { (self.functions.destroy)(self.at.as_ptr()) }
    }
}

impl Card {
    /// Creates a card and resets it: the smallest one with at least this many cores.
    pub fn new(cores: u8) -> Result<Self, NicError> {
        // SAFETY: C++ defines these tables as constants that are initialised before the program
        // runs.
        let functions = unsafe { if cores <= 1 { &nic1 } else { &nic4 } };
        // SAFETY: it has no arguments. It returns the result of `new`, which is never null.
        let card = unsafe { (functions.create)() };
        let at = NonNull::new(card).unwrap_or_else(|| std::process::abort());
        Ok(Self { at, functions })
    }

    pub fn reset(&mut self) {
        // SAFETY: the card lives as long as `self`, as in all calls below.
        unsafe { (self.functions.reset)(self.at.as_ptr()) }
    }

    pub fn cycles(&self) -> u64 {
        // SAFETY: see `reset`; it changes nothing.
        unsafe { (self.functions.cycles)(self.at.as_ptr()) }
    }

    pub fn step(&mut self, count: u64) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.step)(self.at.as_ptr(), count) }
    }

    /// Writes consecutive words; returns the number of words written.
    pub fn host_write(&mut self, address: u32, words: &[u64], cycles_max: u64) -> usize {
        let (start, count) = (words.as_ptr(), words.len() as u64);
        // SAFETY: see `reset`. It reads `count` words from `start`, which is the length of `words`.
        let done = unsafe {
            (self.functions.host_write)(self.at.as_ptr(), address, start, count, cycles_max)
        };
        done as usize
    }

    /// Reads consecutive words; returns the number of words read.
    pub fn host_read(&mut self, address: u32, words: &mut [u64], cycles_max: u64) -> usize {
        let (start, count) = (words.as_mut_ptr(), words.len() as u64);
        // SAFETY: see `reset`. It writes `count` words from `start`, which is the length of
        // `words`.
        let done = unsafe {
            (self.functions.host_read)(self.at.as_ptr(), address, start, count, cycles_max)
        };
        done as usize
    }

    /// Queues a packet to be sent to the card.
    pub fn send(&mut self, bytes: &[u8], ifindex: u32, queue: u32) {
        let (start, length) = (bytes.as_ptr(), bytes.len() as u64);
        // SAFETY: see `reset`. It copies `length` bytes from `start`, which is the length of
        // `bytes`.
        unsafe { (self.functions.send)(self.at.as_ptr(), start, length, ifindex, queue) }
    }

    /// Steps until this many packets have left and were not taken; returns their number.
    pub fn run_until_left(&mut self, count: u64, cycles_max: u64) -> u64 {
        // SAFETY: see `reset`.
        unsafe { (self.functions.run_until_left)(self.at.as_ptr(), count, cycles_max) }
    }

    /// Steps until this many packets are done; returns their number.
    pub fn run_until_done(&mut self, count: u64, cycles_max: u64) -> u64 {
        // SAFETY: see `reset`.
        unsafe { (self.functions.run_until_done)(self.at.as_ptr(), count, cycles_max) }
    }

    /// Takes the first packet that has left, and stores its bytes in `bytes`.
    pub fn take(&mut self, bytes: &mut Vec<u8>) -> Option<Tags> {
        let mut tags = Tags::default();
        // SAFETY: see `reset`. `tags` has the fields that C++ writes, in the same order.
        if unsafe { (self.functions.peek)(self.at.as_ptr(), &mut tags) } == 0 {
            return None;
        }
        bytes.clear();
        bytes.resize(tags.length as usize, 0);
        // SAFETY: see `reset`. It writes the bytes of the packet whose length `peek` returned, and
        // `bytes` has that length.
        unsafe { (self.functions.take)(self.at.as_ptr(), bytes.as_mut_ptr()) }
        Some(tags)
    }

    /// Returns the stamps of the first packets since the last reset or `forget`.
    pub fn stamps(&self, count: usize) -> Vec<Stamp> {
        let mut stamps = vec![Stamp::default(); count];
        // SAFETY: see `reset`. It writes at most `count` stamps, which is the length of `stamps`.
        let found =
            unsafe { (self.functions.stamps)(self.at.as_ptr(), stamps.as_mut_ptr(), count as u64) };
        stamps.truncate(found as usize);
        stamps
    }

    pub fn forget(&mut self) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.forget)(self.at.as_ptr()) }
    }

    /// Sets the number of cycles of 256 in which both buses pause.
    pub fn set_pauses(&mut self, seed: u64, rx: u32, tx: u32) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.pauses)(self.at.as_ptr(), seed, rx, tx) }
    }

    /// Starts or stops recording the core's stages.
    pub fn watch(&mut self, is_watched: bool) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.watch)(self.at.as_ptr(), is_watched.into()) }
    }

    /// Takes recorded moments, as many as fit `moments`; returns their number.
    pub fn moments(&mut self, moments: &mut [Moment]) -> usize {
        let (start, count) = (moments.as_mut_ptr(), moments.len() as u64);
        // SAFETY: see `reset`. It writes at most `count` moments, which is the length of `moments`.
        unsafe { (self.functions.moments)(self.at.as_ptr(), start, count) as usize }
    }

    /// Returns the number of cycles that were dropped because the buffer was full.
    pub fn moments_lost(&self) -> u64 {
        // SAFETY: see `reset`; it changes nothing.
        unsafe { (self.functions.moments_lost)(self.at.as_ptr()) }
    }

    /// Starts a waveform; returns whether the file could be created and there was no other
    /// waveform.
    pub fn open_waveform(&mut self, path: &Path) -> bool {
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
        // SAFETY: see `reset`. The path is zero-terminated, and C++ copies it.
        unsafe { (self.functions.open_waveform)(self.at.as_ptr(), path.as_ptr()) != 0 }
    }
}
