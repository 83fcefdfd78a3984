// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Semantics of arithmetic and comparisons for both widths (RFC 9669, sections 4.1 to 4.3): they
//! wrap, shifts use the low bits of their count, division by zero gives zero, and modulo zero gives
//! the dividend.

/// A register, or its lower half.
pub(crate) trait Word: Copy + Eq + Ord {
    /// Returns the low bits of a register.
    fn of(register: u64) -> Self;
    /// Returns the value as a register holds it: a 32-bit value is zero-extended.
    fn register(self) -> u64;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    fn signed_divide(self, other: Self) -> Self;
    fn modulo(self, other: Self) -> Self;
    fn signed_modulo(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_left(self, other: Self) -> Self;
    fn shift_right(self, other: Self) -> Self;
    fn signed_shift_right(self, other: Self) -> Self;
    fn second(self, other: Self) -> Self;
    fn is_equal(self, other: Self) -> bool;
    fn is_not_equal(self, other: Self) -> bool;
    fn is_greater(self, other: Self) -> bool;
    fn is_greater_or_equal(self, other: Self) -> bool;
    fn is_less(self, other: Self) -> bool;
    fn is_less_or_equal(self, other: Self) -> bool;
    fn has_common_bits(self, other: Self) -> bool;
    fn is_signed_greater(self, other: Self) -> bool;
    fn is_signed_greater_or_equal(self, other: Self) -> bool;
    fn is_signed_less(self, other: Self) -> bool;
    fn is_signed_less_or_equal(self, other: Self) -> bool;
}

macro_rules! word {
    ($word:ty, $signed:ty) => {
        #[rustfmt::skip]
        impl Word for $word {
            #[inline(always)] fn of(register: u64) -> Self { register as Self }
            #[inline(always)] fn register(self) -> u64 { self as u64 }
            #[inline(always)] fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)] fn subtract(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)] fn multiply(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)] fn divide(self, other: Self) -> Self {
                self.checked_div(other).unwrap_or(0)
            }
            #[inline(always)] fn signed_divide(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                (self as $signed).wrapping_div(other as $signed) as Self
            }
            #[inline(always)] fn modulo(self, other: Self) -> Self {
                self.checked_rem(other).unwrap_or(self)
            }
            #[inline(always)] fn signed_modulo(self, other: Self) -> Self {
                if other == 0 {
                    return self;
                }
                (self as $signed).wrapping_rem(other as $signed) as Self
            }
            #[inline(always)] fn or(self, other: Self) -> Self { self | other }
            #[inline(always)] fn and(self, other: Self) -> Self { self & other }
            #[inline(always)] fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)] fn shift_left(self, other: Self) -> Self {
                self.wrapping_shl(other as u32)
            }
            #[inline(always)] fn shift_right(self, other: Self) -> Self {
                self.wrapping_shr(other as u32)
            }
            #[inline(always)] fn signed_shift_right(self, other: Self) -> Self {
                (self as $signed).wrapping_shr(other as u32) as Self
            }
            #[inline(always)] fn second(self, other: Self) -> Self { other }
            #[inline(always)] fn is_equal(self, other: Self) -> bool { self == other }
            #[inline(always)] fn is_not_equal(self, other: Self) -> bool { self != other }
            #[inline(always)] fn is_greater(self, other: Self) -> bool { self > other }
            #[inline(always)] fn is_greater_or_equal(self, other: Self) -> bool { self >= other }
            #[inline(always)] fn is_less(self, other: Self) -> bool { self < other }
            #[inline(always)] fn is_less_or_equal(self, other: Self) -> bool { self <= other }
            #[inline(always)] fn has_common_bits(self, other: Self) -> bool { self & other != 0 }
            #[inline(always)] fn is_signed_greater(self, other: Self) -> bool {
                self as $signed > other as $signed
            }
            #[inline(always)] fn is_signed_greater_or_equal(self, other: Self) -> bool {
                self as $signed >= other as $signed
            }
            #[inline(always)] fn is_signed_less(self, other: Self) -> bool {
                (self as $signed) < other as $signed
            }
            #[inline(always)] fn is_signed_less_or_equal(self, other: Self) -> bool {
                self as $signed <= other as $signed
            }
        }
    };
}

word!(u64, i64);
word!(u32, i32);
