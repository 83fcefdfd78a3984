// SPDX-License-Identifier: Apache-2.0 OR MIT
//! If-conversion: short arms of branches are skipped within their row instead of being jumped over.
//! A jump to the next row annuls the later lanes (the publication leaves the conversion of branches
//! to future work).
//!
//! Operations of an arm that have an effect, leave, or compute a result that is read later share a
//! row with the jump; those whose results only the arm reads are executed unconditionally before.
//! Both paths then meet in the same block, and the code after it can be scheduled together with the
//! code before.

use super::superblocks::inverse;
use super::threading;
use crate::blocks::{Instruction, NEXT, Routine};
use crate::memory::Touch;
use crate::operation::{Operation, Target};
use freeport_ebpf::analysis::Analysis;

/// Maximum number of instructions of an arm.
const ARM_MAX: usize = 12;

/// Converts the branches of a routine for rows with this number of lanes.
pub fn run(routine: &mut Routine, analysis: &Analysis, lanes: usize) {
    let mut arms = 0;
    // Inner branches are converted first: their arms are parts of outer ones.
    loop {
        let blocks = (0..routine.blocks.len()).rev();
        let converted = blocks.filter(|block| convert(routine, analysis, *block, lanes, &mut arms));
        if converted.count() == 0 {
            return;
        }
    }
}

/// A branch at the end of a block.
struct Branch {
    jump: Instruction,
    taken: usize,
    behind: usize,
}

fn branch(routine: &Routine, block: usize) -> Option<Branch> {
    let [.., jump, last] = routine.blocks[block].instructions.as_slice() else { return None };
    let (Operation::Jump { target: Target::Row(taken), .. }, Operation::Goto(Target::Row(behind))) =
        (jump.operation, last.operation)
    else {
        return None;
    };
    let is_plain = jump.arm.is_none() && taken != NEXT && taken != behind;
    is_plain.then(|| Branch { jump: jump.clone(), taken, behind })
}

/// Converts the branch at the end of a block, if its arms fit; returns whether it did.
fn convert(
    routine: &mut Routine,
    analysis: &Analysis,
    block: usize,
    lanes: usize,
    arms: &mut usize,
) -> bool {
    let Some(Branch { jump, taken, behind }) = branch(routine, block) else { return false };
    let entrances = routine.entrances();
    let is_arm = |arm: usize| entrances[arm] == 1 && arm != block;
    let inverted = inverted(&jump);
    let live = |block: usize| live(routine, analysis, block);
    let (mut added, end) = if is_arm(behind) && end(routine, behind) == Some(taken) {
        (arm(routine, analysis, behind, live(taken), &jump, lanes), taken)
    } else if is_arm(taken) && end(routine, taken) == Some(behind) {
        let arm =
            inverted.and_then(|jump| arm(routine, analysis, taken, live(behind), &jump, lanes));
        (arm, behind)
    } else if is_arm(taken) && is_arm(behind) && end(routine, taken) == end(routine, behind) {
        let Some(end) = end(routine, taken) else { return false };
        let both = live(end) | live(taken);
        let first = arm(routine, analysis, behind, both, &jump, lanes);
        let second = inverted
            .filter(|_| first.is_some())
            .and_then(|jump| arm(routine, analysis, taken, live(end), &jump, lanes));
        (first.zip(second).map(|(first, second)| joined(first, second)), end)
    } else {
        return false;
    };
    if end == block || ends_at_once(routine, end) {
        return false;
    }
    let Some(arm) = added.take() else { return false };
    let instructions = &mut routine.blocks[block].instructions;
    let Some(mut last) = instructions.pop() else { return false };
    instructions.pop();
    for (mut instruction, number) in arm {
        instruction.arm = number.map(|number| *arms + number);
        instructions.push(instruction);
    }
    *arms += 2;
    last.operation = Operation::Goto(Target::Row(end));
    instructions.push(last);
    routine.remove_unreachable();
    true
}

/// Returns whether a block only ends the program, so that both paths can do so separately.
fn ends_at_once(routine: &Routine, block: usize) -> bool {
    let instructions = &routine.blocks[block].instructions;
    let ends = |it: &Instruction| it.operation == Operation::Exit;
    threading::verdict(routine, block, |_| Some(0)).is_some() || instructions.iter().all(ends)
}

/// Returns the block to which control goes at the end of an arm.
fn end(routine: &Routine, block: usize) -> Option<usize> {
    match routine.blocks[block].instructions.last()?.operation {
        Operation::Goto(Target::Row(end)) => Some(end),
        _ => None,
    }
}

/// Returns the registers that are read from a block on.
fn live(routine: &Routine, analysis: &Analysis, block: usize) -> u16 {
    analysis.liveness().registers(routine.blocks[block].slot)
}

