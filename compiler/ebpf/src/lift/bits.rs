// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Short forms for operations that lifted programs often use.

use super::Lifter;
use crate::maps::ErrorNumber;
use freeport_ir::{BinaryOp, BlockId, CompareOp, Op, Target, Term, Type, UnaryOp, ValueId};

impl Lifter<'_> {
    /// Returns a 64-bit constant.
    pub fn word(&mut self, value: u64) -> ValueId {
        self.builder.number(64, value)
    }

    /// Returns the result of a helper that fails.
    pub fn error(&mut self, error: ErrorNumber) -> ValueId {
        self.word(error.returned())
    }

    /// Returns a 64-bit sum.
    pub fn add(&mut self, left: ValueId, right: ValueId) -> ValueId {
        self.builder.binary(BinaryOp::Add, left, right)
    }

    /// Adds a constant number of bytes to a value.
    pub fn offset(&mut self, value: ValueId, by: i64) -> ValueId {
        if by == 0 {
            return value;
        }
        let by = self.word(by as u64);
        self.add(value, by)
    }

    /// Zero-extends or truncates the value to 64 bits.
    pub fn widen(&mut self, value: ValueId) -> ValueId {
        self.builder.resize(value, 64, false)
    }

    /// Returns the lower half, zero-extended to 64 bits.
    pub fn low_half(&mut self, value: ValueId) -> ValueId {
        let low = self.builder.resize(value, 32, false);
        self.widen(low)
    }

    /// Returns the lower half, sign-extended to 64 bits.
    pub fn signed_half(&mut self, value: ValueId) -> ValueId {
        let low = self.builder.resize(value, 32, false);
        self.builder.resize(low, 64, true)
    }

    /// Selects one of two values.
    pub fn select(&mut self, cond: ValueId, if_true: ValueId, if_false: ValueId) -> ValueId {
        let ty = self.builder.function().type_of(if_true);
        self.builder.push(Op::Select { cond, if_true, if_false }, ty)
    }

    /// Returns whether both bits are set.
    pub fn both(&mut self, one: ValueId, other: ValueId) -> ValueId {
        self.builder.binary(BinaryOp::And, one, other)
    }

    /// Inverts a bit.
    pub fn not(&mut self, bit: ValueId) -> ValueId {
        self.builder.unary(UnaryOp::Not, bit)
    }

    /// Returns whether one value is at most the other, unsigned.
    pub fn at_most(&mut self, one: ValueId, other: ValueId) -> ValueId {
        self.builder.compare(CompareOp::ULe, one, other)
    }

    /// Returns the packet's length in 64 bits.
    pub fn length(&mut self) -> ValueId {
        let length = self.builder.push(Op::PacketLength(self.packet), Type::Bits(32));
        self.widen(length)
    }

    /// Continues in a block that is only entered if a condition holds. Returns the block where both
    /// paths meet and its parameter, which is `otherwise` if the condition does not hold.
    pub fn only_if(&mut self, cond: ValueId, otherwise: ValueId) -> (BlockId, ValueId) {
        let [inside, ends] = [(); 2].map(|()| self.builder.new_block());
        let ty = self.builder.function().type_of(otherwise);
        let result = self.builder.add_param(ends, ty, None);
        let if_false = Target { block: ends, args: vec![otherwise] };
        self.builder.end(Term::Branch { cond, if_true: Target::to(inside), if_false });
        self.builder.switch_to(inside);
        (ends, result)
    }

    /// Ends that block and passes the parameter's value.
    pub fn end_if(&mut self, ends: BlockId, value: ValueId) {
        self.builder.end(Term::Jump(Target { block: ends, args: vec![value] }));
        self.builder.switch_to(ends);
    }

    /// Returns whether a reference is valid.
    pub fn is_valid(&mut self, reference: ValueId) -> ValueId {
        self.builder.push(Op::RefIsValid(reference), Type::Bits(1))
    }
}
