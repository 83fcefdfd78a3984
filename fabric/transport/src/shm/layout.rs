// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layout of two rings in a segment, one for each direction, and of the areas they may grow into.
//!
//! | offset | contents |
//! |---|---|
//! | 0, 512 | notes of both ends of the ring to the second side, and of that to the first |
//! | 1024, 1152 | words of both sides: which ends they have closed, and the core they waited on
//! last |
//! | 4096 | the areas of the ring to the second side, each twice as large as the previous one |
//! | after these | the areas of the ring to the first side |
//!
//! A ring begins in its first area and may move to the next one when that is full; an area is used
//! once. Untouched pages take no memory, so room to grow costs nothing.

use super::Memory;
use super::segment::Segment;
use crate::error::Error;
use freeport_ring::layout::{NOTES_BYTES, is_capacity};
use freeport_ring::{Receiver, Sender};

/// Offsets of the notes of the two directions.
const NOTES: [usize; 2] = [0, 512];
/// Offsets of the words of the two sides.
const STATES: [usize; 2] = [1024, 1152];
/// Offset of the rings.
const RINGS: usize = 4096;

/// The two sides of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The side that started the handshake, and created the segment.
    First = 0,
    /// The other side.
    Second = 1,
}

impl Side {
    /// Returns the other side.
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// The sizes of a connection's rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    capacity: usize,
    areas: u32,
}

/// A sender and a receiver in a segment.
pub type Ends = (Sender<Memory, Memory>, Receiver<Memory, Memory>);

impl Layout {
    /// Lays out rings of `capacity` bytes that may grow to `capacity_max`, in both directions;
    /// `None` if the capacities are invalid.
    pub fn new(capacity: u64, capacity_max: u64) -> Option<Self> {
        let first = usize::try_from(capacity).ok().filter(|bytes| is_capacity(*bytes))?;
        let last = usize::try_from(capacity_max).ok().filter(|bytes| is_capacity(*bytes))?;
        let areas = (last / first).checked_ilog2()? + 1;
        Some(Self { capacity: first, areas })
    }

    /// Returns the number of areas of each direction.
    pub fn areas(&self) -> u32 {
        self.areas
    }

    /// Returns the capacity of an area, in bytes.
    pub fn capacity(&self, area: u32) -> usize {
        self.capacity << area
    }

    /// Returns the required size of a segment, in bytes.
    pub fn segment_bytes(&self) -> usize {
        RINGS + 2 * self.direction_bytes()
    }

    /// Returns the offset of an area of the ring to a side.
    pub fn area(&self, to: Side, area: u32) -> usize {
        RINGS + to.other() as usize * self.direction_bytes() + (self.capacity << area)
            - self.capacity
    }

    /// Creates the initial ends of a side.
    ///
    /// # Errors
    /// None, if the segment has [`segment_bytes`](Self::segment_bytes).
    pub fn ends(&self, segment: &Segment, side: Side, fenced: bool) -> Result<Ends, Error> {
        let to_other = self.direction(segment, side.other(), fenced)?;
        let to_this = self.direction(segment, side, fenced)?;
        let capacity = self.capacity;
        let cursor = Default::default();
        let [ring, sender, receiver] = to_other;
        // SAFETY: `direction` has checked that all parts are inside the segment with their sizes; a
        // segment is zero when it is created.
        let sending = unsafe { Sender::new(ring, sender, receiver, capacity, cursor) };
        let cursor = Default::default();
        let [ring, sender, receiver] = to_this;
        // SAFETY: as above.
        let receiving = unsafe { Receiver::new(ring, receiver, sender, capacity, cursor) };
        sending.zip(receiving).ok_or_else(|| self.outside(segment))
    }

    /// Returns the first area of a direction, the notes of its sender, and those of its receiver.
    fn direction(&self, segment: &Segment, to: Side, fenced: bool) -> Result<[Memory; 3], Error> {
        let notes = NOTES[to.other() as usize];
        let at = |offset, bytes| self.memory(segment, offset, bytes, fenced);
        let ring = at(self.area(to, 0), self.capacity)?;
        Ok([ring, at(notes, NOTES_BYTES)?, at(notes + NOTES_BYTES, NOTES_BYTES)?])
    }

    /// Returns the words in which a side states which ends it has closed, and where it waits.
    ///
    /// # Errors
    /// The errors of [`ends`](Self::ends).
    pub fn state(&self, segment: &Segment, of: Side, fenced: bool) -> Result<Memory, Error> {
        self.memory(segment, STATES[of as usize], 16, fenced)
    }

    /// Returns a part of the segment.
    ///
    /// # Errors
    /// The part is not inside.
    pub fn memory(
        &self,
        segment: &Segment,
        offset: usize,
        bytes: usize,
        fenced: bool,
    ) -> Result<Memory, Error> {
        let at = segment.at(offset, bytes).ok_or_else(|| self.outside(segment))?;
        Ok(Memory::new(at, fenced))
    }

    fn outside(&self, segment: &Segment) -> Error {
        let (expected, found) = (self.segment_bytes() as u64, segment.bytes() as u64);
        crate::error::HelloError::SegmentBytes { expected, found }.into()
    }

    /// Returns the size of all areas of one direction, in whole pages.
    fn direction_bytes(&self) -> usize {
        ((self.capacity << self.areas) - self.capacity).next_multiple_of(RINGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_areas_overlap_and_all_are_inside() {
        for (capacity, capacity_max) in [(64, 64), (64, 4096), (4096, 1 << 20), (1 << 16, 1 << 16)]
        {
            let layout = Layout::new(capacity, capacity_max).unwrap();
            let mut at = RINGS;
            for to in [Side::Second, Side::First] {
                for area in 0..layout.areas() {
                    assert!(layout.area(to, area) >= at);
                    at = layout.area(to, area) + layout.capacity(area);
                }
            }
            assert!(at <= layout.segment_bytes());
            assert_eq!(layout.capacity(layout.areas() - 1) as u64, capacity_max);
        }
    }

    #[test]
    fn sizes_that_no_ring_has_are_refused() {
        for (capacity, capacity_max) in [
            (0, 64),
            (64, 0),
            (63, 64),
            (128, 64),
            (64, 96),
            (u64::MAX, u64::MAX),
            (1 << 31, 1 << 31),
            (64, 1 << 63),
        ] {
            assert_eq!(Layout::new(capacity, capacity_max), None, "{capacity}, {capacity_max}");
        }
    }
}
