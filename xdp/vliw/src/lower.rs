// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translates eBPF to blocks of operations, one for each instruction (publication, section 3.3:
//! control flow graph construction).

use crate::blocks::{Block, Instruction, Routine};
use crate::operation::{Arithmetic, Constant, Operand, Operation, Target, Width};
use freeport_ebpf::analysis::{Analysis, Graph};
use freeport_ebpf::helper_functions;
use freeport_ebpf::instruction::{self as ebpf, Callee};
use freeport_ebpf::interpreter::Unsupported;
use freeport_ebpf::object::Program;

/// Translates all functions of a program.
///
/// # Errors
/// The first instruction that cannot be translated.
pub(crate) fn lower(
    program: &Program,
    analysis: &Analysis,
    lanes: u8,
) -> Result<Vec<Routine>, Unsupported> {
    let graph = analysis.graph();
    let routine = |number: usize| {
        let function = &graph.functions()[number];
        let lowering = Lowering { graph, analysis, first: function.blocks.start };
        let blocks = function.blocks.clone().map(|block| lowering.block(block));
        let blocks = blocks.collect::<Result<_, _>>().map_err(|(slot, reason)| {
            let program = program.name.clone();
            Unsupported { program, slot, reason }
        })?;
        let mut blocks = ended_by_calls(blocks);
        if lanes == 1 {
            blocks.iter_mut().for_each(split_constants);
        }
        let name = if function.name.is_empty() { &program.name } else { &function.name };
        Ok(Routine { name: name.clone(), blocks, is_program: number == 0 })
    };
    (0..graph.functions().len()).map(routine).collect()
}

/// Splits blocks after calls of functions.
fn ended_by_calls(mut blocks: Vec<Block>) -> Vec<Block> {
    let is_call = |it: &Instruction| matches!(it.operation, Operation::CallFunction(_));
    let mut at = 0;
    while at < blocks.len() {
        if let Some(call) = blocks[at].instructions.iter().position(is_call) {
            let behind = blocks[at].instructions.split_off(call + 1);
            let origins = blocks[at].instructions[call].origins.clone();
            let operation = Operation::Goto(Target::Row(blocks.len()));
            let slot = behind.first().map_or(origins[0], |first| first.origins[0]);
            blocks[at].instructions.push(Instruction {
                operation,
                origins,
                accesses: vec![],
                arm: None,
            });
            blocks.push(Block { instructions: behind, slot });
        }
        at += 1;
    }
    blocks
}

/// Replaces two-lane constants by sums, for processors with a single lane.
fn split_constants(block: &mut Block) {
    let split = std::mem::take(&mut block.instructions).into_iter().flat_map(|instruction| {
        let operations = match instruction.operation {
            Operation::Constant { destination, constant: Constant::Value(value) }
                if instruction.operation.lanes() > 1 =>
            {
                sum(destination, value)
            }
            operation => vec![operation],
        };
        let again = move |operation| Instruction { operation, ..instruction.clone() };
        operations.into_iter().map(again)
    });
    block.instructions = split.collect();
}

/// Returns the operations that build a number from its halves. The lower one is added
/// sign-extended.
fn sum(destination: u8, value: u64) -> Vec<Operation> {
    let low = value as i32;
    let high = (value.wrapping_sub(low as i64 as u64) >> 32) as i32;
    let step = |operation, immediate| Operation::Alu {
        width: Width::Bits64,
        operation,
        destination,
        left: if operation == Arithmetic::Move { 0 } else { destination },
        right: Operand::Immediate(immediate),
    };
    vec![step(Arithmetic::Move, high), step(Arithmetic::ShiftLeft, 32), step(Arithmetic::Add, low)]
}

/// Slot of an instruction that cannot be translated, and the reason.
type Refusal = (usize, String);

struct Lowering<'a> {
    graph: &'a Graph,
    analysis: &'a Analysis,
    /// First block of the function.
    first: usize,
}

