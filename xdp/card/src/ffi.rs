// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The verilated card behind `shim.cpp`: the only calls into C++, and all that is unsafe.

use crate::{Moment, NicError, Stamp, Tags};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

type At = *mut c_void;

/// What `shim.cpp` has for each number of cores, in its order.
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

// SAFETY: a card has no thread of its own and nothing that belongs to one; who owns it calls it.
unsafe impl Send for Card {}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: `create` made it, and nobody has it behind us.
        unsafe { (self.functions.destroy)(self.at.as_ptr()) }
    }
}

impl Card {
    /// A card after its reset, the smallest one that has so many cores.
    pub fn new(cores: u8) -> Result<Self, NicError> {
        // SAFETY: C++ has such tables, constant, and filled before anything runs.
        let functions = unsafe { if cores <= 1 { &nic1 } else { &nic4 } };
        // SAFETY: it takes nothing. It gives what `new` gives, which is never null.
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

    /// Writes words behind each other; how many the card took.
    pub fn host_write(&mut self, address: u32, words: &[u64], cycles_max: u64) -> usize {
        let (start, count) = (words.as_ptr(), words.len() as u64);
        // SAFETY: see `reset`. It reads `count` words from `start`, as many as there are.
        let done = unsafe {
            (self.functions.host_write)(self.at.as_ptr(), address, start, count, cycles_max)
        };
        done as usize
    }

    /// Reads words behind each other; how many the card gave.
    pub fn host_read(&mut self, address: u32, words: &mut [u64], cycles_max: u64) -> usize {
        let (start, count) = (words.as_mut_ptr(), words.len() as u64);
        // SAFETY: see `reset`. It writes `count` words from `start`, as many as there are.
        let done = unsafe {
            (self.functions.host_read)(self.at.as_ptr(), address, start, count, cycles_max)
        };
        done as usize
    }

    /// Puts a packet behind those that wait to be sent to the card.
    pub fn send(&mut self, bytes: &[u8], ifindex: u32, queue: u32) {
        let (start, length) = (bytes.as_ptr(), bytes.len() as u64);
        // SAFETY: see `reset`. It copies `length` bytes from `start`, as many as there are.
        unsafe { (self.functions.send)(self.at.as_ptr(), start, length, ifindex, queue) }
    }

    /// Steps until so many packets lie there that have left; how many do.
    pub fn run_until_left(&mut self, count: u64, cycles_max: u64) -> u64 {
        // SAFETY: see `reset`.
        unsafe { (self.functions.run_until_left)(self.at.as_ptr(), count, cycles_max) }
    }

    /// Steps until so many packets are done; how many are.
    pub fn run_until_done(&mut self, count: u64, cycles_max: u64) -> u64 {
        // SAFETY: see `reset`.
        unsafe { (self.functions.run_until_done)(self.at.as_ptr(), count, cycles_max) }
    }

    /// Takes the first packet that has left: its bytes take the place of those of `bytes`.
    pub fn take(&mut self, bytes: &mut Vec<u8>) -> Option<Tags> {
        let mut tags = Tags::default();
        // SAFETY: see `reset`. `tags` has the fields that C++ writes, in their order.
        if unsafe { (self.functions.peek)(self.at.as_ptr(), &mut tags) } == 0 {
            return None;
        }
        bytes.clear();
        bytes.resize(tags.length as usize, 0);
        // SAFETY: see `reset`. It writes the bytes of the packet that `peek` told the length
        // of, and `bytes` has as many.
        unsafe { (self.functions.take)(self.at.as_ptr(), bytes.as_mut_ptr()) }
        Some(tags)
    }

    /// Stamps of the first packets since the last reset or `forget`.
    pub fn stamps(&self, count: usize) -> Vec<Stamp> {
        let mut stamps = vec![Stamp::default(); count];
        // SAFETY: see `reset`. It writes at most `count` stamps, and there are as many.
        let found =
            unsafe { (self.functions.stamps)(self.at.as_ptr(), stamps.as_mut_ptr(), count as u64) };
        stamps.truncate(found as usize);
        stamps
    }

    pub fn forget(&mut self) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.forget)(self.at.as_ptr()) }
    }

    /// How many cycles of 256 both buses pause.
    pub fn set_pauses(&mut self, seed: u64, rx: u32, tx: u32) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.pauses)(self.at.as_ptr(), seed, rx, tx) }
    }

    /// Begins or ends to keep what the core's stages do.
    pub fn watch(&mut self, is_watched: bool) {
        // SAFETY: see `reset`.
        unsafe { (self.functions.watch)(self.at.as_ptr(), is_watched.into()) }
    }

    /// Takes what the stages did, as much as `moments` has room for; how much that is.
    pub fn moments(&mut self, moments: &mut [Moment]) -> usize {
        let (start, count) = (moments.as_mut_ptr(), moments.len() as u64);
        // SAFETY: see `reset`. It writes at most `count` moments, and there are as many.
        unsafe { (self.functions.moments)(self.at.as_ptr(), start, count) as usize }
    }

    /// How many cycles were not kept for want of room.
    pub fn moments_lost(&self) -> u64 {
        // SAFETY: see `reset`; it changes nothing.
        unsafe { (self.functions.moments_lost)(self.at.as_ptr()) }
    }

    /// Begins to write a waveform; whether the file can be made, and there is no other one.
    pub fn open_waveform(&mut self, path: &Path) -> bool {
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
        // SAFETY: see `reset`. The path ends with a zero, and is copied.
        unsafe { (self.functions.open_waveform)(self.at.as_ptr(), path.as_ptr()) != 0 }
    }
}
