// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Symbolic execution of the program on a path.

use super::facts::question;
use super::state::{Path, State};
use super::values::{Id, Leaf};
use super::{Abandoned, Visits};
use crate::operation::{FRAME_POINTER, Operand};
use freeport_ebpf::analysis::{Analysis, Type};
use freeport_ebpf::instruction::{Callee, Constant, Operation};

/// Maximum number of instructions on a path.
const STEPS_MAX: usize = 20_000;

/// Executes the program from a slot to its end; returns the number of steps.
pub(super) fn run(
    path: &mut Path,
    analysis: &Analysis,
    entry: usize,
    visits: &mut Visits,
) -> Result<(State, usize), Abandoned> {
    let state = State::new(path, false, entry != 0);
    let mut run = Run { path, analysis, state, visits };
    let mut slot = entry;
    for steps in 1..STEPS_MAX {
        match run.step(slot)? {
            Some(next) => slot = next,
            None => return Ok((run.state, steps)),
        }
    }
    Err(Abandoned)
}

/// Returns the context offset of the address that an instruction puts in a register, if it is
/// known: a function that a helper calls may load the context's address from memory.
pub(super) fn context_from(analysis: &Analysis, slot: usize, register: u8) -> Option<i64> {
    let next = slot + analysis.graph().operation(slot)?.slots();
    let fact = analysis.registers(next)?[usize::from(register)];
    let is_one_way = analysis.graph().blocks()[analysis.graph().block_of(next)].slots.start != next;
    match fact.holds {
        Type::Context { offset } if offset.0 == offset.1 && !fact.may_be_null && is_one_way => {
            Some(offset.0)
        }
        _ => None,
    }
}

struct Run<'a> {
    path: &'a mut Path,
    analysis: &'a Analysis,
    state: State,
    visits: &'a mut Visits,
}

