// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Removes instructions that zero what is zero at the start of a packet (publication, section 3.1):
//! registers and stack bytes that cannot have been written on any path.

use crate::blocks::{Instruction, Routine};
use crate::machine::FRAME_BYTES;
use crate::memory::own_frame;
use crate::operation::{Arithmetic, Operand, Operation};
use freeport_ebpf::analysis::{Access, Space};

/// Registers and bytes that are certainly still zero: registers as a bit mask, bytes of the frame.
#[derive(Clone, PartialEq, Eq)]
struct Zero {
    registers: u16,
    frame: [u64; FRAME_BYTES / 64],
}

/// Removes the redundant zeroing instructions of a program.
pub fn run(routine: &mut Routine) {
    if !routine.is_program {
        return;
    }
    let before = at_blocks(routine);
    for (block, before) in routine.blocks.iter_mut().zip(before) {
        let Some(mut zero) = before else { continue };
        block.instructions.retain(|instruction| {
            let is_kept = !zero.is_no_change(instruction);
            if is_kept {
                zero.pass(instruction);
            }
            is_kept
        });
    }
}

/// Returns what is zero at the start of each reachable block.
fn at_blocks(routine: &Routine) -> Vec<Option<Zero>> {
    let mut before = vec![None; routine.blocks.len()];
    // Register 1 is the context, register 10 the frame pointer.
    let all = Zero { registers: !(1 << 1 | 1 << 10), frame: [u64::MAX; 8] };
    before[0] = Some(all);
    let mut left = vec![0];
    while let Some(block) = left.pop() {
        let Some(mut zero) = before[block].clone() else { continue };
        let mut reached = vec![];
        for instruction in &routine.blocks[block].instructions {
            if !zero.is_no_change(instruction) {
                zero.pass(instruction);
            }
            if let Some(crate::operation::Target::Row(next)) = instruction.operation.target() {
                reached.push((next, zero.clone()));
            }
        }
        for (next, zero) in reached {
            let joined = match &before[next] {
                Some(known) => known.both(&zero),
                None => zero,
            };
            if before[next].as_ref() != Some(&joined) {
                before[next] = Some(joined);
                left.push(next);
            }
        }
    }
    before
}

impl Zero {
    /// Returns what is zero on both paths.
    fn both(&self, other: &Self) -> Self {
        let mut frame = self.frame;
        frame.iter_mut().zip(other.frame).for_each(|(one, other)| *one &= other);
        Self { registers: self.registers & other.registers, frame }
    }

    /// Returns whether an instruction only zeroes what is zero.
    fn is_no_change(&self, instruction: &Instruction) -> bool {
        match instruction.operation {
            Operation::Alu {
                operation: Arithmetic::Move,
                destination,
                right: Operand::Immediate(0),
                ..
            } => self.registers >> destination & 1 == 1,
            Operation::Store { source, .. } => {
                let is_zero = match source {
                    Operand::Immediate(value) => value == 0,
                    Operand::Register(register) => self.registers >> register & 1 == 1,
                };
                let bytes = match instruction.accesses.as_slice() {
                    [access] => own_bytes(access).filter(|_| is_exact(access)),
                    _ => None,
                };
                is_zero && bytes.is_some_and(|mut bytes| bytes.all(|byte| self.is_byte(byte)))
            }
            _ => false,
        }
    }

    fn is_byte(&self, byte: usize) -> bool {
        self.frame[byte / 64] >> (byte % 64) & 1 == 1
    }

    /// Updates the state for an instruction.
    fn pass(&mut self, instruction: &Instruction) {
        if let Some(register) = instruction.operation.written() {
            self.registers &= !(1 << register);
        }
        match instruction.operation {
            Operation::CallFunction(_) => *self = Self { registers: 0, frame: [0; 8] },
            Operation::Call { helper, .. } => {
                let signature = freeport_ebpf::helper_functions::signature(helper);
                if signature.is_none_or(|it| it.calls_function()) {
                    *self = Self { registers: 0, frame: [0; 8] };
                }
            }
            _ => {}
        }
        for access in instruction.accesses.iter().filter(|access| access.kind.writes()) {
            match own_bytes(access) {
                Some(bytes) => bytes.for_each(|byte| self.frame[byte / 64] &= !(1 << (byte % 64))),
                None => self.frame = [0; 8],
            }
        }
    }
}

/// Returns the bytes of the function's own frame that an access may touch; `None` if it may be any.
fn own_bytes(access: &Access) -> Option<std::ops::Range<usize>> {
    match access.space {
        Space::Stack { .. } | Space::Unknown(_) => own_frame(access),
        _ => Some(0..0),
    }
}

fn is_exact(access: &Access) -> bool {
    matches!(access.space, Space::Stack { calls_up: Some(0) })
        && access.is_proven
        && access.offset.0 == access.offset.1
}
