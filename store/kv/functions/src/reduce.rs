// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reductions: functions `f(v, sigma) -> sigma` that fold the elements of a value into a number.

use crate::element::{Element, for_element};
use crate::error::{Error, check_operand};
use crate::loops::{Fold, LANES};
use crate::number::Number;
use crate::operands::Operands;
use crate::scalar::Scalar;
use crate::widest::run_widest;
use std::marker::PhantomData;

/// A built-in reduction. The discriminant is its id.
///
/// Sigma has 8 bytes for every type of elements, so that a sum does not overflow at the width of
/// its elements: `u64`, `i64` or `f64` (see [`Self::sigma`]). Integers wrap around at 64 bits.
/// Elements are extended before any arithmetic, so an `f32` is summed and squared as `f64`.
///
/// # Order
/// The result has the same bits on all machines, at any number of copies of the function
/// (KV-Direct, operations), since this order is part of the definition:
///
/// 1. There are 16 lanes, each begins with the neutral element: -0.0 for sums of floats, 1 for
///    products, the greatest or least of all elements (an infinity for floats) for minimum and
///    maximum, otherwise 0 or all ones.
/// 2. Element `i` enters lane `i % 16`. Each lane takes its elements in their order.
/// 3. Lanes `0..8` each add lane `8..16`, then `0..4` add `4..8`, then `0..2` add `2..4`, then
///    lane 0 adds lane 1.
/// 4. The result is sigma, to which lane 0 is added; for a value without elements it is sigma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reduce {
    /// Sum of sigma and all elements.
    Sum = 32,
    /// Product of sigma and all elements.
    Product = 33,
    /// Least of sigma and all elements. Elements that are not numbers are left out; a sigma that is
    /// not a number stays.
    Minimum = 34,
    /// Greatest of sigma and all elements. Elements that are not numbers are left out; a sigma that
    /// is not a number stays.
    Maximum = 35,
    /// Bits set in sigma and in all elements.
    And = 36,
    /// Bits set in sigma or in any element.
    Or = 37,
    /// Bits set in an odd number of sigma and the elements.
    Xor = 38,
    /// Sigma plus the number of elements other than zero. A NaN counts, -0.0 does not.
    CountNonzero = 39,
    /// Sum of sigma and the squares of all elements.
    SumOfSquares = 40,
    /// Sum of sigma and the absolute values of all elements.
    SumOfMagnitudes = 41,
}

impl Reduce {
    /// All built-in reductions, in the order of their ids.
    pub const ALL: [Self; 10] = [
        Self::Sum,
        Self::Product,
        Self::Minimum,
        Self::Maximum,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::CountNonzero,
        Self::SumOfSquares,
        Self::SumOfMagnitudes,
    ];

