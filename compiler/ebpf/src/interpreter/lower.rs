// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles an object's instructions to steps. Everything that cannot run is reported here, for
//! each instruction, so that nothing has to be refused later.

use super::atomic::atomic_constant;
use super::compiled::Compiled;
use super::step::{Code, Step};
use crate::helper_functions;
use crate::instruction::{
    ByteOrder, Callee, Constant, FRAME_POINTER, Instruction, Operand, Operation, Size, Width,
    decode,
};
use crate::maps::Map;
use crate::object::{MapDefinition, MapKind, Program};
use crate::refusal::Unsupported;
use crate::run::memory::{function_handle, map_handle, value_address};

/// Compiles a program to its dense form.
///
/// # Errors
/// All instructions that cannot run.
pub(crate) fn lower(program: &Program, maps: &[Map]) -> Result<Compiled, Vec<Unsupported>> {
    let lowering = Lowering::new(&program.instructions, maps);
    let mut compiled = Compiled { is_runnable: true, ..Compiled::default() };
    let mut unsupported = vec![];
    for slot in lowering.starts() {
        compiled.slots.push(slot as u32);
        match lowering.step(slot) {
            Ok(step) => compiled.steps.push(step),
            Err(reason) => {
                let program = program.name.clone();
                unsupported.push(Unsupported { program, slot, reason });
            }
        }
    }
    compiled.steps.push(Step::plain(Code::End));
    compiled.slots.push(program.instructions.len() as u32);
    if unsupported.is_empty() { Ok(compiled) } else { Err(unsupported) }
}

/// The slots of a program during compilation.
struct Lowering<'p> {
    program: &'p [Instruction],
    maps: &'p [Map],
    /// Step of each slot; `None` for the second slot of an instruction.
    step_of: Vec<Option<u32>>,
}

impl<'p> Lowering<'p> {
    fn new(program: &'p [Instruction], maps: &'p [Map]) -> Self {
        let (mut step_of, mut steps, mut slot) = (vec![None; program.len()], 0, 0);
        while slot < program.len() {
            step_of[slot] = Some(steps);
            steps += 1;
            slot += if program[slot].is_wide() { 2 } else { 1 };
        }
        Self { program, maps, step_of }
    }

    /// Returns the first slots of all instructions.
    fn starts(&self) -> impl Iterator<Item = usize> {
        self.step_of.iter().enumerate().filter_map(|(slot, step)| step.map(|_| slot))
    }

    /// Returns the step of the slot `distance` slots after the next one.
    fn target(&self, slot: usize, distance: i32) -> Result<i32, String> {
        let target = slot as i64 + 1 + i64::from(distance);
        let step = usize::try_from(target).ok().and_then(|target| *self.step_of.get(target)?);
        let step = step.and_then(|step| i32::try_from(step).ok());
        step.ok_or_else(|| format!("its target, slot {target}, is not the start of an instruction"))
    }

    fn step(&self, slot: usize) -> Result<Step, String> {
        let operation = decode(self.program, slot).map_err(|invalid| invalid.to_string())?;
        if operation.written() == Some(FRAME_POINTER) {
            return Err("register 10 is the frame pointer, which cannot be written".to_owned());
        }
        let width = |width| width == Width::Bits64;
        Ok(match operation {
            Operation::Alu { width: bits, operation, destination, source } => {
                let (is_register, source, constant) = operand(source);
                let code = Code::of_arithmetic(operation, width(bits), is_register);
                Step { code, destination, source, offset: 0, constant }
            }
            Operation::Negate { width: bits, destination } => {
                let code = if width(bits) { Code::Negate64 } else { Code::Negate32 };
                Step { destination, ..Step::plain(code) }
            }
            Operation::MoveSigned { width: bits, destination, source, bits: low } => {
                let code = sign_extension(width(bits), low)?;
                Step { destination, source, ..Step::plain(code) }
            }
            Operation::Swap { order, destination, bits } => {
                Step { destination, ..Step::plain(swap(order, bits)?) }
            }
            Operation::Load { size, is_signed, destination, base, offset } => {
                let code = load(size, is_signed)?;
                Step { destination, source: base, offset: offset.into(), ..Step::plain(code) }
            }
            Operation::Store { size, base, offset, source } => {
                let (is_register, source, constant) = operand(source);
                let code = store(size, is_register);
                Step { code, destination: base, source, offset: offset.into(), constant }
            }
            Operation::Atomic { width: bits, operation, is_fetching, base, offset, source } => {
                let code = if width(bits) { Code::Atomic64 } else { Code::Atomic32 };
                let constant = atomic_constant(operation, is_fetching);
                Step { code, destination: base, source, offset: offset.into(), constant }
            }
            Operation::LoadConstant { destination, constant } => {
                let constant = self.constant(slot, constant)?;
                Step { destination, constant, ..Step::plain(Code::Constant) }
            }
            Operation::Jump { width: bits, condition, left, right, distance } => {
                let (is_register, source, constant) = operand(right);
                let code = Code::of_jump(condition, width(bits), is_register);
                let offset = self.target(slot, distance.into())?;
                Step { code, destination: left, source, offset, constant }
            }
            Operation::Goto { distance, .. } => {
                Step { offset: self.target(slot, distance)?, ..Step::plain(Code::Goto) }
            }
            Operation::Call(callee) => self.call(slot, callee)?,
            Operation::Exit => Step::plain(Code::Exit),
            Operation::LoadPacket { .. } => {
                return Err("packet access of socket filters is not supported".to_owned());
            }
        })
    }

