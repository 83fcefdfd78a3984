// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Natural numbers of any size, with the few operations that exact conversion between decimal and
//! binary fractions needs.

use std::cmp::Ordering;

/// The largest power of ten in a word, and its exponent.
const TEN_19: u64 = 10_000_000_000_000_000_000;

/// A natural number: words of 64 bits, lowest first, the highest not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Big(Vec<u64>);

impl Big {
    pub fn new(value: u64) -> Self {
        let mut big = Self(vec![value]);
        big.trim();
        big
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of bits up to the highest 1.
    pub fn bits(&self) -> usize {
        self.0.last().map_or(0, |&word| self.0.len() * 64 - word.leading_zeros() as usize)
    }

    /// Multiplies by `factor` and adds `summand`.
    pub fn multiply_add(&mut self, factor: u64, summand: u64) {
        let mut carry = summand;
        for word in &mut self.0 {
            let product = u128::from(*word) * u128::from(factor) + u128::from(carry);
            *word = product as u64;
            carry = (product >> 64) as u64;
        }
        self.0.push(carry);
        self.trim();
    }

    /// Multiplies by 10^`exponent`.
    pub fn multiply_power_of_ten(&mut self, exponent: usize) {
        for _ in 0..exponent / 19 {
            self.multiply_add(TEN_19, 0);
        }
        self.multiply_add(10u64.pow((exponent % 19) as u32), 0);
    }

    /// Multiplies by 2^`bits`.
    pub fn shift_left(&mut self, bits: usize) {
        self.multiply_add(1 << (bits % 64), 0);
        if !self.is_zero() {
            self.0.splice(0..0, std::iter::repeat_n(0, bits / 64));
        }
    }

    /// Divides by 2, without the fraction.
    pub fn halve(&mut self) {
        let mut above = 0;
        for word in self.0.iter_mut().rev() {
            let lowest = *word << 63;
            *word = *word >> 1 | above;
            above = lowest;
        }
        self.trim();
    }

    /// Subtracts `other`, which is not larger.
    pub fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            let (less, first) = word.overflowing_sub(other.0.get(at).copied().unwrap_or(0));
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            *word = less;
            borrow = first || second;
        }
        debug_assert!(!borrow, "the difference is not negative");
        self.trim();
    }

    /// Divides by `divisor`, without the fraction, and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let mut rest = 0;
        for word in self.0.iter_mut().rev() {
            let dividend = u128::from(rest) << 64 | u128::from(*word);
            *word = (dividend / u128::from(divisor)) as u64;
            rest = (dividend % u128::from(divisor)) as u64;
        }
        self.trim();
        rest
    }

    /// Returns the decimal text.
    pub fn into_decimal(mut self) -> String {
        let mut groups = vec![];
        while !self.is_zero() {
            groups.push(self.divide(TEN_19));
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:019}"));
        }
        text
    }

    fn trim(&mut self) {
        let kept = self.0.iter().rposition(|&word| word != 0).map_or(0, |at| at + 1);
        self.0.truncate(kept);
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(value: u128) -> Big {
        let mut big = Big(vec![value as u64, (value >> 64) as u64]);
        big.trim();
        big
    }

    #[test]
    fn small_numbers_match_the_machine() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let one = random.u128(..) >> random.u32(20..128);
            let other = random.u128(..=one);
            let factor = random.u64(..) >> 48;
            let mut it = big(one);
            it.multiply_add(factor, 7);
            assert_eq!(it, big(one * u128::from(factor) + 7));
            let mut it = big(one);
            it.subtract(&big(other));
            assert_eq!(it, big(one - other));
            assert_eq!(big(one).cmp(&big(other)), one.cmp(&other));
            assert_eq!(big(one).into_decimal(), one.to_string());
            assert_eq!(big(one).bits(), 128 - one.leading_zeros() as usize);
        }
    }

    #[test]
    fn shifts_undo_each_other() {
        let mut it = big(0x1234_5678_9abc_def1);
        it.shift_left(133);
        assert_eq!(it.bits(), 61 + 133);
        (0..133).for_each(|_| it.halve());
        assert_eq!(it, big(0x1234_5678_9abc_def1));
        it.multiply_power_of_ten(40);
        assert!(it.into_decimal().ends_with(&"0".repeat(40)));
    }
}
