// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which blocks are scheduled together: a path of blocks each of which control enters only from the
//! one before. Where a block has two ways on, the path takes the one that is likely, so that the
//! other is a jump out of it.

use crate::blocks::Routine;
use crate::operation::{Condition, Operation, Target};

/// Paths of blocks, in the order in which they are best laid out. Jumps may be turned around, so
/// that the likely way is the one behind them.
pub fn paths(routine: &mut Routine, is_joined: bool) -> Vec<Vec<usize>> {
    let entrances = routine.entrances();
    let mut is_taken = vec![false; routine.blocks.len()];
    let mut paths = vec![];
    let mut left = vec![0];
    while let Some(start) = left.pop() {
        if std::mem::replace(&mut is_taken[start], true) {
            continue;
        }
        let mut path = vec![start];
        let mut at = start;
        while let Some(next) = next_of(routine, at, &entrances, &is_taken, is_joined) {
            is_taken[next] = true;
            path.push(next);
            at = next;
        }
        // What is left of the path's jumps: the last one's way on comes next.
        let ways = path.iter().flat_map(|block| routine.blocks[*block].successors());
        left.extend(ways.filter(|way| !is_taken[*way]).collect::<Vec<_>>());
        paths.push(path);
    }
    paths
}

/// The block that goes on the path behind `block`.
fn next_of(
    routine: &mut Routine,
    block: usize,
    entrances: &[usize],
    is_taken: &[bool],
    is_joined: bool,
) -> Option<usize> {
    let fits = |block: usize| is_joined && entrances[block] == 1 && !is_taken[block];
    let instructions = &routine.blocks[block].instructions;
    let last = instructions.len().checked_sub(1)?;
    let Operation::Goto(Target::Row(behind)) = instructions[last].operation else { return None };
    if last > 0 && matches!(instructions[last - 1].operation, Operation::CallFunction(_)) {
        return None;
    }
    let taken = last.checked_sub(1).and_then(|at| match instructions[at].operation {
        Operation::Jump { condition, target: Target::Row(taken), .. }
            if instructions[at].arm.is_none() =>
        {
            inverse(condition).map(|inverse| (at, taken, inverse))
        }
        _ => None,
    });
    let Some((at, taken, inverse)) = taken.filter(|(_, taken, _)| fits(*taken)) else {
        return fits(behind).then_some(behind);
    };
    if fits(behind) && weight(routine, behind) >= weight(routine, taken) {
        return Some(behind);
    }
    let instructions = &mut routine.blocks[block].instructions;
    if let Operation::Jump { condition, target, .. } = &mut instructions[at].operation {
        (*condition, *target) = (inverse, Target::Row(behind));
    }
    instructions[last].operation = Operation::Goto(Target::Row(taken));
    Some(taken)
}

/// How much there is to do from a block on: short ways are the unlikely ones.
fn weight(routine: &Routine, block: usize) -> usize {
    let mut is_seen = vec![false; routine.blocks.len()];
    let (mut left, mut weight) = (vec![block], 0);
    while let Some(block) = left.pop() {
        if !std::mem::replace(&mut is_seen[block], true) {
            weight += routine.blocks[block].instructions.len();
            left.extend(routine.blocks[block].successors());
        }
    }
    weight
}

/// The condition that holds where this one does not.
pub fn inverse(condition: Condition) -> Option<Condition> {
    use Condition::*;
    Some(match condition {
        Equal => NotEqual,
        NotEqual => Equal,
        Greater => LessOrEqual,
        LessOrEqual => Greater,
        Less => GreaterOrEqual,
        GreaterOrEqual => Less,
        SignedGreater => SignedLessOrEqual,
        SignedLessOrEqual => SignedGreater,
        SignedLess => SignedGreaterOrEqual,
        SignedGreaterOrEqual => SignedLess,
        Set => return None,
    })
}
