// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes slots to operations. Unused fields must be 0, as the kernel requires.

use super::operation::{AtomicOperation, Callee, Constant, Operand, Operation, Size, Width};
use super::tables::{
    ARITHMETIC, ATOMIC, CALL, CONDITIONS, EXIT, FETCH, GOTO, MOVE, NEGATE, ORDERS, REGISTER, SIZES,
    SWAP, class, mode,
};
use super::{
    Instruction, PSEUDO_CALL, PSEUDO_FUNCTION, PSEUDO_KERNEL_CALL, PSEUDO_MAP, PSEUDO_MAP_VALUE,
    PSEUDO_VARIABLE, REGISTERS, WIDE_LOAD,
};
use std::fmt;
use thiserror::Error;

/// Part of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Field {
    Opcode,
    Destination,
    Source,
    Offset,
    Immediate,
    /// The second slot of a wide load.
    SecondSlot,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opcode => "opcode",
            Self::Destination => "destination register",
            Self::Source => "source register",
            Self::Offset => "offset",
            Self::Immediate => "immediate",
            Self::SecondSlot => "second slot",
        })
    }
}

/// Reason for which a slot is not a valid instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{field} {value:#x}: {reason}")]
pub struct Invalid {
    /// The invalid field.
    pub field: Field,
    /// Its value.
    pub value: i64,
    /// Description of the error.
    pub reason: &'static str,
}

/// Decodes the instruction that begins in slot `at`.
///
/// # Errors
/// The first invalid field.
pub fn decode(program: &[Instruction], at: usize) -> Result<Operation, Invalid> {
    let Some(&slot) = program.get(at) else {
        let value = i64::try_from(at).unwrap_or(i64::MAX);
        return Err(Invalid { field: Field::Opcode, value, reason: "after the end" });
    };
    let slot = Slot(slot);
    if slot.0.destination >= REGISTERS {
        return Err(slot.wrong(Field::Destination, "the registers are 0 to 10"));
    }
    match slot.0.opcode & 7 {
        class::LOAD_CONSTANT if slot.0.opcode == WIDE_LOAD => {
            slot.wide_load(program.get(at + 1).copied())
        }
        class::LOAD_CONSTANT => slot.load_packet(),
        class::LOAD => slot.load(),
        class::STORE_IMMEDIATE => slot.store_immediate(),
        class::STORE if slot.mode() == mode::ATOMIC => slot.atomic(),
        class::STORE => slot.store(),
        class::ALU32 | class::ALU64 => slot.arithmetic(),
        _ => slot.jump(),
    }
}

/// A slot during decoding.
struct Slot(Instruction);

type Decoded = Result<Operation, Invalid>;

impl Slot {
    fn wrong(&self, field: Field, reason: &'static str) -> Invalid {
        let value = match field {
            Field::Opcode | Field::SecondSlot => self.0.opcode.into(),
            Field::Destination => self.0.destination.into(),
            Field::Source => self.0.source.into(),
            Field::Offset => self.0.offset.into(),
            Field::Immediate => self.0.immediate.into(),
        };
        Invalid { field, value, reason }
    }

    /// Checks that unused fields are 0.
    fn unused<const N: usize>(&self, fields: [Field; N]) -> Result<(), Invalid> {
        for field in fields {
            let wrong = self.wrong(field, "must be 0");
            if wrong.value != 0 {
                return Err(wrong);
            }
        }
        Ok(())
    }

    fn mode(&self) -> u8 {
        self.0.opcode & 0xe0
    }

    fn size(&self) -> Size {
        let code = self.0.opcode & 0x18;
        let found = SIZES.iter().find(|(_, known, _)| *known == code);
        found.map_or(Size::Double, |(size, ..)| *size)
    }

    fn source(&self) -> Result<u8, Invalid> {
        let is_known = self.0.source < REGISTERS;
        let wrong = || self.wrong(Field::Source, "the registers are 0 to 10");
        is_known.then_some(self.0.source).ok_or_else(wrong)
    }

    /// Decodes the second operand of arithmetic and jumps; the other field must be 0.
    fn operand(&self) -> Result<Operand, Invalid> {
        if self.0.opcode & REGISTER == 0 {
            self.unused([Field::Source])?;
            return Ok(Operand::Immediate(self.0.immediate));
        }
        self.unused([Field::Immediate])?;
        self.source().map(Operand::Register)
    }

