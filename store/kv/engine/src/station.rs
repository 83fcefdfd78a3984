// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reservation station of a batch (KV-Direct, out-of-order execution): it knows which
//! operations in flight have the same key, and forwards the place of a pair from one to the next.
//! Equal hashes stand for equal keys at first; the keys are compared before anything is forwarded.

use crate::hash::Hash;
use crate::place::Place;

/// Operations that are remembered; a power of two.
const WINDOW: usize = 64;
/// Cells that remember the last operation with certain bits of the hash.
const CELLS: usize = 256;
/// No earlier operation, or none in a cell.
const NONE: u32 = u32::MAX;

/// The operations in flight, at most `IN_FLIGHT` at a time.
pub(crate) struct Station<const IN_FLIGHT: usize> {
    /// Number of the last operation admitted in each cell.
    last: [u32; CELLS],
    bits: [u64; WINDOW],
    heads: [u64; WINDOW],
    /// Offset of the bucket that each operation begins with.
    buckets: [usize; WINDOW],
    /// Number of the latest earlier operation with the same hash.
    earlier: [u32; WINDOW],
    /// A later operation has the same hash.
    is_followed: [bool; WINDOW],
    /// Where followed operations left their pairs, and the layout of the table then.
    left: [(Option<Place>, u64); WINDOW],
}

impl<const IN_FLIGHT: usize> Station<IN_FLIGHT> {
    #[inline(always)]
    pub fn new() -> Self {
        const { assert!(IN_FLIGHT < WINDOW) };
        Self {
            last: [NONE; CELLS],
            bits: [0; WINDOW],
            heads: [0; WINDOW],
            buckets: [0; WINDOW],
            earlier: [NONE; WINDOW],
            is_followed: [false; WINDOW],
            left: [(None, 0); WINDOW],
        }
    }

    /// Takes an operation in.
    #[inline(always)]
    pub fn admit(&mut self, number: usize, hash: Hash, bucket: usize) {
        let last = &mut self.last[hash.station() % CELLS];
        let earlier = *last;
        *last = number as u32;
        let cell = number % WINDOW;
        self.bits[cell] = hash.bits;
        self.heads[cell] = hash.head;
        self.buckets[cell] = bucket;
        self.is_followed[cell] = false;
        // An operation without a predecessor is far away from `NONE`.
        let is_in_flight = (number as u32).wrapping_sub(earlier) <= IN_FLIGHT as u32;
        let before = earlier as usize % WINDOW;
        if is_in_flight && self.bits[before] == hash.bits {
            self.earlier[cell] = earlier;
            self.is_followed[before] = true;
        } else {
            self.earlier[cell] = NONE;
        }
    }

    /// Hash of an operation in flight.
    #[inline(always)]
    pub fn hash(&self, number: usize) -> Hash {
        Hash { bits: self.bits[number % WINDOW], head: self.heads[number % WINDOW] }
    }

    /// Offset of the bucket that an operation in flight begins with.
    #[inline(always)]
    pub fn bucket(&self, number: usize) -> usize {
        self.buckets[number % WINDOW]
    }

    /// The earlier operation with the same hash, and where it left the pair, if that is still so.
    #[inline(always)]
    pub fn earlier(&self, number: usize, layout: u64) -> Option<(usize, Option<Place>)> {
        let earlier = self.earlier[number % WINDOW];
        if earlier == NONE {
            return None;
        }
        let (place, layout_then) = self.left[earlier as usize % WINDOW];
        (layout_then == layout).then_some((earlier as usize, place))
    }

    /// Notes where an operation left its pair, for those that follow.
    #[inline(always)]
    pub fn leave(&mut self, number: usize, place: Option<Place>, layout: u64) {
        if self.is_followed[number % WINDOW] {
            self.left[number % WINDOW] = (place, layout);
        }
    }
}
