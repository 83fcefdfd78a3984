// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encodes images to bytes for the processor: a slot of 64 bits for each lane, in the layout of
//! eBPF instructions. The table of opcodes is in `docs/internals/vliw.md`.
//!
//! Operations of eBPF have eBPF's encoding. An opcode `0xe_` is that of arithmetic or a conditional
//! jump whose own code is in the offset, to make room for a second source or a verdict.

mod decode;

pub use decode::{NotDecodable, decode};

use crate::image::{Image, Row};
use crate::machine::REGISTERS;
use crate::operation::{Argument, Arithmetic, Constant, Operand, Operation, Target};
use freeport_ebpf::instruction::{self as ebpf, Callee, Instruction, Size};
use thiserror::Error;

/// Opcodes that eBPF does not have.
mod opcode {
    /// A constant in one slot; `source` selects its kind, as in eBPF's two-slot form.
    pub const CONSTANT: u8 = 0x08;
    /// Accesses of six bytes.
    pub const LOAD_SIX: u8 = 0x01;
    pub const LOAD_SIX_SPECULATIVE: u8 = 0x21;
    pub const STORE_SIX_CONSTANT: u8 = 0x02;
    pub const STORE_SIX: u8 = 0x03;
    /// Replaces eBPF's code, which is then in the offset.
    pub const EXTENDED: u8 = 0xe0;
    /// Jumps to a row if the packet is too short: counted from an address, and from the packet's
    /// start.
    pub const BOUND_FROM: u8 = 0xf5;
    pub const BOUND: u8 = 0xf6;
    /// As above, but exits instead of jumping.
    pub const BOUND_FROM_EXIT: u8 = 0xfd;
    pub const BOUND_EXIT: u8 = 0xfe;
    /// A call of a helper with explicit arguments.
    pub const CALL_WITH: u8 = 0x8d;
    /// An exit with a verdict.
    pub const EXIT_VERDICT: u8 = 0x9d;
}

/// Codes of arguments that do not come from their register.
mod given {
    /// First argument: the context, and maps from this number on.
    pub const CONTEXT: u16 = 1;
    pub const FIRST_MAP: u16 = 2;
    /// Other arguments: a number, or the number of 4-byte words below the frame pointer, less one.
    pub const NUMBER: u8 = 0x40;
    pub const STACK: u8 = 0x80;
}

/// Bits in the opcode of a load that make it speculative.
const SPECULATIVE: u8 = 0xc0;
/// Size of a verdict beside a condition, in bits.
const VERDICT_BITS: u32 = 12;

/// Reason for which an image cannot be encoded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("row {row}, lane {lane}: {reason}: `{operation}`")]
pub struct NotEncodable {
    /// Row.
    pub row: usize,
    /// Lane.
    pub lane: usize,
    /// Text of the operation.
    pub operation: String,
    /// Reason.
    pub reason: &'static str,
}

/// Encodes an image: for each row the slots of its lanes, an empty lane as zeros.
///
/// # Errors
/// The first operation with a field that does not fit, or in a lane that another operation needs.
pub fn encode(image: &Image) -> Result<Vec<u8>, NotEncodable> {
    let mut bytes = vec![];
    for (number, row) in image.rows.iter().enumerate() {
        let lanes = usize::from(image.machine.lanes);
        let mut slots = vec![Instruction::default(); lanes];
        for (lane, slot) in row.slots() {
            let operation = &slot.operation;
            let fail = |reason| {
                let operation = operation.to_string();
                NotEncodable { row: number, lane, operation, reason }
            };
            let (first, second) = encode_operation(operation, number).map_err(fail)?;
            if lane + operation.lanes() > lanes {
                return Err(fail("the row has no such lane"));
            }
            slots[lane] = first;
            if let Some(second) = second {
                if has_operation(row, lane + 1) {
                    return Err(fail("the next lane has an operation"));
                }
                slots[lane + 1] = second;
            }
        }
        bytes.extend(slots.into_iter().flat_map(Instruction::to_bytes));
    }
    Ok(bytes)
}

fn has_operation(row: &Row, lane: usize) -> bool {
    row.lanes.get(lane).is_some_and(Option::is_some)
}

/// The slot of an operation, and the second slot of a long constant.
type Slots = (Instruction, Option<Instruction>);

/// Encodes an operation in a row.
fn encode_operation(operation: &Operation, row: usize) -> Result<Slots, &'static str> {
    let mut registers = operation.read().chain(operation.written());
    if registers.any(|register| register >= REGISTERS) {
        return Err("the registers are 0 to 15");
    }
    let slot = match *operation {
        Operation::Constant { destination, constant } => {
            return encode_constant(destination, constant);
        }
        Operation::Alu { .. }
        | Operation::Negate { .. }
        | Operation::MoveSigned { .. }
        | Operation::Swap { .. } => encode_arithmetic(operation),
        Operation::Load { .. } | Operation::Store { .. } | Operation::Atomic { .. } => {
            encode_access(operation)
        }
        _ => encode_control(operation, row),
    };
    Ok((slot?, None))
}

