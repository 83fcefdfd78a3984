// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encodes operations to slots; the inverse of decoding.

use super::operation::{Callee, Constant, Operand, Operation, Size, Width};
use super::tables::{
    ARITHMETIC, ATOMIC, CALL, CONDITIONS, EXIT, FETCH, GOTO, MOVE, NEGATE, ORDERS, REGISTER, SIZES,
    SWAP, class, mode,
};
use super::{
    Instruction, PSEUDO_CALL, PSEUDO_FUNCTION, PSEUDO_KERNEL_CALL, PSEUDO_MAP, PSEUDO_MAP_VALUE,
    PSEUDO_VARIABLE, WIDE_LOAD,
};

impl Operation {
    /// Encodes the operation; a wide load has a second slot.
    pub fn encode(&self) -> (Instruction, Option<Instruction>) {
        if let Self::LoadConstant { destination, constant } = *self {
            let (first, second) = wide_load(destination, constant);
            return (first, Some(second));
        }
        (self.encode_slot(), None)
    }

    fn encode_slot(&self) -> Instruction {
        match *self {
            Self::Alu { width, operation, destination, source } => {
                let found = ARITHMETIC.iter().find(|(known, ..)| *known == operation);
                let (code, offset) = found.map_or((0, 0), |(_, code, offset, _)| (*code, *offset));
                let slot = with_operand(code | alu(width), source);
                Instruction { destination, offset, ..slot }
            }
            Self::Negate { width, destination } => {
                Instruction { opcode: NEGATE | alu(width), destination, ..Default::default() }
            }
            Self::MoveSigned { width, destination, source, bits } => Instruction {
                opcode: MOVE | REGISTER | alu(width),
                destination,
                source,
                offset: bits.into(),
                immediate: 0,
            },
            Self::Swap { order, destination, bits } => {
                let found = ORDERS.iter().find(|(known, ..)| *known == order);
                let code = found.map_or(0, |(_, class, register, _)| class | register);
                let immediate = bits.into();
                Instruction { opcode: SWAP | code, destination, immediate, ..Default::default() }
            }
            Self::Jump { width, condition, left, right, distance } => {
                let found = CONDITIONS.iter().find(|(known, ..)| *known == condition);
                let code = found.map_or(0, |(_, code, _)| *code);
                let slot = with_operand(code | jump(width), right);
                Instruction { destination: left, offset: distance, ..slot }
            }
            Self::Goto { is_long: true, distance } => {
                let opcode = GOTO | class::JUMP32;
                Instruction { opcode, immediate: distance, ..Default::default() }
            }
            Self::Goto { is_long: false, distance } => {
                let opcode = GOTO | class::JUMP64;
                Instruction { opcode, offset: distance as i16, ..Default::default() }
            }
            Self::Call(callee) => call(callee),
            Self::Exit => Instruction { opcode: EXIT | class::JUMP64, ..Default::default() },
            _ => self.encode_access(),
        }
    }

    /// Encodes operations that access memory.
    fn encode_access(&self) -> Instruction {
        match *self {
            Self::Load { size, is_signed, destination, base, offset } => {
                let mode = if is_signed { mode::MEMORY_SIGNED } else { mode::MEMORY };
                let opcode = mode | size_code(size) | class::LOAD;
                Instruction { opcode, destination, source: base, offset, immediate: 0 }
            }
            Self::Store { size, base, offset, source } => {
                let (class, source, immediate) = match source {
                    Operand::Register(register) => (class::STORE, register, 0),
                    Operand::Immediate(constant) => (class::STORE_IMMEDIATE, 0, constant),
                };
                let opcode = mode::MEMORY | size_code(size) | class;
                Instruction { opcode, destination: base, source, offset, immediate }
            }
            Self::Atomic { width, operation, is_fetching, base, offset, source } => {
                let size = if width == Width::Bits64 { Size::Double } else { Size::Word };
                let found = ATOMIC.iter().find(|(known, ..)| *known == operation);
                let code = found.map_or(0, |(_, code, ..)| *code);
                let immediate = code | if is_fetching { FETCH } else { 0 };
                let opcode = mode::ATOMIC | size_code(size) | class::STORE;
                Instruction { opcode, destination: base, source, offset, immediate }
            }
            Self::LoadPacket { size, index, offset } => {
                let mode = if index.is_some() { mode::INDIRECT } else { mode::ABSOLUTE };
                let opcode = mode | size_code(size) | class::LOAD_CONSTANT;
                let source = index.unwrap_or(0);
                Instruction { opcode, source, immediate: offset, ..Default::default() }
            }
            _ => unreachable!("all others are encoded by the caller"),
        }
    }
}

