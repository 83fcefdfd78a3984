// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Refines the numbers on both sides of a comparison by its outcome.

use super::{Bits, Scalar, common};
use crate::instruction::{Condition, Width};
use crate::interpreter;

/// A comparison, reduced by its opposite and its mirror image.
#[derive(Clone, Copy)]
enum Relation {
    Equal,
    Different,
    Below,
    NotAbove,
    SignedBelow,
    SignedNotAbove,
    CommonBits,
    NoCommonBits,
}

impl Scalar {
    /// Returns the numbers of both sides for which the comparison has the outcome `holds`, or
    /// `None` if that is impossible.
    pub fn compared(
        &self,
        condition: Condition,
        width: Width,
        other: &Self,
        holds: bool,
    ) -> Option<(Self, Self)> {
        if let (Some(left), Some(right)) = (self.value(), other.value()) {
            let is_so = interpreter::holds(condition, width, left, right) == holds;
            return is_so.then_some((*self, *other));
        }
        use Relation::*;
        let (relation, is_mirrored) = match (condition, holds) {
            (Condition::Equal, true) | (Condition::NotEqual, false) => (Equal, false),
            (Condition::Equal, false) | (Condition::NotEqual, true) => (Different, false),
            (Condition::Less, true) | (Condition::GreaterOrEqual, false) => (Below, false),
            (Condition::LessOrEqual, true) | (Condition::Greater, false) => (NotAbove, false),
            (Condition::Greater, true) | (Condition::LessOrEqual, false) => (Below, true),
            (Condition::GreaterOrEqual, true) | (Condition::Less, false) => (NotAbove, true),
            (Condition::SignedLess, true) | (Condition::SignedGreaterOrEqual, false) => {
                (SignedBelow, false)
            }
            (Condition::SignedLessOrEqual, true) | (Condition::SignedGreater, false) => {
                (SignedNotAbove, false)
            }
            (Condition::SignedGreater, true) | (Condition::SignedLessOrEqual, false) => {
                (SignedBelow, true)
            }
            (Condition::SignedGreaterOrEqual, true) | (Condition::SignedLess, false) => {
                (SignedNotAbove, true)
            }
            (Condition::Set, true) => (CommonBits, false),
            (Condition::Set, false) => (NoCommonBits, false),
        };
        let (left, right) = if is_mirrored { (other, self) } else { (self, other) };
        let (left, right) = match width {
            Width::Bits64 => left.related(relation, right)?,
            Width::Bits32 => {
                let (low_left, low_right) = left.halves_related(relation, right)?;
                (left.with_lower_half(&low_left)?, right.with_lower_half(&low_right)?)
            }
        };
        Some(if is_mirrored { (right, left) } else { (left, right) })
    }

    /// Returns the lower halves for which a relation holds. For a signed relation they are compared
    /// as sign-extended numbers.
    fn halves_related(&self, relation: Relation, other: &Self) -> Option<(Self, Self)> {
        match relation {
            Relation::SignedBelow | Relation::SignedNotAbove => {
                let (left, right) = (self.sign_extended(32), other.sign_extended(32));
                let (left, right) = left.related(relation, &right)?;
                Some((left.lower_half(), right.lower_half()))
            }
            _ => self.lower_half().related(relation, &other.lower_half()),
        }
    }

    /// Returns the numbers whose lower half is in `half`.
    fn with_lower_half(&self, half: &Self) -> Option<Self> {
        let bits = self.bits.meet(half.bits.with_upper_half_unknown())?;
        Self { bits, low: common(self.low, half.low), ..*self }.tightened()
    }

    fn related(&self, relation: Relation, other: &Self) -> Option<(Self, Self)> {
        let (mut left, mut right) = (*self, *other);
        match relation {
            Relation::Equal => {
                let both = left.meet(&right)?;
                return Some((both, both));
            }
            Relation::Different => return Some((left.without(&right)?, right.without(&left)?)),
            Relation::Below => {
                left.unsigned.1 = left.unsigned.1.min(right.unsigned.1.checked_sub(1)?);
                right.unsigned.0 = right.unsigned.0.max(left.unsigned.0.checked_add(1)?);
            }
            Relation::NotAbove => {
                left.unsigned.1 = left.unsigned.1.min(right.unsigned.1);
                right.unsigned.0 = right.unsigned.0.max(left.unsigned.0);
            }
            Relation::SignedBelow => {
                left.signed.1 = left.signed.1.min(right.signed.1.checked_sub(1)?);
                right.signed.0 = right.signed.0.max(left.signed.0.checked_add(1)?);
            }
            Relation::SignedNotAbove => {
                left.signed.1 = left.signed.1.min(right.signed.1);
                right.signed.0 = right.signed.0.max(left.signed.0);
            }
            Relation::CommonBits => {
                return Some((left.sharing_bits(&right)?, right.sharing_bits(&left)?));
            }
            Relation::NoCommonBits => {
                left.bits = left.bits.meet(without_bits(right.bits))?;
                right.bits = right.bits.meet(without_bits(self.bits))?;
            }
        }
        Some((left.tightened()?, right.tightened()?))
    }