    fn wide_load(&self, second: Option<Instruction>) -> Decoded {
        let Instruction { source, immediate, destination, .. } = self.0;
        let Some(second) = second else {
            return Err(self.wrong(Field::SecondSlot, "is missing"));
        };
        if second.opcode != 0 {
            return Err(Slot(second).wrong(Field::SecondSlot, "must have opcode 0"));
        }
        self.unused([Field::Offset])?;
        Slot(second).unused([Field::Destination, Field::Source, Field::Offset])?;
        if !matches!(source, 0 | PSEUDO_MAP_VALUE) {
            Slot(second).unused([Field::Immediate])?;
        }
        let (low, high) = (immediate as u32, second.immediate as u32);
        let constant = match source {
            0 => Constant::Value(u64::from(low) | u64::from(high) << 32),
            PSEUDO_MAP => Constant::Map(low),
            PSEUDO_MAP_VALUE => Constant::MapValue { map: low, offset: high },
            PSEUDO_VARIABLE => Constant::Variable(low),
            PSEUDO_FUNCTION => Constant::Function(immediate),
            _ => return Err(self.wrong(Field::Source, "unknown kind of 64-bit constant")),
        };
        Ok(Operation::LoadConstant { destination, constant })
    }

    fn load_packet(&self) -> Decoded {
        let index = match self.mode() {
            mode::ABSOLUTE => {
                self.unused([Field::Source])?;
                None
            }
            mode::INDIRECT => Some(self.source()?),
            _ => return Err(self.wrong(Field::Opcode, "unknown load of a constant")),
        };
        if self.size() == Size::Double {
            return Err(self.wrong(Field::Opcode, "a packet access has at most 32 bits"));
        }
        self.unused([Field::Destination, Field::Offset])?;
        Ok(Operation::LoadPacket { size: self.size(), index, offset: self.0.immediate })
    }

    fn load(&self) -> Decoded {
        let is_signed = match (self.mode(), self.size()) {
            (mode::MEMORY, _) => false,
            (mode::MEMORY_SIGNED, Size::Byte | Size::Half | Size::Word) => true,
            _ => return Err(self.wrong(Field::Opcode, "unknown load")),
        };
        self.unused([Field::Immediate])?;
        let Instruction { destination, offset, .. } = self.0;
        let (size, base) = (self.size(), self.source()?);
        Ok(Operation::Load { size, is_signed, destination, base, offset })
    }

    fn store_immediate(&self) -> Decoded {
        if self.mode() != mode::MEMORY {
            return Err(self.wrong(Field::Opcode, "unknown store"));
        }
        self.unused([Field::Source])?;
        let Instruction { destination: base, offset, immediate, .. } = self.0;
        let source = Operand::Immediate(immediate);
        Ok(Operation::Store { size: self.size(), base, offset, source })
    }

    fn store(&self) -> Decoded {
        if self.mode() != mode::MEMORY {
            return Err(self.wrong(Field::Opcode, "unknown store"));
        }
        self.unused([Field::Immediate])?;
        let Instruction { destination: base, offset, .. } = self.0;
        let source = Operand::Register(self.source()?);
        Ok(Operation::Store { size: self.size(), base, offset, source })
    }

    fn atomic(&self) -> Decoded {
        let width = match self.size() {
            Size::Word => Width::Bits32,
            Size::Double => Width::Bits64,
            _ => return Err(self.wrong(Field::Opcode, "an atomic operation has 32 or 64 bits")),
        };
        let code = self.0.immediate;
        let found = ATOMIC.iter().find(|(_, known, ..)| *known == code & !FETCH);
        let Some(&(operation, ..)) = found else {
            return Err(self.wrong(Field::Immediate, "unknown atomic operation"));
        };
        let is_fetching = code & FETCH != 0;
        use AtomicOperation::{CompareExchange, Exchange};
        if matches!(operation, Exchange | CompareExchange) && !is_fetching {
            return Err(self.wrong(Field::Immediate, "an exchange always fetches"));
        }
        let Instruction { destination: base, offset, .. } = self.0;
        let source = self.source()?;
        Ok(Operation::Atomic { width, operation, is_fetching, base, offset, source })
    }

