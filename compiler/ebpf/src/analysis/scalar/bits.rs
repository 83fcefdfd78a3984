// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers with some known bits.

/// All numbers that equal `value` in every bit that is not in `unknown`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Bits {
    /// Bits known to be set; disjoint from the unknown ones.
    pub value: u64,
    /// Bits that may be set or not.
    pub unknown: u64,
}

impl Bits {
    /// All numbers.
    pub const UNKNOWN: Self = Self { value: 0, unknown: u64::MAX };

    /// Returns the set of one number.
    pub fn constant(value: u64) -> Self {
        Self { value, unknown: 0 }
    }

    /// Returns the bits that all numbers of a range share: those above the highest that differs.
    pub fn between(least: u64, most: u64) -> Self {
        let differing = u64::MAX.checked_shr((least ^ most).leading_zeros()).unwrap_or(0);
        Self { value: least & !differing, unknown: differing }
    }

    /// Returns the same bits with the upper half unknown.
    pub fn with_upper_half_unknown(self) -> Self {
        let upper = u64::MAX << 32;
        Self { value: self.value & !upper, unknown: self.unknown | upper }
    }

    /// Returns a set with the numbers of both.
    pub fn join(self, other: Self) -> Self {
        let unknown = self.unknown | other.unknown | (self.value ^ other.value);
        Self { value: self.value & !unknown, unknown }
    }

    /// Returns the numbers in both sets, or `None` if a known bit differs.
    pub fn meet(self, other: Self) -> Option<Self> {
        let both_known = !self.unknown & !other.unknown;
        if (self.value ^ other.value) & both_known != 0 {
            return None;
        }
        let unknown = self.unknown & other.unknown;
        Some(Self { value: (self.value | other.value) & !unknown, unknown })
    }

    /// Returns the sums. A bit is known if neither the bit nor the carry into it can vary.
    pub fn add(self, other: Self) -> Self {
        let least = self.value.wrapping_add(other.value);
        let most = least.wrapping_add(self.unknown).wrapping_add(other.unknown);
        let unknown = (least ^ most) | self.unknown | other.unknown;
        Self { value: least & !unknown, unknown }
    }

    /// Returns the differences.
    pub fn subtract(self, other: Self) -> Self {
        let middle = self.value.wrapping_sub(other.value);
        let (most, least) = (middle.wrapping_add(self.unknown), middle.wrapping_sub(other.unknown));
        let unknown = (least ^ most) | self.unknown | other.unknown;
        Self { value: middle & !unknown, unknown }
    }

    /// Returns the products: the known trailing zeros add up.
    pub fn multiply(self, other: Self) -> Self {
        let zeros = self.zeros_at_the_end() + other.zeros_at_the_end();
        Self { value: 0, unknown: u64::MAX.checked_shl(zeros).unwrap_or(0) }
    }

    fn zeros_at_the_end(self) -> u32 {
        (self.value | self.unknown).trailing_zeros()
    }

    /// Returns the bitwise and.
    pub fn and(self, other: Self) -> Self {
        let value = self.value & other.value;
        let possible = (self.value | self.unknown) & (other.value | other.unknown);
        Self { value, unknown: possible & !value }
    }

    /// Returns the bitwise or.
    pub fn or(self, other: Self) -> Self {
        let value = self.value | other.value;
        Self { value, unknown: (self.unknown | other.unknown) & !value }
    }

    /// Returns the bitwise exclusive or.
    pub fn xor(self, other: Self) -> Self {
        let unknown = self.unknown | other.unknown;
        Self { value: (self.value ^ other.value) & !unknown, unknown }
    }

    /// Applies a function that moves bits and fills in constant or copied ones.
    pub fn moved(self, by: impl Fn(u64) -> u64) -> Self {
        let (value, unknown) = (by(self.value), by(self.unknown));
        Self { value: value & !unknown, unknown }
    }
}
