// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The descriptors that a list of file actions gives a program under another number. The list
//! itself is opaque data of the C library.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

/// Number of notes of all lists.
const NOTES: usize = 256;
/// Bits of a note that are the descriptor; the others are of the list's address.
const DESCRIPTOR_BITS: u32 = 20;
/// Addresses of lists are multiples of 8.
const ALIGNMENT_BITS: u32 = 3;

/// The notes; 0: a free place.
static TABLE: [AtomicU64; NOTES] = [const { AtomicU64::new(0) }; NOTES];

fn key(actions: *const c_void) -> u64 {
    (actions.addr() as u64 >> ALIGNMENT_BITS) << DESCRIPTOR_BITS
}

/// Notes that a list gives a copy of a descriptor. False: there is no free place.
pub fn note_copied(actions: *const c_void, descriptor: i32) -> bool {
    let Some(number) = u64::try_from(descriptor).ok().filter(|fd| fd >> DESCRIPTOR_BITS == 0)
    else {
        return true;
    };
    let note = key(actions) | number;
    TABLE.iter().any(|place| {
        place.load(Ordering::Relaxed) == 0
            && place.compare_exchange(0, note, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })
}

/// Forgets the notes of a list, which is new or destroyed.
pub fn forget(actions: *const c_void) {
    each(actions, |place, note| {
        _ = place.compare_exchange(note, 0, Ordering::AcqRel, Ordering::Relaxed);
    });
}

/// Calls `visit` with each descriptor that a list gives a copy of.
pub fn each_copied(actions: *const c_void, mut visit: impl FnMut(i32)) {
    each(actions, |_, note| visit((note & ((1 << DESCRIPTOR_BITS) - 1)) as i32));
}

fn each(actions: *const c_void, mut visit: impl FnMut(&AtomicU64, u64)) {
    if actions.is_null() {
        return;
    }
    for place in &TABLE {
        let note = place.load(Ordering::Acquire);
        if note >> DESCRIPTOR_BITS == key(actions) >> DESCRIPTOR_BITS {
            visit(place, note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(actions: *const c_void) -> Vec<i32> {
        let mut found = vec![];
        each_copied(actions, |descriptor| found.push(descriptor));
        found
    }

    #[test]
    fn lists_have_what_was_noted_for_them() {
        let (first, second) = (8 as *const c_void, 16 as *const c_void);
        assert!(note_copied(first, 0) && note_copied(second, 7) && note_copied(first, 9));
        assert!(note_copied(first, -1), "what cannot be open needs no place");
        assert_eq!((copied(first), copied(second)), (vec![0, 9], vec![7]));
        assert_eq!(copied(core::ptr::null()), []);
        forget(first);
        assert_eq!((copied(first), copied(second)), (vec![], vec![7]));
        while note_copied(first, 1) {}
        forget(second);
        assert!(note_copied(second, 3), "the place is free again");
        forget(first);
        forget(second);
    }
}