    fn arithmetic(&self) -> Decoded {
        let Instruction { opcode, destination, offset, .. } = self.0;
        let width = if opcode & 7 == class::ALU64 { Width::Bits64 } else { Width::Bits32 };
        match opcode & 0xf0 {
            NEGATE if opcode & REGISTER == 0 => {
                self.unused([Field::Source, Field::Offset, Field::Immediate])?;
                Ok(Operation::Negate { width, destination })
            }
            SWAP => self.swap(),
            MOVE if opcode & REGISTER != 0 && offset != 0 => self.move_signed(width),
            code => {
                let mut same = ARITHMETIC.iter().filter(|(_, known, ..)| *known == code);
                let Some(first) = same.next() else {
                    return Err(self.wrong(Field::Opcode, "unknown arithmetic"));
                };
                let mut variants = std::iter::once(first).chain(same);
                let Some(&(operation, ..)) = variants.find(|(_, _, known, _)| *known == offset)
                else {
                    return Err(self.wrong(Field::Offset, "unknown variant of this arithmetic"));
                };
                Ok(Operation::Alu { width, operation, destination, source: self.operand()? })
            }
        }
    }

    fn move_signed(&self, width: Width) -> Decoded {
        let bits = match (self.0.offset, width) {
            (8, _) => 8,
            (16, _) => 16,
            (32, Width::Bits64) => 32,
            _ => return Err(self.wrong(Field::Offset, "a move extends 8, 16 or 32 bits")),
        };
        self.unused([Field::Immediate])?;
        let (destination, source) = (self.0.destination, self.source()?);
        Ok(Operation::MoveSigned { width, destination, source, bits })
    }

    fn swap(&self) -> Decoded {
        let found = ORDERS.iter().find(|(_, class, register, _)| {
            (self.0.opcode & 7, self.0.opcode & REGISTER) == (*class, *register)
        });
        let Some(&(order, ..)) = found else {
            return Err(self.wrong(Field::Opcode, "unknown byte swap"));
        };
        self.unused([Field::Source, Field::Offset])?;
        let bits = match self.0.immediate {
            16 => 16,
            32 => 32,
            64 => 64,
            _ => return Err(self.wrong(Field::Immediate, "a byte swap has 16, 32 or 64 bits")),
        };
        Ok(Operation::Swap { order, destination: self.0.destination, bits })
    }

    fn jump(&self) -> Decoded {
        let Instruction { opcode, destination, offset, immediate, .. } = self.0;
        let is_short = opcode & 7 == class::JUMP64;
        let width = if is_short { Width::Bits64 } else { Width::Bits32 };
        match opcode & 0xf8 {
            GOTO if is_short => {
                self.unused([Field::Destination, Field::Source, Field::Immediate])?;
                Ok(Operation::Goto { is_long: false, distance: offset.into() })
            }
            GOTO => {
                self.unused([Field::Destination, Field::Source, Field::Offset])?;
                Ok(Operation::Goto { is_long: true, distance: immediate })
            }
            CALL if is_short => self.call().map(Operation::Call),
            EXIT if is_short => {
                use Field::{Destination, Immediate, Offset, Source};
                self.unused([Destination, Source, Offset, Immediate])?;
                Ok(Operation::Exit)
            }
            _ => {
                let found = CONDITIONS.iter().find(|(_, known, _)| *known == opcode & 0xf0);
                let Some(&(condition, ..)) = found else {
                    return Err(self.wrong(Field::Opcode, "unknown jump"));
                };
                let right = self.operand()?;
                Ok(Operation::Jump { width, condition, left: destination, right, distance: offset })
            }
        }
    }

    fn call(&self) -> Result<Callee, Invalid> {
        let Instruction { source, offset, immediate, .. } = self.0;
        self.unused([Field::Destination])?;
        if source != PSEUDO_KERNEL_CALL {
            self.unused([Field::Offset])?;
        }
        match source {
            0 => Ok(Callee::Helper(immediate as u32)),
            PSEUDO_CALL => Ok(Callee::Local(immediate)),
            PSEUDO_KERNEL_CALL => Ok(Callee::Kernel { id: immediate, module: offset }),
            _ => Err(self.wrong(Field::Source, "unknown kind of call")),
        }
    }
}
