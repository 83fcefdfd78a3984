// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Simplifies operations by facts about their operands: constants and sums.

use super::{FRAME, Numbering, copy};
use crate::operation::{Argument, Arithmetic, Constant, Operand, Operation, Width};
use crate::region::{Node, Value};
use freeport_ebpf::interpreter::compute;

impl Numbering<'_> {
    /// Replaces a node by an equivalent one with fewer dependences.
    pub(super) fn simplify(&self, node: &mut Node) {
        self.take_constants(node);
        if node.arm.is_some() {
            // Registers other than those that it names may be written in its row.
            return;
        }
        self.fold(node);
        self.add_up(node);
        self.take_offset(node);
        self.drop_mask(node);
    }

    /// Moves known arguments of a helper into the call.
    pub(super) fn give_arguments(&self, node: &mut Node) {
        let Operation::Call { arguments, .. } = &mut node.operation else { return };
        node.fixed.retain(|(register, value)| {
            let argument = self.argument(*register, *value);
            if let Some(argument) = argument {
                arguments[usize::from(*register) - 1] = argument;
            }
            argument.is_none()
        });
    }

    /// Returns an argument that can replace a register.
    fn argument(&self, register: u8, value: Value) -> Option<Argument> {
        if register == 1 {
            if self.is_context(value) {
                return Some(Argument::Context);
            }
            return match self.region.giver(value)?.operation {
                Operation::Constant { constant: Constant::Map(map), .. } => {
                    let map = u16::try_from(map).ok()?;
                    (map < Argument::MAPS).then_some(Argument::Map(map))
                }
                _ => None,
            };
        }
        if let Some(value) = self.constant(value) {
            let value = u8::try_from(value).ok()?;
            return (value < Argument::NUMBERS).then_some(Argument::Number(value));
        }
        let (base, offset) = self.sum(value)?;
        let is_in_frame = base == FRAME && (-512..0).contains(&offset) && offset % 4 == 0;
        is_in_frame.then_some(Argument::Stack(offset as i16))
    }

    /// Returns whether a value is the address of the context.
    fn is_context(&self, mut value: Value) -> bool {
        while let Some(&source) = self.copies.get(&value) {
            value = source;
        }
        self.region.known(value).is_context
    }

    fn constant(&self, value: Value) -> Option<u64> {
        self.region.known(value).constant
    }

    /// Replaces registers with known constants by immediate operands.
    fn take_constants(&self, node: &mut Node) {
        if let Operation::Alu { operation, right: Operand::Register(_), .. } = node.operation
            && let [one, another] = node.reads[..]
            && self.constant(one).is_some()
            && self.constant(another).is_none()
            && is_commutative(operation)
        {
            node.reads.reverse();
        }
        let Some(&last) = node.reads.last() else { return };
        let Some(value) = self.constant(last) else { return };
        let (right, immediate) = match &mut node.operation {
            Operation::Alu { width, right, .. } | Operation::Jump { width, right, .. } => {
                let immediate = match width {
                    Width::Bits32 => Some(value as i32),
                    Width::Bits64 => i32::try_from(value as i64).ok(),
                };
                (right, immediate)
            }
            Operation::Store { bytes, source, .. } => {
                let immediate = match bytes {
                    ..=4 => Some(value as i32),
                    _ => i32::try_from(value as i64).ok(),
                };
                (source, immediate)
            }
            _ => return,
        };
        if let (Operand::Register(_), Some(immediate)) = (*right, immediate) {
            *right = Operand::Immediate(immediate);
            node.reads.pop();
        }
    }

    /// Folds operations on constants.
    fn fold(&self, node: &mut Node) {
        let Operation::Alu {
            width, operation, destination, right: Operand::Immediate(right), ..
        } = node.operation
        else {
            return;
        };
        if operation == Arithmetic::Move {
            return;
        }
        let Some(left) = node.reads.first().and_then(|read| self.constant(*read)) else { return };
        let value = compute(operation, width, left, i64::from(right) as u64);
        let folded = match (u32::try_from(value), i32::try_from(value as i64)) {
            (Ok(low), _) => {
                let (width, operation) = (Width::Bits32, Arithmetic::Move);
                let right = Operand::Immediate(low as i32);
                Operation::Alu { width, operation, destination, left: 0, right }
            }
            (_, Ok(value)) => copy(Operand::Immediate(value)),
            _ => Operation::Constant { destination, constant: Constant::Value(value) },
        };
        if folded.lanes() <= self.options.machine.lanes.into() {
            node.reads.clear();
            node.operation = folded;
        }
    }

    /// Returns a value as the sum of another one and a constant.
    fn sum(&self, value: Value) -> Option<(Value, i64)> {
        if let Some((source, sum)) = self.region.known(value).sum {
            let exists = source == FRAME || self.is_current(source);
            return exists.then_some((source, sum));
        }
        let giver = self.region.giver(value)?;
        let Operation::Alu {
            width: Width::Bits64,
            operation,
            right: Operand::Immediate(right),
            ..
        } = giver.operation
        else {
            return None;
        };
        let sum = match operation {
            Arithmetic::Add => right.into(),
            Arithmetic::Subtract => -i64::from(right),
            _ => return None,
        };
        let source = *giver.reads.first()?;
        (source == FRAME || self.is_current(source)).then_some((source, sum))
    }

    /// Combines nested sums with constants.
    fn add_up(&self, node: &mut Node) {
        let Operation::Alu {
            width: Width::Bits64,
            operation: Arithmetic::Add,
            right: Operand::Immediate(right),
            ..
        } = &mut node.operation
        else {
            return;
        };
        let Some((source, before)) = self.sum(node.reads[0]) else { return };
        if let Ok(all) = i32::try_from(before + i64::from(*right)) {
            *right = all;
            node.reads[0] = source;
        }
    }

    /// Moves constants of sums into offsets of addresses.
    fn take_offset(&self, node: &mut Node) {
        let Some(&base) = node.reads.first() else { return };
        let Some((source, sum)) = self.sum(base) else { return };
        let is_taken = match &mut node.operation {
            Operation::Load { offset, .. }
            | Operation::Store { offset, .. }
            | Operation::Atomic { offset, .. } => {
                let all = i16::try_from(sum + i64::from(*offset));
                all.map(|all| *offset = all).is_ok()
            }
            Operation::Bound { base: Some(_), bytes, .. } => {
                let all = i32::try_from(sum + i64::from(*bytes));
                all.map(|all| *bytes = all).is_ok()
            }
            _ => false,
        };
        if is_taken {
            node.reads[0] = source;
        }
    }

    /// Replaces a mask that clears only clear bits by a copy.
    fn drop_mask(&self, node: &mut Node) {
        let Operation::Alu { width, operation, right, .. } = node.operation else { return };
        let Some(&source) = node.reads.first() else { return };
        let bits = self.region.known(source).bits;
        let is_copy = match (operation, right) {
            (Arithmetic::Move, Operand::Register(_)) => width == Width::Bits32 && bits <= 32,
            (Arithmetic::And, Operand::Immediate(mask)) => {
                let ones = mask.trailing_ones();
                mask > 0 && ones == 32 - mask.leading_zeros() && bits <= ones
            }
            _ => false,
        };
        if is_copy {
            node.operation = copy(Operand::Register(0));
            node.reads.truncate(1);
        }
    }
}

/// Returns whether the operation is commutative.
fn is_commutative(operation: Arithmetic) -> bool {
    use Arithmetic::{Add, And, Multiply, Or, Xor};
    matches!(operation, Add | And | Multiply | Or | Xor)
}
