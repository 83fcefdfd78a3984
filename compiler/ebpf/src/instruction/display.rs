// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats instructions as `llvm-objdump` does: distances count from the next instruction.
//! References to maps and functions, which LLVM leaves to relocations, are `map[2]`, `map[2]+0x8`,
//! `call pc+0x5` and `function+0x5`.

use super::operation::{AtomicOperation, Callee, Constant, Operand, Operation, Size, Width};
use super::tables::{ATOMIC, SIZES};
use super::{Instruction, decode};
use std::fmt::{self, Display, Formatter, Write as _};

/// A signed number in hexadecimal, as `-0x8`.
struct Hex(i64);

impl Display for Hex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

/// A distance, as `+0x8`.
struct Distance(i32);

impl Display for Distance {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

/// A register with a width.
struct Register(Width, u8);

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let letter = if self.0 == Width::Bits64 { 'r' } else { 'w' };
        write!(f, "{letter}{}", self.1)
    }
}

/// An operand with a width.
struct Sized(Width, Operand);

impl Display for Sized {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            Operand::Register(register) => Register(self.0, register).fmt(f),
            Operand::Immediate(constant) => Hex(constant.into()).fmt(f),
        }
    }
}

/// An address, as `r10 - 0x8`.
struct Address(u8, i16);

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.1 < 0 { '-' } else { '+' };
        write!(f, "r{} {sign} {:#x}", self.0, self.1.unsigned_abs())
    }
}

fn digits(size: Size) -> &'static str {
    SIZES.iter().find(|(known, ..)| *known == size).map_or("", |(.., digits)| digits)
}

impl Display for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alu { width, operation, destination, source } => {
                let symbol = operation.symbol();
                write!(f, "{} {symbol} {}", Register(width, destination), Sized(width, source))
            }
            Self::Negate { width, destination } => {
                let register = Register(width, destination);
                write!(f, "{register} = -{register}")
            }
            Self::MoveSigned { width, destination, source, bits } => {
                let (to, from) = (Register(width, destination), Register(width, source));
                write!(f, "{to} = (s{bits}){from}")
            }
            Self::Swap { order, destination, bits } => {
                write!(f, "r{destination} = {}{bits} r{destination}", order.name())
            }
            Self::LoadConstant { destination, constant } => {
                write!(f, "r{destination} = {constant}")
            }
            Self::Jump { width, condition, left, right, distance } => {
                let symbol = condition.symbol();
                let (left, right) = (Register(width, left), Sized(width, right));
                write!(f, "if {left} {symbol} {right} goto {}", Distance(distance.into()))
            }
            Self::Goto { is_long, distance } => {
                let name = if is_long { "gotol" } else { "goto" };
                write!(f, "{name} {}", Distance(distance))
            }
            Self::Call(callee) => write!(f, "call {callee}"),
            Self::Exit => f.write_str("exit"),
            _ => self.fmt_access(f),
        }
    }
}

impl Operation {
    /// Formats operations that access memory.
    fn fmt_access(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Load { size, is_signed, destination, base, offset } => {
                let letter = if is_signed { 's' } else { 'u' };
                let address = Address(base, offset);
                write!(f, "r{destination} = *({letter}{} *)({address})", digits(size))
            }
            Self::Store { size, base, offset, source } => {
                let address = Address(base, offset);
                let source = Sized(Width::Bits64, source);
                write!(f, "*(u{} *)({address}) = {source}", digits(size))
            }
            Self::LoadPacket { size, index: None, offset } => {
                write!(f, "r0 = *(u{} *)skb[{}]", digits(size), Hex(offset.into()))
            }
            Self::LoadPacket { size, index: Some(index), offset } => {
                write!(f, "r0 = *(u{} *)skb[r{index} {}]", digits(size), Distance(offset))
            }
            Self::Atomic { width, operation, is_fetching, base, offset, source } => {
                let address = Address(base, offset);
                let source = Register(width, source);
                let bits = if width == Width::Bits64 { "64" } else { "32" };
                let kind = if width == Width::Bits64 { "_64" } else { "32_32" };
                let old = Register(width, 0);
                let found = ATOMIC.iter().find(|(known, ..)| *known == operation);
                let (symbol, name) = found.map_or(("", ""), |(.., symbol, name)| (symbol, name));
                match operation {
                    AtomicOperation::Exchange => {
                        write!(f, "{source} = {name}{kind}({address}, {source})")
                    }
                    AtomicOperation::CompareExchange => {
                        write!(f, "{old} = {name}{kind}({address}, {old}, {source})")
                    }
                    _ if is_fetching => {
                        write!(f, "{source} = {name}((u{bits} *)({address}), {source})")
                    }
                    _ => write!(f, "lock *(u{bits} *)({address}) {symbol} {source}"),
                }
            }
            _ => unreachable!("all others are printed by the caller"),
        }
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Value(value) => write!(f, "{value:#x} ll"),
            Self::Map(map) => write!(f, "map[{map}]"),
            Self::MapValue { map, offset } => write!(f, "map[{map}]+{offset:#x}"),
            Self::Variable(id) => write!(f, "variable[{id}]"),
            Self::Function(distance) => write!(f, "function{}", Distance(distance)),
        }
    }
}

impl Display for Callee {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Helper(number) => write!(f, "{number:#x}"),
            Self::Local(distance) => write!(f, "pc{}", Distance(distance)),
            Self::Kernel { id, module } => write!(f, "kernel[{id}, {module}]"),
        }
    }
}

/// Formats a program, one instruction a line. An invalid slot becomes a comment with the reason.
pub fn disassemble(program: &[Instruction]) -> String {
    let (mut text, mut slot) = (String::new(), 0);
    while slot < program.len() {
        // Writing to a string does not fail.
        let _ = match decode(program, slot) {
            Ok(operation) => {
                slot += operation.slots();
                writeln!(text, "{operation}")
            }
            Err(invalid) => {
                slot += 1;
                writeln!(text, "// {invalid}")
            }
        };
    }
    text
}
