// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic on sets of numbers. The result for two numbers equals the interpreter's.

use super::{Bits, Scalar};
use crate::instruction::{Arithmetic, ByteOrder, Width};
use crate::interpreter::compute;

impl Scalar {
    /// Returns the results of an operation on the numbers of both sets.
    pub fn computed(&self, operation: Arithmetic, width: Width, other: &Self) -> Self {
        if let (Some(left), Some(right)) = (self.value(), other.value()) {
            return Self::constant(compute(operation, width, left, right));
        }
        match width {
            Width::Bits64 => self.computed_wide(operation, other, 64),
            Width::Bits32 => {
                let left = match operation {
                    Arithmetic::SignedShiftRight => self.sign_extended(32),
                    _ => self.lower_half(),
                };
                left.computed_wide(operation, &other.lower_half(), 32).lower_half()
            }
        }
    }

    /// As `computed`, in 64 bits; for a 32-bit operation, the upper half of the result does not
    /// matter.
    fn computed_wide(&self, operation: Arithmetic, other: &Self, bits: u32) -> Self {
        match operation {
            Arithmetic::Add => self.plus(other),
            Arithmetic::Subtract => self.minus(other),
            Arithmetic::Multiply => self.times(other),
            Arithmetic::Divide => self.divided(other),
            Arithmetic::Modulo => self.modulo(other),
            Arithmetic::And => self.and(other),
            Arithmetic::Or => {
                let least = self.unsigned.0.max(other.unsigned.0);
                Self::of(self.bits.or(other.bits), (least, u64::MAX))
            }
            Arithmetic::Xor => Self::of(self.bits.xor(other.bits), (0, u64::MAX)),
            Arithmetic::Move => *other,
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::SignedShiftRight => {
                match other.value() {
                    Some(by) => self.shifted(operation, by as u32 % bits),
                    None if operation == Arithmetic::ShiftRight => {
                        Self::between(0, self.unsigned.1)
                    }
                    None => Self::ANY,
                }
            }
            Arithmetic::SignedDivide | Arithmetic::SignedModulo => Self::ANY,
        }
    }

    /// Returns the numbers with these bits in this unsigned range.
    fn of(bits: Bits, unsigned: (u64, u64)) -> Self {
        let made = Self { bits, unsigned, ..Self::ANY };
        made.tightened().unwrap_or(Self::ANY)
    }

    /// Returns the numbers with these bits, within those ranges that are known.
    fn made(
        bits: Bits,
        unsigned: Option<(u64, u64)>,
        signed: Option<(i64, i64)>,
        low: Option<(u32, u32)>,
    ) -> Self {
        let any = Self::ANY;
        let made = Self {
            bits,
            unsigned: unsigned.unwrap_or(any.unsigned),
            signed: signed.unwrap_or(any.signed),
            low: low.unwrap_or(any.low),
        };
        made.tightened().unwrap_or(any)
    }

    fn plus(&self, other: &Self) -> Self {
        let unsigned = both(
            self.unsigned.0.checked_add(other.unsigned.0),
            self.unsigned.1.checked_add(other.unsigned.1),
        );
        let signed = both(
            self.signed.0.checked_add(other.signed.0),
            self.signed.1.checked_add(other.signed.1),
        );
        let low = both(self.low.0.checked_add(other.low.0), self.low.1.checked_add(other.low.1));
        Self::made(self.bits.add(other.bits), unsigned, signed, low)
    }

    fn minus(&self, other: &Self) -> Self {
        let unsigned = both(
            self.unsigned.0.checked_sub(other.unsigned.1),
            self.unsigned.1.checked_sub(other.unsigned.0),
        );
        let signed = both(
            self.signed.0.checked_sub(other.signed.1),
            self.signed.1.checked_sub(other.signed.0),
        );
        let low = both(self.low.0.checked_sub(other.low.1), self.low.1.checked_sub(other.low.0));
        Self::made(self.bits.subtract(other.bits), unsigned, signed, low)
    }

    fn times(&self, other: &Self) -> Self {
        let unsigned = both(
            self.unsigned.0.checked_mul(other.unsigned.0),
            self.unsigned.1.checked_mul(other.unsigned.1),
        );
        Self::made(self.bits.multiply(other.bits), unsigned, None, None)
    }

    /// Divides; division by zero gives zero.
    fn divided(&self, other: &Self) -> Self {
        let least = match other.unsigned {
            (0, 0) => return Self::constant(0),
            (0, _) => 0,
            (_, most) => self.unsigned.0 / most,
        };
        Self::between(least, self.unsigned.1 / other.unsigned.0.max(1))
    }

