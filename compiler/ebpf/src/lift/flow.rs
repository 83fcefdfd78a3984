// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts functions block by block: block parameters, loops, calls of functions, and exits.

use super::held::{Held, Known, Shape, State};
use super::{Lifter, NotLiftable};
use crate::analysis::graph::Flow;
use crate::analysis::{Space, Type};
use crate::instruction::{FRAME_POINTER, Operation, REGISTERS};
use freeport_ir::{Bits, BlockId, LoopInfo, Op, Target, Term, Unroll};
use std::collections::BTreeMap;

/// Maximum number of iterations of a loop: the kernel's limit of instructions for a packet.
const LOOP_BOUND: u64 = 1_000_000;
/// Functions that are inlined in a program, at most, to bound its size.
const MERGED_MAX: usize = 200;

/// A function during lifting, at one of its calls.
pub struct Frame {
    /// Ends of its callers' frames and of its own, outermost first.
    pub ends: Vec<i64>,
    /// Return block, and the shape that register 0 must have there. `None` for the program itself,
    /// which ends with a verdict.
    pub back: Option<(BlockId, Option<Shape>)>,
    /// Lifted blocks, by their first slots.
    blocks: BTreeMap<usize, Entry>,
}

/// A block and its parameters.
#[derive(Clone, Debug)]
pub struct Entry {
    block: BlockId,
    passed: Vec<(Place, Shape)>,
}

/// Place of a value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Register(u8),
    /// In the frames, at this byte.
    Spilled(i64),
}

