// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Updates: functions `f(v, delta) -> v` that replace elements of a value.
//!
//! [`Update::formula`] is the definition of all of them.

use crate::element::{Element, for_element};
use crate::error::{Error, check_operand};
use crate::loops::{UpdateEach, UpdateSame, load_operands};
use crate::number::Number;
use crate::operands::Operands;
use crate::scalar::Scalar;
use crate::widest::run_widest;
use std::marker::PhantomData;

/// A built-in update. The discriminant is its id.
///
/// Each is defined for every type of elements and for all bits. Integers wrap around at their
/// width. Conditions hold for the exact sum or difference, also if it is out of range. `exchange`,
/// `compare_exchange` and the functions on bits treat a float as the unsigned integer with its
/// pattern.
///
/// A delta of several parts is an array of them: the operand of `compare_exchange` for `u16` is
/// four bytes, `expected` and then `new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Update {
    /// `new`.
    Exchange = 1,
    /// `new` if the element has the bits of `expected`, otherwise unchanged.
    CompareExchange = 2,
    /// The sum of the element and `amount`.
    Add = 3,
    /// The element less `amount`.
    Subtract = 4,
    /// The product of the element and `factor`.
    Multiply = 5,
    /// As [`Self::Add`], but a result beyond the range of finite numbers is the nearest of them.
    AddSaturating = 6,
    /// As [`Self::Subtract`], but a result beyond the range of finite numbers is the nearest of
    /// them.
    SubtractSaturating = 7,
    /// `other` if it is less than the element.
    Minimum = 8,
    /// `other` if it is greater than the element.
    Maximum = 9,
    /// The maximum of the element and `low`, then the minimum of that and `high`.
    Clamp = 10,
    /// The bits set both in the element and in `mask`.
    And = 11,
    /// The bits set in the element or in `mask`.
    Or = 12,
    /// The bits set in one of the element and `mask`.
    Xor = 13,
    /// The bits moved up by `distance`, an unsigned number; zero if that is the width or more.
    ShiftLeft = 14,
    /// The bits moved down by `distance`, an unsigned number of any size. The sign of a signed
    /// integer fills in, otherwise zeros.
    ShiftRight = 15,
    /// The sum of the element and `amount`, less `threshold` if the sum reaches it: a cyclic
    /// counter.
    AddWrappingAt = 16,
    /// The sum of the element and `amount` if it is at most `limit`, otherwise unchanged: a
    /// semaphore, a quota.
    AddIfAtMost = 17,
    /// The element less `amount` if that is at least `lowest`, otherwise unchanged: a balance.
    SubtractIfAtLeast = 18,
    /// The element less `amount`, plus `refill` if the difference is below `lowest`: the stock of
    /// the TPC-C benchmark has `lowest` 10 and `refill` 91 (clause 2.4.2.2).
    SubtractRefilling = 19,
}

