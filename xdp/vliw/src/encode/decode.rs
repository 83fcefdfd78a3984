// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes bytes to operations. Unused fields must be 0.

use super::{SPECULATIVE, given, opcode};
use crate::machine::LANES;
use crate::operation::{Argument, Arithmetic, Constant, Operand, Operation, Target};
use freeport_ebpf::instruction::{
    self as ebpf, Callee, Instruction, PSEUDO_FUNCTION, PSEUDO_MAP, PSEUDO_MAP_VALUE, WIDE_LOAD,
};
use thiserror::Error;

/// Reason for which bytes cannot be decoded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("row {row}, lane {lane}: {reason}")]
pub struct NotDecodable {
    /// Row.
    pub row: usize,
    /// Lane.
    pub lane: usize,
    /// Reason.
    pub reason: String,
}

/// Decodes bytes to rows, for a machine with this number of lanes.
///
/// # Errors
/// The first slot that is not a valid operation, or an incomplete row.
pub fn decode(bytes: &[u8], lanes: usize) -> Result<Vec<Vec<Option<Operation>>>, NotDecodable> {
    let fail = |row, lane, reason: String| NotDecodable { row, lane, reason };
    if !u8::try_from(lanes).is_ok_and(|lanes| LANES.contains(&lanes)) {
        return Err(fail(0, 0, format!("a machine with {lanes} lanes is not supported")));
    }
    let rows = bytes.chunks_exact(lanes * 8);
    if !rows.remainder().is_empty() {
        return Err(fail(bytes.len() / (lanes * 8), 0, "the row is incomplete".into()));
    }
    let rows = rows.enumerate().map(|(row, bytes)| {
        let slots = bytes.chunks_exact(8).map(|slot| {
            let bytes = slot.try_into().expect("chunks have eight bytes");
            Instruction::from_bytes(bytes)
        });
        let slots: Vec<_> = slots.collect();
        let mut found = vec![None; lanes];
        let mut lane = 0;
        while lane < lanes {
            if slots[lane] != Instruction::default() {
                let decoded = decode_slot(&slots, lane, row);
                found[lane] = Some(decoded.map_err(|reason| fail(row, lane, reason))?);
            }
            lane += found[lane].as_ref().map_or(1, Operation::lanes);
        }
        Ok(found)
    });
    rows.collect()
}

/// Replaces registers that eBPF does not have, and keeps zeros.
pub(super) fn without_own_registers(slot: Instruction) -> Instruction {
    let known = |register: u8| register.min(ebpf::REGISTERS - 1);
    Instruction { destination: known(slot.destination), source: known(slot.source), ..slot }
}

fn decode_slot(slots: &[Instruction], lane: usize, row: usize) -> Result<Operation, String> {
    let slot = slots[lane];
    let Instruction { opcode, destination, source, offset, immediate } = slot;
    let unused = |fields: &[i32]| match fields.iter().all(|field| *field == 0) {
        true => Ok(()),
        false => Err(format!("opcode {opcode:#04x}: an unused field is not 0")),
    };
    let near = || relative(row, offset.into());
    let verdict = u32::from(offset as u16);
    match opcode {
        opcode::CONSTANT => decode_constant(slot),
        WIDE_LOAD => decode_long(slot, slots.get(lane + 1).copied()),
        opcode::LOAD_SIX | opcode::LOAD_SIX_SPECULATIVE => {
            unused(&[immediate])?;
            let is_speculative = opcode == opcode::LOAD_SIX_SPECULATIVE;
            let (bytes, is_signed, base) = (6, false, source);
            Ok(Operation::Load { bytes, is_signed, is_speculative, destination, base, offset })
        }
        opcode::STORE_SIX => {
            unused(&[immediate])?;
            let source = Operand::Register(source);
            Ok(Operation::Store { bytes: 6, base: destination, offset, source })
        }
        opcode::STORE_SIX_CONSTANT => {
            unused(&[source.into()])?;
            let source = Operand::Immediate(immediate);
            Ok(Operation::Store { bytes: 6, base: destination, offset, source })
        }
        opcode::BOUND | opcode::BOUND_EXIT => {
            unused(&[source.into(), destination.into()])?;
            let target = if opcode == opcode::BOUND { near()? } else { Target::Exit(verdict) };
            Ok(Operation::Bound { base: None, bytes: immediate, target })
        }
        opcode::BOUND_FROM | opcode::BOUND_FROM_EXIT => {
            unused(&[source.into()])?;
            let target = if opcode == opcode::BOUND_FROM { near()? } else { Target::Exit(verdict) };
            Ok(Operation::Bound { base: Some(destination), bytes: immediate, target })
        }
        opcode::EXIT_VERDICT => {
            unused(&[destination.into(), source.into(), offset.into()])?;
            Ok(Operation::Goto(Target::Exit(immediate as u32)))
        }
        opcode::CALL_WITH => decode_call(slot),
        _ if opcode & 0xf0 == opcode::EXTENDED => decode_extended(slot, row),
        // Load modes of eBPF with both upper bits inverted.
        0xa1 | 0xa9 | 0xb1 | 0xb9 | 0x41 | 0x49 | 0x51 => {
            let opcode = opcode ^ SPECULATIVE;
            match decode_plain(Instruction { opcode, ..slot }, row)? {
                Operation::Load { bytes, is_signed, destination, base, offset, .. } => {
                    let is_speculative = true;
                    Ok(Operation::Load {
                        bytes,
                        is_signed,
                        is_speculative,
                        destination,
                        base,
                        offset,
                    })
                }
                other => Err(format!("`{other}` cannot be speculative")),
            }
        }
        _ => decode_plain(slot, row),
    }
}

