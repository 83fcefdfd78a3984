// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program before scheduling: blocks of operations in the order of the program.
//!
//! Until rows exist, the row of a target is the number of a block of the same routine, and the
//! callee of a call is the number of a routine. Each block ends with an operation that always
//! leaves it, or with a call followed by a `Goto` that names the block where execution continues.

use crate::operation::{Operation, Target};
use freeport_ebpf::analysis::Access;

/// Represents the next row, in place of a block.
pub const NEXT: usize = usize::MAX;

/// A function of the program.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Name of the function; empty if the object does not have it.
    pub name: String,
    /// Blocks of the function; the first is its entry.
    pub blocks: Vec<Block>,
    /// Whether it is the program itself, whose exits end the run.
    pub is_program: bool,
}

/// Instructions that are executed in sequence, unless a jump among them leaves the block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Instructions of the block; the last one always leaves it.
    pub instructions: Vec<Instruction>,
    /// Slot of the first eBPF instruction.
    pub slot: usize,
}

/// An operation with its origins and memory accesses.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The operation.
    pub operation: Operation,
    /// Slots of the eBPF instructions from which it was made.
    pub origins: Vec<usize>,
    /// Its memory accesses.
    pub accesses: Vec<Access>,
    /// All instructions with the same number go into one row, in this order, after all others
    /// there.
    pub arm: Option<usize>,
}

impl Block {
    /// Returns the possible successors, by the jumps among the instructions.
    pub fn successors(&self) -> impl Iterator<Item = usize> {
        self.instructions.iter().filter_map(Instruction::successor)
    }
}

impl Instruction {
    /// Returns the block to which the instruction may jump.
    pub fn successor(&self) -> Option<usize> {
        match self.operation.target() {
            Some(Target::Row(block)) if block != NEXT => Some(block),
            _ => None,
        }
    }
}

impl Routine {
    /// Returns the number of jumps to each block; the entry of the routine counts one more.
    pub fn entrances(&self) -> Vec<usize> {
        let mut entrances = vec![0; self.blocks.len()];
        entrances[0] = 1;
        for next in self.blocks.iter().flat_map(Block::successors) {
            entrances[next] += 1;
        }
        entrances
    }

    /// Empties unreachable blocks.
    pub fn remove_unreachable(&mut self) {
        let mut is_reached = vec![false; self.blocks.len()];
        let mut left = vec![0];
        while let Some(block) = left.pop() {
            if !std::mem::replace(&mut is_reached[block], true) {
                left.extend(self.blocks[block].successors());
            }
        }
        for (block, is_reached) in self.blocks.iter_mut().zip(is_reached) {
            if !is_reached {
                block.instructions.clear();
            }
        }
    }
}