/// Deltas of an update of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deltas<'a> {
    /// One delta for all elements (`update_scalar2vector`).
    Same(&'a [u8]),
    /// A delta for each element (`update_vector2vector`), in the order of the elements. All parts
    /// of a delta precede the next delta.
    Each(&'a [u8]),
}

/// Number of bytes that are copied and then updated, within the first cache.
const BLOCK_BYTES: usize = 8 << 10;

impl Update {
    /// All built-in updates, in the order of their ids.
    pub const ALL: [Self; 19] = [
        Self::Exchange,
        Self::CompareExchange,
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::AddSaturating,
        Self::SubtractSaturating,
        Self::Minimum,
        Self::Maximum,
        Self::Clamp,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::ShiftLeft,
        Self::ShiftRight,
        Self::AddWrappingAt,
        Self::AddIfAtMost,
        Self::SubtractIfAtLeast,
        Self::SubtractRefilling,
    ];

    /// Id in protocols.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::CompareExchange => "compare_exchange",
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::AddSaturating => "add_saturating",
            Self::SubtractSaturating => "subtract_saturating",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::Clamp => "clamp",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::ShiftLeft => "shift_left",
            Self::ShiftRight => "shift_right",
            Self::AddWrappingAt => "add_wrapping_at",
            Self::AddIfAtMost => "add_if_at_most",
            Self::SubtractIfAtLeast => "subtract_if_at_least",
            Self::SubtractRefilling => "subtract_refilling",
        }
    }

    /// Names of the parts of a delta. Each part is an element.
    pub fn operands(self) -> &'static [&'static str] {
        match self {
            Self::Exchange => &["new"],
            Self::CompareExchange => &["expected", "new"],
            Self::Add | Self::Subtract => &["amount"],
            Self::Multiply => &["factor"],
            Self::AddSaturating | Self::SubtractSaturating => &["amount"],
            Self::Minimum | Self::Maximum => &["other"],
            Self::Clamp => &["low", "high"],
            Self::And | Self::Or | Self::Xor => &["mask"],
            Self::ShiftLeft | Self::ShiftRight => &["distance"],
            Self::AddWrappingAt => &["amount", "threshold"],
            Self::AddIfAtMost => &["amount", "limit"],
            Self::SubtractIfAtLeast => &["amount", "lowest"],
            Self::SubtractRefilling => &["amount", "lowest", "refill"],
        }
    }

    /// Updates a value of one element, and returns the original (`update_scalar2scalar`).
    ///
    /// # Errors
    /// [`Error::NotScalar`], or [`Error::OperandLength`].
    pub fn scalar(self, element: Element, value: &mut [u8], delta: &[u8]) -> Result<Scalar, Error> {
        let width = element.width();
        if value.len() != width || delta.len() != self.operands().len() * width {
            return Err(self.refusal(element, value, delta));
        }
        let bits = for_element!(element, T => self.formula::<T, _>(One { value, delta }));
        Ok(Scalar::from_bits(element, bits))
    }

    /// Updates every element of a value; a value without elements stays empty. Appends the
    /// original value to `original` if that is given.
    ///
    /// # Errors
    /// [`Error::ValueLength`], or [`Error::OperandLength`].
    pub fn vector(
        self,
        element: Element,
        values: &mut [u8],
        deltas: Deltas<'_>,
        original: Option<&mut Vec<u8>>,
    ) -> Result<(), Error> {
        let count = element.count(values.len())?;
        match deltas {
            Deltas::Same(delta) => self.check(element, delta, 1)?,
            Deltas::Each(deltas) => self.check(element, deltas, count)?,
        }
        let Some(original) = original else {
            self.apply(element, values, deltas);
            return Ok(());
        };
        original.reserve(values.len());
        let parts = self.operands().len();
        for (at, block) in values.chunks_mut(BLOCK_BYTES).enumerate() {
            original.extend_from_slice(block);
            let start = at * BLOCK_BYTES * parts;
            let deltas = match deltas {
                Deltas::Same(_) => deltas,
                Deltas::Each(all) => Deltas::Each(&all[start..start + block.len() * parts]),
            };
            self.apply(element, block, deltas);
        }
        Ok(())
    }

    /// Updates every element; all lengths fit.
    fn apply(self, element: Element, values: &mut [u8], deltas: Deltas<'_>) {
        match deltas {
            Deltas::Same(delta) => {
                for_element!(element, T => self.formula::<T, _>(AllSame { values, delta }));
            }
            Deltas::Each(deltas) => {
                for_element!(element, T => self.formula::<T, _>(AllOwn { values, deltas }));
            }
        }
    }

    /// Gives the function, for elements of type `T`, to `target`.
    #[inline(always)]
    fn formula<T: Number, A: Apply<T>>(self, target: A) -> A::Output {
        match self {
            Self::Exchange => target.apply(|_, [new]| new),
            Self::CompareExchange => {
                target.apply(|v: T, [expected, new]| if v.is_same(expected) { new } else { v })
            }
            Self::Add => target.apply(|v: T, [amount]| v.add(amount).settled()),
            Self::Subtract => target.apply(|v: T, [amount]| v.subtract(amount).settled()),
            Self::Multiply => target.apply(|v: T, [factor]| v.multiply(factor).settled()),
            Self::AddSaturating => {
                target.apply(|v: T, [amount]| v.add_saturating(amount).settled())
            }
            Self::SubtractSaturating => {
                target.apply(|v: T, [amount]| v.subtract_saturating(amount).settled())
            }
            Self::Minimum => target.apply(|v: T, [other]| v.lower(other)),
            Self::Maximum => target.apply(|v: T, [other]| v.higher(other)),
            Self::Clamp => target.apply(|v: T, [low, high]| v.higher(low).lower(high)),
            Self::And => target.apply(|v: T, [mask]| v.and(mask)),
            Self::Or => target.apply(|v: T, [mask]| v.or(mask)),
            Self::Xor => target.apply(|v: T, [mask]| v.xor(mask)),
            Self::ShiftLeft => target.apply(|v: T, [distance]| v.shift_left(distance)),
            Self::ShiftRight => target.apply(|v: T, [distance]| v.shift_right(distance)),
            Self::AddWrappingAt => target.apply(|v: T, [amount, threshold]| {
                let is_over = v.sum_is_at_least(amount, threshold);
                let sum = v.add(amount);
                if is_over { sum.subtract(threshold) } else { sum }.settled()
            }),
            Self::AddIfAtMost => {
                target.apply(
                    |v: T, [amount, limit]| {
                        if v.sum_is_at_most(amount, limit) { v.add(amount) } else { v }
                    },
                )
            }
            Self::SubtractIfAtLeast => target.apply(|v: T, [amount, lowest]| {
                if v.difference_is_at_least(amount, lowest) { v.subtract(amount) } else { v }
            }),
            Self::SubtractRefilling => target.apply(|v: T, [amount, lowest, refill]| {
                let is_enough = v.difference_is_at_least(amount, lowest);
                let rest = v.subtract(amount);
                if is_enough { rest } else { rest.add(refill) }.settled()
            }),
        }
    }

    /// Checks that there are deltas for `count` elements.
    fn check(self, element: Element, deltas: &[u8], count: usize) -> Result<(), Error> {
        // The product overflows for the longest possible values; no operand is as long as that.
        let expected = count.saturating_mul(self.operands().len() * element.width());
        check_operand(self.name(), Operands::built_in(self.operands()), expected, deltas)
    }

    /// Returns why a scalar cannot be updated: one of the lengths is wrong.
    #[cold]
    fn refusal(self, element: Element, value: &[u8], delta: &[u8]) -> Error {
        let checked = Scalar::load(element, value).and_then(|_| self.check(element, delta, 1));
        checked.expect_err("the caller found a wrong length")
    }
}