fn decode_call(slot: Instruction) -> Result<Operation, String> {
    let first = match slot.offset as u16 {
        0 => Argument::Register,
        given::CONTEXT => Argument::Context,
        map if map - given::FIRST_MAP < Argument::MAPS => Argument::Map(map - given::FIRST_MAP),
        _ => return Err("there are no such maps".into()),
    };
    let mut arguments = [first; 5];
    for (argument, byte) in arguments[1..].iter_mut().zip(slot.immediate.to_le_bytes()) {
        *argument = match byte {
            0 => Argument::Register,
            given::STACK.. => Argument::Stack(-4 * (i16::from(byte & !given::STACK) + 1)),
            given::NUMBER.. => Argument::Number(byte & !given::NUMBER),
            _ => return Err(format!("an argument {byte:#04x} is invalid")),
        };
    }
    if arguments == <[Argument; 5]>::default() {
        return Err("a call without explicit arguments has eBPF's encoding".into());
    }
    let helper = u32::from(slot.destination | slot.source << 4);
    Ok(Operation::Call { helper, arguments })
}

/// Returns the row `distance` rows after the one that follows `row`.
fn relative(row: usize, distance: i32) -> Result<Target, String> {
    let target = usize::try_from(row as i64 + 1 + i64::from(distance));
    target.map(Target::Row).map_err(|_| "it leads to before the first row".into())
}

fn absolute(immediate: i32) -> Result<usize, String> {
    usize::try_from(immediate).map_err(|_| "there is no row with a negative number".into())
}

fn decode_constant(slot: Instruction) -> Result<Operation, String> {
    let Instruction { destination, source, offset, immediate, .. } = slot;
    if offset != 0 && source != PSEUDO_MAP_VALUE {
        return Err("the offset of a constant must be 0".into());
    }
    let constant = match source {
        0 => Constant::Value(i64::from(immediate) as u64),
        PSEUDO_MAP => Constant::Map(immediate as u32),
        PSEUDO_MAP_VALUE => {
            Constant::MapValue { map: u32::from(offset as u16), offset: immediate as u32 }
        }
        PSEUDO_FUNCTION => Constant::Function(absolute(immediate)?),
        _ => return Err(format!("unknown kind of constant: {source}")),
    };
    Ok(Operation::Constant { destination, constant })
}

fn decode_long(slot: Instruction, second: Option<Instruction>) -> Result<Operation, String> {
    let second = second.ok_or("a long constant has no second lane")?;
    let plain = without_own_registers(slot);
    let constant = match ebpf::decode(&[plain, second], 0).map_err(|error| error.to_string())? {
        ebpf::Operation::LoadConstant { constant: ebpf::Constant::Value(value), .. } => value,
        _ => return Err("only numbers take two lanes".into()),
    };
    let constant = Constant::Value(constant);
    let operation = Operation::Constant { destination: slot.destination, constant };
    if operation.lanes() == 2 { Ok(operation) } else { Err("it would fit one lane".into()) }
}

