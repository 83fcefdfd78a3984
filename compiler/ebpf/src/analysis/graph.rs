// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The control flow of a linked program: its functions, their basic blocks, and its calls.
//!
//! A function is the code between two entries: the program's own entry, entries of named functions
//! and of called functions, and entries whose address is passed to a helper. Jumps stay within
//! their function, as loaders require. A call does not end a block: a function returns to the slot
//! after the call, and a failed tail call continues there.

use crate::helper_functions::signature;
use crate::instruction::{Callee, Constant, Operation};
use crate::object::Program;
use crate::object::check::decoded;
use freeport_ir::analysis::{ControlFlow, Dominators, Loops};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use thiserror::Error;

/// Number of the helper that replaces the running program by another one.
pub const TAIL_CALL: u32 = 12;

/// Functions, blocks and calls of a program.
#[derive(Clone, Debug)]
pub struct Graph {
    /// By slot; `None` for the second slot of an instruction.
    operations: Vec<Option<Operation>>,
    functions: Vec<Function>,
    blocks: Vec<Block>,
    calls: Vec<Call>,
}

/// A function of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Name in the object; empty if it has none.
    pub name: String,
    /// Slots of the function. The first is its entry.
    pub slots: Range<usize>,
    /// Blocks of the function, in the order of their slots. The first begins at its entry.
    pub blocks: Range<usize>,
    /// Whether its address is taken, so that a helper may call it.
    pub is_callback: bool,
}

/// A sequence of instructions without jumps in or out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Slots of the block.
    pub slots: Range<usize>,
    /// First slot of its last instruction.
    pub last: usize,
    /// The function that contains the block.
    pub function: usize,
    /// Blocks that may follow: first the next one in the order of slots, then the jump target.
    /// Empty after an exit.
    pub successors: Vec<usize>,
}

/// A call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Slot of the call.
    pub slot: usize,
    /// Callee.
    pub callee: Called,
}

/// Callee of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// A function of the program.
    Function(usize),
    /// A helper by the kernel's number, which may call functions that are passed to it.
    Helper(u32),
    /// Another program, which does not return to here; execution continues after the call only if
    /// there is no such program.
    Program,
    /// A function of the kernel, by its BTF id.
    Kernel(i32),
}

/// Error of a program without a valid graph. Loaded objects were checked and have one.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("instruction {slot}: {reason}")]
pub struct Malformed {
    /// Slot of the instruction.
    pub slot: usize,
    /// Description of the error.
    pub reason: String,
}

impl Graph {
    /// Builds the graph of a program.
    ///
    /// # Errors
    /// An instruction is invalid, or jumps to where no instruction of its function begins.
    pub fn of(program: &Program) -> Result<Self, Malformed> {
        let operations =
            decoded(&program.instructions).map_err(|(slot, reason)| Malformed { slot, reason })?;
        if operations.is_empty() {
            return Err(Malformed { slot: 0, reason: "there is no instruction".into() });
        }
        let (entries, callbacks) = entries(program, &operations)?;
        let mut graph = Self { operations, functions: vec![], blocks: vec![], calls: vec![] };
        let ends = entries.iter().copied().skip(1).chain([program.instructions.len()]);
        let named = program.functions.iter().map(|function| (function.slot, &function.name));
        let names: BTreeMap<_, _> = named.collect();
        for (&start, end) in entries.iter().zip(ends) {
            let name = names.get(&start).map(|name| name.to_string()).unwrap_or_default();
            graph.add_function(name, start..end, callbacks.contains(&start))?;
        }
        graph.find_calls();
        Ok(graph)
    }

    /// Returns the instruction that begins in `slot`, if there is one.
    pub fn operation(&self, slot: usize) -> Option<Operation> {
        *self.operations.get(slot)?
    }

    /// Returns the number of slots of the program.
    pub fn slots(&self) -> usize {
        self.operations.len()
    }

    /// Returns the instructions in a range, with their slots.
    pub fn operations(&self, slots: Range<usize>) -> impl Iterator<Item = (usize, Operation)> {
        let begun = slots.start;
        let found = self.operations.get(slots).unwrap_or_default().iter().enumerate();
        found.filter_map(move |(at, operation)| Some((begun + at, (*operation)?)))
    }

    /// Returns all functions, in the order of their slots. The first is the program itself.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns all blocks, in the order of their slots.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns all calls, in the order of their slots.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns whether the instruction in `slot` leads to a call of a program function, or of a
    /// kernel function with arbitrary effects. Accesses of that function are not accesses of the
    /// instruction.
    pub fn calls_function(&self, slot: usize) -> bool {
        let Some(Operation::Call(callee)) = self.operation(slot) else { return false };
        match callee {
            Callee::Helper(number) => signature(number).is_none_or(|it| it.calls_function()),
            Callee::Local(_) | Callee::Kernel { .. } => true,
        }
    }