/// The elements that a formula is applied to.
trait Apply<T: Number> {
    /// Result for the caller.
    type Output;

    /// Applies a function whose delta has `N` parts.
    fn apply<const N: usize>(self, function: impl Fn(T, [T; N]) -> T) -> Self::Output;
}

/// One element; the result is its original bits.
struct One<'a> {
    value: &'a mut [u8],
    delta: &'a [u8],
}

/// All elements of a value, with the same delta.
struct AllSame<'a> {
    values: &'a mut [u8],
    delta: &'a [u8],
}

/// All elements of a value, each with its own delta.
struct AllOwn<'a> {
    values: &'a mut [u8],
    deltas: &'a [u8],
}

impl<T: Number> Apply<T> for One<'_> {
    type Output = u64;

    #[inline(always)]
    fn apply<const N: usize>(self, function: impl Fn(T, [T; N]) -> T) -> u64 {
        let original = T::load(self.value);
        function(original, load_operands(self.delta)).store(self.value);
        original.to_bits()
    }
}

impl<T: Number> Apply<T> for AllSame<'_> {
    type Output = ();

    #[inline(always)]
    fn apply<const N: usize>(self, apply: impl Fn(T, [T; N]) -> T) {
        let delta = load_operands(self.delta);
        run_widest(UpdateSame { values: self.values, delta, apply });
    }
}

impl<T: Number> Apply<T> for AllOwn<'_> {
    type Output = ();

    #[inline(always)]
    fn apply<const N: usize>(self, apply: impl Fn(T, [T; N]) -> T) {
        let Self { values, deltas } = self;
        run_widest(UpdateEach { values, deltas, apply, number: PhantomData });
    }
}
