// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a ring is asked for: entries of `linux/io_uring.h`, in a ring as `liburing.h` has it.

use crate::state::table;
use core::sync::atomic::{AtomicU32, Ordering};

/// `IORING_SETUP_SQE128`, `IORING_SETUP_SQE_MIXED`: entries of another size.
const OTHER_SIZES: u32 = 1 << 10 | 1 << 19;
/// `IOSQE_FIXED_FILE`: the descriptor is a number of the ring's own.
const FIXED_FILE: u8 = 1;
/// `IORING_OP_FILES_UPDATE`, `_SPLICE`, `_TEE`, `_MSG_RING`, `_FIXED_FD_INSTALL`: what they do with
/// descriptors is elsewhere in the entry, or in another ring.
const OF_OTHERS: [u8; 5] = [20, 30, 33, 40, 54];

/// One of them, of which only the beginning matters.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry {
    operation: u8,
    flags: u8,
    _priority: u16,
    descriptor: i32,
    _rest: [u64; 7],
}

/// `struct io_uring_sq`, as far as all versions of the library have it.
#[repr(C)]
pub struct Asked {
    _places: [*mut AtomicU32; 2],
    mask: *mut AtomicU32,
    _more: [*mut AtomicU32; 4],
    entries: *const Entry,
    /// From there to `end` they are new.
    first: u32,
    end: u32,
}

/// Whether what is asked of a ring that is made with these flags can be looked at.
pub fn can_be_read(flags: u32) -> bool {
    flags & OTHER_SIZES == 0
}

/// Whether a ring is asked for something that concerns a descriptor which is known here, or that
/// may do so.
///
/// # Safety
/// It is a ring of that library, which no other thread uses meanwhile.
pub unsafe fn concern_us(ring: *const Asked) -> bool {
    // SAFETY: the caller says so.
    let Some(ring) = (unsafe { ring.as_ref() }) else { return false };
    if ring.mask.is_null() || ring.entries.is_null() {
        return true;
    }
    // SAFETY: the ring's word, which stays while there is the ring.
    let mask = unsafe { &*ring.mask }.load(Ordering::Relaxed);
    let count = ring.end.wrapping_sub(ring.first);
    count > mask.saturating_add(1)
        || (0..count).any(|at| {
            let at = ring.first.wrapping_add(at) & mask;
            // SAFETY: the ring has one more entries than its mask says.
            let entry = unsafe { ring.entries.add(at as usize) };
            // SAFETY: as above; the program has written it.
            concerns_us(unsafe { &*entry })
        })
}

fn concerns_us(entry: &Entry) -> bool {
    entry.flags & FIXED_FILE != 0
        || OF_OTHERS.contains(&entry.operation)
        || table::get(entry.descriptor).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::table::What;

    /// A ring of four, of which the last and the first place are asked for.
    fn concern(asked: [Entry; 2]) -> bool {
        let none = Entry { operation: 0, flags: 0, _priority: 0, descriptor: -1, _rest: [0; 7] };
        let ([last, first], mask) = (asked, AtomicU32::new(3));
        let entries = [first, none, none, last];
        let no_place = core::ptr::null_mut();
        let ring = Asked {
            _places: [no_place; 2],
            mask: (&raw const mask).cast_mut(),
            _more: [no_place; 4],
            entries: entries.as_ptr(),
            first: u32::MAX,
            end: 1,
        };
        // SAFETY: it is one, as far as it is looked at.
        unsafe { concern_us(&ring) }
    }

    fn entry(operation: u8, flags: u8, descriptor: i32) -> Entry {
        Entry { operation, flags, _priority: 0, descriptor, _rest: [0; 7] }
    }

    #[test]
    fn only_what_is_known_concerns_us() {
        let (read, nothing) = (22, entry(0, 0, -1));
        let known = 777;
        assert!(table::set(known, What::Set(1)));
        for (asked, concerns) in [
            (entry(read, 0, 5), false),
            (entry(read, 0, known), true),
            (entry(read, FIXED_FILE, 0), true),
            (entry(30, 0, 5), true),
        ] {
            assert_eq!(concern([asked, nothing]), concerns);
            assert_eq!(concern([nothing, asked]), concerns);
        }
        table::clear(known);
    }

    #[test]
    fn a_ring_that_is_not_as_it_should_be_concerns_us() {
        assert!(can_be_read(0) && !can_be_read(1 << 10));
        // SAFETY: there is none.
        assert!(!unsafe { concern_us(core::ptr::null()) });
        // SAFETY: zeroes are a value of it.
        let mut ring: Asked = unsafe { core::mem::zeroed() };
        // SAFETY: it is not looked at any further.
        assert!(unsafe { concern_us(&ring) });
        let (mask, entries) = (AtomicU32::new(3), [entry(0, 0, -1); 4]);
        (ring.mask, ring.entries, ring.end) = ((&raw const mask).cast_mut(), entries.as_ptr(), 9);
        // SAFETY: as above.
        assert!(unsafe { concern_us(&ring) });
    }
}