    /// Returns the function that begins in `slot`, if there is one.
    pub fn function_at(&self, slot: usize) -> Option<usize> {
        self.functions.binary_search_by_key(&slot, |function| function.slots.start).ok()
    }

    /// Returns the block that contains `slot`; the last block for slots beyond the program.
    pub fn block_of(&self, slot: usize) -> usize {
        self.blocks.partition_point(|block| block.slots.start <= slot).saturating_sub(1)
    }

    /// Returns the blocks of a function as a graph, for the analyses of `freeport-ir`: node 0 is
    /// its first block.
    pub fn flow(&self, function: usize) -> Flow<'_> {
        Flow { graph: self, blocks: self.functions[function].blocks.clone() }
    }

    /// Adds a function with its blocks.
    fn add_function(
        &mut self,
        name: String,
        slots: Range<usize>,
        is_callback: bool,
    ) -> Result<(), Malformed> {
        let starts = self.block_starts(&slots)?;
        let first = self.blocks.len();
        let function = self.functions.len();
        for (at, &start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(slots.end);
            let last = self.operations(start..end).last().map_or(start, |(slot, _)| slot);
            let continues = !self.operations[last].is_some_and(|found| found.is_terminal());
            let target = jump_target(&self.operations, last).transpose()?;
            let begins = |slot| starts.binary_search(&slot).map(|at| first + at);
            // In the order of slots: the next block comes before the jump target.
            let next = continues.then_some(end);
            let successors = next.into_iter().chain(target).map(begins).collect::<Result<_, _>>();
            let successors = successors.map_err(|_| Malformed {
                slot: last,
                reason: "execution continues past the end of the function".into(),
            })?;
            self.blocks.push(Block { slots: start..end, last, function, successors });
        }
        let blocks = first..self.blocks.len();
        self.functions.push(Function { name, slots, blocks, is_callback });
        Ok(())
    }

    /// Returns the slots where blocks of a function begin: its entry, jump targets, and slots after
    /// jumps.
    fn block_starts(&self, slots: &Range<usize>) -> Result<Vec<usize>, Malformed> {
        let mut starts = BTreeSet::from([slots.start]);
        for (slot, operation) in self.operations(slots.clone()) {
            let target = jump_target(&self.operations, slot).transpose()?;
            if let Some(target) = target {
                if !slots.contains(&target) {
                    let reason = format!("leads to slot {target}, outside its function");
                    return Err(Malformed { slot, reason });
                }
                starts.insert(target);
            }
            let next = slot + operation.slots();
            if (target.is_some() || operation.is_terminal()) && next < slots.end {
                starts.insert(next);
            }
        }
        Ok(starts.into_iter().collect())
    }

    fn find_calls(&mut self) {
        let found = self.operations(0..self.operations.len()).filter_map(|(slot, operation)| {
            let Operation::Call(callee) = operation else { return None };
            let callee = match callee {
                Callee::Helper(TAIL_CALL) => Called::Program,
                Callee::Helper(helper) => Called::Helper(helper),
                Callee::Kernel { id, .. } => Called::Kernel(id),
                Callee::Local(distance) => {
                    Called::Function(self.function_at(target(slot, distance)?)?)
                }
            };
            Some(Call { slot, callee })
        });
        self.calls = found.collect();
    }
}

/// The blocks of one function, numbered from 0.
#[derive(Clone, Debug)]
pub struct Flow<'g> {
    graph: &'g Graph,
    blocks: Range<usize>,
}

impl Flow<'_> {
    /// Returns the dominator tree of the function, in the reverse post-order of its blocks.
    pub fn dominators(&self) -> Dominators {
        Dominators::of(self)
    }

    /// Returns the natural loops. The function is reducible if they have no irreducible edges.
    pub fn loops(&self) -> Loops {
        Loops::of(self, &self.dominators())
    }

    /// Returns the number of a node among the blocks of the program.
    pub fn block(&self, node: usize) -> usize {
        self.blocks.start + node
    }
}

impl ControlFlow for Flow<'_> {
    fn node_count(&self) -> usize {
        self.blocks.len()
    }

    fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        let successors = &self.graph.blocks[self.block(node)].successors;
        successors.iter().for_each(|next| visit(next - self.blocks.start));
    }
}

/// Returns the entries of functions, and which of them have their address taken.
fn entries(
    program: &Program,
    operations: &[Option<Operation>],
) -> Result<(Vec<usize>, BTreeSet<usize>), Malformed> {
    let (mut entries, mut callbacks) = (BTreeSet::from([0]), BTreeSet::new());
    let named = program.functions.iter().map(|function| function.slot);
    entries.extend(named.filter(|slot| operations.get(*slot).is_some_and(Option::is_some)));
    for (slot, operation) in operations.iter().enumerate() {
        let (distance, is_address) = match operation {
            Some(Operation::Call(Callee::Local(distance))) => (*distance, false),
            Some(Operation::LoadConstant { constant: Constant::Function(distance), .. }) => {
                (*distance, true)
            }
            _ => continue,
        };
        let entry = checked_target(operations, slot, distance)?;
        entries.insert(entry);
        if is_address {
            callbacks.insert(entry);
        }
    }
    Ok((entries.into_iter().collect(), callbacks))
}