/// Returns the jump with the inverse condition.
fn inverted(jump: &Instruction) -> Option<Instruction> {
    let mut jump = jump.clone();
    let Operation::Jump { condition, .. } = &mut jump.operation else { return None };
    *condition = inverse(*condition)?;
    Some(jump)
}

/// Instructions, each with the number of the row that it shares with others, if any.
type Arm = Vec<(Instruction, Option<usize>)>;

fn joined(first: Arm, second: Arm) -> Arm {
    let second = second.into_iter().map(|(it, number)| (it, number.map(|number| number + 1)));
    first.into_iter().chain(second).collect()
}

/// Converts a block to an arm that `jump` skips, where these registers are read after it; returns
/// `None` if it does not fit a row.
fn arm(
    routine: &Routine,
    analysis: &Analysis,
    block: usize,
    live: u16,
    jump: &Instruction,
    lanes: usize,
) -> Option<Arm> {
    let (_, body) = routine.blocks[block].instructions.split_last()?;
    if body.len() > ARM_MAX {
        return None;
    }
    let mut skip = jump.clone();
    *skip.operation.target_mut()? = Target::Row(NEXT);
    let (mut before, mut guarded) = (vec![], vec![skip]);
    for instruction in body {
        if is_guarded(instruction, live)? {
            guarded.push(instruction.clone());
        } else if is_after(instruction, &guarded) {
            return None;
        } else {
            before.push(done_anyway(instruction));
        }
    }
    let width: usize = guarded.iter().map(|it| it.operation.lanes()).sum();
    let fits = width <= lanes && is_one_row(&guarded) && leaves_alone(routine, analysis, &guarded);
    let all = before.into_iter().map(|it| (it, None));
    fits.then(|| all.chain(guarded.into_iter().map(|it| (it, Some(0)))).collect())
}

/// Returns whether an instruction of an arm must be skipped with the arm; `None` if it cannot be
/// part of one.
fn is_guarded(instruction: &Instruction, live: u16) -> Option<bool> {
    let operation = &instruction.operation;
    match operation {
        _ if instruction.arm.is_some() => Some(true),
        Operation::Store { .. } | Operation::Jump { .. } | Operation::Bound { .. } => Some(true),
        Operation::Atomic { .. }
        | Operation::Call { .. }
        | Operation::CallFunction(_)
        | Operation::Goto(_)
        | Operation::Exit => None,
        _ => Some(operation.written().is_some_and(|register| live >> register & 1 == 1)),
    }
}

/// Returns whether an instruction that would move before guarded ones depends on one of them.
fn is_after(instruction: &Instruction, guarded: &[Instruction]) -> bool {
    let touch = Touch { operation: &instruction.operation, accesses: &instruction.accesses };
    let written = instruction.operation.written();
    guarded.iter().any(|earlier| {
        let reads = |register: u8| instruction.operation.read().any(|read| read == register);
        let is_read = |register: u8| earlier.operation.read().any(|read| read == register);
        let other = Touch { operation: &earlier.operation, accesses: &earlier.accesses };
        earlier.operation.written().is_some_and(reads)
            || written.is_some_and(is_read)
            || written.is_some() && written == earlier.operation.written()
            || touch.conflicts(&other)
    })
}

/// Returns whether instructions can share a row: none reads or writes a register that another
/// writes.
fn is_one_row(guarded: &[Instruction]) -> bool {
    guarded.iter().enumerate().all(|(at, one)| {
        guarded[..at].iter().all(|other| {
            let touch = Touch { operation: &one.operation, accesses: &one.accesses };
            let earlier = Touch { operation: &other.operation, accesses: &other.accesses };
            let meets = |a: &Operation, b: &Operation| {
                a.written().is_some_and(|register| {
                    b.written() == Some(register) || b.read().any(|read| read == register)
                })
            };
            !meets(&one.operation, &other.operation)
                && !meets(&other.operation, &one.operation)
                && !touch.conflicts(&earlier)
        })
    })
}

/// Returns whether the targets of guarded jumps read none of the registers that the row writes.
fn leaves_alone(routine: &Routine, analysis: &Analysis, guarded: &[Instruction]) -> bool {
    let written = guarded.iter().filter_map(|it| it.operation.written());
    let written = written.fold(0, |set, register| set | 1 << register);
    guarded.iter().all(|it| match it.operation.target() {
        Some(Target::Row(block)) if block != NEXT => live(routine, analysis, block) & written == 0,
        _ => true,
    })
}

/// Returns an instruction in the form that is executed unconditionally.
fn done_anyway(instruction: &Instruction) -> Instruction {
    let mut instruction = instruction.clone();
    if let Operation::Load { is_speculative, .. } = &mut instruction.operation {
        *is_speculative = true;
    }
    instruction
}
