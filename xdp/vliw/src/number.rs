// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Value numbering: makes a region of blocks, in which each result is a value. As options allow,
//! copies are propagated, constants become operands, sums become offsets (publication, section 3.1:
//! three operands), and redundant computations and loads are removed.

mod simplify;

use crate::blocks::{Block, Instruction, Routine};
use crate::machine::PACKET;
use crate::memory::{Touch, moves_packet};
use crate::operation::{Arithmetic, AtomicOperation, Constant, Operand, Operation, Target, Width};
use crate::options::Options;
use crate::passes::{superblocks, threading};
use crate::region::{Known, Node, Region, START, State, Value};
use freeport_ebpf::analysis::{Access, Analysis, Space, Type};
use freeport_ebpf::helper_functions::signature;
use freeport_ebpf::instruction::FRAME_POINTER;
use std::collections::HashMap;

/// Builds the region of a path of blocks of a routine.
pub fn region(routine: &Routine, path: &[usize], analysis: &Analysis, options: &Options) -> Region {
    let mut numbering = Numbering {
        routine,
        analysis,
        options,
        region: Region::new(path[0]),
        current: std::array::from_fn(Value),
        copies: HashMap::new(),
        is_packet_moved: false,
        known: HashMap::new(),
    };
    let begins_packet = routine.is_program && path[0] == 0 && routine.entrances()[0] == 1;
    if begins_packet && options.zeroing {
        for known in numbering
            .region
            .values
            .iter_mut()
            .filter(|it| ![1, FRAME_POINTER, PACKET].contains(&it.register))
        {
            (known.constant, known.bits) = (Some(0), 0);
        }
    }
    if options.three_operands {
        numbering.enter(routine.blocks[path[0]].slot);
    }
    for (at, &block) in path.iter().enumerate() {
        numbering.add_block(&routine.blocks[block], path.get(at + 1).copied());
    }
    numbering.region
}

/// An operation without its registers, and the values that it reads.
type Key = (Operation, Vec<Value>);

/// A region under construction.
struct Numbering<'a> {
    routine: &'a Routine,
    analysis: &'a Analysis,
    options: &'a Options,
    region: Region,
    /// Value of each register of the program.
    current: State,
    /// For each value that is a copy, its source.
    copies: HashMap<Value, Value>,
    /// Whether the packet's start may have moved.
    is_packet_moved: bool,
    /// Values by the operation that computes them, while it would still give the same result, with
    /// the memory that it reads or writes.
    known: HashMap<Key, (Value, Vec<Access>)>,
}

