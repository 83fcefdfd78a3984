// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jump threading: jumps to blocks that only jump lead to the final target, and jumps to an exit
//! with a known verdict become exits.

use crate::blocks::{Block, Instruction, NEXT, Routine};
use crate::machine::REGISTERS;
use crate::operation::{Arithmetic, Operand, Operation, Target};
use freeport_ebpf::analysis::Analysis;

/// Maximum number of blocks in a chain, so that the search ends in an endless loop.
const FOLLOWED_MAX: usize = 16;

/// Maximum number of moves before an exit that are duplicated for each path to it.
const MOVES_MAX: usize = 2;

/// Appends the exit to blocks whose successor only exits: the return value may be known there, and
/// is computed where it is returned.
pub fn end(routine: &mut Routine) {
    if !routine.is_program {
        return;
    }
    for block in 0..routine.blocks.len() {
        let last = routine.blocks[block].instructions.last().map(|it| it.operation);
        if let Some(Operation::Goto(Target::Row(next))) = last
            && is_ending(&routine.blocks[next])
        {
            let ending = routine.blocks[next].instructions.clone();
            let instructions = &mut routine.blocks[block].instructions;
            instructions.pop();
            instructions.extend(ending);
            remove_moves(instructions);
        }
    }
    routine.remove_unreachable();
}

/// Skips blocks that only jump, and replaces jumps that are always or never taken.
pub fn run(routine: &mut Routine, analysis: &Analysis) {
    for block in &mut routine.blocks {
        decide(block, analysis);
    }
    for block in 0..routine.blocks.len() {
        for at in 0..routine.blocks[block].instructions.len() {
            let target = routine.blocks[block].instructions[at].operation.target();
            if let Some(Target::Row(to)) = target
                && to != NEXT
            {
                let to = end_of_chain(routine, to);
                if let Some(target) = routine.blocks[block].instructions[at].operation.target_mut()
                {
                    *target = Target::Row(to);
                }
            }
        }
    }
}

/// Replaces the jump at the end of a block if its outcome is known.
fn decide(block: &mut Block, analysis: &Analysis) {
    let [.., jump, last] = block.instructions.as_mut_slice() else { return };
    let is_jump = matches!(jump.operation, Operation::Jump { .. });
    let Some(&slot) = jump.origins.first().filter(|_| is_jump) else { return };
    if !matches!(last.operation, Operation::Goto(_)) {
        return;
    }
    match (analysis.outcomes(slot), jump.operation.target()) {
        ([true, false], Some(target)) => last.operation = Operation::Goto(target),
        ([false, true], _) => {}
        _ => return,
    }
    let jump = block.instructions.len() - 2;
    block.instructions.remove(jump);
}

/// Returns the block at the end of a chain of blocks that only jump.
fn end_of_chain(routine: &Routine, mut block: usize) -> usize {
    for _ in 0..FOLLOWED_MAX {
        match routine.blocks[block].instructions.as_slice() {
            [only] => match only.operation {
                Operation::Goto(Target::Row(next)) => block = next,
                _ => break,
            },
            _ => break,
        }
    }
    block
}

/// Returns the verdict of a program that reaches a block with these constants in registers, if the
/// block has no other effect.
pub fn verdict(
    routine: &Routine,
    mut block: usize,
    known: impl Fn(u8) -> Option<u64>,
) -> Option<u32> {
    if !routine.is_program {
        return None;
    }
    // The verdict is the lower half of 64 bits, which is the same for both widths.
    let mut registers: [Option<u32>; REGISTERS as usize] =
        std::array::from_fn(|register| known(register as u8).map(|value| value as u32));
    for _ in 0..FOLLOWED_MAX {
        let mut next = None;
        for instruction in &routine.blocks[block].instructions {
            match instruction.operation {
                Operation::Alu { operation: Arithmetic::Move, destination, right, .. } => {
                    registers[usize::from(destination)] = match right {
                        Operand::Immediate(value) => Some(value as u32),
                        Operand::Register(register) => registers[usize::from(register)],
                    };
                }
                Operation::Goto(Target::Row(block)) => next = Some(block),
                Operation::Goto(Target::Exit(verdict)) => return Some(verdict),
                Operation::Exit => return registers[0],
                _ => return None,
            }
        }
        block = next?;
    }
    None
}

/// Removes the moves before an exit if they only copy register 0 back to itself. Its upper half
/// does not matter.
fn remove_moves(instructions: &mut Vec<Instruction>) {
    let mut source = 0;
    for at in (0..instructions.len() - 1).rev() {
        match instructions[at].operation {
            Operation::Alu { operation: Arithmetic::Move, destination, right, .. } => {
                if destination == source {
                    let Operand::Register(register) = right else { return };
                    source = register;
                }
            }
            _ => return,
        }
        if source == 0 {
            instructions.drain(at..instructions.len() - 1);
        }
    }
}

/// Returns whether a block only moves values and ends the program.
fn is_ending(block: &Block) -> bool {
    let is_move = |it: &Instruction| {
        matches!(it.operation, Operation::Alu { operation: Arithmetic::Move, .. })
    };
    match block.instructions.split_last() {
        Some((last, moves)) => {
            last.operation == Operation::Exit
                && moves.len() <= MOVES_MAX
                && moves.iter().all(is_move)
        }
        None => false,
    }
}
