// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Symbolic execution of the image on a path: all operations of a row read before any writes.

use super::super::memory::Touched;
use super::super::registers::calls_functions;
use super::facts::{question, short};
use super::log::Place;
use super::program::context_from;
use super::state::{Path, State};
use super::values::{Id, Leaf};
use crate::image::{Image, Slot};
use crate::machine::PACKET;
use crate::operation::{Argument, Constant, FRAME_POINTER, Operand, Operation, Target, Width};
use freeport_ebpf::analysis::{Access, Analysis};
use freeport_ebpf::instruction as ebpf;
use std::collections::HashMap;

/// Rows on a path for each instruction of the program on it, plus a constant.
const ROWS_PER_INSTRUCTION: usize = 4;
const ROWS_BESIDES: usize = 100;

/// A load that would abort the program if its memory did not exist.
pub(super) struct Needed {
    pub place: Place,
    pub row: usize,
    pub lane: usize,
}

/// A run that reached its end.
pub(super) struct Ended {
    pub state: State,
    pub needed: Vec<Needed>,
    /// Operations that access memory that their instructions do not access.
    pub lies: Vec<(usize, usize)>,
}

/// Facts about an image that all its runs share.
pub(super) struct Rows<'a> {
    pub image: &'a Image,
    /// Accesses of each operation.
    accesses: Vec<Vec<Vec<Access>>>,
    /// Context offset of the address that an operation loads, by row and lane.
    contexts: HashMap<(usize, usize), i64>,
    /// Numbers of functions in the program, by row.
    functions: Vec<(usize, usize)>,
}

impl<'a> Rows<'a> {
    pub fn new(image: &'a Image, analysis: &Analysis) -> Self {
        let of_slot = |slot: &Option<Slot>| match slot {
            // The side effects of helpers are known, as for the program.
            Some(Slot { operation: Operation::Call { .. }, origins }) => {
                origins.iter().flat_map(|at| analysis.accesses(*at)).copied().collect()
            }
            Some(slot) => Touched::by(slot, analysis).accesses,
            None => vec![],
        };
        let rows = image.rows.iter();
        let accesses = rows.map(|row| row.lanes.iter().map(of_slot).collect()).collect();
        let graph = analysis.graph();
        let functions = image.functions.iter().filter_map(|function| {
            let mut slots = image.rows[function.row..].iter().flat_map(|row| row.slots());
            let origin = *slots.next()?.1.origins.first()?;
            Some((function.row, graph.blocks()[graph.block_of(origin)].function))
        });
        let functions = functions.collect();
        Self { image, accesses, contexts: contexts(image, analysis), functions }
    }

    /// Returns the first row of a function of the program.
    pub fn row_of(&self, function: usize) -> Option<usize> {
        self.functions.iter().find(|(_, known)| *known == function).map(|(row, _)| *row)
    }

    /// Executes the image from a row to its end, on a path of `steps` program steps. Fails with the
    /// row where execution does not end.
    pub fn run(&self, path: &mut Path, entry: usize, steps: usize) -> Result<Ended, usize> {
        let state = State::new(path, true, entry != 0);
        let (needed, lies, writes) = (vec![], vec![], vec![]);
        let mut run = Run { rows: self, path, state, needed, lies, writes };
        let mut row = entry;
        for _ in 0..steps * ROWS_PER_INSTRUCTION + ROWS_BESIDES {
            match run.row(row) {
                Some(next) => row = next,
                None => {
                    let Run { state, needed, lies, .. } = run;
                    return Ok(Ended { state, needed, lies });
                }
            }
        }
        Err(row)
    }
}

/// Returns the loads whose result is an address in the context.
fn contexts(image: &Image, analysis: &Analysis) -> HashMap<(usize, usize), i64> {
    let mut contexts = HashMap::new();
    for (number, row) in image.rows.iter().enumerate() {
        for (lane, slot) in row.slots() {
            let [origin] = slot.origins[..] else { continue };
            let loaded = match analysis.graph().operation(origin) {
                Some(ebpf::Operation::Load { destination, .. }) => Some(destination),
                _ => None,
            };
            let is_load = matches!(slot.operation, Operation::Load { .. });
            let found =
                loaded.filter(|_| is_load).and_then(|it| context_from(analysis, origin, it));
            contexts.extend(found.map(|offset| ((number, lane), offset)));
        }
    }
    contexts
}

