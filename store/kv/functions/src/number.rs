// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic of elements: what each built-in function needs, with a defined result for all bits.
//!
//! Integers wrap around at their width. Functions on bits treat a float as the unsigned integer
//! with its pattern. Conditions on a sum or difference hold for the exact result, also if it does
//! not fit into the type.

use std::fmt::Debug;

/// A type of elements.
pub(crate) trait Number: Copy + Debug + PartialOrd + Send + Sync + 'static {
    /// The type of 64 bits and the same kind.
    type Widest: Number;
    /// The unsigned integer of the same width. Counts in it are fastest.
    type Count: Number;

    /// Whether the order of the elements changes a sum, a product or a minimum.
    const HAS_ORDER: bool;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Neutral element of the addition: -0.0 for floats, since 0.0 + -0.0 is 0.0.
    const NOTHING: Self;
    /// A number that is not less than any other.
    const HIGHEST: Self;
    /// A number that is not greater than any other.
    const LOWEST: Self;

    /// Reads an element; `bytes` has its width.
    fn load(bytes: &[u8]) -> Self;
    /// Writes an element; `bytes` has its width.
    fn store(self, bytes: &mut [u8]);
    /// Extends to 64 bits: the sign of a signed integer, otherwise zeros.
    fn to_bits(self) -> u64;
    /// Takes the low bits.
    fn from_bits(bits: u64) -> Self;
    /// Converts to the type of 64 bits. The value stays the same.
    fn widen(self) -> Self::Widest;

    /// Sum; integers wrap around.
    fn add(self, other: Self) -> Self;
    /// Difference; integers wrap around.
    fn subtract(self, other: Self) -> Self;
    /// Product; integers wrap around.
    fn multiply(self, other: Self) -> Self;
    /// Sum, or the finite number nearest to it.
    fn add_saturating(self, other: Self) -> Self;
    /// Difference, or the finite number nearest to it.
    fn subtract_saturating(self, other: Self) -> Self;
    /// Absolute value with 64 bits; integers wrap around.
    fn magnitude(self) -> Self::Widest;
    /// Square with 64 bits; integers wrap around.
    fn square(self) -> Self::Widest;
    /// Replaces any NaN by the one that functions return.
    fn settled(self) -> Self;

    /// Bits set in both.
    fn and(self, other: Self) -> Self;
    /// Bits set in at least one.
    fn or(self, other: Self) -> Self;
    /// Bits set in one of them.
    fn xor(self, other: Self) -> Self;
    /// Shift towards the high bits; zero if `distance`, as an unsigned integer, is the width in
    /// bits or more.
    fn shift_left(self, distance: Self) -> Self;
    /// Shift towards the low bits, which fills in the sign of a signed integer, otherwise zeros,
    /// for any `distance`.
    fn shift_right(self, distance: Self) -> Self;
    /// Whether all bits are equal.
    fn is_same(self, other: Self) -> bool;

    /// Whether `self + amount >= threshold`.
    fn sum_is_at_least(self, amount: Self, threshold: Self) -> bool;
    /// Whether `self + amount <= limit`.
    fn sum_is_at_most(self, amount: Self, limit: Self) -> bool;
    /// Whether `self - amount >= lowest`.
    fn difference_is_at_least(self, amount: Self, lowest: Self) -> bool;

    /// The other number if it is less.
    #[inline(always)]
    fn lower(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    /// The other number if it is greater.
    #[inline(always)]
    fn higher(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

/// Functions with the same text for integers and floats.
macro_rules! bytes {
    () => {
        #[inline(always)]
        fn load(bytes: &[u8]) -> Self {
            Self::from_le_bytes(bytes.try_into().expect("the bytes of one element"))
        }
        #[inline(always)]
        fn store(self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_le_bytes());
        }
    };
}

macro_rules! integer {
    (
        $type:ident, $widest:ident, $unsigned:ident, $double:ident, $magnitude:ident,
        $is_negative:ident
    ) => {
        impl Number for $type {
            type Widest = $widest;
            type Count = $unsigned;

            const HAS_ORDER: bool = false;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const NOTHING: Self = 0;
            const HIGHEST: Self = Self::MAX;
            const LOWEST: Self = Self::MIN;

            bytes!();
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
            #[inline(always)]
            fn widen(self) -> $widest {
                self.into()
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn add_saturating(self, other: Self) -> Self {
                self.saturating_add(other)
            }
            #[inline(always)]
            fn subtract_saturating(self, other: Self) -> Self {
                self.saturating_sub(other)
            }
            #[inline(always)]
            fn magnitude(self) -> $widest {
                $magnitude!(self) as $widest
            }
            #[inline(always)]
            fn square(self) -> $widest {
                let number = $double::from(self);
                number.wrapping_mul(number) as $widest
            }
            #[inline(always)]
            fn settled(self) -> Self {
                self
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn shift_left(self, distance: Self) -> Self {
                let distance = distance as $unsigned;
                let is_within = distance < Self::BITS as $unsigned;
                if is_within { self.wrapping_shl(distance as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, distance: Self) -> Self {
                let last = Self::BITS - 1;
                let is_within = distance as $unsigned <= last as $unsigned;
                let shifted = self.wrapping_shr(distance as u32);
                if is_within { shifted } else { (self >> last) >> 1 }
            }
            #[inline(always)]
            fn is_same(self, other: Self) -> bool {
                self == other
            }

            // Without overflowing_add(), which is not turned into vector instructions for signed
            // integers.
            #[inline(always)]
            fn sum_is_at_least(self, amount: Self, threshold: Self) -> bool {
                let sum = self.wrapping_add(amount);
                let is_above = !$is_negative!(amount) & (sum < self);
                let is_below = $is_negative!(amount) & (sum > self);
                is_above | (!is_below & (sum >= threshold))
            }
            #[inline(always)]
            fn sum_is_at_most(self, amount: Self, limit: Self) -> bool {
                let sum = self.wrapping_add(amount);
                let is_above = !$is_negative!(amount) & (sum < self);
                let is_below = $is_negative!(amount) & (sum > self);
                is_below | (!is_above & (sum <= limit))
            }
            #[inline(always)]
            fn difference_is_at_least(self, amount: Self, lowest: Self) -> bool {
                let difference = self.wrapping_sub(amount);
                let is_above = $is_negative!(amount) & (difference < self);
                let is_below = !$is_negative!(amount) & (difference > self);
                is_above | (!is_below & (difference >= lowest))
            }
        }
    };
}

macro_rules! itself {
    ($number:expr) => {
        $number
    };
}

macro_rules! absolute {
    ($number:expr) => {
        $number.unsigned_abs()
    };
}

macro_rules! never {
    ($number:expr) => {
        false
    };
}

macro_rules! below_zero {
    ($number:expr) => {
        ($number < 0)
    };
}

integer!(u8, u64, u8, u16, itself, never);
integer!(u16, u64, u16, u32, itself, never);
integer!(u32, u64, u32, u64, itself, never);
integer!(u64, u64, u64, u64, itself, never);
integer!(i8, i64, u8, i16, absolute, below_zero);
integer!(i16, i64, u16, i32, absolute, below_zero);
integer!(i32, i64, u32, i64, absolute, below_zero);
integer!(i64, i64, u64, i64, absolute, below_zero);

macro_rules! float {
    ($type:ident, $bits:ident, $quiet:literal) => {
        impl Number for $type {
            type Widest = f64;
            type Count = $bits;

            const HAS_ORDER: bool = true;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NOTHING: Self = -0.0;
            const HIGHEST: Self = Self::INFINITY;
            const LOWEST: Self = Self::NEG_INFINITY;

            bytes!();
            #[inline(always)]
            fn to_bits(self) -> u64 {
                $type::to_bits(self).into()
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                $type::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn widen(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn add_saturating(self, other: Self) -> Self {
                (self + other).lower(Self::MAX).higher(Self::MIN)
            }
            #[inline(always)]
            fn subtract_saturating(self, other: Self) -> Self {
                (self - other).lower(Self::MAX).higher(Self::MIN)
            }
            #[inline(always)]
            fn magnitude(self) -> f64 {
                self.abs().into()
            }
            #[inline(always)]
            fn square(self) -> f64 {
                self.widen() * self.widen()
            }
            #[inline(always)]
            fn settled(self) -> Self {
                // The bits of a NaN that an operation of the processor returns differ between
                // processors, and between its scalar and vector instructions.
                if self.is_nan() { $type::from_bits($quiet) } else { self }
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                $type::from_bits($type::to_bits(self) & $type::to_bits(other))
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                $type::from_bits($type::to_bits(self) | $type::to_bits(other))
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                $type::from_bits($type::to_bits(self) ^ $type::to_bits(other))
            }
            #[inline(always)]
            fn shift_left(self, distance: Self) -> Self {
                let bits = $type::to_bits(self).shift_left($type::to_bits(distance));
                $type::from_bits(bits)
            }
            #[inline(always)]
            fn shift_right(self, distance: Self) -> Self {
                let bits = $type::to_bits(self).shift_right($type::to_bits(distance));
                $type::from_bits(bits)
            }
            #[inline(always)]
            fn is_same(self, other: Self) -> bool {
                $type::to_bits(self) == $type::to_bits(other)
            }

            #[inline(always)]
            fn sum_is_at_least(self, amount: Self, threshold: Self) -> bool {
                self + amount >= threshold
            }
            #[inline(always)]
            fn sum_is_at_most(self, amount: Self, limit: Self) -> bool {
                self + amount <= limit
            }
            #[inline(always)]
            fn difference_is_at_least(self, amount: Self, lowest: Self) -> bool {
                self - amount >= lowest
            }
        }
    };
}

float!(f32, u32, 0x7fc0_0000);
float!(f64, u64, 0x7ff8_0000_0000_0000);
