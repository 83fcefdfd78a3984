// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects blocks that are scheduled together: a path of blocks, each entered only from the
//! previous one (superblocks; Hwu and others, "The Superblock", 1993). Where a block has two
//! successors, the path takes the likely one, and the other becomes a jump out of it.

use crate::blocks::{Block, Instruction, Routine};
use crate::operation::{Condition, Operation, Target};
use crate::profile::Profile;
use std::borrow::Cow;

/// Maximum number of instructions of a duplicated block.
const TWICE_MAX: usize = 24;

/// Returns each reachable block as a path of its own.
pub fn single(routine: &Routine) -> Vec<Vec<usize>> {
    let exists = |block: &usize| !routine.blocks[*block].instructions.is_empty();
    (0..routine.blocks.len()).filter(exists).map(|block| vec![block]).collect()
}

/// Returns paths of blocks, in a good order for layout. Where a path continues with the target of a
/// conditional jump, [`kept`] inverts the jump. With a profile, a likely path continues through
/// blocks that have other predecessors, which are then duplicated in several paths.
pub fn paths(routine: &Routine, profile: Option<&Profile>) -> Vec<Vec<usize>> {
    let size: usize = routine.blocks.iter().map(|block| block.instructions.len()).sum();
    let mut walk = Walk {
        entrances: routine.entrances(),
        is_taken: vec![false; routine.blocks.len()],
        spare: size / 2,
        routine,
        profile,
    };
    let mut is_start = vec![false; routine.blocks.len()];
    let mut paths = vec![];
    let mut left = vec![0];
    while let Some(start) = left.pop() {
        if std::mem::replace(&mut is_start[start], true) {
            continue;
        }
        walk.is_taken[start] = true;
        let mut path = vec![start];
        while let Some(next) = walk.next(&path) {
            path.push(next);
        }
        // Targets of the remaining jumps of the path; that of the last one is handled next.
        for (at, block) in path.iter().enumerate() {
            let jumps = kept(&routine.blocks[*block], path.get(at + 1).copied());
            let ways = jumps.iter().filter_map(Instruction::successor);
            left.extend(ways.filter(|way| !is_start[*way]));
        }
        paths.push(path);
    }
    paths
}

/// A routine while its paths are formed.
struct Walk<'a> {
    routine: &'a Routine,
    profile: Option<&'a Profile>,
    entrances: Vec<usize>,
    is_taken: Vec<bool>,
    /// Number of instructions that may still be duplicated.
    spare: usize,
}

impl Walk<'_> {
    /// Returns the block with which a path continues.
    fn next(&mut self, path: &[usize]) -> Option<usize> {
        let block = *path.last()?;
        let instructions = &self.routine.blocks[block].instructions;
        let last = instructions.len().checked_sub(1)?;
        let Operation::Goto(Target::Row(behind)) = instructions[last].operation else {
            return None;
        };
        let before = last.checked_sub(1).map(|at| &instructions[at]);
        if before.is_some_and(|it| matches!(it.operation, Operation::CallFunction(_))) {
            return None;
        }
        let turned = before.and_then(|it| match it.operation {
            Operation::Jump { condition, target: Target::Row(taken), .. } if it.arm.is_none() => {
                inverse(condition).map(|_| taken)
            }
            _ => None,
        });
        let slot = before.and_then(|it| it.origins.first().copied());
        let [to_taken, to_behind] = self.weights(block, slot.filter(|_| turned.is_some()));
        let straight = self.fits(path, behind, to_behind).then_some(behind);
        let around = turned.filter(|taken| self.fits(path, *taken, to_taken));
        let next = match (straight, around) {
            (Some(behind), Some(taken)) => {
                let is_straight = match self.profile {
                    Some(_) => to_behind >= to_taken,
                    None => work(self.routine, behind) >= work(self.routine, taken),
                };
                if is_straight { behind } else { taken }
            }
            (straight, around) => straight.or(around)?,
        };
        Some(self.take(next))
    }

    /// Returns whether a block can continue a path: it has no other predecessor, or its duplication
    /// is worthwhile.
    fn fits(&self, path: &[usize], block: usize, weight: u64) -> bool {
        self.is_own(block) || self.is_worth_twice(path, block, weight)
    }

    /// Returns the number of times that the jump in a slot at the end of a block was taken, and was
    /// not.
    fn weights(&self, block: usize, jump: Option<usize>) -> [u64; 2] {
        let Some(profile) = self.profile else { return [0; 2] };
        match jump {
            Some(slot) => {
                [profile.taken(slot), profile.count(slot).saturating_sub(profile.taken(slot))]
            }
            None => [0, profile.count(self.routine.blocks[block].slot)],
        }
    }

    fn is_own(&self, block: usize) -> bool {
        self.entrances[block] == 1 && !self.is_taken[block]
    }

    /// Returns whether most executions of a block come through the path with this count.
    fn is_worth_twice(&self, path: &[usize], block: usize, weight: u64) -> bool {
        let Some(profile) = self.profile else { return false };
        let size = self.routine.blocks[block].instructions.len();
        let is_likely = weight > 0 && weight * 2 >= profile.count(self.routine.blocks[block].slot);
        is_likely && size <= TWICE_MAX.min(self.spare) && !path.contains(&block)
    }

    /// Assigns a block to a path.
    fn take(&mut self, block: usize) -> usize {
        if self.is_own(block) {
            self.is_taken[block] = true;
        } else {
            self.spare -= self.routine.blocks[block].instructions.len();
        }
        block
    }
}

/// Returns the instructions of a block that stay on a path that continues with `next`. The last
/// jump is dropped, and so is a conditional jump before it with the same target. A conditional jump
/// to `next` is inverted, so that it leaves the path. Without a next block all instructions stay.
pub fn kept(block: &Block, next: Option<usize>) -> Cow<'_, [Instruction]> {
    let all = block.instructions.as_slice();
    let (Some(next), [rest @ .., last]) = (next, all) else { return Cow::Borrowed(all) };
    let (Operation::Goto(behind), [before @ .., jump]) = (last.operation, rest) else {
        return Cow::Borrowed(rest);
    };
    match jump.operation {
        Operation::Jump { width, condition, left, right, target }
            if target == Target::Row(next) && jump.arm.is_none() =>
        {
            if behind == target {
                return Cow::Borrowed(before);
            }
            let Some(condition) = inverse(condition) else { return Cow::Borrowed(rest) };
            let operation = Operation::Jump { width, condition, left, right, target: behind };
            let turned = Instruction { operation, ..jump.clone() };
            Cow::Owned(before.iter().cloned().chain([turned]).collect())
        }
        _ => Cow::Borrowed(rest),
    }
}

/// Returns the amount of work from a block on: short paths are considered unlikely.
fn work(routine: &Routine, block: usize) -> usize {
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

/// Returns the inverse of a condition.
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
