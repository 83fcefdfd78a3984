// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bit vectors of any width, and the arithmetic that defines every pure operation.
//!
//! Arithmetic is modulo 2^width and total (see [`UnaryOp`] and [`BinaryOp`]). Limbs are 64 bits,
//! lowest first; bits above the width are always 0. Products and quotients wider than 128 bits use
//! `num-bigint`.

use crate::{BinaryOp, CompareOp, UnaryOp};
use num_bigint::BigUint;
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::fmt;

/// A bit vector.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Bits {
    width: u32,
    limbs: SmallVec<[u64; 8]>,
}

impl Bits {
    /// Returns all zeros.
    ///
    /// # Panics
    /// If `width` is 0: every bit vector has at least one bit.
    pub fn zero(width: u32) -> Self {
        assert!(width > 0, "a bit vector has at least one bit");
        Self { width, limbs: smallvec![0; width.div_ceil(64) as usize] }
    }

    /// Returns all ones.
    pub fn ones(width: u32) -> Self {
        let mut bits = Self::zero(width);
        bits.limbs.iter_mut().for_each(|limb| *limb = u64::MAX);
        bits.normalise()
    }

    /// Returns the low `width` bits of `value`.
    pub fn from_u64(width: u32, value: u64) -> Self {
        let mut bits = Self::zero(width);
        bits.limbs[0] = value;
        bits.normalise()
    }

    /// Returns the low `width` bits of `value`.
    pub fn from_u128(width: u32, value: u128) -> Self {
        let mut bits = Self::zero(width);
        bits.limbs[0] = value as u64;
        if let Some(high) = bits.limbs.get_mut(1) {
            *high = (value >> 64) as u64;
        }
        bits.normalise()
    }

    /// Returns one bit.
    pub fn from_bool(value: bool) -> Self {
        Self::from_u64(1, u64::from(value))
    }

