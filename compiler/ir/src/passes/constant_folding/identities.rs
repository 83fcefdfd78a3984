// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules of arithmetic and logic. Each gives a form that is smaller or closer to the operands, so
//! that repeated application terminates.

use super::{Folded, Folder};
use crate::{BinaryOp, Bits, CompareOp, Op, UnaryOp, ValueId};

impl Folder<'_> {
    /// Returns the simpler form of an operation by the rules of this file, if one applies.
    pub(super) fn fold_identity(&mut self, op: &Op) -> Option<Folded> {
        match op {
            Op::Unary(op, value) => self.fold_unary(*op, *value),
            Op::Binary(op, left, right) => self.fold_binary(*op, *left, *right),
            Op::Compare(op, left, right) => self.fold_compare(*op, *left, *right),
            Op::Select { cond, if_true, if_false } => self.fold_select(*cond, *if_true, *if_false),
            Op::ZeroExtend(value, width) => match *self.definition(*value)? {
                Op::ZeroExtend(inner, _) => Some(Folded::Op(Op::ZeroExtend(inner, *width))),
                _ => None,
            },
            Op::SignExtend(value, width) => {
                let from = self.width(*value);
                match *self.definition(*value)? {
                    Op::SignExtend(inner, _) => Some(Folded::Op(Op::SignExtend(inner, *width))),
                    Op::ZeroExtend(inner, _) if self.width(inner) < from => {
                        Some(Folded::Op(Op::ZeroExtend(inner, *width)))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
        .or_else(|| match op {
            Op::ZeroExtend(value, width) | Op::SignExtend(value, width)
                if self.width(*value) == *width =>
            {
                Some(Folded::Value(*value))
            }
            _ => None,
        })
    }

    fn fold_unary(&mut self, op: UnaryOp, value: ValueId) -> Option<Folded> {
        let width = self.width(value);
        match op {
            UnaryOp::Neg | UnaryOp::PopCount if width == 1 => return Some(Folded::Value(value)),
            UnaryOp::ReduceAnd | UnaryOp::ReduceOr | UnaryOp::ReduceXor if width == 1 => {
                return Some(Folded::Value(value));
            }
            UnaryOp::ByteSwap if width == 8 => return Some(Folded::Value(value)),
            _ => {}
        }
        match (op, self.definition(value)?) {
            (UnaryOp::Not, Op::Unary(UnaryOp::Not, inner))
            | (UnaryOp::Neg, Op::Unary(UnaryOp::Neg, inner))
            | (UnaryOp::ByteSwap, Op::Unary(UnaryOp::ByteSwap, inner)) => {
                Some(Folded::Value(*inner))
            }
            (UnaryOp::Not, Op::Compare(op, left, right)) => {
                let (op, left, right) = negate(*op, *left, *right);
                Some(Folded::Op(Op::Compare(op, left, right)))
            }
            (UnaryOp::ReduceOr | UnaryOp::ReduceXor, Op::ZeroExtend(inner, _)) => {
                Some(Folded::Op(Op::Unary(op, *inner)))
            }
            _ => None,
        }
    }

    fn fold_binary(&mut self, op: BinaryOp, left: ValueId, right: ValueId) -> Option<Folded> {
        use BinaryOp::*;
        let width = self.width(left);
        if is_commutative(op) && self.constant(left).is_some() && self.constant(right).is_none() {
            return Some(Folded::Op(Op::Binary(op, right, left)));
        }
        if left == right {
            match op {
                Sub | Xor | URem | SRem => return Some(self.zero(width)),
                And | Or => return Some(Folded::Value(left)),
                _ => {}
            }
        }
        if self.is_zero(left) && matches!(op, UDiv | SDiv | URem | SRem | Shl | LShr | AShr) {
            return Some(self.zero(width));
        }
        let by = self.constant(right)?.clone();
        if by.is_zero() {
            return match op {
                Add | Sub | Or | Xor | Shl | LShr | AShr | URem | SRem => Some(Folded::Value(left)),
                And | Mul | UDiv | SDiv => Some(self.zero(width)),
            };
        }
        if by == Bits::ones(width) {
            match op {
                And => return Some(Folded::Value(left)),
                Or => return Some(Folded::Value(right)),
                Xor => return Some(Folded::Op(Op::Unary(UnaryOp::Not, left))),
                _ => {}
            }
        }
        let is_too_far = by.saturating_u64() >= u64::from(width);
        if is_too_far && matches!(op, Shl | LShr) {
            return Some(self.zero(width));
        }
        self.fold_by_power_of_two(op, left, &by).or_else(|| self.reassociate(op, left, &by))
    }

    /// Replaces products and quotients by powers of two with shifts and masks.
    fn fold_by_power_of_two(&mut self, op: BinaryOp, left: ValueId, by: &Bits) -> Option<Folded> {
        let width = by.width();
        if Bits::unary(UnaryOp::PopCount, by).to_u64() != 1 || width < 2 {
            return None;
        }
        let shift = (0..width).find(|at| by.bit(*at))?;
        let simpler = match op {
            BinaryOp::Mul | BinaryOp::UDiv if shift == 0 => return Some(Folded::Value(left)),
            BinaryOp::Mul => {
                let amount = self.number(Bits::from_u64(width, u64::from(shift)));
                Op::Binary(BinaryOp::Shl, left, amount)
            }
            BinaryOp::UDiv => {
                let amount = self.number(Bits::from_u64(width, u64::from(shift)));
                Op::Binary(BinaryOp::LShr, left, amount)
            }
            BinaryOp::URem => {
                let one = Bits::from_u64(width, 1);
                let mask = self.number(Bits::binary(BinaryOp::Sub, by, &one));
                Op::Binary(BinaryOp::And, left, mask)
            }
            _ => return None,
        };
        Some(Folded::Op(simpler))
    }

    /// Rewrites `(x op a) op b` with both constant to `x op (a op b)`.
    fn reassociate(&mut self, op: BinaryOp, left: ValueId, by: &Bits) -> Option<Folded> {
        if !is_commutative(op) {
            return None;
        }
        let Op::Binary(inner, value, first) = *self.definition(left)? else { return None };
        if inner != op {
            return None;
        }
        let both = Bits::binary(op, self.constant(first)?, by);
        let both = self.number(both);
        Some(Folded::Op(Op::Binary(op, value, both)))
    }

    fn fold_compare(&mut self, op: CompareOp, left: ValueId, right: ValueId) -> Option<Folded> {
        use CompareOp::*;
        if left == right {
            return Some(self.truth(matches!(op, Eq | ULe | SLe)));
        }
        let is_equality = matches!(op, Eq | Ne);
        if is_equality && self.constant(left).is_some() && self.constant(right).is_none() {
            return Some(Folded::Op(Op::Compare(op, right, left)));
        }
        match op {
            ULt if self.is_zero(right) || self.is_ones(left) => return Some(self.truth(false)),
            ULe if self.is_zero(left) || self.is_ones(right) => return Some(self.truth(true)),
            ULt if self.is_zero(left) => return Some(Folded::Op(Op::Compare(Ne, right, left))),
            ULe if self.is_zero(right) => return Some(Folded::Op(Op::Compare(Eq, left, right))),
            _ => {}
        }
        if is_equality && self.width(left) == 1 && self.constant(right).is_some() {
            let is_plain = self.is_zero(right) == (op == Ne);
            return Some(match is_plain {
                true => Folded::Value(left),
                false => Folded::Op(Op::Unary(UnaryOp::Not, left)),
            });
        }
        self.fold_equality_of_select(op, left, right)
            .or_else(|| self.narrow_compare(op, left, right))
    }

    /// Rewrites `(c ? 3 : 5) == 3` to `c`.
    fn fold_equality_of_select(
        &mut self,
        op: CompareOp,
        left: ValueId,
        right: ValueId,
    ) -> Option<Folded> {
        let Op::Select { cond, if_true, if_false } = *self.definition(left)? else { return None };
        let right = self.constant(right)?;
        let of = |value: ValueId| Some(Bits::compare(op, self.constant(value)?, right));
        let (if_true, if_false) = (of(if_true)?, of(if_false)?);
        Some(match (if_true, if_false) {
            (true, false) => Folded::Value(cond),
            (false, true) => Folded::Op(Op::Unary(UnaryOp::Not, cond)),
            (both, _) => self.truth(both),
        })
    }

    /// Narrows a comparison of zero-extended values, or of one with a constant. The signs are 0, so
    /// signed order equals unsigned order.
    fn narrow_compare(&mut self, op: CompareOp, left: ValueId, right: ValueId) -> Option<Folded> {
        use CompareOp::*;
        let width = self.width(left);
        let narrow = |folder: &Self, value: ValueId| match folder.definition(value) {
            Some(Op::ZeroExtend(inner, _)) if folder.width(*inner) < width => Some(*inner),
            _ => None,
        };
        let unsigned = match op {
            SLt => ULt,
            SLe => ULe,
            other => other,
        };
        match (narrow(self, left), narrow(self, right)) {
            (Some(left), Some(right)) if self.width(left) == self.width(right) => {
                Some(Folded::Op(Op::Compare(unsigned, left, right)))
            }
            (Some(left), None) => {
                let bits = self.constant(right)?.clone();
                if bits.is_negative() && matches!(op, SLt | SLe) {
                    return Some(self.truth(false));
                }
                let small = bits.resize(self.width(left));
                if small.resize(width) != bits {
                    // The constant exceeds every possible narrow value.
                    return Some(self.truth(!matches!(op, Eq)));
                }
                let right = self.number(small);
                Some(Folded::Op(Op::Compare(unsigned, left, right)))
            }
            (None, Some(right)) => {
                let bits = self.constant(left)?.clone();
                if bits.is_negative() && matches!(op, SLt | SLe) {
                    return Some(self.truth(true));
                }
                let small = bits.resize(self.width(right));
                if small.resize(width) != bits {
                    return Some(self.truth(matches!(op, Ne)));
                }
                let left = self.number(small);
                Some(Folded::Op(Op::Compare(unsigned, left, right)))
            }
            _ => None,
        }
    }

    fn fold_select(
        &mut self,
        cond: ValueId,
        if_true: ValueId,
        if_false: ValueId,
    ) -> Option<Folded> {
        if if_true == if_false {
            return Some(Folded::Value(if_true));
        }
        match self.definition(cond) {
            Some(Op::Const(bits)) => {
                return Some(Folded::Value(if bits.is_zero() { if_false } else { if_true }));
            }
            Some(Op::Unary(UnaryOp::Not, cond)) => {
                let (if_true, if_false) = (if_false, if_true);
                return Some(Folded::Op(Op::Select { cond: *cond, if_true, if_false }));
            }
            _ => {}
        }
        let (high, low) = (self.constant(if_true)?, self.constant(if_false)?);
        let width = high.width();
        if *high == Bits::from_u64(width, 1) && low.is_zero() {
            return Some(match width {
                1 => Folded::Value(cond),
                _ => Folded::Op(Op::ZeroExtend(cond, width)),
            });
        }
        let is_not = width == 1 && high.is_zero();
        is_not.then_some(Folded::Op(Op::Unary(UnaryOp::Not, cond)))
    }

    fn zero(&mut self, width: u32) -> Folded {
        Folded::Value(self.number(Bits::zero(width)))
    }

    fn truth(&mut self, is_true: bool) -> Folded {
        Folded::Value(self.number(Bits::from_bool(is_true)))
    }
}

fn is_commutative(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Add | Mul | And | Or | Xor)
}

/// Returns the negated comparison.
fn negate(op: CompareOp, left: ValueId, right: ValueId) -> (CompareOp, ValueId, ValueId) {
    match op {
        CompareOp::Eq => (CompareOp::Ne, left, right),
        CompareOp::Ne => (CompareOp::Eq, left, right),
        CompareOp::ULt => (CompareOp::ULe, right, left),
        CompareOp::ULe => (CompareOp::ULt, right, left),
        CompareOp::SLt => (CompareOp::SLe, right, left),
        CompareOp::SLe => (CompareOp::SLt, right, left),
    }
}