    /// Id in protocols.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::CountNonzero => "count_nonzero",
            Self::SumOfSquares => "sum_of_squares",
            Self::SumOfMagnitudes => "sum_of_magnitudes",
        }
    }

    /// Type of sigma. A count is `u64`, and so are the bits of a float; otherwise it is the type of
    /// 64 bits and the same kind. Functions on bits extend the sign of signed integers.
    pub fn sigma(self, element: Element) -> Element {
        match self {
            Self::CountNonzero => Element::U64,
            Self::And | Self::Or | Self::Xor if element.widest() == Element::F64 => Element::U64,
            _ => element.widest(),
        }
    }

    /// Sigma for commands that give none: the greatest number (infinity for floats) for a minimum,
    /// the least for a maximum, one for a product, all bits for `and`, otherwise zero.
    pub fn initial(self, element: Element) -> Scalar {
        let bits = match (self, self.sigma(element)) {
            (Self::And, _) => u64::MAX,
            (Self::Product, sigma) => {
                for_element!(sigma, T => <T as Number>::to_bits(<T as Number>::ONE))
            }
            (Self::Minimum, sigma) => {
                for_element!(sigma, T => <T as Number>::to_bits(<T as Number>::HIGHEST))
            }
            (Self::Maximum, sigma) => {
                for_element!(sigma, T => <T as Number>::to_bits(<T as Number>::LOWEST))
            }
            _ => 0,
        };
        Scalar::from_bits(self.sigma(element), bits)
    }

    /// Folds all elements, beginning with `sigma`.
    ///
    /// # Errors
    /// [`Error::ValueLength`], or [`Error::OperandLength`] if `sigma` has not 8 bytes.
    pub fn fold(self, element: Element, values: &[u8], sigma: &[u8]) -> Result<Scalar, Error> {
        element.count(values.len())?;
        check_operand(self.name(), Operands::built_in(&["sigma"]), size_of::<u64>(), sigma)?;
        let sigma = u64::load(sigma);
        let bits = match values {
            [] => sigma,
            _ => for_element!(element, T => self.result::<T>(values, sigma)),
        };
        Ok(Scalar::from_bits(self.sigma(element), bits))
    }

    /// Returns the bits of the result; `values` is not empty.
    fn result<T: Number>(self, values: &[u8], sigma: u64) -> u64 {
        let add = |sum: T::Widest, other: T::Widest| sum.add(other);
        let nothing = T::Widest::NOTHING;
        match self {
            Self::Sum => {
                let enter = |sum: T::Widest, v: T| sum.add(v.widen());
                finish(sigma, fold(values, nothing, enter, add), add)
            }
            Self::SumOfSquares => {
                let enter = |sum: T::Widest, v: T| sum.add(v.square());
                finish(sigma, fold(values, nothing, enter, add), add)
            }
            Self::SumOfMagnitudes => {
                let enter = |sum: T::Widest, v: T| sum.add(v.magnitude());
                finish(sigma, fold(values, nothing, enter, add), add)
            }
            Self::Product => {
                let multiply = |product: T::Widest, other: T::Widest| product.multiply(other);
                let enter = |product: T::Widest, v: T| product.multiply(v.widen());
                finish(sigma, fold(values, T::Widest::ONE, enter, multiply), multiply)
            }
            Self::Minimum => {
                let least = fold(values, T::HIGHEST, T::lower, T::lower).widen();
                T::Widest::from_bits(sigma).lower(least).to_bits()
            }
            Self::Maximum => {
                let greatest = fold(values, T::LOWEST, T::higher, T::higher).widen();
                T::Widest::from_bits(sigma).higher(greatest).to_bits()
            }
            Self::And => sigma & fold(values, u64::MAX, |bits, v: T| bits & v.to_bits(), u64::and),
            Self::Or => sigma | fold(values, 0, |bits, v: T| bits | v.to_bits(), u64::or),
            Self::Xor => sigma ^ fold(values, 0, |bits, v: T| bits ^ v.to_bits(), u64::xor),
            Self::CountNonzero => sigma.wrapping_add(count_nonzero::<T>(values)),
        }
    }
}

/// Runs the loop.
#[inline(always)]
fn fold<T: Number, A: Number>(
    values: &[u8],
    neutral: A,
    enter: impl Fn(A, T) -> A,
    merge: impl Fn(A, A) -> A,
) -> A {
    run_widest(Fold { values, neutral, enter, merge, number: PhantomData })
}

/// Merges the fold of all elements into sigma, and returns the bits of the result.
#[inline(always)]
fn finish<A: Number>(sigma: u64, total: A, merge: impl Fn(A, A) -> A) -> u64 {
    merge(A::from_bits(sigma), total).settled().to_bits()
}

/// Counts the elements that are not zero, in blocks that the narrow counters have room for.
fn count_nonzero<T: Number>(values: &[u8]) -> u64 {
    const LONGEST: u64 = 1 << 20;
    let room = Number::to_bits(T::Count::HIGHEST).min(LONGEST) as usize;
    let block = room / LANES * LANES * size_of::<T>();
    let enter = |count: T::Count, v: T| count.add(T::Count::from_bits((v != T::ZERO).into()));
    let counts = values
        .chunks(block)
        .map(|block| fold(block, T::Count::ZERO, enter, T::Count::add).to_bits());
    counts.sum()
}
