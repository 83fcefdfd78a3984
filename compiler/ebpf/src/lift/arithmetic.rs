// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic, comparisons and jumps (RFC 9669, sections 4.1 to 4.3).

use super::flow::Frame;
use super::held::{Held, NO_PACKET, State};
use super::{Lifter, NotLiftable};
use crate::instruction::{Arithmetic, ByteOrder, Condition, Operand, Operation, Width};
use freeport_ir::{BinaryOp, CompareOp, Op, Term, Type, UnaryOp, ValueId};

impl Lifter<'_> {
    /// Returns the second operand.
    pub fn operand(&mut self, operand: Operand, state: &State) -> Held {
        match operand {
            Operand::Register(register) => state.get(register),
            Operand::Immediate(value) => Held::Number(self.word(i64::from(value) as u64)),
        }
    }

    /// Returns the result of an operation.
    pub fn alu(
        &mut self,
        width: Width,
        operation: Arithmetic,
        destination: u8,
        source: Operand,
        state: &State,
    ) -> Result<Held, NotLiftable> {
        let right = self.operand(source, state);
        if operation == Arithmetic::Move {
            return self.moved(width, right);
        }
        let left = state.get(destination);
        if width == Width::Bits64
            && let Some(address) = self.address_arithmetic(operation, left, right)?
        {
            return Ok(address);
        }
        let [left, right] = [left, right].map(|held| self.half_or_number(width, held));
        Ok(Held::Number(self.computed(width, operation, left?, right?)))
    }

    fn moved(&mut self, width: Width, held: Held) -> Result<Held, NotLiftable> {
        if width == Width::Bits64 {
            return Ok(held);
        }
        let value = self.half_or_number(width, held)?;
        Ok(Held::Number(self.low_half(value)))
    }

    /// Returns a number, or the offset that represents the lower half of a packet address.
    fn half_or_number(&self, width: Width, held: Held) -> Result<ValueId, NotLiftable> {
        match (width, held) {
            (Width::Bits32, Held::Packet(offset)) => Ok(offset),
            _ => self.number(held),
        }
    }

    /// Adds or subtracts numbers and addresses, and subtracts addresses of the same memory.
    fn address_arithmetic(
        &mut self,
        operation: Arithmetic,
        left: Held,
        right: Held,
    ) -> Result<Option<Held>, NotLiftable> {
        let negative = operation == Arithmetic::Subtract;
        if !negative && operation != Arithmetic::Add {
            return Ok(None);
        }
        let op = if negative { BinaryOp::Sub } else { BinaryOp::Add };
        let (base, by) = match (left, right) {
            (Held::Number(_) | Held::Nothing, Held::Number(_)) => return Ok(None),
            (base, Held::Number(by)) => (base, by),
            (Held::Number(by), base) if !negative => (base, by),
            (Held::Packet(one), Held::Packet(other)) if negative => {
                return Ok(Some(Held::Number(self.builder.binary(op, one, other))));
            }
            (Held::Stack(one), Held::Stack(other)) if negative => {
                return Ok(Some(Held::Number(self.builder.binary(op, one, other))));
            }
            _ => return Ok(None),
        };
        let moved = |this: &mut Self, place| this.builder.binary(op, place, by);
        Ok(Some(match base {
            Held::Packet(place) => Held::Packet(moved(self, place)),
            Held::Stack(place) => Held::Stack(moved(self, place)),
            Held::Data(map, place) => Held::Data(map, moved(self, place)),
            Held::Value(reference) => {
                let by = if negative { self.builder.unary(UnaryOp::Neg, by) } else { by };
                Held::Value(self.reference_at(reference, by))
            }
            Held::Context(offset) => match self.constant_of(by) {
                Some(by) if negative => Held::Context(offset.wrapping_sub(by)),
                Some(by) => Held::Context(offset.wrapping_add(by)),
                None => return self.refuse("it computes an address in the context"),
            },
            _ => return Ok(None),
        }))
    }

    /// Returns a reference moved by some bytes.
    pub fn reference_at(&mut self, reference: ValueId, offset: ValueId) -> ValueId {
        let ty = self.builder.function().type_of(reference);
        let further = self.builder.push(Op::RefOffset { reference, offset }, ty);
        self.mixed.pass(reference, further);
        further
    }

    /// Returns the constant that a value is, if it is known within the block.
    pub fn constant_of(&self, value: ValueId) -> Option<i64> {
        let block = self.builder.function().block(self.builder.block());
        let found = block.insts.iter().rev().find(|inst| inst.result == Some(value))?;
        match &found.op {
            Op::Const(bits) => Some(bits.to_i64()),
            _ => None,
        }
    }

    /// Computes an operation on numbers of a width; the result has 64 bits.
    pub fn computed(
        &mut self,
        width: Width,
        operation: Arithmetic,
        left: ValueId,
        right: ValueId,
    ) -> ValueId {
        let bits = bits_of(width);
        let left = self.builder.resize(left, bits, false);
        let mut right = self.builder.resize(right, bits, false);
        let op = match operation {
            Arithmetic::Add => BinaryOp::Add,
            Arithmetic::Subtract => BinaryOp::Sub,
            Arithmetic::Multiply => BinaryOp::Mul,
            Arithmetic::Divide => BinaryOp::UDiv,
            Arithmetic::SignedDivide => BinaryOp::SDiv,
            Arithmetic::Modulo => BinaryOp::URem,
            Arithmetic::SignedModulo => BinaryOp::SRem,
            Arithmetic::Or => BinaryOp::Or,
            Arithmetic::And => BinaryOp::And,
            Arithmetic::Xor => BinaryOp::Xor,
            Arithmetic::ShiftLeft => BinaryOp::Shl,
            Arithmetic::ShiftRight => BinaryOp::LShr,
            Arithmetic::SignedShiftRight => BinaryOp::AShr,
            Arithmetic::Move => return self.widen(right),
        };
        if matches!(op, BinaryOp::Shl | BinaryOp::LShr | BinaryOp::AShr) {
            // Shift counts are taken modulo the width.
            let mask = self.builder.number(bits, u64::from(bits) - 1);
            right = self.builder.binary(BinaryOp::And, right, mask);
        }
        let result = self.builder.binary(op, left, right);
        self.widen(result)
    }

    pub fn negated(&mut self, width: Width, value: ValueId) -> Held {
        let value = self.builder.resize(value, bits_of(width), false);
        let result = self.builder.unary(UnaryOp::Neg, value);
        Held::Number(self.widen(result))
    }

    pub fn sign_extended(&mut self, width: Width, value: ValueId, bits: u32) -> Held {
        let low = self.builder.resize(value, bits, false);
        let result = self.builder.resize(low, bits_of(width), true);
        Held::Number(self.widen(result))
    }

    pub fn swapped(&mut self, order: ByteOrder, value: ValueId, bits: u32) -> Held {
        let mut low = self.builder.resize(value, bits, false);
        // Targets are little-endian, like the target of the compilers.
        if order != ByteOrder::Little {
            low = self.builder.unary(UnaryOp::ByteSwap, low);
        }
        Held::Number(self.widen(low))
    }

    /// Lifts a jump at the end of a block.
    pub fn jump(
        &mut self,
        frame: &Frame,
        number: usize,
        operation: Operation,
        state: &State,
    ) -> Result<(), NotLiftable> {
        let taken = operation.distance().map(|distance| self.slot as i64 + 1 + i64::from(distance));
        let taken = taken.and_then(|slot| usize::try_from(slot).ok()).unwrap_or_default();
        let Operation::Jump { width, condition, left, right, .. } = operation else {
            let target = self.target(frame, taken, state)?;
            self.builder.end(Term::Jump(target));
            return Ok(());
        };
        match self.analysis.outcomes(self.slot) {
            [true, false] => {
                let target = self.target(frame, taken, state)?;
                self.builder.end(Term::Jump(target));
            }
            [false, true] => self.proceed(frame, number, state)?,
            _ => {
                let right = self.operand(right, state);
                let cond = self.condition(width, condition, state.get(left), right)?;
                let if_true = self.target(frame, taken, state)?;
                let next = self.slot + operation.slots();
                let if_false = self.target(frame, next, state)?;
                self.builder.end(Term::Branch { cond, if_true, if_false });
            }
        }
        Ok(())
    }

    /// Returns one bit: whether a condition holds.
    fn condition(
        &mut self,
        width: Width,
        condition: Condition,
        left: Held,
        right: Held,
    ) -> Result<ValueId, NotLiftable> {
        // Compilers also test with 32 bits whether an address is 0. A packet never begins at the
        // start of a page, so its lower half is 0 only if the whole address is.
        let is_null_check = matches!((left, right), (Held::Packet(_), Held::Number(_)));
        if (width == Width::Bits64 || is_null_check)
            && let Some(holds) = self.address_condition(condition, left, right)?
        {
            return Ok(holds);
        }
        let bits = bits_of(width);
        let [left, right] = [left, right].map(|held| self.number(held));
        let left = self.builder.resize(left?, bits, false);
        let right = self.builder.resize(right?, bits, false);
        Ok(self.compared(condition, left, right))
    }

    /// Compares an address with one in the same memory, or with 0.
    fn address_condition(
        &mut self,
        condition: Condition,
        left: Held,
        right: Held,
    ) -> Result<Option<ValueId>, NotLiftable> {
        Ok(match (left, right) {
            // Addresses in the same memory are close together: they compare like their signed
            // offsets.
            (Held::Packet(one), Held::Packet(other)) | (Held::Stack(one), Held::Stack(other)) => {
                Some(self.compared(with_signs(condition), one, other))
            }
            (Held::Value(reference), Held::Number(zero))
            | (Held::Number(zero), Held::Value(reference)) => {
                if self.constant_of(zero).is_some_and(|it| it != 0) {
                    return self.refuse("it compares an address with a number");
                }
                let exists = self.is_valid(reference);
                self.mixed.ask(reference, self.slot);
                match condition {
                    Condition::Equal => Some(self.not(exists)),
                    Condition::NotEqual => Some(exists),
                    _ => return self.refuse("it orders an address and a number"),
                }
            }
            (Held::Packet(at), Held::Number(zero)) => {
                if self.constant_of(zero).is_some_and(|it| it != 0) {
                    return self.refuse("it compares an address with a number");
                }
                let null = self.word(NO_PACKET);
                match condition {
                    Condition::Equal | Condition::NotEqual => {
                        Some(self.compared(condition, at, null))
                    }
                    _ => return self.refuse("it orders an address and a number"),
                }
            }
            (Held::Stack(_) | Held::Data(..), Held::Number(_)) => {
                let no_address = self.builder.number(1, 0);
                match condition {
                    Condition::Equal => Some(no_address),
                    Condition::NotEqual => Some(self.not(no_address)),
                    _ => return self.refuse("it orders an address and a number"),
                }
            }
            _ => None,
        })
    }

    pub fn compared(&mut self, condition: Condition, left: ValueId, right: ValueId) -> ValueId {
        use CompareOp::{Eq, Ne, SLe, SLt, ULe, ULt};
        let (op, left, right) = match condition {
            Condition::Equal => (Eq, left, right),
            Condition::NotEqual => (Ne, left, right),
            Condition::Less => (ULt, left, right),
            Condition::LessOrEqual => (ULe, left, right),
            Condition::Greater => (ULt, right, left),
            Condition::GreaterOrEqual => (ULe, right, left),
            Condition::SignedLess => (SLt, left, right),
            Condition::SignedLessOrEqual => (SLe, left, right),
            Condition::SignedGreater => (SLt, right, left),
            Condition::SignedGreaterOrEqual => (SLe, right, left),
            Condition::Set => {
                let common = self.builder.binary(BinaryOp::And, left, right);
                return self.builder.push(Op::Unary(UnaryOp::ReduceOr, common), Type::Bits(1));
            }
        };
        self.builder.compare(op, left, right)
    }
}

fn bits_of(width: Width) -> u32 {
    match width {
        Width::Bits32 => 32,
        Width::Bits64 => 64,
    }
}

fn with_signs(condition: Condition) -> Condition {
    match condition {
        Condition::Less => Condition::SignedLess,
        Condition::LessOrEqual => Condition::SignedLessOrEqual,
        Condition::Greater => Condition::SignedGreater,
        Condition::GreaterOrEqual => Condition::SignedGreaterOrEqual,
        other => other,
    }
}