    fn call(&self, slot: usize, callee: Callee) -> Result<Step, String> {
        match callee {
            Callee::Helper(helper) if helper_functions::name(helper).is_some() => {
                Ok(Step { constant: helper.into(), ..Step::plain(Code::CallHelper) })
            }
            Callee::Helper(helper) => Err(format!("helper {helper} is not supported")),
            Callee::Local(distance) => {
                Ok(Step { offset: self.target(slot, distance)?, ..Step::plain(Code::CallFunction) })
            }
            Callee::Kernel { id, .. } => Err(format!("kernel function {id} is not supported")),
        }
    }

    /// Returns the value that a wide load stores in a register.
    fn constant(&self, slot: usize, constant: Constant) -> Result<u64, String> {
        let checked = |map: u32| {
            let known = self.maps.get(map as usize).map(|found| (map as usize, found));
            known.ok_or_else(|| format!("there is no map {map}"))
        };
        match constant {
            Constant::Value(value) => Ok(value),
            Constant::Map(map) => checked(map).map(|(map, _)| map_handle(map)),
            Constant::MapValue { map, offset } => {
                let (number, map) = checked(map)?;
                let MapDefinition { kind, max_entries, value_size, .. } = *map.definition();
                if kind != MapKind::Array || max_entries != 1 || offset >= value_size {
                    let name = &map.definition().name;
                    return Err(format!("map `{name}` has no single value with a byte {offset}"));
                }
                Ok(value_address(number, offset.into()))
            }
            Constant::Function(distance) => {
                self.target(slot, distance).map(|step| function_handle(step as usize))
            }
            Constant::Variable(id) => Err(format!("kernel variable {id} is not available here")),
        }
    }
}

/// Returns whether an operand is a register, the register, and otherwise its value.
fn operand(operand: Operand) -> (bool, u8, u64) {
    match operand {
        Operand::Register(register) => (true, register, 0),
        Operand::Immediate(immediate) => (false, 0, i64::from(immediate) as u64),
    }
}

fn sign_extension(is_wide: bool, bits: u8) -> Result<Code, String> {
    match (is_wide, bits) {
        (true, 8) => Ok(Code::SignExtend8To64),
        (true, 16) => Ok(Code::SignExtend16To64),
        (true, 32) => Ok(Code::SignExtend32To64),
        (false, 8) => Ok(Code::SignExtend8To32),
        (false, 16) => Ok(Code::SignExtend16To32),
        _ => Err(format!("sign extension from {bits} bits is not supported")),
    }
}

/// Returns the code of a byte swap. The host is little-endian, as the objects are.
fn swap(order: ByteOrder, bits: u8) -> Result<Code, String> {
    match (order, bits) {
        (ByteOrder::Little, 16) => Ok(Code::Truncate16),
        (ByteOrder::Little, 32) => Ok(Code::Truncate32),
        (ByteOrder::Little, 64) => Ok(Code::Nothing),
        (_, 16) => Ok(Code::Swap16),
        (_, 32) => Ok(Code::Swap32),
        (_, 64) => Ok(Code::Swap64),
        _ => Err(format!("a byte swap of {bits} bits is not supported")),
    }
}

fn load(size: Size, is_signed: bool) -> Result<Code, String> {
    match (size, is_signed) {
        (Size::Byte, false) => Ok(Code::Load8),
        (Size::Half, false) => Ok(Code::Load16),
        (Size::Word, false) => Ok(Code::Load32),
        (Size::Double, false) => Ok(Code::Load64),
        (Size::Byte, true) => Ok(Code::LoadSigned8),
        (Size::Half, true) => Ok(Code::LoadSigned16),
        (Size::Word, true) => Ok(Code::LoadSigned32),
        (Size::Double, true) => Err("a sign-extending load of 8 bytes is not valid".to_owned()),
    }
}

fn store(size: Size, is_register: bool) -> Code {
    match (size, is_register) {
        (Size::Byte, true) => Code::Store8,
        (Size::Half, true) => Code::Store16,
        (Size::Word, true) => Code::Store32,
        (Size::Double, true) => Code::Store64,
        (Size::Byte, false) => Code::StoreConstant8,
        (Size::Half, false) => Code::StoreConstant16,
        (Size::Word, false) => Code::StoreConstant32,
        (Size::Double, false) => Code::StoreConstant64,
    }
}
