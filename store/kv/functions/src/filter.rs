// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters: conditions `f(v) -> bool` that select elements of a value.

use crate::element::{Element, for_element};
use crate::error::{Error, check_operand};
use crate::loops::{Test, load_operands};
use crate::number::Number;
use crate::operands::Operands;
use crate::widest::{compact_widest, run_widest};

/// A built-in filter. The discriminant is its id.
///
/// Comparisons are those of the type: -0.0 equals 0.0, and a NaN is only [`Self::NotEqual`] to
/// anything, and [`Self::Nonzero`]. Filters on bits treat a float as its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Filter {
    /// The element equals `other`.
    Equal = 64,
    /// The element does not equal `other`.
    NotEqual = 65,
    /// The element is less than `bound`.
    Less = 66,
    /// The element is less than or equal to `bound`.
    AtMost = 67,
    /// The element is greater than `bound`.
    Greater = 68,
    /// The element is greater than or equal to `bound`.
    AtLeast = 69,
    /// The element is not zero: the entries of a sparse vector.
    Nonzero = 70,
    /// The element is at least `low` and at most `high`.
    Within = 71,
    /// At least one bit of `mask` is set in the element.
    AnyBit = 72,
    /// The bits of the element that are set in `mask` are exactly those of `pattern`: all of them
    /// if `pattern` is `mask`, none if it is zero.
    MaskedEqual = 73,
}

impl Filter {
    /// All built-in filters, in the order of their ids.
    pub const ALL: [Self; 10] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::AtMost,
        Self::Greater,
        Self::AtLeast,
        Self::Nonzero,
        Self::Within,
        Self::AnyBit,
        Self::MaskedEqual,
    ];

    /// Id in protocols.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::NotEqual => "not_equal",
            Self::Less => "less",
            Self::AtMost => "at_most",
            Self::Greater => "greater",
            Self::AtLeast => "at_least",
            Self::Nonzero => "nonzero",
            Self::Within => "within",
            Self::AnyBit => "any_bit",
            Self::MaskedEqual => "masked_equal",
        }
    }

    /// Names of the parts of the operand. Each part is an element.
    pub fn operands(self) -> &'static [&'static str] {
        match self {
            Self::Equal | Self::NotEqual => &["other"],
            Self::Less | Self::AtMost | Self::Greater | Self::AtLeast => &["bound"],
            Self::Nonzero => &[],
            Self::Within => &["low", "high"],
            Self::AnyBit => &["mask"],
            Self::MaskedEqual => &["mask", "pattern"],
        }
    }

    /// Appends the elements for which the condition holds to `kept`, in their order.
    ///
    /// # Errors
    /// [`Error::ValueLength`], or [`Error::OperandLength`]. `kept` is unchanged.
    pub fn keep(
        self,
        element: Element,
        values: &[u8],
        operand: &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<(), Error> {
        element.count(values.len())?;
        let expected = self.operands().len() * element.width();
        let parts = Operands::built_in(self.operands());
        check_operand(self.name(), parts, expected, operand)?;
        for_element!(element, T => self.select::<T>(Selection { values, operand, kept }));
        Ok(())
    }

    /// Applies the condition; this is the definition of all of them.
    fn select<T: Number>(self, selection: Selection<'_>) {
        match self {
            Self::Equal => selection.run(|v: T, [other]| v == other),
            Self::NotEqual => selection.run(|v: T, [other]| v != other),
            Self::Less => selection.run(|v: T, [bound]| v < bound),
            Self::AtMost => selection.run(|v: T, [bound]| v <= bound),
            Self::Greater => selection.run(|v: T, [bound]| v > bound),
            Self::AtLeast => selection.run(|v: T, [bound]| v >= bound),
            Self::Nonzero => selection.run(|v: T, []| v != T::ZERO),
            // Both comparisons are evaluated, without a branch.
            Self::Within => selection.run(|v: T, [low, high]| (v >= low) & (v <= high)),
            Self::AnyBit => selection.run(|v: T, [mask]| v.and(mask).to_bits() != 0),
            Self::MaskedEqual => {
                selection.run(|v: T, [mask, pattern]| v.and(mask).is_same(pattern));
            }
        }
    }
}

/// Arguments of a filter.
struct Selection<'a> {
    values: &'a [u8],
    operand: &'a [u8],
    kept: &'a mut Vec<u8>,
}

/// Number of elements that are tested at once.
const BLOCK: usize = 512;

impl Selection<'_> {
    #[inline(always)]
    fn run<T: Number, const N: usize>(self, holds: impl Fn(T, [T; N]) -> bool) {
        let Self { values, operand, kept } = self;
        let operands = load_operands(operand);
        let mut flags = [0; BLOCK];
        for block in values.chunks(BLOCK * size_of::<T>()) {
            let flags = &mut flags[..block.len() / size_of::<T>()];
            run_widest(Test { values: block, operands, flags, holds: &holds });
            // Room for one block, so that memory grows with the elements that are kept.
            let end = kept.len();
            kept.resize(end + block.len(), 0);
            let length = compact_widest(size_of::<T>(), block, flags, &mut kept[end..]);
            kept.truncate(end + length);
        }
    }
}