impl Lifter<'_> {
    /// Lifts the whole program.
    pub fn program(&mut self) -> Result<(), NotLiftable> {
        let end = self.frame_bytes(0);
        let mut state = State::new();
        state.set(1, Held::Context(0));
        self.function(0, vec![end], None, &state)
    }

    /// Inlines a function at a call; the state is the caller's.
    pub fn function(
        &mut self,
        function: usize,
        ends: Vec<i64>,
        back: Option<(BlockId, Option<Shape>)>,
        state: &State,
    ) -> Result<(), NotLiftable> {
        self.merged += 1;
        if self.merged > MERGED_MAX {
            return self.refuse(format!("it calls functions in more than {MERGED_MAX} places"));
        }
        self.stack_bytes = self.stack_bytes.max(ends.last().copied().unwrap_or(0));
        if let [.., begins, ends] = ends[..] {
            self.clear_frame(begins, ends);
        }
        let analysis = self.analysis;
        let flow = analysis.graph().flow(function);
        let loops = flow.loops();
        if let Some((from, _)) = loops.irreducible_edges.first() {
            self.slot = analysis.graph().blocks()[flow.block(*from)].last;
            return self.refuse("it jumps into the middle of a loop");
        }
        let mut frame = Frame { ends, back, blocks: BTreeMap::new() };
        let order: Vec<usize> = flow.dominators().order().to_vec();
        for node in &order {
            self.declare(&flow, *node, &mut frame)?;
        }
        for header in loops.loops.iter().map(|it| it.header) {
            let start = analysis.graph().blocks()[flow.block(header)].slots.start;
            if let Some(entry) = frame.blocks.get(&start) {
                let (bound, unroll) = (LOOP_BOUND, Unroll::Auto);
                let info = LoopInfo { bound, unroll, independent: false, is_watched: false };
                self.builder.set_loop(entry.block, info);
            }
        }
        let start = analysis.graph().functions()[function].slots.start;
        let first = self.target(&frame, start, state)?;
        self.builder.end(Term::Jump(first));
        for node in order {
            self.block(flow.block(node), &frame, state)?;
        }
        Ok(())
    }

    /// Creates the block of a node with its parameters, if it is reachable.
    fn declare(
        &mut self,
        flow: &Flow<'_>,
        node: usize,
        frame: &mut Frame,
    ) -> Result<(), NotLiftable> {
        let start = self.analysis.graph().blocks()[flow.block(node)].slots.start;
        if !self.analysis.is_reachable(start) {
            return Ok(());
        }
        self.go_to(start);
        let block = self.builder.new_block();
        let passed = self.passed_at(start, frame)?;
        for (_, shape) in &passed {
            if !matches!(shape, Shape::Known(_)) {
                self.builder.add_param(block, shape.ty(), None);
            }
        }
        frame.blocks.insert(start, Entry { block, passed });
        Ok(())
    }

    /// Returns the parameters that are needed at the start of a block.
    fn passed_at(&self, start: usize, frame: &Frame) -> Result<Vec<(Place, Shape)>, NotLiftable> {
        let Some(facts) = self.analysis.registers(start) else { return Ok(vec![]) };
        let liveness = self.analysis.liveness();
        let mut passed = vec![];
        for register in (0..REGISTERS).filter(|it| *it != FRAME_POINTER) {
            if liveness.is_register_live(start, register) {
                let shape = self.shape(&facts[usize::from(register)], &frame.ends)?;
                passed.push((Place::Register(register), shape));
            }
        }
        let end = frame.end();
        for spill in self.analysis.spills(start) {
            let is_reference = spill.size == 8 && matches!(spill.fact.holds, Type::MapValue { .. });
            if is_reference && liveness.is_byte_live(start, spill.offset.into()) {
                let shape = self.shape(&spill.fact, &frame.ends)?;
                if matches!(shape, Shape::Value | Shape::Mixed) {
                    passed.push((Place::Spilled(end + i64::from(spill.offset)), shape));
                }
            }
        }
        Ok(passed)
    }

    /// Returns the block that begins at a slot, and the arguments passed from here.
    pub fn target(
        &mut self,
        frame: &Frame,
        slot: usize,
        state: &State,
    ) -> Result<Target, NotLiftable> {
        let Some(Entry { block, passed }) = frame.blocks.get(&slot).cloned() else {
            return self.refuse("it jumps to code that the analysis found unreachable");
        };
        let mut args = vec![];
        let mut params = self.builder.function().block(block).params.clone().into_iter();
        for (place, shape) in passed {
            let to = if let Shape::Known(_) = shape { None } else { params.next() };
            let held = match place {
                Place::Register(register) => state.get(register),
                Place::Spilled(at) => state.spilled.get(&at).copied().unwrap_or(Held::Nothing),
            };
            args.extend(self.passed(held, shape, to)?);
        }
        Ok(Target { block, args })
    }

    /// Lifts a block's instructions and its end. References in frames of callers stay what they
    /// were at the call of the function.
    fn block(&mut self, number: usize, frame: &Frame, called: &State) -> Result<(), NotLiftable> {
        let block = &self.analysis.graph().blocks()[number];
        let Some(Entry { block: here, passed }) = frame.blocks.get(&block.slots.start).cloned()
        else {
            return Ok(());
        };
        self.go_to(block.slots.start);
        self.builder.switch_to(here);
        let mut state = State::new();
        state.spilled = called.spilled.clone();
        let mut values = self.builder.function().block(here).params.clone().into_iter();
        for (place, shape) in passed {
            let held = match shape {
                Shape::Known(known) => self.known(known),
                _ => values.next().map_or(Held::Nothing, |value| shape.holding(value)),
            };
            match place {
                Place::Register(register) => state.set(register, held),
                Place::Spilled(at) => drop(state.spilled.insert(at, held)),
            }
        }
        let pointer = self.known(Known::Stack(frame.end()));
        state.set(FRAME_POINTER, pointer);
        let operations: Vec<_> = self.analysis.graph().operations(block.slots.clone()).collect();
        for (slot, operation) in operations {
            self.go_to(slot);
            match operation {
                Operation::Exit => return self.exit(frame, &state),
                Operation::Goto { .. } | Operation::Jump { .. } => {
                    return self.jump(frame, number, operation, &state);
                }
                _ => self.instruction(frame, operation, &mut state)?,
            }
        }
        self.proceed(frame, number, &state)
    }

    /// Continues with the next block.
    pub fn proceed(
        &mut self,
        frame: &Frame,
        number: usize,
        state: &State,
    ) -> Result<(), NotLiftable> {
        let graph = self.analysis.graph();
        let Some(next) = graph.blocks()[number].successors.first() else {
            return self.refuse("no instruction follows it");
        };
        let target = self.target(frame, graph.blocks()[*next].slots.start, state)?;
        self.builder.end(Term::Jump(target));
        Ok(())
    }

    /// Returns to the caller, or ends with a verdict.
    fn exit(&mut self, frame: &Frame, state: &State) -> Result<(), NotLiftable> {
        let target = match frame.back {
            None => {
                let value = self.number(state.get(0))?;
                let verdict = self.builder.resize(value, 32, false);
                Target { block: self.epilogue, args: vec![verdict] }
            }
            Some((block, shape)) => {
                let to = self.builder.function().block(block).params.first().copied();
                let mut args = vec![];
                if let Some(shape) = shape {
                    args.extend(self.passed(state.get(0), shape, to)?);
                }
                Target { block, args }
            }
        };
        self.builder.end(Term::Jump(target));
        Ok(())
    }

    /// Aborts the program unless a condition holds.
    pub fn abort_unless(&mut self, holds: freeport_ir::ValueId) {
        let (continues, aborts) = (self.builder.new_block(), self.builder.new_block());
        self.builder.branch(holds, continues, aborts);
        self.builder.switch_to(aborts);
        let verdict = self.builder.number(32, crate::abi::verdict::ABORTED.into());
        self.builder.end(Term::Jump(Target { block: self.epilogue, args: vec![verdict] }));
        self.builder.switch_to(continues);
    }

    /// Returns the number of bytes of its frame that a function, or a callee with an address in it,
    /// may touch.
    pub fn frame_bytes(&self, function: usize) -> i64 {
        let own = self.analysis.graph().functions()[function].slots.clone();
        let mut least = 0;
        for slot in 0..self.analysis.graph().slots() {
            // A callee may have an address in any frame.
            let is_meant = |calls_up: Option<u8>| own.contains(&slot) || calls_up != Some(0);
            for register in self.analysis.registers(slot).into_iter().flatten() {
                if let Type::Stack { calls_up, offset } = register.holds
                    && is_meant(calls_up)
                {
                    least = least.min(offset.0);
                }
            }
            for access in self.analysis.accesses(slot) {
                if let Space::Stack { calls_up } = access.space
                    && is_meant(calls_up)
                {
                    least = least.min(access.offset.0);
                }
            }
        }
        let most = crate::abi::FRAME_BYTES as i64;
        ((-least).clamp(0, most) + 7) & !7
    }

    /// Clears a frame, which another function may have used before.
    fn clear_frame(&mut self, begins: i64, ends: i64) {
        if ends > begins {
            let offset = self.word(begins as u64);
            let value = self.builder.constant(Bits::zero((ends - begins) as u32 * 8));
            self.builder.push_effect(Op::StoreBytes { object: self.stack, offset, value });
        }
    }
}

impl Frame {
    /// Returns the end of the frame, to which its frame pointer points.
    pub fn end(&self) -> i64 {
        self.ends.last().copied().unwrap_or(0)
    }
}
