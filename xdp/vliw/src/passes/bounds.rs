// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces comparisons of packet pointers with the packet's end by [`Operation::Bound`], which
//! checks the packet's length itself (the publication, section 3.1, removes them and has hardware
//! check each access). The program's handling of short packets is kept, so the behaviour is
//! unchanged: a check takes a lane of its row, and neither the end nor the sum is computed any
//! longer.

use crate::blocks::{Instruction, Routine};
use crate::operation::{Condition, Operand, Operation};
use freeport_ebpf::analysis::{Analysis, Fact, Type};

/// Replaces the comparisons of a routine.
pub fn run(routine: &mut Routine, analysis: &Analysis) {
    for block in &mut routine.blocks {
        let Some(at) = block.instructions.len().checked_sub(2) else { continue };
        let [jump, rest] = &mut block.instructions[at..] else { continue };
        let Operation::Jump { target: taken, .. } = jump.operation else { continue };
        let Operation::Goto(otherwise) = rest.operation else { continue };
        let Some(&slot) = jump.origins.first() else { continue };
        if is_never_taken(jump, analysis.registers(slot)) {
            jump.operation = Operation::Goto(otherwise);
            block.instructions.truncate(at + 1);
            continue;
        }
        let Some(bound) = by_length(slot, analysis).or_else(|| by_pointer(jump, analysis)) else {
            continue;
        };
        let (short, long) =
            if bound.holds_if_taken { (otherwise, taken) } else { (taken, otherwise) };
        let Bound { base, bytes, .. } = bound;
        jump.operation = Operation::Bound { base, bytes, target: short };
        rest.operation = Operation::Goto(long);
    }
}

/// A check whether `base + bytes` is within the packet, or whether the packet has that many bytes.
struct Bound {
    base: Option<u8>,
    bytes: i32,
    holds_if_taken: bool,
}

/// Returns the check of a jump that requires a number of bytes, as the analysis reports it.
fn by_length(slot: usize, analysis: &Analysis) -> Option<Bound> {
    let check = analysis.bounds_check(slot)?;
    let is_constant = check.needed.0 == check.needed.1 && !check.is_metadata;
    let bytes = i32::try_from(check.needed.0).ok().filter(|_| is_constant)?;
    Some(Bound { base: None, bytes, holds_if_taken: check.holds_if_taken })
}

/// Returns the check of a jump that compares an address in the packet with its end.
fn by_pointer(jump: &Instruction, analysis: &Analysis) -> Option<Bound> {
    let (left, condition, right) = compared(jump)?;
    let facts = analysis.registers(*jump.origins.first()?)?;
    let (of_left, of_right) = (&facts[usize::from(left)], &facts[usize::from(right)]);
    let (base, condition) = if is_packet(of_left) && is_end(of_right) {
        (left, condition)
    } else if is_end(of_left) && is_packet(of_right) {
        (right, mirrored(condition)?)
    } else {
        return None;
    };
    // If the pointer may equal the end, no byte after it is needed.
    let (bytes, holds_if_taken) = match condition {
        Condition::Greater => (0, false),
        Condition::GreaterOrEqual => (1, false),
        Condition::LessOrEqual => (0, true),
        Condition::Less => (1, true),
        _ => return None,
    };
    Some(Bound { base: Some(base), bytes, holds_if_taken })
}

/// Returns two registers that are compared as addresses.
fn compared(jump: &Instruction) -> Option<(u8, Condition, u8)> {
    use crate::operation::Width::Bits64;
    match jump.operation {
        Operation::Jump {
            width: Bits64, condition, left, right: Operand::Register(right), ..
        } => Some((left, condition, right)),
        _ => None,
    }
}

fn is_packet(fact: &Fact) -> bool {
    matches!(fact.holds, Type::Packet { .. }) && !fact.may_be_null
}

fn is_in_packet(fact: &Fact) -> bool {
    matches!(fact.holds, Type::Packet { offset, .. } if offset.0 >= 0) && !fact.may_be_null
}

fn is_end(fact: &Fact) -> bool {
    matches!(fact.holds, Type::PacketEnd) && !fact.may_be_null
}

/// Returns the same comparison with its sides exchanged.
fn mirrored(condition: Condition) -> Option<Condition> {
    Some(match condition {
        Condition::Greater => Condition::Less,
        Condition::GreaterOrEqual => Condition::LessOrEqual,
        Condition::Less => Condition::Greater,
        Condition::LessOrEqual => Condition::GreaterOrEqual,
        _ => return None,
    })
}

/// Returns whether a jump is taken only if an address in the packet is 0: no such address is, nor
/// is its lower half unless it is before the packet.
fn is_never_taken(jump: &Instruction, facts: Option<&[Fact; 11]>) -> bool {
    let Operation::Jump { condition, left, right, .. } = jump.operation else { return false };
    let is_zero = condition == Condition::Equal && right == Operand::Immediate(0);
    let fact = facts.and_then(|facts| facts.get(usize::from(left)));
    is_zero && fact.is_some_and(|fact| is_end(fact) || is_in_packet(fact))
}
