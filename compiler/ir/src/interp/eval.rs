// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluation of pure operations on bit vectors. The interpreter and constant folding share it, so
//! that folding cannot change the meaning of a program.

use crate::{Bits, Op, ValueId};

/// Evaluates a pure operation whose operands are bit vectors, given by `operand`; returns `None`
/// for any other operation. It requests only operands of the operation, so a caller that does not
/// know them all must check first. `Select` requests the condition and then only the chosen
/// alternative.
pub fn eval_pure<'a>(op: &Op, operand: impl Fn(ValueId) -> &'a Bits) -> Option<Bits> {
    Some(match op {
        Op::Const(bits) => bits.clone(),
        Op::Unary(op, value) => Bits::unary(*op, operand(*value)),
        Op::Binary(op, left, right) => Bits::binary(*op, operand(*left), operand(*right)),
        Op::Compare(op, left, right) => {
            Bits::from_bool(Bits::compare(*op, operand(*left), operand(*right)))
        }
        Op::Select { cond, if_true, if_false } => {
            let chosen = if operand(*cond).is_zero() { if_false } else { if_true };
            operand(*chosen).clone()
        }
        Op::ZeroExtend(value, width) | Op::Truncate(value, width) => operand(*value).resize(*width),
        Op::SignExtend(value, width) => operand(*value).sign_extend(*width),
        Op::Extract { value, lo, width } => operand(*value).extract(*lo, *width),
        Op::ExtractDynamic { value, lo, width } => {
            operand(*value).extract(saturating_u32(operand(*lo)), *width)
        }
        Op::Insert { value, lo, part } => operand(*value).insert(*lo, operand(*part)),
        Op::InsertDynamic { value, lo, part } => {
            operand(*value).insert(saturating_u32(operand(*lo)), operand(*part))
        }
        Op::Concat(parts) => {
            let parts: smallvec::SmallVec<[&Bits; 8]> =
                parts.iter().map(|at| operand(*at)).collect();
            Bits::concat(parts.iter().copied())
        }
        _ => return None,
    })
}

/// Converts to a bit position; no bit vector reaches `u32::MAX`, so that stands for any position
/// beyond it.
fn saturating_u32(bits: &Bits) -> u32 {
    u32::try_from(bits.saturating_u64()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, CompareOp, TableId, UnaryOp};

    const A: ValueId = ValueId(0);
    const B: ValueId = ValueId(1);
    const C: ValueId = ValueId(2);

    fn eval(op: Op, operands: &[Bits]) -> Option<Bits> {
        eval_pure(&op, |value| &operands[value.index()])
    }

    fn bits(width: u32, value: u64) -> Bits {
        Bits::from_u64(width, value)
    }

    #[test]
    fn unary_binary_and_compare_follow_the_arithmetic_of_bits() {
        let operands = [bits(8, 0x96), bits(8, 0x0f)];
        let unary = |op| eval(Op::Unary(op, A), &operands);
        assert_eq!(unary(UnaryOp::Not), Some(bits(8, 0x69)));
        assert_eq!(unary(UnaryOp::PopCount), Some(bits(8, 4)));
        let binary = |op| eval(Op::Binary(op, A, B), &operands);
        assert_eq!(binary(BinaryOp::Sub), Some(bits(8, 0x87)));
        assert_eq!(binary(BinaryOp::AShr), Some(bits(8, 0xff)));
        let compare = |op| eval(Op::Compare(op, A, B), &operands);
        assert_eq!(compare(CompareOp::ULt), Some(bits(1, 0)));
        assert_eq!(compare(CompareOp::SLt), Some(bits(1, 1)));
    }

    #[test]
    fn select_takes_the_first_alternative_for_1() {
        for (cond, want) in [(1, 7), (0, 9)] {
            let op = Op::Select { cond: A, if_true: B, if_false: C };
            let operands = [bits(1, cond), bits(4, 7), bits(4, 9)];
            assert_eq!(eval(op, &operands), Some(bits(4, want)));
        }
    }

    #[test]
    fn widths_change_as_told() {
        let operands = [bits(4, 0b1010)];
        assert_eq!(eval(Op::Const(bits(3, 5)), &[]), Some(bits(3, 5)));
        assert_eq!(eval(Op::ZeroExtend(A, 8), &operands), Some(bits(8, 0x0a)));
        assert_eq!(eval(Op::SignExtend(A, 8), &operands), Some(bits(8, 0xfa)));
        assert_eq!(eval(Op::Truncate(A, 2), &operands), Some(bits(2, 0b10)));
        let operands = [bits(4, 0xa), bits(8, 0x55), bits(1, 1)];
        assert_eq!(eval(Op::Concat(vec![A, B, C]), &operands), Some(bits(13, 0x155a)));
    }

    #[test]
    fn dynamic_positions_beyond_the_operand_read_0_and_drop() {
        let far = Bits::ones(100);
        for (lo, read, written) in
            [(bits(8, 4), 0xa, 0x3c), (bits(8, 6), 2, 0xec), (bits(8, 8), 0, 0xac), (far, 0, 0xac)]
        {
            let operands = [bits(8, 0xac), lo, bits(4, 3)];
            let extract = Op::ExtractDynamic { value: A, lo: B, width: 4 };
            assert_eq!(eval(extract, &operands), Some(bits(4, read)));
            let insert = Op::InsertDynamic { value: A, lo: B, part: C };
            assert_eq!(eval(insert, &operands), Some(bits(8, written)));
        }
        let operands = [bits(8, 0xac), bits(4, 3)];
        let extract = Op::Extract { value: A, lo: 2, width: 3 };
        assert_eq!(eval(extract, &operands), Some(bits(3, 0b011)));
        let insert = Op::Insert { value: A, lo: 4, part: B };
        assert_eq!(eval(insert, &operands), Some(bits(8, 0x3c)));
    }

    #[test]
    fn what_is_not_a_bit_vector_is_left_to_others() {
        assert_eq!(eval(Op::Handle(TableId(0)), &[]), None);
        assert_eq!(eval(Op::Now, &[]), None);
    }
}