impl Lowering<'_> {
    fn block(&self, number: usize) -> Result<Block, Refusal> {
        let block = &self.graph.blocks()[number];
        let mut instructions = vec![];
        for (slot, operation) in self.graph.operations(block.slots.clone()) {
            let operation = self.operation(slot, operation).map_err(|reason| (slot, reason))?;
            let accesses = self.analysis.accesses(slot).to_vec();
            instructions.push(Instruction { operation, origins: vec![slot], accesses, arm: None });
        }
        let continues = instructions.last().is_none_or(|last| !last.operation.is_terminal());
        if continues && let Some(&next) = block.successors.first() {
            let operation = Operation::Goto(Target::Row(next - self.first));
            instructions.push(Instruction {
                operation,
                origins: vec![block.last],
                accesses: vec![],
                arm: None,
            });
        }
        Ok(Block { instructions, slot: block.slots.start })
    }

    /// Returns the block at the target of a jump.
    fn target(&self, slot: usize, distance: i32) -> Result<Target, String> {
        let to = slot as i64 + 1 + i64::from(distance);
        let to = usize::try_from(to).map_err(|_| "leads to before the program".to_owned())?;
        Ok(Target::Row(self.graph.block_of(to) - self.first))
    }

    /// Returns the number of the function that begins at a distance.
    fn function(&self, slot: usize, distance: i32) -> Result<usize, String> {
        let to = usize::try_from(slot as i64 + 1 + i64::from(distance));
        let found = to.ok().and_then(|to| self.graph.function_at(to));
        found.ok_or_else(|| "no function begins at its target".to_owned())
    }

    fn operation(&self, slot: usize, operation: ebpf::Operation) -> Result<Operation, String> {
        use ebpf::Operation as Of;
        Ok(match operation {
            Of::Alu { width, operation, destination, source } => {
                let is_move = operation == Arithmetic::Move;
                let left = if is_move { 0 } else { destination };
                Operation::Alu { width, operation, destination, left, right: source }
            }
            Of::Negate { width, destination } => {
                Operation::Negate { width, destination, source: destination }
            }
            Of::MoveSigned { width, destination, source, bits } => {
                Operation::MoveSigned { width, destination, source, bits }
            }
            Of::Swap { order, destination, bits } => {
                Operation::Swap { order, destination, source: destination, bits }
            }
            Of::Load { size, is_signed, destination, base, offset } => {
                let (bytes, is_speculative) = (size.bytes(), false);
                Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
            }
            Of::Store { size, base, offset, source } => {
                Operation::Store { bytes: size.bytes(), base, offset, source }
            }
            Of::Atomic { width, operation, is_fetching, base, offset, source } => {
                Operation::Atomic { width, operation, is_fetching, base, offset, source }
            }
            Of::LoadConstant { destination, constant } => {
                let constant = self.constant(slot, constant)?;
                Operation::Constant { destination, constant }
            }
            Of::Jump { width, condition, left, right, distance } => {
                let target = self.target(slot, distance.into())?;
                Operation::Jump { width, condition, left, right, target }
            }
            Of::Goto { distance, .. } => Operation::Goto(self.target(slot, distance)?),
            Of::Call(Callee::Helper(number)) => match helper_functions::name(number) {
                Some(_) => Operation::call(number),
                None => return Err(format!("helper {number} does not exist")),
            },
            Of::Call(Callee::Local(distance)) => {
                Operation::CallFunction(self.function(slot, distance)?)
            }
            Of::Call(Callee::Kernel { id, .. }) => {
                return Err(format!("kernel function {id} cannot be called"));
            }
            Of::Exit => Operation::Exit,
            Of::LoadPacket { .. } => {
                return Err("packet access of socket filters is not supported".to_owned());
            }
        })
    }

    fn constant(&self, slot: usize, constant: ebpf::Constant) -> Result<Constant, String> {
        Ok(match constant {
            ebpf::Constant::Value(value) => Constant::Value(value),
            ebpf::Constant::Map(map) => Constant::Map(map),
            ebpf::Constant::MapValue { map, offset } => Constant::MapValue { map, offset },
            ebpf::Constant::Function(distance) => {
                Constant::Function(self.function(slot, distance)?)
            }
            ebpf::Constant::Variable(id) => {
                return Err(format!("kernel variable {id} is not available here"));
            }
        })
    }
}