fn encode_constant(destination: u8, constant: Constant) -> Result<Slots, &'static str> {
    let slot = Instruction { opcode: opcode::CONSTANT, destination, ..Default::default() };
    let one =
        |source, offset, immediate| Ok((Instruction { source, offset, immediate, ..slot }, None));
    match constant {
        Constant::Value(value) => match i32::try_from(value as i64) {
            Ok(immediate) => one(0, 0, immediate),
            Err(_) => {
                let constant = ebpf::Constant::Value(value);
                Ok(ebpf::Operation::LoadConstant { destination, constant }.encode())
            }
        },
        Constant::Map(map) => one(ebpf::PSEUDO_MAP, 0, map as i32),
        Constant::MapValue { map, offset } => {
            let map = u16::try_from(map).map_err(|_| "the map's number has more than 16 bits")?;
            one(ebpf::PSEUDO_MAP_VALUE, map as i16, offset as i32)
        }
        Constant::Function(row) => one(ebpf::PSEUDO_FUNCTION, 0, absolute(row)?),
    }
}

fn encode_arithmetic(operation: &Operation) -> Result<Instruction, &'static str> {
    let (plain, left) = match *operation {
        Operation::Alu { width, operation, destination, left, right } => {
            let is_move = operation == Arithmetic::Move;
            if is_move && left != 0 {
                return Err("a move has no left operand");
            }
            let left = if is_move { destination } else { left };
            (ebpf::Operation::Alu { width, operation, destination, source: right }, left)
        }
        Operation::Negate { width, destination, source } => {
            (ebpf::Operation::Negate { width, destination }, source)
        }
        Operation::MoveSigned { width, destination, source, bits } => {
            (ebpf::Operation::MoveSigned { width, destination, source, bits }, destination)
        }
        Operation::Swap { order, destination, source, bits } => {
            (ebpf::Operation::Swap { order, destination, bits }, source)
        }
        _ => return Err("it is not arithmetic"),
    };
    let (slot, _) = plain.encode();
    let is_known = ebpf::decode(&[decode::without_own_registers(slot)], 0).is_ok();
    if !is_known || left >= REGISTERS {
        return Err("a field has a value that means nothing");
    }
    if left == slot.destination {
        return Ok(slot);
    }
    let code = i16::from(slot.opcode & 0xf0) | i16::from(slot.source) | slot.offset << 8;
    let opcode = opcode::EXTENDED | slot.opcode & 0x0f;
    Ok(Instruction { opcode, source: left, offset: code, ..slot })
}

fn encode_access(operation: &Operation) -> Result<Instruction, &'static str> {
    let size = |bytes| match bytes {
        1 => Ok(Size::Byte),
        2 => Ok(Size::Half),
        4 => Ok(Size::Word),
        8 => Ok(Size::Double),
        _ => Err("an access has 1, 2, 4, 6 or 8 bytes"),
    };
    let plain = match *operation {
        Operation::Load {
            bytes: 6,
            is_signed: false,
            is_speculative,
            destination,
            base,
            offset,
        } => {
            let opcode =
                if is_speculative { opcode::LOAD_SIX_SPECULATIVE } else { opcode::LOAD_SIX };
            return Ok(Instruction { opcode, destination, source: base, offset, immediate: 0 });
        }
        Operation::Load { bytes: 6 | 8, is_signed: true, .. } => {
            return Err("only 1, 2 or 4 bytes are sign-extended");
        }
        Operation::Load { bytes, is_signed, is_speculative, destination, base, offset } => {
            let size = size(bytes)?;
            let plain = ebpf::Operation::Load { size, is_signed, destination, base, offset };
            let (slot, _) = plain.encode();
            let speculative = if is_speculative { SPECULATIVE } else { 0 };
            return Ok(Instruction { opcode: slot.opcode ^ speculative, ..slot });
        }
        Operation::Store { bytes: 6, base: destination, offset, source } => {
            let (opcode, source, immediate) = match source {
                Operand::Register(source) => (opcode::STORE_SIX, source, 0),
                Operand::Immediate(constant) => (opcode::STORE_SIX_CONSTANT, 0, constant),
            };
            return Ok(Instruction { opcode, destination, source, offset, immediate });
        }
        Operation::Store { bytes, base, offset, source } => {
            ebpf::Operation::Store { size: size(bytes)?, base, offset, source }
        }
        Operation::Atomic { width, operation, is_fetching, base, offset, source } => {
            ebpf::Operation::Atomic { width, operation, is_fetching, base, offset, source }
        }
        _ => return Err("it is not a memory access"),
    };
    let (slot, _) = plain.encode();
    let is_known = ebpf::decode(&[decode::without_own_registers(slot)], 0).is_ok();
    if is_known { Ok(slot) } else { Err("an exchange always fetches") }
}