impl Run<'_> {
    fn operand(&mut self, operand: Operand) -> Id {
        match operand {
            Operand::Register(register) => self.state.registers[usize::from(register)],
            Operand::Immediate(number) => self.path.values.constant(i64::from(number) as u64),
        }
    }

    fn address(&mut self, base: u8, offset: i16) -> Id {
        let base = self.state.registers[usize::from(base)];
        self.path.values.offset(base, offset.into())
    }

    /// Executes an instruction; returns the slot of the next one.
    fn step(&mut self, slot: usize) -> Result<Option<usize>, Abandoned> {
        let operation = self.analysis.graph().operation(slot);
        let operation = operation.ok_or(Abandoned)?;
        let next = slot + operation.slots();
        let to = |distance: i32| (slot as i64 + 1 + i64::from(distance)) as usize;
        match operation {
            Operation::Goto { distance, .. } => return Ok(Some(to(distance))),
            Operation::Exit => return Ok(self.state.leave(self.path, slot)),
            Operation::Call(Callee::Local(distance)) => {
                self.state.enter(self.path, next);
                return Ok(Some(to(distance)));
            }
            Operation::Jump { width, condition, left, right, distance } => {
                let left = self.state.registers[usize::from(left)];
                let right = self.operand(right);
                let asked = question(&mut self.path.values, condition, width, left, right);
                let is_taken = self.branch(slot, asked)?;
                return Ok(Some(if is_taken { to(distance.into()) } else { next }));
            }
            Operation::Call(Callee::Helper(number)) => {
                let accesses = self.analysis.accesses(slot);
                let result = self.state.call(self.path, number, accesses, slot);
                self.state.registers[0] = result;
            }
            Operation::Load { .. } | Operation::Store { .. } | Operation::Atomic { .. } => {
                self.access(slot, operation);
            }
            _ => self.compute(slot, operation)?,
        }
        Ok(Some(next))
    }

    /// Returns whether a jump is taken: as the assumptions imply, or else the less visited outcome.
    fn branch(&mut self, slot: usize, asked: super::facts::Asked) -> Result<bool, Abandoned> {
        let [taken, not_taken] = self.analysis.outcomes(slot);
        let is_taken = match (taken, not_taken) {
            (true, true) => {
                let count = |taken| self.visits.get(&(slot, taken)).copied().unwrap_or(0);
                let prefers = count(true) < count(false);
                self.path.decide(asked, slot, prefers)
            }
            (false, false) => return Err(Abandoned),
            (only, _) => {
                let (question, yes) = asked;
                match self.path.facts.answer(&self.path.values, question) {
                    Some(answer) if (answer == yes) != only => {
                        return Err(Abandoned);
                    }
                    Some(_) => {}
                    None => self.path.assume(question, only == yes),
                }
                only
            }
        };
        *self.visits.entry((slot, is_taken)).or_insert(0) += 1;
        Ok(is_taken)
    }

    fn access(&mut self, slot: usize, operation: Operation) {
        let accesses = self.analysis.accesses(slot);
        match operation {
            Operation::Load { size, is_signed, destination, base, offset } => {
                let address = self.address(base, offset);
                let place = self.state.place(self.path, address, size.bytes(), accesses);
                let value = match context_from(self.analysis, slot, destination) {
                    Some(offset) => self.state.load_context(self.path, &place, offset),
                    None => self.state.load(self.path, &place, is_signed),
                };
                self.state.registers[usize::from(destination)] = value;
            }
            Operation::Store { size, base, offset, source } => {
                let address = self.address(base, offset);
                let place = self.state.place(self.path, address, size.bytes(), accesses);
                let value = self.operand(source);
                self.state.store(self.path, &place, value);
            }
            Operation::Atomic { width, operation: change, base, offset, source, .. } => {
                let bytes = if width == crate::operation::Width::Bits64 { 8 } else { 4 };
                let address = self.address(base, offset);
                let place = self.state.place(self.path, address, bytes, accesses);
                let source = self.state.registers[usize::from(source)];
                let kind = (change, width);
                let (old, new) = self.state.change(self.path, &place, kind, source, slot);
                self.state.store(self.path, &place, new);
                if let Some(register) = operation.written() {
                    self.state.registers[usize::from(register)] = old;
                }
            }
            _ => {}
        }
    }

    fn compute(&mut self, slot: usize, operation: Operation) -> Result<(), Abandoned> {
        let held = |state: &State, register: u8| state.registers[usize::from(register)];
        let (destination, value) = match operation {
            Operation::Alu { width, operation, destination, source } => {
                let (left, right) = (held(&self.state, destination), self.operand(source));
                (destination, self.path.compute(operation, width, left, right))
            }
            Operation::Negate { width, destination } => {
                let value = held(&self.state, destination);
                (destination, self.path.values.negate(width, value))
            }
            Operation::MoveSigned { width, destination, source, bits } => {
                let value = held(&self.state, source);
                (destination, self.path.values.sign_extend(width, bits, value))
            }
            Operation::Swap { order, destination, bits } => {
                let value = held(&self.state, destination);
                (destination, self.path.values.swap(order, bits, value))
            }
            Operation::LoadConstant { destination, constant } => {
                (destination, self.constant(slot, constant)?)
            }
            _ => return Err(Abandoned),
        };
        debug_assert!(destination != FRAME_POINTER, "programs do not write it");
        self.state.registers[usize::from(destination)] = value;
        Ok(())
    }

    fn constant(&mut self, slot: usize, constant: Constant) -> Result<Id, Abandoned> {
        let leaf = match constant {
            Constant::Value(value) => return Ok(self.path.values.constant(value)),
            Constant::Map(map) => Leaf::Map(map),
            Constant::MapValue { map, offset } => {
                let start = self.path.values.leaf(Leaf::MapValue(map));
                return Ok(self.path.values.offset(start, offset.into()));
            }
            Constant::Function(distance) => {
                let entry = (slot as i64 + 1 + i64::from(distance)) as usize;
                let function = self.analysis.graph().function_at(entry);
                Leaf::Function(function.ok_or(Abandoned)?)
            }
            Constant::Variable(_) => return Err(Abandoned),
        };
        Ok(self.path.values.leaf(leaf))
    }
}