    /// Computes the remainder; modulo zero gives the dividend.
    fn modulo(&self, other: &Self) -> Self {
        match other.unsigned {
            (0, _) => Self::between(0, self.unsigned.1),
            (least, _) if self.unsigned.1 < least => *self,
            (_, most) => Self::between(0, self.unsigned.1.min(most - 1)),
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self::of(self.bits.and(other.bits), (0, self.unsigned.1.min(other.unsigned.1)))
    }

    fn shifted(&self, operation: Arithmetic, by: u32) -> Self {
        match operation {
            Arithmetic::ShiftLeft => {
                let fits = self.unsigned.1.leading_zeros() >= by;
                let range = (self.unsigned.0 << by, self.unsigned.1 << by);
                let range = if fits { range } else { (0, u64::MAX) };
                Self::of(self.bits.moved(|bits| bits << by), range)
            }
            Arithmetic::ShiftRight => {
                let range = (self.unsigned.0 >> by, self.unsigned.1 >> by);
                Self::of(self.bits.moved(|bits| bits >> by), range)
            }
            _ => {
                let signed = Some((self.signed.0 >> by, self.signed.1 >> by));
                let bits = self.bits.moved(|bits| (bits as i64 >> by) as u64);
                Self::made(bits, None, signed, None)
            }
        }
    }

    /// Returns the lower half alone.
    pub fn lower_half(&self) -> Self {
        let half = u64::from(u32::MAX);
        let bits = self.bits.and(Bits::constant(half));
        let made = Self { bits, low: self.low, ..Self::ANY };
        made.tightened().unwrap_or(Self::ANY)
    }

    /// Sign-extends the low bits.
    pub fn sign_extended(&self, bits: u8) -> Self {
        let (by, top) = (64 - u32::from(bits), u64::from(bits) - 1);
        if self.unsigned.1 < 1 << top {
            return *self;
        }
        self.shifted(Arithmetic::ShiftLeft, by).shifted(Arithmetic::SignedShiftRight, by)
    }

    /// Swaps the byte order of the low bits.
    pub fn swapped(&self, order: ByteOrder, bits: u8) -> Self {
        let kept = Self::of_bits(bits.into());
        if order == ByteOrder::Little {
            return self.and(&kept);
        }
        let swap = |value: u64| value.swap_bytes() >> (64 - u32::from(bits));
        Self::of(self.bits.moved(swap), kept.unsigned)
    }
}

/// Returns a range, if both of its bounds are known.
fn both<T>(least: Option<T>, most: Option<T>) -> Option<(T, T)> {
    least.zip(most)
}

#[cfg(test)]
mod tests {
    use super::super::tests::random_set;
    use super::*;
    use crate::instruction::tables::ARITHMETIC;
    use Arithmetic::*;

    #[test]
    fn results_of_all_numbers_are_in_the_result() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..60_000 {
            let ((left, one), (right, other)) = (random_set(&mut random), random_set(&mut random));
            let (operation, ..) = ARITHMETIC[random.usize(..ARITHMETIC.len())];
            for width in [Width::Bits32, Width::Bits64] {
                let result = one.computed(operation, width, &other);
                for (&a, &b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
                    let value = compute(operation, width, a, b);
                    assert!(
                        result.contains(value),
                        "{a:#x} {operation:?} {b:#x} {width:?} = {value:#x}, not in {result:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn changed_numbers_are_in_the_result() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..20_000 {
            let (values, all) = random_set(&mut random);
            for &value in &values {
                assert!(all.lower_half().contains(value & 0xffff_ffff));
                assert!(all.sign_extended(8).contains(value as i8 as u64));
                assert!(all.sign_extended(32).contains(value as i32 as u64));
                let swapped = all.swapped(ByteOrder::Big, 16);
                assert!(swapped.contains((value as u16).swap_bytes().into()));
                assert!(all.swapped(ByteOrder::Reverse, 64).contains(value.swap_bytes()));
                assert!(all.swapped(ByteOrder::Little, 32).contains(value & 0xffff_ffff));
            }
        }
    }

    #[test]
    fn offsets_stay_in_their_ranges() {
        let range = |scalar: Scalar| scalar.unsigned();
        let byte = Scalar::of_bits(8);
        let number = Scalar::constant;
        let wide = |operation, left: Scalar, right: u64| {
            range(left.computed(operation, Width::Bits64, &number(right)))
        };
        // The length of a header from its first byte: `(byte & 15) * 4`.
        let nibble = byte.computed(And, Width::Bits32, &number(15));
        assert_eq!(wide(ShiftLeft, nibble, 2), (0, 60));
        assert_eq!(wide(Multiply, nibble, 4), (0, 60));
        assert_eq!(wide(Add, nibble, 14), (14, 29));
        assert_eq!(wide(Modulo, Scalar::ANY, 10), (0, 9));
        assert_eq!(wide(Divide, byte, 0), (0, 0), "dividing by zero gives zero");
        assert_eq!(wide(And, Scalar::ANY, 0x7ff), (0, 0x7ff));
        assert_eq!(wide(ShiftRight, Scalar::ANY, 60), (0, 15));
        let half = Scalar::ANY.computed(Move, Width::Bits32, &Scalar::ANY);
        assert_eq!(range(half), (0, u32::MAX.into()));
        let below = number(3).computed(Subtract, Width::Bits64, &nibble);
        assert_eq!(below.signed(), (-12, 3));
    }
}