fn encode_control(operation: &Operation, row: usize) -> Result<Instruction, &'static str> {
    let plain = match *operation {
        Operation::Jump { width, condition, left, right, target } => {
            let jump = |distance| ebpf::Operation::Jump { width, condition, left, right, distance };
            match target {
                Target::Row(target) => jump(near(row, target)?),
                Target::Exit(verdict) => {
                    if verdict >> VERDICT_BITS != 0 {
                        return Err("the verdict has more than 12 bits");
                    }
                    let (slot, _) = jump(0).encode();
                    let offset = u16::from(slot.opcode & 0xf0) << 8 | verdict as u16;
                    let opcode = opcode::EXTENDED | slot.opcode & 0x0f;
                    return Ok(Instruction { opcode, offset: offset as i16, ..slot });
                }
            }
        }
        Operation::Bound { base, bytes, target } => return encode_bound(base, bytes, target, row),
        Operation::Goto(Target::Exit(verdict)) => {
            let (opcode, immediate) = (opcode::EXIT_VERDICT, verdict as i32);
            return Ok(Instruction { opcode, immediate, ..Default::default() });
        }
        Operation::Goto(Target::Row(target)) => {
            let distance = distance(row, target)?;
            let is_long = i16::try_from(distance).is_err();
            ebpf::Operation::Goto { is_long, distance }
        }
        Operation::Call { helper, arguments } if arguments == <[Argument; 5]>::default() => {
            ebpf::Operation::Call(Callee::Helper(helper))
        }
        Operation::Call { helper, arguments } => return encode_call(helper, arguments),
        Operation::CallFunction(target) => ebpf::Operation::Call(Callee::Local(absolute(target)?)),
        Operation::Exit => ebpf::Operation::Exit,
        _ => return Err("it is not a control operation"),
    };
    Ok(plain.encode().0)
}

/// Encodes a call with explicit arguments: the helper is in the fields of both registers, the first
/// argument in the offset, each of the others in a byte of the immediate.
fn encode_call(helper: u32, arguments: [Argument; 5]) -> Result<Instruction, &'static str> {
    let helper = u8::try_from(helper).map_err(|_| "the helper's number has more than 8 bits")?;
    let [first, others @ ..] = arguments;
    let first = match first {
        Argument::Register => 0,
        Argument::Context => given::CONTEXT,
        Argument::Map(map) if map < Argument::MAPS => given::FIRST_MAP + map,
        _ => return Err("the first argument is the context or a map"),
    };
    let mut bytes = [0; 4];
    for (byte, argument) in bytes.iter_mut().zip(others) {
        *byte = match argument {
            Argument::Register => 0,
            Argument::Number(number) if number < Argument::NUMBERS => given::NUMBER | number,
            Argument::Stack(offset) if (-512..0).contains(&offset) && offset % 4 == 0 => {
                given::STACK | (-offset / 4 - 1) as u8
            }
            _ => return Err("an argument is neither a near frame address nor a small number"),
        };
    }
    Ok(Instruction {
        opcode: opcode::CALL_WITH,
        destination: helper & 15,
        source: helper >> 4,
        offset: first as i16,
        immediate: i32::from_le_bytes(bytes),
    })
}

fn encode_bound(
    base: Option<u8>,
    immediate: i32,
    target: Target,
    row: usize,
) -> Result<Instruction, &'static str> {
    let (opcode, offset) = match (base, target) {
        (Some(_), Target::Row(target)) => (opcode::BOUND_FROM, near(row, target)?),
        (None, Target::Row(target)) => (opcode::BOUND, near(row, target)?),
        (base, Target::Exit(verdict)) => {
            let verdict =
                u16::try_from(verdict).map_err(|_| "the verdict has more than 16 bits")?;
            let opcode = if base.is_some() { opcode::BOUND_FROM_EXIT } else { opcode::BOUND_EXIT };
            (opcode, verdict as i16)
        }
    };
    Ok(Instruction { opcode, destination: base.unwrap_or(0), source: 0, offset, immediate })
}

/// Returns the distance from the next row to a target, in 32 bits.
fn distance(row: usize, target: usize) -> Result<i32, &'static str> {
    let (row, target) = (i64::from(absolute(row)?), i64::from(absolute(target)?));
    i32::try_from(target - row - 1).map_err(|_| "the target is too far")
}

/// Returns the distance from the next row to a target, in 16 bits.
fn near(row: usize, target: usize) -> Result<i16, &'static str> {
    i16::try_from(distance(row, target)?).map_err(|_| "the target is more than 16 bits away")
}

/// Returns the number of a row.
fn absolute(row: usize) -> Result<i32, &'static str> {
    i32::try_from(row).map_err(|_| "the row's number has more than 31 bits")
}

#[cfg(test)]
mod tests;