    /// Removes `other`, if it is one number at an end of the range.
    fn without(&self, other: &Self) -> Option<Self> {
        let Some(value) = other.value() else { return Some(*self) };
        let mut left = *self;
        if left.unsigned.0 == value {
            left.unsigned.0 = value.checked_add(1)?;
        }
        if left.unsigned.1 == value {
            left.unsigned.1 = value.checked_sub(1)?;
        }
        if left.signed.0 == value as i64 {
            left.signed.0 = left.signed.0.checked_add(1)?;
        }
        if left.signed.1 == value as i64 {
            left.signed.1 = left.signed.1.checked_sub(1)?;
        }
        left.tightened()
    }

    /// Returns the numbers that share a bit with `other`; that bit is known if there is only one.
    fn sharing_bits(&self, other: &Self) -> Option<Self> {
        let possible = other.bits.value | other.bits.unknown;
        let mut left = *self;
        let shared = possible & (left.bits.value | left.bits.unknown);
        if shared == 0 {
            return None;
        }
        if shared.is_power_of_two() {
            left.bits = left.bits.or(Bits::constant(shared));
        }
        left.tightened()
    }
}

/// Returns the numbers that have none of the bits that are set in all of `others`.
fn without_bits(others: Bits) -> Bits {
    Bits { value: 0, unknown: !others.value }
}

#[cfg(test)]
mod tests {
    use super::super::tests::random_set;
    use super::*;
    use crate::instruction::tables::CONDITIONS;
    use crate::interpreter::holds;

    #[test]
    fn no_number_is_lost_for_which_it_comes_out_so() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..60_000 {
            let ((left, one), (right, other)) = (random_set(&mut random), random_set(&mut random));
            let (condition, ..) = CONDITIONS[random.usize(..CONDITIONS.len())];
            for (width, outcome) in
                [Width::Bits32, Width::Bits64].into_iter().flat_map(|w| [(w, false), (w, true)])
            {
                let kept = one.compared(condition, width, &other, outcome);
                for (&a, &b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
                    if holds(condition, width, a, b) == outcome {
                        let kept = kept.as_ref();
                        let is_kept = kept.is_some_and(|(x, y)| x.contains(a) && y.contains(b));
                        assert!(is_kept, "{a:#x} {condition:?} {b:#x} {width:?}: {kept:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn comparisons_bound_numbers() {
        let left = |scalar: Scalar, condition, width, right: u64, holds| {
            let kept = scalar.compared(condition, width, &Scalar::constant(right), holds);
            kept.map(|(left, _)| left.unsigned())
        };
        use Condition::*;
        let (any, wide) = (Scalar::ANY, Width::Bits64);
        assert_eq!(left(any, Greater, wide, 20, false), Some((0, 20)));
        assert_eq!(left(any, GreaterOrEqual, wide, 20, true), Some((20, u64::MAX)));
        assert_eq!(left(any, Less, wide, 20, true), Some((0, 19)));
        assert_eq!(left(any, Less, wide, 0, true), None);
        assert_eq!(left(Scalar::between(0, 9), NotEqual, wide, 9, true), Some((0, 8)));
        assert_eq!(left(Scalar::constant(4), NotEqual, wide, 4, true), None);
        assert_eq!(left(Scalar::of_bits(8), Set, wide, 0xf0, false), Some((0, 15)));
        let word = Scalar::of_bits(32);
        assert_eq!(left(word, SignedLess, Width::Bits32, 20, true), Some((0, u32::MAX.into())));
        let both = word.compared(SignedGreater, Width::Bits32, &Scalar::constant(u64::MAX), true);
        let (both, _) = both.expect("it may be");
        assert_eq!(both.unsigned(), (0, i32::MAX as u64));
        // The lower half of a number is bounded, whatever its upper half.
        let (bounded, _) =
            any.compared(Greater, Width::Bits32, &Scalar::constant(5), false).expect("it may be");
        assert_eq!(bounded.lower_half().unsigned(), (0, 5));
    }
}
