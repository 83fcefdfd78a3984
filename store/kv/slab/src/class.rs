// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Size classes of blocks.
//!
//! The published classes are the powers of two from one unit of 32 bytes to 512 bytes. They
//! waste up to half of a block, and larger requests have no class. Here, sizes of up to 8 units are
//! exact, and each doubling above has four classes, so that less than a quarter of what was asked
//! for is wasted. The largest class has 7/8 of the addressable units.

use std::num::NonZero;

/// Largest size that has a class of exactly that many units, with all smaller sizes.
const EXACT: u32 = 8;
/// Code of the largest class, of 7 * 2^28 units.
const LAST_CODE: u8 = 119;

/// Units of the class of each code, since every access to a block needs them.
static UNITS: [u32; 256] = {
    let mut units = [0; 256];
    let mut code = 1;
    while code <= LAST_CODE as u32 {
        units[code as usize] = units_of(code);
        code += 1;
    }
    units
};

const fn units_of(code: u32) -> u32 {
    if code <= EXACT {
        return code;
    }
    let (doubling, quarters) = ((code - EXACT - 1) / 4 + 3, (code - EXACT - 1) % 4 + 1);
    (4 + quarters) << (doubling - 2)
}

/// Size of a block: 1, 2, 3, 4, 5, 6, 7, 8 units, then four classes to a doubling (10, 12, 14, 16,
/// 20, 24, ...).
///
/// Classes are ordered by size. Their codes are 1 to [`Class::COUNT`], so a code fits seven bits.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Class(NonZero<u8>);

impl Class {
    /// Number of classes.
    pub const COUNT: usize = LAST_CODE as usize;
    /// Blocks of one unit.
    pub const SMALLEST: Class = Class(NonZero::<u8>::MIN);

    /// The smallest class of at least this many units. `None` for zero, and for more than the
    /// largest class has.
    #[inline]
    pub const fn holding_units(units: u32) -> Option<Class> {
        if units <= EXACT {
            return Class::of(units);
        }
        // The size lies above 2^doubling, and at or below the next power.
        let doubling = (units - 1).ilog2();
        let quarters = (units - 1 - (1 << doubling)) >> (doubling - 2);
        Class::of(EXACT + 4 * (doubling - 3) + quarters + 1)
    }

    /// The largest class of at most this many units. `None` for zero.
    #[inline]
    pub(crate) const fn fitting_in(units: u32) -> Option<Class> {
        if units <= EXACT {
            return Class::of(units);
        }
        let doubling = units.ilog2();
        let quarters = (units - (1 << doubling)) >> (doubling - 2);
        let code = EXACT + 4 * (doubling - 3) + quarters;
        Class::of(if code < LAST_CODE as u32 { code } else { LAST_CODE as u32 })
    }

    /// Size of a block of this class, in units.
    #[inline]
    pub const fn units(self) -> u32 {
        UNITS[self.0.get() as usize]
    }

    /// Least number of units that a block of this class is used for: one more than the next smaller
    /// class has.
    #[inline]
    pub const fn least_units(self) -> u32 {
        UNITS[self.0.get() as usize - 1] + 1
    }

    /// Code of the class, 1 to [`Class::COUNT`].
    #[inline]
    pub const fn code(self) -> u8 {
        self.0.get()
    }

    /// The class of this code. `None` if no class has it.
    #[inline]
    pub fn from_code(code: u8) -> Option<Class> {
        Class::of(u32::from(code))
    }

    /// Every class, the smallest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Class> {
        (1..=LAST_CODE).filter_map(Class::from_code)
    }

    #[inline]
    const fn of(code: u32) -> Option<Class> {
        if code > LAST_CODE as u32 {
            return None;
        }
        match NonZero::new(code as u8) {
            Some(code) => Some(Class(code)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_and_then_four_to_a_doubling() {
        let sizes: Vec<u32> = Class::all().map(Class::units).collect();
        assert_eq!(sizes[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(sizes[8..20], [10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64]);
        assert_eq!((sizes.len(), sizes[118]), (Class::COUNT, 7 << 28));
        assert!(sizes.is_sorted_by(|smaller, larger| smaller < larger));
        let most = (512 << 20) / 16 + 256;
        assert!(Class::holding_units(most).is_some_and(|class| class.units() >= most));
    }

    #[test]
    fn codes_are_read_back() {
        for class in Class::all() {
            assert_eq!(Class::from_code(class.code()), Some(class));
        }
        assert_eq!(Class::all().count(), Class::COUNT);
        for code in [0, 120, 125, 255] {
            assert_eq!(Class::from_code(code), None);
        }
    }

    #[test]
    fn a_size_lies_between_the_class_that_fits_in_it_and_the_one_that_holds_it() {
        let check = |units: u32| {
            let fitting = Class::fitting_in(units).map(Class::units);
            let holding = Class::holding_units(units).map(Class::units);
            let sizes = || Class::all().map(Class::units);
            assert_eq!(fitting, sizes().rev().find(|&size| size <= units), "{units}");
            assert_eq!(holding, sizes().find(|&size| size >= units && units > 0), "{units}");
        };
        (0..5_000).for_each(check);
        for size in Class::all().map(Class::units) {
            [size - 1, size, size + 1].into_iter().for_each(check);
        }
        [(1 << 31) - 1, 1 << 31, u32::MAX].into_iter().for_each(check);
    }

    #[test]
    fn less_than_a_quarter_is_wasted() {
        for units in 1..100_000 {
            let wasted = Class::holding_units(units).expect("a class").units() - units;
            assert!(wasted == 0 || wasted * 4 < units, "{units} units waste {wasted}");
            let least = Class::holding_units(units).expect("a class").least_units();
            assert!(least <= units, "{units} units are less than {least}");
        }
    }
}
