// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Short arms of branches are skipped in their row instead of being jumped over: a jump to the next
//! row annuls the lanes behind it (the publication leaves conversion of branches to later work).
//!
//! Of an arm, what has an effect, leaves, or gives what is read behind it goes into one row with
//! the jump; what only it reads itself is done in any case, before. Then both ways meet again in
//! the same block, and what follows can be scheduled together with what was before.

use super::superblocks::inverse;
use super::threading;
use crate::blocks::{Instruction, NEXT, Routine};
use crate::memory::Touch;
use crate::operation::{Operation, Target};
use freeport_ebpf::analysis::Analysis;

/// Instructions of an arm at most.
const ARM_MAX: usize = 12;

/// Converts the branches of a routine for rows of so many lanes.
pub fn run(routine: &mut Routine, analysis: &Analysis, lanes: usize) {
    let mut arms = 0;
    // Inner branches first: their arms are parts of outer ones.
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

/// Converts the branch at the end of a block, if its arms fit; says whether.
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

/// Whether a block does nothing but end the program, which both ways can do for themselves.
fn ends_at_once(routine: &Routine, block: usize) -> bool {
    let instructions = &routine.blocks[block].instructions;
    let ends = |it: &Instruction| it.operation == Operation::Exit;
    threading::verdict(routine, block, |_| Some(0)).is_some() || instructions.iter().all(ends)
}

/// Where control goes at the end of an arm.
fn end(routine: &Routine, block: usize) -> Option<usize> {
    match routine.blocks[block].instructions.last()?.operation {
        Operation::Goto(Target::Row(end)) => Some(end),
        _ => None,
    }
}

/// Registers that are read from a block on.
fn live(routine: &Routine, analysis: &Analysis, block: usize) -> u16 {
    analysis.liveness().registers(routine.blocks[block].slot)
}

/// A jump that is taken where this one is not.
fn inverted(jump: &Instruction) -> Option<Instruction> {
    let mut jump = jump.clone();
    let Operation::Jump { condition, .. } = &mut jump.operation else { return None };
    *condition = inverse(*condition)?;
    Some(jump)
}

/// Instructions, each with the number of the row that it shares with others, if it does.
type Arm = Vec<(Instruction, Option<usize>)>;

fn joined(first: Arm, second: Arm) -> Arm {
    let second = second.into_iter().map(|(it, number)| (it, number.map(|number| number + 1)));
    first.into_iter().chain(second).collect()
}

/// What a block becomes as an arm that `jump` skips, where these registers are read behind it;
/// nothing if it does not fit a row.
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

/// Whether an instruction of an arm must not be done if the arm is not; nothing if it cannot be
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

/// Whether an instruction that is moved before guarded ones comes after one of them for a reason.
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

/// Whether instructions can be in one row: none reads or writes what another writes.
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

/// Whether guarded jumps lead only to where nothing is read that the row writes.
fn leaves_alone(routine: &Routine, analysis: &Analysis, guarded: &[Instruction]) -> bool {
    let written = guarded.iter().filter_map(|it| it.operation.written());
    let written = written.fold(0, |set, register| set | 1 << register);
    guarded.iter().all(|it| match it.operation.target() {
        Some(Target::Row(block)) if block != NEXT => live(routine, analysis, block) & written == 0,
        _ => true,
    })
}

/// An instruction as it is done whether it is needed or not.
fn done_anyway(instruction: &Instruction) -> Instruction {
    let mut instruction = instruction.clone();
    if let Operation::Load { is_speculative, .. } = &mut instruction.operation {
        *is_speculative = true;
    }
    instruction
}