    /// Returns the low `width` bits of a little-endian number; missing bytes are 0.
    pub fn from_le_bytes(width: u32, bytes: &[u8]) -> Self {
        let mut bits = Self::zero(width);
        for (limb, chunk) in bits.limbs.iter_mut().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            *limb = u64::from_le_bytes(word);
        }
        bits.normalise()
    }

    /// Returns the low `width` bits of a number given as limbs, lowest first; missing limbs are 0.
    pub fn from_limbs(width: u32, limbs: &[u64]) -> Self {
        let mut bits = Self::zero(width);
        for (to, from) in bits.limbs.iter_mut().zip(limbs) {
            *to = *from;
        }
        bits.normalise()
    }

    /// Parses a number in `radix` (2 to 36) and returns its low `width` bits; `None` if it is
    /// invalid.
    pub fn parse(width: u32, digits: &str, radix: u32) -> Option<Self> {
        let number = BigUint::parse_bytes(digits.as_bytes(), radix)?;
        Some(Self::from_big(width, &number))
    }

    /// Returns the width.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the low 64 bits.
    pub fn to_u64(&self) -> u64 {
        self.limbs[0]
    }

    /// Returns the low 128 bits.
    pub fn to_u128(&self) -> u128 {
        u128::from(self.limbs[0]) | u128::from(self.limbs.get(1).copied().unwrap_or(0)) << 64
    }

    /// Returns the value if it fits 64 bits.
    pub fn checked_u64(&self) -> Option<u64> {
        self.limbs[1..].iter().all(|limb| *limb == 0).then(|| self.limbs[0])
    }

    /// Returns the value as a signed number, truncated to 64 bits.
    pub fn to_i64(&self) -> i64 {
        self.sign_extend(self.width.max(64)).to_u64() as i64
    }

    /// Returns the little-endian bytes that hold the width.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        let count = self.width.div_ceil(8) as usize;
        self.limbs.iter().flat_map(|limb| limb.to_le_bytes()).take(count).collect()
    }

    /// Returns the limbs, lowest first.
    pub fn limbs(&self) -> &[u64] {
        &self.limbs
    }

    /// Returns whether every bit is 0.
    pub fn is_zero(&self) -> bool {
        self.limbs.iter().all(|limb| *limb == 0)
    }

    /// Returns bit `at`; 0 beyond the width.
    pub fn bit(&self, at: u32) -> bool {
        at < self.width && self.limbs[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    /// Returns the highest bit.
    pub fn is_negative(&self) -> bool {
        self.bit(self.width - 1)
    }

    /// Truncates to `width` bits, or extends with zeros.
    pub fn resize(&self, width: u32) -> Self {
        let mut bits = Self::zero(width);
        for (to, from) in bits.limbs.iter_mut().zip(&self.limbs) {
            *to = *from;
        }
        bits.normalise()
    }

    /// Truncates to `width` bits, or extends with the sign.
    pub fn sign_extend(&self, width: u32) -> Self {
        if width <= self.width || !self.is_negative() {
            return self.resize(width);
        }
        let high = Self::ones(width).shift_left(u64::from(self.width));
        self.resize(width).zip(&high, |low, high| low | high)
    }

    /// Returns `width` bits starting at bit `lo`; bits beyond the width are 0.
    pub fn extract(&self, lo: u32, width: u32) -> Self {
        if lo >= self.width {
            return Self::zero(width);
        }
        if lo.is_multiple_of(64) || width > 64 {
            return self.shift_right(u64::from(lo)).resize(width);
        }
        let at = (lo / 64) as usize;
        let high = self.limbs.get(at + 1).copied().unwrap_or(0);
        let pair = u128::from(self.limbs[at]) | u128::from(high) << 64;
        Self::from_u64(width, (pair >> (lo % 64)) as u64)
    }

    /// Returns a copy with the bits from `lo` on replaced by `part`; bits beyond the width are
    /// dropped.
    pub fn insert(&self, lo: u32, part: &Bits) -> Self {
        if lo >= self.width {
            return self.clone();
        }
        let hole = Self::ones(part.width.min(self.width)).resize(self.width);
        let hole = hole.shift_left(u64::from(lo));
        let part = part.resize(self.width).shift_left(u64::from(lo));
        let kept = self.zip(&hole, |whole, hole| whole & !hole);
        kept.zip(&part, |kept, part| kept | part)
    }

    /// Concatenates the operands, the first one lowest.
    pub fn concat<'a>(parts: impl IntoIterator<Item = &'a Bits> + Clone) -> Self {
        let width = parts.clone().into_iter().map(|part| part.width).sum();
        let mut whole = Self::zero(width);
        let mut lo = 0;
        for part in parts {
            whole = whole.insert(lo, part);
            lo += part.width;
        }
        whole
    }

    /// Returns the result of a unary operation.
    pub fn unary(op: UnaryOp, value: &Bits) -> Self {
        let width = value.width;
        match op {
            UnaryOp::Not => value.map(|limb| !limb),
            UnaryOp::Neg => value.map(|limb| !limb).add(&Self::from_u64(width, 1)),
            UnaryOp::ByteSwap => {
                let mut bytes = value.to_le_bytes();
                bytes.reverse();
                Self::from_le_bytes(width, &bytes)
            }
            UnaryOp::ReduceAnd => Self::from_bool(*value == Self::ones(width)),
            UnaryOp::ReduceOr => Self::from_bool(!value.is_zero()),
            UnaryOp::ReduceXor => Self::from_bool(value.count_ones() % 2 == 1),
            UnaryOp::PopCount => Self::from_u64(width, u64::from(value.count_ones())),
            UnaryOp::LeadingZeros => {
                let zeros = (0..width).rev().take_while(|at| !value.bit(*at)).count();
                Self::from_u64(width, zeros as u64)
            }
            UnaryOp::TrailingZeros => {
                let zeros = (0..width).take_while(|at| !value.bit(*at)).count();
                Self::from_u64(width, zeros as u64)
            }
        }
    }

    /// Returns the result of a binary operation on operands of one width.
    pub fn binary(op: BinaryOp, left: &Bits, right: &Bits) -> Self {
        debug_assert_eq!(left.width, right.width, "{op:?}");
        match op {
            BinaryOp::Add => left.add(right),
            BinaryOp::Sub => left.add(&Self::unary(UnaryOp::Neg, right)),
            BinaryOp::Mul => left.multiply(right),
            BinaryOp::UDiv => left.divide(right).0,
            BinaryOp::URem => left.divide(right).1,
            BinaryOp::SDiv => {
                let quotient = left.magnitude().divide(&right.magnitude()).0;
                quotient.negate_if(left.is_negative() != right.is_negative())
            }
            BinaryOp::SRem => {
                let remainder = left.magnitude().divide(&right.magnitude()).1;
                remainder.negate_if(left.is_negative())
            }
            BinaryOp::And => left.zip(right, |left, right| left & right),
            BinaryOp::Or => left.zip(right, |left, right| left | right),
            BinaryOp::Xor => left.zip(right, |left, right| left ^ right),
            BinaryOp::Shl => left.shift_left(right.saturating_u64()),
            BinaryOp::LShr => left.shift_right(right.saturating_u64()),
            BinaryOp::AShr => {
                let by = right.saturating_u64().min(u64::from(left.width) - 1);
                let wide = left.sign_extend(left.width * 2);
                wide.shift_right(by).resize(left.width)
            }
        }
    }

    /// Returns the result of a comparison of operands of one width.
    pub fn compare(op: CompareOp, left: &Bits, right: &Bits) -> bool {
        debug_assert_eq!(left.width, right.width, "{op:?}");
        match op {
            CompareOp::Eq => left == right,
            CompareOp::Ne => left != right,
            CompareOp::ULt => left.order(right).is_lt(),
            CompareOp::ULe => left.order(right).is_le(),
            CompareOp::SLt => left.signed_order(right).is_lt(),
            CompareOp::SLe => left.signed_order(right).is_le(),
        }
    }

    /// Returns the value, or `u64::MAX` if it does not fit.
    pub fn saturating_u64(&self) -> u64 {
        self.checked_u64().unwrap_or(u64::MAX)
    }

    fn from_big(width: u32, number: &BigUint) -> Self {
        let mut bits = Self::zero(width);
        for (to, from) in bits.limbs.iter_mut().zip(number.iter_u64_digits()) {
            *to = from;
        }
        bits.normalise()
    }

    fn to_big(&self) -> BigUint {
        BigUint::from_bytes_le(&self.to_le_bytes())
    }

    fn normalise(mut self) -> Self {
        let used = self.width % 64;
        if used != 0
            && let Some(top) = self.limbs.last_mut()
        {
            *top &= u64::MAX >> (64 - used);
        }
        self
    }

    fn map(&self, map: impl Fn(u64) -> u64) -> Self {
        let limbs = self.limbs.iter().map(|limb| map(*limb)).collect();
        Self { width: self.width, limbs }.normalise()
    }

    fn zip(&self, other: &Bits, map: impl Fn(u64, u64) -> u64) -> Self {
        let limbs = self.limbs.iter().zip(&other.limbs).map(|(a, b)| map(*a, *b)).collect();
        Self { width: self.width, limbs }.normalise()
    }

    fn add(&self, other: &Bits) -> Self {
        let mut sum = self.clone();
        let mut carry = false;
        for (to, from) in sum.limbs.iter_mut().zip(&other.limbs) {
            let (partial, first) = to.overflowing_add(*from);
            let (total, second) = partial.overflowing_add(u64::from(carry));
            *to = total;
            carry = first || second;
        }
        sum.normalise()
    }

    fn multiply(&self, other: &Bits) -> Self {
        if self.width <= 128 {
            return Self::from_u128(self.width, self.to_u128().wrapping_mul(other.to_u128()));
        }
        Self::from_big(self.width, &(self.to_big() * other.to_big()))
    }

    fn divide(&self, other: &Bits) -> (Self, Self) {
        if other.is_zero() {
            return (Self::zero(self.width), self.clone());
        }
        if self.width <= 128 {
            let (left, right) = (self.to_u128(), other.to_u128());
            let of = |value| Self::from_u128(self.width, value);
            return (of(left / right), of(left % right));
        }
        let (left, right) = (self.to_big(), other.to_big());
        let quotient = &left / &right;
        let remainder = left - &quotient * right;
        (Self::from_big(self.width, &quotient), Self::from_big(self.width, &remainder))
    }

    fn magnitude(&self) -> Self {
        self.negate_if(self.is_negative())
    }

    fn negate_if(&self, negate: bool) -> Self {
        if negate { Self::unary(UnaryOp::Neg, self) } else { self.clone() }
    }

    fn shift_left(&self, by: u64) -> Self {
        let mut bits = Self::zero(self.width);
        if by < u64::from(self.width) {
            let (skip, shift) = ((by / 64) as usize, by % 64);
            for at in skip..self.limbs.len() {
                let low = if shift > 0 && at > skip {
                    self.limbs[at - skip - 1] >> (64 - shift)
                } else {
                    0
                };
                bits.limbs[at] = self.limbs[at - skip] << shift | low;
            }
        }
        bits.normalise()
    }

    fn shift_right(&self, by: u64) -> Self {
        let mut bits = Self::zero(self.width);
        if by < u64::from(self.width) {
            let (skip, shift) = ((by / 64) as usize, by % 64);
            for at in 0..self.limbs.len() - skip {
                let high = match self.limbs.get(at + skip + 1) {
                    Some(limb) if shift > 0 => limb << (64 - shift),
                    _ => 0,
                };
                bits.limbs[at] = self.limbs[at + skip] >> shift | high;
            }
        }
        bits
    }

    fn count_ones(&self) -> u32 {
        self.limbs.iter().map(|limb| limb.count_ones()).sum()
    }

    fn order(&self, other: &Bits) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }

    fn signed_order(&self, other: &Bits) -> Ordering {
        other.is_negative().cmp(&self.is_negative()).then_with(|| self.order(other))
    }
}

