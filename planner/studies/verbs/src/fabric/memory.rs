// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory of a place, which other processes read and write at any time.
//!
//! Each aligned word is loaded and stored by one atomic access. The only unsafe code of the crate
//! is here, after a check of the range.

use crate::verbs::Memory;
use freeport_fabric::endpoint::Region;
use std::cell::RefCell;
use std::sync::atomic::{Ordering, fence};

const WORD_BYTES: usize = 8;

/// Registered memory.
#[derive(Clone, Debug)]
pub struct RegisteredMemory<R> {
    region: RefCell<R>,
    bytes: usize,
}

impl<R: Region> RegisteredMemory<R> {
    /// Uses the first bytes of a region.
    ///
    /// # Panics
    /// The region has fewer bytes.
    pub(super) fn new(region: R, bytes: usize) -> Self {
        assert!(bytes <= region.bytes(), "{bytes} B of a region of {} B", region.bytes());
        Self { region: RefCell::new(region), bytes }
    }

    /// Returns the region.
    pub(super) fn region(&self) -> R {
        self.region.borrow().clone()
    }

    /// Returns the offset of an access.
    fn inside(&self, at: u64, bytes: usize) -> usize {
        let inside = usize::try_from(at).ok().filter(|at| {
            let end = at.checked_add(bytes);
            end.is_some_and(|end| end <= self.bytes)
        });
        inside.unwrap_or_else(|| panic!("{bytes} B at {at} are not inside {} B", self.bytes))
    }
}

/// Returns the number of bytes before the first aligned word, and after the last one.
fn ends(at: usize, bytes: usize) -> (usize, usize) {
    let head = (at.next_multiple_of(WORD_BYTES) - at).min(bytes);
    (head, (bytes - head) % WORD_BYTES)
}

impl<R: Region> Memory for RegisteredMemory<R> {
    fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn load(&self, at: u64, bytes: usize) -> Vec<u8> {
        let at = self.inside(at, bytes);
        let region = self.region.borrow();
        let (head, tail) = ends(at, bytes);
        let mut data = vec![0; bytes];
        let (first, rest) = data.split_at_mut(head);
        let (words, last) = rest.split_at_mut(bytes - head - tail);
        // SAFETY: `inside` has checked the range, which has the head at its start.
        unsafe { region.read(at, first) };
        for (number, into) in words.chunks_exact_mut(WORD_BYTES).enumerate() {
            // SAFETY: inside the range, and aligned, since the head ends at a word.
            let word = unsafe { region.load(at + head + number * WORD_BYTES) };
            // CLAIM: data of the study, which it does not believe either.
            into.copy_from_slice(&word.raw().to_ne_bytes());
        }
        // SAFETY: the tail is the end of the range.
        unsafe { region.read(at + bytes - tail, last) };
        data
    }

    fn store(&self, at: u64, data: &[u8]) {
        let at = self.inside(at, data.len());
        let mut region = self.region.borrow_mut();
        let (head, tail) = ends(at, data.len());
        let (first, rest) = data.split_at(head);
        let (words, last) = rest.split_at(data.len() - head - tail);
        // SAFETY: `inside` has checked the range, which has the head at its start.
        unsafe { region.write(at, first) };
        for (number, word) in words.as_chunks::<WORD_BYTES>().0.iter().enumerate() {
            let word = u64::from_ne_bytes(*word);
            // SAFETY: inside the range, and aligned, since the head ends at a word.
            unsafe { region.store(at + head + number * WORD_BYTES, word) };
        }
        if tail > 0 {
            // The order of addresses also holds for the bytes after the last word.
            fence(Ordering::Release);
            // SAFETY: the tail is the end of the range.
            unsafe { region.write(at + data.len() - tail, last) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_fabric::Endpoint;
    use freeport_fabric::shm::{Options, ShmEndpoint};

    fn memory(bytes: usize) -> RegisteredMemory<<ShmEndpoint as Endpoint>::Region> {
        let (here, _) = ShmEndpoint::pair(&Options::with_capacity(1024)).expect("an endpoint");
        RegisteredMemory::new(here.register(64).expect("memory"), bytes)
    }

    #[test]
    fn every_range_is_loaded_as_it_was_stored() {
        for at in 0..10 {
            for bytes in 0..30 {
                let memory = memory(40);
                let data: Vec<u8> = (1..=bytes as u8).collect();
                memory.store(at as u64, &data);
                assert_eq!(memory.load(at as u64, bytes), data);
                let all = memory.load(0, 40);
                let others = all[..at].iter().chain(&all[at + bytes..]);
                assert!(others.copied().all(|byte| byte == 0), "{at} {bytes}");
            }
        }
    }

    #[test]
    fn words_have_the_same_bytes() {
        let memory = memory(40);
        memory.store_word(8, 0x0807_0605_0403_0201);
        assert_eq!(memory.load(8, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(memory.load_word(8), 0x0807_0605_0403_0201);
    }

    #[test]
    #[should_panic(expected = "8 B at 33 are not inside 40 B")]
    fn the_end_is_that_of_the_place_and_not_of_the_region() {
        memory(40).load(33, 8);
    }

    #[test]
    #[should_panic(expected = "are not inside")]
    fn an_end_that_overflows_is_outside() {
        memory(40).store(u64::MAX, &[0; 8]);
    }
}