fn alu(width: Width) -> u8 {
    if width == Width::Bits64 { class::ALU64 } else { class::ALU32 }
}

fn jump(width: Width) -> u8 {
    if width == Width::Bits64 { class::JUMP64 } else { class::JUMP32 }
}

fn size_code(size: Size) -> u8 {
    SIZES.iter().find(|(known, ..)| *known == size).map_or(0, |(_, code, _)| *code)
}

fn with_operand(opcode: u8, operand: Operand) -> Instruction {
    match operand {
        Operand::Register(source) => {
            Instruction { opcode: opcode | REGISTER, source, ..Default::default() }
        }
        Operand::Immediate(immediate) => Instruction { opcode, immediate, ..Default::default() },
    }
}

fn call(callee: Callee) -> Instruction {
    let (source, immediate, offset) = match callee {
        Callee::Helper(number) => (0, number as i32, 0),
        Callee::Local(distance) => (PSEUDO_CALL, distance, 0),
        Callee::Kernel { id, module } => (PSEUDO_KERNEL_CALL, id, module),
    };
    Instruction { opcode: CALL | class::JUMP64, destination: 0, source, offset, immediate }
}

fn wide_load(destination: u8, constant: Constant) -> (Instruction, Instruction) {
    let (source, low, high) = match constant {
        Constant::Value(value) => (0, value as u32, (value >> 32) as u32),
        Constant::Map(map) => (PSEUDO_MAP, map, 0),
        Constant::MapValue { map, offset } => (PSEUDO_MAP_VALUE, map, offset),
        Constant::Variable(id) => (PSEUDO_VARIABLE, id, 0),
        Constant::Function(distance) => (PSEUDO_FUNCTION, distance as u32, 0),
    };
    let immediate = low as i32;
    let first = Instruction { opcode: WIDE_LOAD, destination, source, offset: 0, immediate };
    (first, Instruction { immediate: high as i32, ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    #[test]
    fn what_can_be_decoded_is_encoded_as_it_was() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut decoded = 0;
        for round in 0..400_000_u32 {
            let mut slots = [0; 2].map(|_| Instruction::from_bytes(random.u64(..).to_le_bytes()));
            slots[0].opcode = round as u8;
            for slot in &mut slots {
                slot.destination %= 11;
                // Most fields must be 0 or small in most instructions.
                slot.source = if random.bool() { 0 } else { slot.source % 11 };
                slot.offset = [0, 0, 1, 8, 16, 32, slot.offset][random.usize(..7)];
                let small = [0, 0, 1, 16, 32, 64, 0x40, 0x51, 0xa1, 0xe1, 0xf1, slot.immediate];
                slot.immediate = small[random.usize(..small.len())];
            }
            let second = Instruction { immediate: slots[1].immediate, ..Default::default() };
            let slots = [slots[0], second];
            let Ok(operation) = decode(&slots, 0) else { continue };
            decoded += 1;
            let (first, second) = operation.encode();
            assert_eq!(first, slots[0], "{operation:?}");
            assert!(second.is_none_or(|second| second == slots[1]), "{operation:?}");
            assert_eq!(operation.slots(), if second.is_some() { 2 } else { 1 });
        }
        assert!(decoded > 10_000, "only {decoded}");
    }
}