/// Decodes arithmetic whose left operand is not its destination, and jumps to a verdict.
fn decode_extended(slot: Instruction, row: usize) -> Result<Operation, String> {
    let offset = slot.offset as u16;
    let class = slot.opcode & 0x0f;
    if matches!(class & 7, 5 | 6) {
        let code = (offset >> 8) as u8 & 0xf0;
        let opcode = code | class;
        let plain = Instruction { opcode, offset: 0, ..slot };
        return match decode_plain(plain, row)? {
            Operation::Jump { width, condition, left, right, .. } => {
                let target = Target::Exit(u32::from(offset & 0xfff));
                Ok(Operation::Jump { width, condition, left, right, target })
            }
            _ => Err(format!("no condition has code {code:#x}")),
        };
    }
    let (code, variant) = (offset as u8 & 0xf0, offset >> 8);
    if !matches!(class & 7, 4 | 7) || variant > 1 {
        return Err(format!("unknown operation: opcode {:#04x}", slot.opcode));
    }
    let (source, variant) = (offset as u8 & 0x0f, variant as i16);
    let plain = Instruction { opcode: code | class, source, offset: variant, ..slot };
    let left = slot.source;
    match decode_plain(plain, row)? {
        Operation::Alu { operation, width, destination, right, .. }
            if operation != Arithmetic::Move =>
        {
            Ok(Operation::Alu { width, operation, destination, left, right })
        }
        Operation::Negate { width, destination, .. } => {
            Ok(Operation::Negate { width, destination, source: left })
        }
        Operation::Swap { order, destination, bits, .. } => {
            Ok(Operation::Swap { order, destination, source: left, bits })
        }
        _ => Err(format!("code {code:#x} does not support a third operand")),
    }
}

/// Decodes operations that eBPF also has.
fn decode_plain(slot: Instruction, row: usize) -> Result<Operation, String> {
    let plain = ebpf::decode(&[without_own_registers(slot)], 0);
    let Instruction { destination, source: register, offset, .. } = slot;
    let own = |operand| match operand {
        Operand::Register(_) => Operand::Register(register),
        immediate => immediate,
    };
    Ok(match plain.map_err(|error| error.to_string())? {
        ebpf::Operation::Alu { width, operation, source, .. } => {
            let left = if operation == Arithmetic::Move { 0 } else { destination };
            Operation::Alu { width, operation, destination, left, right: own(source) }
        }
        ebpf::Operation::Negate { width, .. } => {
            Operation::Negate { width, destination, source: destination }
        }
        ebpf::Operation::MoveSigned { width, bits, .. } => {
            Operation::MoveSigned { width, destination, source: register, bits }
        }
        ebpf::Operation::Swap { order, bits, .. } => {
            Operation::Swap { order, destination, source: destination, bits }
        }
        ebpf::Operation::Load { size, is_signed, .. } => {
            let (bytes, base, is_speculative) = (size.bytes(), register, false);
            Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
        }
        ebpf::Operation::Store { size, source, .. } => {
            let (bytes, base) = (size.bytes(), destination);
            Operation::Store { bytes, base, offset, source: own(source) }
        }
        ebpf::Operation::Atomic { width, operation, is_fetching, .. } => {
            let (base, source) = (destination, register);
            Operation::Atomic { width, operation, is_fetching, base, offset, source }
        }
        ebpf::Operation::Jump { width, condition, right, .. } => {
            let target = relative(row, offset.into())?;
            Operation::Jump { width, condition, left: destination, right: own(right), target }
        }
        ebpf::Operation::Goto { distance, .. } => Operation::Goto(relative(row, distance)?),
        ebpf::Operation::Call(Callee::Helper(number)) => Operation::call(number),
        ebpf::Operation::Call(Callee::Local(row)) => Operation::CallFunction(absolute(row)?),
        ebpf::Operation::Exit => Operation::Exit,
        other => return Err(format!("the processor does not support `{other}`")),
    })
}