/// Result of an operation, written after all operations have read.
enum Write {
    Register(u8, Id),
    Memory(Place, Id),
}

/// Control transfer.
enum Way {
    Row(usize),
    Exit(Id),
    Return,
    Call(usize),
}

struct Run<'a> {
    rows: &'a Rows<'a>,
    path: &'a mut Path,
    state: State,
    needed: Vec<Needed>,
    lies: Vec<(usize, usize)>,
    writes: Vec<Write>,
}

impl Run<'_> {
    /// Executes a row; returns the next one.
    fn row(&mut self, number: usize) -> Option<usize> {
        let row = &self.rows.image.rows[number];
        let mut way = Way::Row(number + 1);
        for (lane, slot) in row.slots() {
            match self.operation(number, lane, &slot.operation) {
                Some(taken) => {
                    way = taken;
                    break;
                }
                None => continue,
            }
        }
        for write in std::mem::take(&mut self.writes) {
            match write {
                Write::Register(register, value) => {
                    self.state.registers[usize::from(register)] = value;
                }
                Write::Memory(place, value) => self.state.store(self.path, &place, value),
            }
        }
        match way {
            Way::Row(row) => Some(row),
            Way::Exit(value) => {
                self.state.exit(self.path, value, number);
                None
            }
            Way::Return => self.state.leave(self.path, number),
            Way::Call(row) => {
                self.state.enter(self.path, number + 1);
                Some(row)
            }
        }
    }

    fn held(&mut self, register: u8) -> Id {
        if register == PACKET {
            return self.state.packet(self.path);
        }
        self.state.registers[usize::from(register)]
    }

    /// Returns an argument of a helper call that may not come from its register.
    fn argument(&mut self, register: u8, argument: Argument) -> Id {
        let values = &mut self.path.values;
        match argument {
            Argument::Register => self.held(register),
            Argument::Context => values.leaf(Leaf::Context),
            Argument::Map(map) => values.leaf(Leaf::Map(map.into())),
            Argument::Number(number) => values.constant(number.into()),
            Argument::Stack(offset) => {
                let frame = self.state.registers[usize::from(FRAME_POINTER)];
                values.offset(frame, offset.into())
            }
        }
    }

    fn operand(&mut self, operand: Operand) -> Id {
        match operand {
            Operand::Register(register) => self.held(register),
            Operand::Immediate(number) => self.path.values.constant(i64::from(number) as u64),
        }
    }

    fn place(&mut self, at: (usize, usize), base: u8, offset: i16, bytes: u8) -> Place {
        let base = self.held(base);
        let address = self.path.values.offset(base, offset.into());
        let rows = self.rows;
        self.state.place(self.path, address, bytes, &rows.accesses[at.0][at.1])
    }

    /// Records an operation that accesses memory that its instructions do not access.
    fn note_lie(&mut self, at: (usize, usize), place: &Place) {
        if !self.state.is_as_said(self.path, place) {
            self.lies.push(at);
        }
    }

    /// Executes an operation except for its writes; returns the control transfer, if it decides
    /// one.
    fn operation(&mut self, row: usize, lane: usize, operation: &Operation) -> Option<Way> {
        match *operation {
            Operation::Load { bytes, is_signed, is_speculative, destination, base, offset } => {
                let place = self.place((row, lane), base, offset, bytes);
                let value = match self.rows.contexts.get(&(row, lane)) {
                    Some(offset) => self.state.load_context(self.path, &place, *offset),
                    None => self.state.load(self.path, &place, is_signed),
                };
                self.writes.push(Write::Register(destination, value));
                // A premature load may read from anywhere.
                if !is_speculative {
                    self.note_lie((row, lane), &place);
                    if !self.state.is_own(self.path, &place) {
                        self.needed.push(Needed { place, row, lane });
                    }
                }
            }
            Operation::Store { bytes, base, offset, source } => {
                let place = self.place((row, lane), base, offset, bytes);
                self.note_lie((row, lane), &place);
                let value = self.operand(source);
                self.writes.push(Write::Memory(place, value));
            }
            Operation::Atomic { width, operation: change, base, offset, source, .. } => {
                let bytes = if width == Width::Bits64 { 8 } else { 4 };
                let place = self.place((row, lane), base, offset, bytes);
                self.note_lie((row, lane), &place);
                let source = self.held(source);
                let kind = (change, width);
                let (old, new) = self.state.change(self.path, &place, kind, source, row);
                self.writes.push(Write::Memory(place, new));
                if let Some(register) = operation.written() {
                    self.writes.push(Write::Register(register, old));
                }
            }
            Operation::Call { helper, arguments } => {
                let rows = self.rows;
                let accesses = &rows.accesses[row][lane];
                let held = self.state.registers;
                for (register, argument) in (1..).zip(arguments) {
                    self.state.registers[usize::from(register)] = self.argument(register, argument);
                }
                let result = self.state.call(self.path, helper, accesses, row);
                if !calls_functions(operation) {
                    self.state.registers[1..6].copy_from_slice(&held[1..6]);
                }
                self.writes.push(Write::Register(0, result));
            }
            _ => return self.control(row, operation),
        }
        None
    }

    fn control(&mut self, row: usize, operation: &Operation) -> Option<Way> {
        let (asked, target) = match *operation {
            Operation::Jump { width, condition, left, right, target } => {
                let (left, right) = (self.held(left), self.operand(right));
                (question(&mut self.path.values, condition, width, left, right), target)
            }
            Operation::Bound { base, bytes, target } => {
                let start = match base {
                    Some(base) => self.held(base),
                    None => self.state.packet(self.path),
                };
                let end = self.path.values.offset(start, bytes.into());
                (short(&mut self.path.values, end), target)
            }
            Operation::Goto(target) => return Some(self.way(target)),
            Operation::Exit => return Some(Way::Return),
            Operation::CallFunction(row) => return Some(Way::Call(row)),
            _ => {
                self.compute(operation);
                return None;
            }
        };
        let is_taken = self.path.decide(asked, usize::MAX - row, false);
        is_taken.then(|| self.way(target))
    }

    fn way(&mut self, target: Target) -> Way {
        match target {
            Target::Row(row) => Way::Row(row),
            Target::Exit(verdict) => Way::Exit(self.path.values.constant(verdict.into())),
        }
    }

    fn compute(&mut self, operation: &Operation) {
        let (destination, value) = match *operation {
            Operation::Alu { width, operation, destination, left, right } => {
                let (left, right) = (self.held(left), self.operand(right));
                (destination, self.path.compute(operation, width, left, right))
            }
            Operation::Negate { width, destination, source } => {
                let value = self.held(source);
                (destination, self.path.values.negate(width, value))
            }
            Operation::MoveSigned { width, destination, source, bits } => {
                let value = self.held(source);
                (destination, self.path.values.sign_extend(width, bits, value))
            }
            Operation::Swap { order, destination, source, bits } => {
                let value = self.held(source);
                (destination, self.path.values.swap(order, bits, value))
            }
            Operation::Constant { destination, constant } => (destination, self.constant(constant)),
            _ => return,
        };
        self.writes.push(Write::Register(destination, value));
    }

    fn constant(&mut self, constant: Constant) -> Id {
        let values = &mut self.path.values;
        match constant {
            Constant::Value(value) => values.constant(value),
            Constant::Map(map) => values.leaf(Leaf::Map(map)),
            Constant::MapValue { map, offset } => {
                let start = values.leaf(Leaf::MapValue(map));
                values.offset(start, offset.into())
            }
            Constant::Function(row) => {
                let found = self.rows.functions.iter().find(|(known, _)| *known == row);
                values.leaf(Leaf::Function(found.map_or(usize::MAX, |(_, function)| *function)))
            }
        }
    }
}
