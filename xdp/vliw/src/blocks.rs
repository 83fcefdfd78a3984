// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program on its way to rows: blocks of operations in the order of the program.
//!
//! Until rows are known, a target's row is the number of a block of the same routine, and what is
//! called is a routine by its number. Each block ends with an operation that always leaves, or with
//! a call after which the block goes on that a `Goto` behind it names.

use crate::operation::{Operation, Target};
use freeport_ebpf::analysis::Access;

/// In place of a block: the next row.
pub const NEXT: usize = usize::MAX;

/// A function of the program.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its name; empty if the object does not say.
    pub name: String,
    /// Its blocks; the first is where it begins.
    pub blocks: Vec<Block>,
    /// Whether it is the program itself, whose exits end everything.
    pub is_program: bool,
}

/// Instructions that are done one after the other, unless a jump among them leaves.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The last one always leaves.
    pub instructions: Vec<Instruction>,
    /// The slot of the first instruction of eBPF.
    pub slot: usize,
}

/// An operation with where it comes from and what it touches.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What is done.
    pub operation: Operation,
    /// Slots of eBPF instructions.
    pub origins: Vec<usize>,
    /// Memory that it touches.
    pub accesses: Vec<Access>,
    /// The instructions with this number go into one row, in this order, behind all others there.
    pub arm: Option<usize>,
}

impl Block {
    /// Blocks that may come next, by the jumps among the instructions.
    pub fn successors(&self) -> impl Iterator<Item = usize> {
        self.instructions.iter().filter_map(Instruction::successor)
    }
}

impl Instruction {
    /// The block that it may jump to.
    pub fn successor(&self) -> Option<usize> {
        match self.operation.target() {
            Some(Target::Row(block)) if block != NEXT => Some(block),
            _ => None,
        }
    }
}

impl Routine {
    /// How many jumps lead to each block; where the routine begins has one more.
    pub fn entrances(&self) -> Vec<usize> {
        let mut entrances = vec![0; self.blocks.len()];
        entrances[0] = 1;
        for next in self.blocks.iter().flat_map(Block::successors) {
            entrances[next] += 1;
        }
        entrances
    }

    /// Empties blocks that cannot be reached.
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