impl From<&Bits> for Bits {
    fn from(bits: &Bits) -> Self {
        bits.clone()
    }
}

/// Prints in hexadecimal, as `0x1f`.
impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", self.to_big().to_str_radix(16))
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}:{}", self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the same operation on machine integers, written independently.
    fn reference(op: BinaryOp, width: u32, left: u64, right: u64) -> u64 {
        let signed = |value: u64| ((value << (64 - width)) as i64 >> (64 - width)) as i128;
        let result: i128 = match op {
            BinaryOp::Add => left as i128 + right as i128,
            BinaryOp::Sub => left as i128 - right as i128,
            BinaryOp::Mul => (left as i128).wrapping_mul(right as i128),
            BinaryOp::UDiv => left.checked_div(right).unwrap_or(0) as i128,
            BinaryOp::URem => left.checked_rem(right).unwrap_or(left) as i128,
            BinaryOp::SDiv => signed(left).checked_div(signed(right)).unwrap_or(0),
            BinaryOp::SRem => signed(left).checked_rem(signed(right)).unwrap_or(signed(left)),
            BinaryOp::And => (left & right) as i128,
            BinaryOp::Or => (left | right) as i128,
            BinaryOp::Xor => (left ^ right) as i128,
            BinaryOp::Shl if right >= u64::from(width) => 0,
            BinaryOp::Shl => (left as i128) << right,
            BinaryOp::LShr if right >= u64::from(width) => 0,
            BinaryOp::LShr => (left >> right) as i128,
            BinaryOp::AShr => signed(left) >> right.min(u64::from(width) - 1),
        };
        result as u64 & (u64::MAX >> (64 - width))
    }

    #[test]
    fn narrow_arithmetic_agrees_with_machine_integers() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100_000 {
            let width = random.u32(1..=63);
            let mask = u64::MAX >> (64 - width);
            let left = random.u64(..) & mask;
            let right = [random.u64(..) & mask, random.u64(0..8) & mask][random.usize(0..2)];
            let op = BinaryOp::ALL[random.usize(..BinaryOp::ALL.len())];
            let (a, b) = (Bits::from_u64(width, left), Bits::from_u64(width, right));
            let want = reference(op, width, left, right);
            assert_eq!(Bits::binary(op, &a, &b).to_u64(), want, "{op:?} {a:?} {b:?}");
        }
    }

    #[test]
    fn wide_values_agree_with_their_narrow_meaning() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let width = random.u32(129..=1100);
            let (left, right) = (random.u64(..), random.u64(1..));
            let (a, b) = (Bits::from_u64(width, left), Bits::from_u64(width, right));
            let product = u128::from(left) * u128::from(right);
            assert_eq!(Bits::binary(BinaryOp::Mul, &a, &b), Bits::from_u128(width, product));
            assert_eq!(Bits::binary(BinaryOp::UDiv, &a, &b).to_u64(), left / right);
            let difference = Bits::binary(BinaryOp::Sub, &a, &b);
            assert_eq!(Bits::binary(BinaryOp::Add, &difference, &b), a);
            let (lo, part) = (random.u32(0..width), random.u32(1..=200));
            let mark = Bits::from_u64(part, random.u64(..));
            let inserted = difference.insert(lo, &mark);
            for at in 0..width {
                let from_mark = at >= lo && at < lo + part;
                let want = if from_mark { mark.bit(at - lo) } else { difference.bit(at) };
                assert_eq!(inserted.bit(at), want);
            }
            let fits = part.min(width - lo);
            assert_eq!(inserted.extract(lo, fits), mark.resize(fits));
        }
    }

    #[test]
    fn parse_and_display_agree() {
        let bits = Bits::parse(200, "123456789abcdef0123456789abcdef", 16).expect("a number");
        assert_eq!(bits.to_string(), "0x123456789abcdef0123456789abcdef");
        assert_eq!(Bits::parse(8, "12z", 10), None);
        assert_eq!(Bits::parse(8, "257", 10), Some(Bits::from_u64(8, 1)));
    }
}
