// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jumps to blocks that only jump on lead where those do, and what ends there ends at once where
//! the verdict is known.

use crate::blocks::{Block, NEXT, Routine};
use crate::operation::{Arithmetic, Operand, Operation, Target};
use freeport_ebpf::analysis::Analysis;

/// Blocks that are followed at most, so that an endless loop ends.
const FOLLOWED_MAX: usize = 16;

/// Lets jumps skip blocks that only jump on, and makes those plain that are always or never taken.
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

/// Makes the jump at the end of a block plain if it is known whether it is taken.
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

/// The block where control ends up behind blocks that only jump.
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

/// The verdict that a program ends with when control comes to a block with this in register 0, if
/// nothing else happens there.
pub fn verdict(routine: &Routine, mut block: usize, mut register_0: Option<u64>) -> Option<u32> {
    if !routine.is_program {
        return None;
    }
    for _ in 0..FOLLOWED_MAX {
        let mut next = None;
        for instruction in &routine.blocks[block].instructions {
            match instruction.operation {
                Operation::Alu {
                    operation: Arithmetic::Move,
                    destination,
                    right: Operand::Immediate(value),
                    ..
                } => {
                    // Of 64 bits the verdict is the lower half, which is the same for both widths.
                    if destination == 0 {
                        register_0 = Some(u64::from(value as u32));
                    }
                }
                Operation::Goto(Target::Row(block)) => next = Some(block),
                Operation::Goto(Target::Exit(verdict)) => return Some(verdict),
                Operation::Exit => return register_0.map(|value| value as u32),
                _ => return None,
            }
        }
        block = next?;
    }
    None
}
