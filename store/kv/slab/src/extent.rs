// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Units that blocks are carved from, one after the other.

use crate::entry::Entry;

/// The units from `start` to before `end`, none of which is in a block.
#[derive(Copy, Clone, Default, Eq, PartialEq, Debug)]
pub(crate) struct Extent {
    pub start: u32,
    pub end: u32,
}

impl Extent {
    /// Number of units.
    pub fn units(self) -> u32 {
        self.end - self.start
    }

    /// Removes the first `units` units, and returns the first of them. `None` if there are fewer.
    #[inline]
    pub fn carve(&mut self, units: u32) -> Option<u32> {
        if self.units() < units {
            return None;
        }
        let unit = self.start;
        self.start += units;
        Some(unit)
    }

    /// As `carve`, but the first unit is a multiple of `mask + 1`. Returns it, and the units before
    /// it, which are no longer in the extent.
    pub fn carve_aligned(&mut self, units: u32, mask: u32) -> Option<(Extent, u32)> {
        let unit = self.start.checked_add(mask)? & !mask;
        if self.end.checked_sub(unit)? < units {
            return None;
        }
        let before = Extent { start: self.start, end: unit };
        self.start = unit + units;
        Some((before, unit))
    }
}

impl From<Entry> for Extent {
    fn from(block: Entry) -> Extent {
        Extent { start: block.unit, end: block.unit + block.class.units() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carving_ends_at_the_end() {
        let mut extent = Extent { start: 10, end: 17 };
        assert_eq!(extent.carve(3), Some(10));
        assert_eq!(extent.carve(5), None);
        assert_eq!(extent.carve(4), Some(13));
        assert_eq!((extent.carve(1), extent.units()), (None, 0));
    }

    #[test]
    fn aligned_carving_leaves_the_units_before_the_block() {
        let mut extent = Extent { start: 10, end: 17 };
        assert_eq!(extent.carve_aligned(6, 3), None);
        assert_eq!(extent.carve_aligned(4, 3), Some((Extent { start: 10, end: 12 }, 12)));
        assert_eq!(extent.carve_aligned(1, 7), Some((Extent { start: 16, end: 16 }, 16)));
        assert_eq!(extent.carve_aligned(1, 7), None);
        let mut last = Extent { start: u32::MAX, end: u32::MAX };
        assert_eq!(last.carve_aligned(1, 7), None);
    }
}