/// Returns the target of the jump in `slot`, if it is a jump.
fn jump_target(operations: &[Option<Operation>], slot: usize) -> Option<Result<usize, Malformed>> {
    let distance = operations[slot]?.distance()?;
    Some(checked_target(operations, slot, distance))
}

fn checked_target(
    operations: &[Option<Operation>],
    slot: usize,
    distance: i32,
) -> Result<usize, Malformed> {
    let found = target(slot, distance).filter(|&to| matches!(operations.get(to), Some(Some(_))));
    found.ok_or_else(|| Malformed {
        slot,
        reason: format!("leads to distance {distance}, where no instruction begins"),
    })
}

/// Returns the slot `distance` slots after the next one.
pub(super) fn target(slot: usize, distance: i32) -> Option<usize> {
    usize::try_from(slot as i64 + 1 + i64::from(distance)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::assemble;

    fn graph_of(text: &str) -> Result<Graph, Malformed> {
        let instructions = assemble(text).expect("the text is right");
        Graph::of(&Program { instructions, ..Program::default() })
    }

    #[test]
    fn blocks_begin_where_jumps_lead_and_behind_them() {
        let graph = graph_of(
            "r0 = 0x1122334455667788 ll
             if r1 == 0x0 goto end
             r0 = 1
             goto end
             r0 = 2
             end:
             exit",
        )
        .expect("is sound");
        let blocks: Vec<_> = graph.blocks().iter().map(|block| block.slots.clone()).collect();
        assert_eq!(blocks, [0..3, 3..5, 5..6, 6..7]);
        let successors: Vec<_> =
            graph.blocks().iter().map(|block| block.successors.clone()).collect();
        assert_eq!(successors, [vec![1, 3], vec![3], vec![3], vec![]]);
        assert_eq!(graph.block_of(4), 1);
        let dominators = graph.flow(0).dominators();
        assert!(dominators.dominates(0, 3) && !dominators.dominates(1, 3));
        assert!(!dominators.is_reachable(2));
        assert!(graph.flow(0).loops().loops.is_empty());
    }

    #[test]
    fn functions_end_where_the_next_begins() {
        let graph = graph_of(
            "call pc + 0x5
             r1 = 0x5
             call 0xc
             r0 = 0
             call 0x1
             exit
             r0 = r1
             again:
             r0 += -1
             if r0 != 0 goto again
             exit",
        )
        .expect("is sound");
        let slots: Vec<_> = graph.functions().iter().map(|it| it.slots.clone()).collect();
        assert_eq!(slots, [0..6, 6..10]);
        let called: Vec<_> = graph.calls().iter().map(|call| (call.slot, call.callee)).collect();
        let expected = [(0, Called::Function(1)), (2, Called::Program), (4, Called::Helper(1))];
        assert_eq!(called, expected);
        assert_eq!(graph.blocks()[0].slots, 0..6, "calls do not end blocks");
        let loops = graph.flow(1).loops();
        assert_eq!((loops.loops.len(), loops.loops[0].header, loops.loops[0].depth), (1, 1, 1));
        assert!(loops.irreducible_edges.is_empty());
    }

    #[test]
    fn a_cycle_with_two_ways_in_is_irreducible() {
        let text = "if r1 == 0 goto +1\nr0 += 1\nr0 += 2\nif r0 != 9 goto -3\nexit";
        let loops = graph_of(text).expect("is sound").flow(0).loops();
        assert_eq!((loops.loops.len(), loops.irreducible_edges.len()), (0, 1));
        let text = "if r1 == 0 goto +1\nr0 += 1\nr0 += 2\nif r0 != 9 goto -2\nexit";
        let loops = graph_of(text).expect("is sound").flow(0).loops();
        assert_eq!((loops.loops.len(), loops.irreducible_edges.len()), (1, 0));
    }

    #[test]
    fn what_leads_nowhere_is_named() {
        let refused = |text: &str| graph_of(text).expect_err("it leads nowhere");
        assert_eq!(refused("r0 = 1").slot, 0);
        assert_eq!(refused("r0 = 1\ngoto +7\nexit").slot, 1);
        assert_eq!(refused("goto +1\nr0 = 1 ll\nexit").slot, 0, "into a constant");
        let error = refused("call pc + 0x1\ngoto +1\nr0 = 0\nexit").to_string();
        assert_eq!(error, "instruction 1: leads to slot 3, outside its function");
        let error = refused("call pc + 0x1\nr0 = 1\nr0 = 0\nexit").to_string();
        assert_eq!(error, "instruction 1: execution continues past the end of the function");
        assert!(Graph::of(&Program::default()).is_err());
    }
}
