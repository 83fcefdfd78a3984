// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats operations as text, close to `llvm-objdump`'s form of eBPF.

use super::{Argument, Arithmetic, AtomicOperation, Constant, Operand, Operation, Target, Width};
use std::fmt::{self, Display, Formatter};

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
            Operand::Immediate(constant) => write!(f, "{constant}"),
        }
    }
}

/// An address.
struct Address(u8, i16);

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.1 < 0 { '-' } else { '+' };
        write!(f, "r{} {sign} {}", self.0, self.1.unsigned_abs())
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "goto {row}"),
            Self::Exit(verdict) => write!(f, "exit {verdict}"),
        }
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Value(value) => write!(f, "{value:#x}"),
            Self::Map(map) => write!(f, "map[{map}]"),
            Self::MapValue { map, offset } => write!(f, "map[{map}]+{offset}"),
            Self::Function(row) => write!(f, "function {row}"),
        }
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alu { width, operation: Arithmetic::Move, destination, right, .. } => {
                write!(f, "{} = {}", Register(width, destination), Sized(width, right))
            }
            Self::Alu { width, operation, destination, left, right } => {
                let symbol = operation.symbol().trim_end_matches('=');
                let (to, left) = (Register(width, destination), Register(width, left));
                write!(f, "{to} = {left} {symbol} {}", Sized(width, right))
            }
            Self::Negate { width, destination, source } => {
                write!(f, "{} = -{}", Register(width, destination), Register(width, source))
            }
            Self::MoveSigned { width, destination, source, bits } => {
                let (to, from) = (Register(width, destination), Register(width, source));
                write!(f, "{to} = (s{bits}){from}")
            }
            Self::Swap { order, destination, source, bits } => {
                write!(f, "r{destination} = {}{bits} r{source}", order.name())
            }
            Self::Constant { destination, constant } => write!(f, "r{destination} = {constant}"),
            Self::Load { bytes, is_signed, is_speculative, destination, base, offset } => {
                let letter = if is_signed { 's' } else { 'u' };
                let mark = if is_speculative { "?" } else { "" };
                let bits = bytes * 8;
                let address = Address(base, offset);
                write!(f, "r{destination} ={mark} *({letter}{bits} *)({address})")
            }
            Self::Store { bytes, base, offset, source } => {
                let source = Sized(Width::Bits64, source);
                write!(f, "*(u{} *)({}) = {source}", bytes * 8, Address(base, offset))
            }
            Self::Atomic { width, operation, is_fetching, base, offset, source } => {
                let bits = if width == Width::Bits64 { 64 } else { 32 };
                let (address, source) = (Address(base, offset), Register(width, source));
                let name = operation.name();
                match operation {
                    AtomicOperation::CompareExchange => {
                        let old = Register(width, 0);
                        write!(f, "{old} = {name}((u{bits} *)({address}), {old}, {source})")
                    }
                    _ if is_fetching => {
                        write!(f, "{source} = {name}((u{bits} *)({address}), {source})")
                    }
                    _ => write!(f, "{name}((u{bits} *)({address}), {source})"),
                }
            }
            Self::Jump { width, condition, left, right, target } => {
                let (left, right) = (Register(width, left), Sized(width, right));
                write!(f, "if {left} {} {right} {target}", condition.symbol())
            }
            Self::Bound { base: Some(base), bytes, target } => {
                write!(f, "if r{base} + {bytes} > end {target}")
            }
            Self::Bound { base: None, bytes, target } => write!(f, "if len < {bytes} {target}"),
            Self::Goto(target) => target.fmt(f),
            Self::Call { helper, arguments } => {
                match freeport_ebpf::helper_functions::name(helper) {
                    Some(name) => write!(f, "call {}", name.trim_start_matches("bpf_"))?,
                    None => write!(f, "call {helper}")?,
                }
                for (argument, number) in arguments.iter().zip(1..) {
                    match argument {
                        Argument::Register => {}
                        Argument::Context => write!(f, " context")?,
                        Argument::Map(map) => write!(f, " map[{map}]")?,
                        Argument::Stack(offset) => write!(f, " {number}:r10{offset}")?,
                        Argument::Number(value) => write!(f, " {number}:{value}")?,
                    }
                }
                Ok(())
            }
            Self::CallFunction(row) => write!(f, "call row {row}"),
            Self::Exit => f.write_str("exit r0"),
        }
    }
}