impl Numbering<'_> {
    /// Takes the facts about registers at the start of the region.
    fn enter(&mut self, slot: usize) {
        let Some(facts) = self.analysis.registers(slot) else { return };
        for (register, fact) in facts.iter().enumerate() {
            let known = &mut self.region.values[register];
            let sum = match fact.holds {
                Type::Number(number) => {
                    known.constant = known.constant.or(number.value());
                    known.bits = known.constant.map_or(known.bits, bits_of);
                    continue;
                }
                Type::Context { offset: (0, 0) } => {
                    known.is_context = true;
                    continue;
                }
                Type::Packet { offset: (sum, most), .. }
                    if sum == most && self.options.packet_register =>
                {
                    (START, sum)
                }
                Type::Stack { calls_up: Some(0), offset: (sum, most) } if sum == most => {
                    (FRAME, sum)
                }
                _ => continue,
            };
            if fact.may_be_null || register == FRAME.0 {
                continue;
            }
            known.sum = Some(sum);
            if sum.1 == 0 {
                self.copies.insert(Value(register), sum.0);
            }
        }
    }

    /// Adds a block, after which the region continues with another one or ends.
    fn add_block(&mut self, block: &Block, next: Option<usize>) {
        superblocks::kept(block, next).iter().for_each(|instruction| self.add(instruction));
    }

    fn add(&mut self, instruction: &Instruction) {
        let operation = instruction.operation;
        let mut node = Node {
            operation,
            origins: instruction.origins.clone(),
            accesses: instruction.accesses.clone(),
            reads: self.reads(&operation, instruction.arm.is_some()),
            fixed: self.fixed(&operation),
            before: None,
            result: None,
            is_result_fixed: false,
            state: None,
            arm: instruction.arm,
            is_gone: false,
            is_needed: true,
        };
        if self.options.three_operands {
            self.simplify(&mut node);
        }
        if self.options.calls {
            self.give_arguments(&mut node);
        }
        if self.options.packet_register {
            self.take_start(&mut node);
        }
        if self.options.exits {
            self.end_at_once(&mut node);
        }
        if node.is_control() {
            node.state = Some(Box::new(self.current));
        }
        self.forget_changed(&node);
        self.is_packet_moved |= moves_packet(&operation);
        match operation.written() {
            Some(register) => self.add_result(node, register),
            None => {
                let stored = self.stored(&node).filter(|_| node.arm.is_none());
                self.region.nodes.push(node);
                if let Some((key, value)) = stored {
                    self.known.insert(key, (value, instruction.accesses.clone()));
                }
            }
        }
    }

    /// Returns the values of the registers that an operation names as sources.
    fn reads(&self, operation: &Operation, is_of_arm: bool) -> Vec<Value> {
        let is_pinned =
            matches!(operation, Operation::Exit | Operation::Atomic { is_fetching: true, .. });
        let read = operation.read().enumerate();
        // An exchange names its address first; its other sources, and that of an exit, are fixed.
        let chosen =
            read.filter(|(at, _)| !is_pinned || (*at == 0 && *operation != Operation::Exit));
        chosen.map(|(_, register)| self.read(register, is_of_arm)).collect()
    }

    /// Returns the values of sources whose registers cannot be chosen.
    fn fixed(&self, operation: &Operation) -> Vec<(u8, Value)> {
        let registers: Vec<u8> = match *operation {
            Operation::Call { helper, .. } => (1..=arguments(helper)).collect(),
            Operation::CallFunction(_) => (1..=5).collect(),
            Operation::Exit => vec![0],
            Operation::Atomic { operation, is_fetching: true, source, .. } => {
                let exchanged = operation == AtomicOperation::CompareExchange;
                [Some(source), exchanged.then_some(0)].into_iter().flatten().collect()
            }
            _ => vec![],
        };
        registers.into_iter().map(|it| (it, self.current[usize::from(it)])).collect()
    }

    /// Returns the value of a register, or its source if it is a copy whose source is still in its
    /// register. Within an arm, that register may be written in the same row, so only registers
    /// that never change count.
    fn read(&self, register: u8, is_of_arm: bool) -> Value {
        let mut value = self.current[usize::from(register)];
        while let Some(&source) = self.copies.get(&value) {
            if !self.is_current(source) || (is_of_arm && ![FRAME, START].contains(&source)) {
                break;
            }
            value = source;
        }
        value
    }

    /// Returns whether a value is still in its register of the program.
    fn is_current(&self, value: Value) -> bool {
        if value == START {
            return !self.is_packet_moved;
        }
        let register = self.region.known(value).register;
        self.current[usize::from(register)] == value
    }

    /// Adds a node with a result, unless an equal result exists.
    fn add_result(&mut self, mut node: Node, register: u8) {
        let place = usize::from(register);
        if node.arm.is_some() {
            return self.add_guarded(node, register);
        }
        let key = key_of(&node);
        let is_pure = !node.has_effect() && !node.is_control();
        if is_pure
            && self.options.redundant
            && let Some(&(value, _)) = self.known.get(&key)
        {
            if self.current[place] == value {
                return;
            }
            // A constant costs no more than a copy of it.
            if self.is_current(value) && !is_constant(&node.operation) {
                node.operation = copy(Operand::Register(0));
                (node.reads, node.accesses) = (vec![value], vec![]);
            }
        }
        if self.options.three_operands
            && is_copy(&node.operation)
            && node.reads[0] == self.current[place]
        {
            return;
        }
        let value = self.region.add_value(register);
        let (constant, bits) = self.described(&node);
        let known = &mut self.region.values[value.0];
        *known = Known { constant, bits, ..*known };
        if self.options.three_operands && is_copy(&node.operation) {
            self.copies.insert(value, node.reads[0]);
        }
        node.is_result_fixed = !is_pure;
        node.result = Some(value);
        self.current[place] = value;
        if is_pure {
            self.known.insert(key_of(&node), (value, node.accesses.clone()));
        }
        self.region.nodes.push(node);
    }

    /// Adds a node that may be skipped: its result is then the old value of its register.
    fn add_guarded(&mut self, mut node: Node, register: u8) {
        let before = self.current[usize::from(register)];
        node.before = Some(before);
        let (_, bits) = self.described(&node);
        let bits = bits.max(self.region.known(before).bits);
        let value = self.region.add_value(register);
        self.region.values[value.0].bits = bits;
        node.is_result_fixed = true;
        node.result = Some(value);
        self.current[usize::from(register)] = value;
        self.region.nodes.push(node);
    }

    /// Returns the facts about a node's result: its constant, if it is one, and its bits.
    fn described(&self, node: &Node) -> (Option<u64>, u32) {
        let constant = match node.operation {
            Operation::Constant { constant: Constant::Value(value), .. } => Some(value),
            Operation::Alu {
                width,
                operation: Arithmetic::Move,
                right: Operand::Immediate(value),
                ..
            } => Some(match width {
                Width::Bits32 => u64::from(value as u32),
                Width::Bits64 => i64::from(value) as u64,
            }),
            _ => None,
        };
        let of_read = |at: usize| self.region.known(node.reads[at]).bits;
        let bits = match (constant, node.operation) {
            (Some(value), _) => bits_of(value),
            (_, Operation::Load { bytes, is_signed: false, .. }) => u32::from(bytes) * 8,
            (_, Operation::Alu { operation, right, width, .. }) => {
                let most = if width == Width::Bits32 { 32 } else { 64 };
                let found = match (operation, right) {
                    (Arithmetic::Move, Operand::Register(_)) => of_read(0),
                    (Arithmetic::And, Operand::Immediate(mask)) if mask >= 0 => {
                        of_read(0).min(32 - mask.leading_zeros())
                    }
                    (Arithmetic::ShiftRight, Operand::Immediate(by)) => {
                        of_read(0).min(most).saturating_sub(by as u32 & (most - 1))
                    }
                    (Arithmetic::ShiftLeft, Operand::Immediate(by)) => {
                        of_read(0) + (by as u32 & (most - 1))
                    }
                    (Arithmetic::Or | Arithmetic::Xor, Operand::Register(_)) => {
                        of_read(0).max(of_read(1))
                    }
                    _ => 64,
                };
                found.min(most)
            }
            (_, Operation::Swap { bits, .. }) => bits.into(),
            _ => 64,
        };
        (constant, bits)
    }

    /// Forgets values in memory that a node may change.
    fn forget_changed(&mut self, node: &Node) {
        let calls = matches!(node.operation, Operation::CallFunction(_));
        if !node.has_effect() && !calls {
            return;
        }
        let changed = Touch { operation: &node.operation, accesses: &node.accesses };
        self.known.retain(|(operation, _), (_, accesses)| {
            let is_load = matches!(operation, Operation::Load { .. });
            !is_load || !(calls || changed.conflicts(&Touch { operation, accesses }))
        });
    }

    /// Returns the load that would return the value that a node stores.
    fn stored(&self, node: &Node) -> Option<(Key, Value)> {
        let Operation::Store { bytes, offset, source: Operand::Register(_), .. } = node.operation
        else {
            return None;
        };
        let &[base, value] = node.reads.as_slice() else { return None };
        let fits = self.region.known(value).bits <= u32::from(bytes) * 8;
        let (is_signed, is_speculative) = (false, false);
        let (destination, base_register) = (0, 0);
        let load = Operation::Load {
            bytes,
            is_signed,
            is_speculative,
            destination,
            base: base_register,
            offset,
        };
        (fits && self.options.redundant).then_some(((load, vec![base]), value))
    }

    /// Replaces a load of the packet's start by the register that holds it.
    fn take_start(&self, node: &mut Node) {
        if let (Operation::Load { bytes: 4, is_signed: false, .. }, [access]) =
            (node.operation, node.accesses.as_slice())
        {
            let is_start = access.space == Space::Context && access.offset == (0, 0);
            if is_start && access.is_proven && !self.is_packet_moved {
                node.operation = copy(Operand::Register(0));
                (node.reads, node.accesses) = (vec![START], vec![]);
            }
        }
    }

    /// Replaces jumps to a mere exit by exits.
    fn end_at_once(&self, node: &mut Node) {
        let known = |register| self.region.known(self.read(register, false)).constant;
        match node.operation {
            Operation::Exit if self.routine.is_program => {
                if let Some(verdict) = known(0) {
                    node.operation = Operation::Goto(Target::Exit(verdict as u32));
                    node.fixed.clear();
                }
            }
            _ => {
                if let Some(block) = node.successor() {
                    if let Some(verdict) = threading::verdict(self.routine, block, known) {
                        if let Some(target) = node.operation.target_mut() {
                            *target = Target::Exit(verdict);
                        }
                    } else if matches!(node.operation, Operation::Goto(_))
                        && let [only] = &self.routine.blocks[block].instructions[..]
                        && only.operation == Operation::Exit
                    {
                        node.operation = Operation::Exit;
                        node.fixed = self.fixed(&Operation::Exit);
                    }
                }
            }
        }
    }
}

/// Returns the number of bits of a number up to the highest that is set.
fn bits_of(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// Returns the number of arguments of a helper.
fn arguments(helper: u32) -> u8 {
    signature(helper).map_or(5, |it| it.arguments.len() as u8)
}

/// Returns the operation of a node without registers, and the values that it reads.
fn key_of(node: &Node) -> Key {
    (node.operation.with_registers(&[0; 3], Some(0)), node.reads.clone())
}

/// Returns a copy of an operand.
fn copy(right: Operand) -> Operation {
    let (width, operation) = (Width::Bits64, Arithmetic::Move);
    Operation::Alu { width, operation, destination: 0, left: 0, right }
}

/// Returns whether an operation only copies its source.
fn is_copy(operation: &Operation) -> bool {
    let (width, operation) = match *operation {
        Operation::Alu { width, operation, right: Operand::Register(_), .. } => (width, operation),
        _ => return false,
    };
    width == Width::Bits64 && operation == Arithmetic::Move
}

/// Returns whether an operation only creates a constant.
fn is_constant(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Constant { .. }
            | Operation::Alu { operation: Arithmetic::Move, right: Operand::Immediate(_), .. }
    )
}

/// Value of the frame pointer.
const FRAME: Value = Value(FRAME_POINTER as usize);
