// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decimal numbers of replies.

/// Digits of the numbers below 100.
const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut at) = ([[0; 2]; 100], 0);
    while at < 100 {
        pairs[at] = [b'0' + at as u8 / 10, b'0' + at as u8 % 10];
        at += 1;
    }
    pairs
};

/// Maximum number of digits.
const DIGITS_MAX: usize = 20;

/// A number as text.
pub struct Decimal {
    digits: [u8; DIGITS_MAX],
    begin: usize,
}

impl Decimal {
    /// Writes the digits of a number.
    #[inline]
    pub fn of(mut number: u64) -> Self {
        let (mut digits, mut begin) = ([b'0'; DIGITS_MAX], DIGITS_MAX);
        while number >= 10 {
            begin -= 2;
            digits[begin..begin + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        // A last pair may begin with the first digit.
        if number > 0 || begin == DIGITS_MAX {
            begin -= 1;
            digits[begin] = b'0' + number as u8;
        }
        Self { digits, begin }
    }

    /// The digits.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.digits[self.begin..]
    }
}

/// Appends a number.
#[inline]
pub fn push(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(Decimal::of(number).text());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let near = powers.flat_map(|power| [power - 1, power, power + 1, power / 5 * 9]);
        let random = (0..1_000).map(|at| fastrand::Rng::with_seed(at).u64(..) >> (at % 64));
        for number in near.chain(random).chain([u64::MAX]) {
            assert_eq!(Decimal::of(number).text(), number.to_string().as_bytes());
        }
    }
}
