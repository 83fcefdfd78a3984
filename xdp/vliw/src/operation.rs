// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of the processor: those of eBPF, with the extensions of hXDP (three operands, memory
//! accesses of six bytes, exits that carry their verdict) and our own (whether the packet is long
//! enough is one operation, loads before it is known whether they are needed).

mod display;

pub use freeport_ebpf::instruction::{
    Arithmetic, AtomicOperation, ByteOrder, Condition, FRAME_POINTER, Operand, Width,
};

/// What one lane does in one row. Registers are below [`REGISTERS`](crate::machine::REGISTERS);
/// number 10 is never written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `destination = left operation right`; a move takes `right` alone, and `left` is 0. Meanings
    /// are those of eBPF.
    Alu {
        /// Bits that take part; results of 32 are zero-extended.
        width: Width,
        /// What is computed.
        operation: Arithmetic,
        /// Register that is written.
        destination: u8,
        /// First operand.
        left: u8,
        /// Second operand.
        right: Operand,
    },
    /// `destination = -source`.
    Negate {
        /// Bits that take part.
        width: Width,
        /// Register that is written.
        destination: u8,
        /// Register that is read.
        source: u8,
    },
    /// `destination` becomes the sign-extended low bits of `source`.
    MoveSigned {
        /// Bits of the result; the rest is zero.
        width: Width,
        /// Register that is written.
        destination: u8,
        /// Register that is read.
        source: u8,
        /// How many low bits count: 8, 16 or, for 64 bits, 32.
        bits: u8,
    },
    /// `destination` becomes the low bytes of `source` in another order, the others zero.
    Swap {
        /// Which order.
        order: ByteOrder,
        /// Register that is written.
        destination: u8,
        /// Register that is read.
        source: u8,
        /// 16, 32 or 64.
        bits: u8,
    },
    /// `destination` becomes a constant. One that does not fit a slot takes the next lane too.
    Constant {
        /// Register that is written.
        destination: u8,
        /// What it gets.
        constant: Constant,
    },
    /// `destination` becomes what is at `base + offset`.
    Load {
        /// 1, 2, 4, 6 or 8.
        bytes: u8,
        /// Whether it is sign-extended; else zero-extended. Never so for six bytes.
        is_signed: bool,
        /// Whether it may miss: outside of all memory it gives 0 instead of ending the program,
        /// because it may be done before it is known that it is needed.
        is_speculative: bool,
        /// Register that is written.
        destination: u8,
        /// Register with the address.
        base: u8,
        /// Bytes behind it.
        offset: i16,
    },
    /// Writes the low bytes of `source`, or a sign-extended constant, to `base + offset`.
    Store {
        /// 1, 2, 4, 6 or 8.
        bytes: u8,
        /// Register with the address.
        base: u8,
        /// Bytes behind it.
        offset: i16,
        /// What is written.
        source: Operand,
    },
    /// As eBPF's; it also writes `source`, or register 0 with a comparing exchange, if it fetches.
    Atomic {
        /// 32 or 64 bits.
        width: Width,
        /// How memory is changed.
        operation: AtomicOperation,
        /// Whether a register gets the old value; always so for exchanges.
        is_fetching: bool,
        /// Register with the address.
        base: u8,
        /// Bytes behind it.
        offset: i16,
        /// Register with the operand.
        source: u8,
    },
    /// Goes to `target` if `left condition right`.
    Jump {
        /// Bits that are compared.
        width: Width,
        /// How they are compared.
        condition: Condition,
        /// Register on the left.
        left: u8,
        /// Right side; constants are sign-extended.
        right: Operand,
        /// Where to.
        target: Target,
    },
    /// Goes to `target` if the packet ends before `base + bytes`, or, without a base, if it is
    /// shorter than `bytes`.
    Bound {
        /// Register with an address in the packet.
        base: Option<u8>,
        /// Bytes behind it.
        bytes: i32,
        /// Where to.
        target: Target,
    },
    /// Goes to `target` always.
    Goto(Target),
    /// Calls a helper by the kernel's number. Register 0 gets its result, and no other register
    /// changes unless it calls functions of the program or moves the packet's start.
    Call {
        /// Which.
        helper: u32,
        /// What it is given in place of registers 1 to 5; those that it does not take are
        /// [`Argument::Register`].
        arguments: [Argument; 5],
    },
    /// Calls a function of the program by its first row. It returns to the next row; then registers
    /// 6 to 10 are as before, register 0 is its result, and the others hold anything.
    CallFunction(usize),
    /// Ends the function with register 0.
    Exit,
}

/// What a helper is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Argument {
    /// What the register of that argument holds.
    #[default]
    Register,
    /// The context: as the first argument only.
    Context,
    /// A map, by its number in the object: as the first argument only, below [`Self::MAPS`].
    Map(u16),
    /// An address in the function's own frame, from the frame pointer: as any but the first, a
    /// multiple of 4.
    Stack(i16),
    /// A number: as any but the first, below [`Self::NUMBERS`].
    Number(u8),
}

impl Argument {
    /// Maps that can be named.
    pub const MAPS: u16 = (1 << 12) - 2;
    /// Numbers that can be given.
    pub const NUMBERS: u8 = 1 << 6;
}

/// What a constant is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// A number.
    Value(u64),
    /// What stands for a map, by its number in the object.
    Map(u32),
    /// An address in the first value of a map.
    MapValue {
        /// The map.
        map: u32,
        /// Bytes behind the start of the value.
        offset: u32,
    },
    /// What stands for a function, by its first row.
    Function(usize),
}

/// Where control goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// In a row.
    Row(usize),
    /// Nowhere: the program ends with this verdict. Not in functions that are called.
    Exit(u32),
}

impl Operation {
    /// A call of a helper with all arguments in registers.
    pub fn call(helper: u32) -> Self {
        Self::Call { helper, arguments: Default::default() }
    }

    /// How many lanes it takes: 2 for a constant of more than 32 bits with a sign, else 1.
    pub fn lanes(&self) -> usize {
        match *self {
            Self::Constant { constant: Constant::Value(value), .. } => {
                if i32::try_from(value as i64).is_ok() { 1 } else { 2 }
            }
            _ => 1,
        }
    }

    /// The register that it writes.
    pub fn written(&self) -> Option<u8> {
        match *self {
            Self::Alu { destination, .. }
            | Self::Negate { destination, .. }
            | Self::MoveSigned { destination, .. }
            | Self::Swap { destination, .. }
            | Self::Constant { destination, .. }
            | Self::Load { destination, .. } => Some(destination),
            Self::Atomic { operation: AtomicOperation::CompareExchange, .. }
            | Self::Call { .. }
            | Self::CallFunction(_) => Some(0),
            Self::Atomic { is_fetching: true, source, .. } => Some(source),
            Self::Atomic { .. }
            | Self::Store { .. }
            | Self::Jump { .. }
            | Self::Bound { .. }
            | Self::Goto(_)
            | Self::Exit => None,
        }
    }

    /// The registers that it names to be read; what a call is given is not among them.
    pub fn read(&self) -> impl Iterator<Item = u8> {
        let found = match *self {
            Self::Alu { operation: Arithmetic::Move, right, .. } => [right.register(), None, None],
            Self::Alu { left, right, .. } | Self::Jump { left, right, .. } => {
                [Some(left), right.register(), None]
            }
            Self::Negate { source, .. }
            | Self::MoveSigned { source, .. }
            | Self::Swap { source, .. } => [Some(source), None, None],
            Self::Load { base, .. } => [Some(base), None, None],
            Self::Store { base, source, .. } => [Some(base), source.register(), None],
            Self::Atomic { operation: AtomicOperation::CompareExchange, base, source, .. } => {
                [Some(base), Some(source), Some(0)]
            }
            Self::Atomic { base, source, .. } => [Some(base), Some(source), None],
            Self::Bound { base, .. } => [base, None, None],
            Self::Exit => [Some(0), None, None],
            Self::Constant { .. } | Self::Goto(_) | Self::Call { .. } | Self::CallFunction(_) => {
                [None; 3]
            }
        };
        found.into_iter().flatten()
    }

    /// The same operation with other registers: those that it reads, in the order of
    /// [`read`](Self::read), and the one that it writes. What is fixed (register 0 of exchanges,
    /// exits and calls, the source of what fetches) stays.
    pub fn with_registers(mut self, read: &[u8], written: Option<u8>) -> Self {
        let mut left_over = read.iter().copied();
        let mut take = |register: &mut u8| {
            if let Some(other) = left_over.next() {
                *register = other;
            }
        };
        match &mut self {
            Self::Alu { operation: Arithmetic::Move, right, .. } => take_operand(right, take),
            Self::Alu { left, right, .. } | Self::Jump { left, right, .. } => {
                take(left);
                take_operand(right, take);
            }
            Self::Negate { source, .. }
            | Self::MoveSigned { source, .. }
            | Self::Swap { source, .. } => take(source),
            Self::Load { base, .. } | Self::Bound { base: Some(base), .. } => take(base),
            Self::Store { base, source, .. } => {
                take(base);
                take_operand(source, take);
            }
            Self::Atomic { base, source, .. } => {
                take(base);
                take(source);
            }
            _ => {}
        }
        if let Some(register) = written {
            match &mut self {
                Self::Alu { destination, .. }
                | Self::Negate { destination, .. }
                | Self::MoveSigned { destination, .. }
                | Self::Swap { destination, .. }
                | Self::Constant { destination, .. }
                | Self::Load { destination, .. } => *destination = register,
                _ => {}
            }
        }
        self
    }

    /// Where it may go to.
    pub fn target(&self) -> Option<Target> {
        match *self {
            Self::Jump { target, .. } | Self::Bound { target, .. } | Self::Goto(target) => {
                Some(target)
            }
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn target_mut(&mut self) -> Option<&mut Target> {
        match self {
            Self::Jump { target, .. } | Self::Bound { target, .. } | Self::Goto(target) => {
                Some(target)
            }
            _ => None,
        }
    }

    /// Whether it decides which row comes next: a jump, a call of a function, an exit.
    pub fn is_control(&self) -> bool {
        self.target().is_some() || matches!(self, Self::CallFunction(_) | Self::Exit)
    }

    /// Whether control never goes on with the next row.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Goto(_) | Self::Exit)
    }
}

/// Puts another register into an operand, if it is one.
fn take_operand(operand: &mut Operand, mut take: impl FnMut(&mut u8)) {
    if let Operand::Register(register) = operand {
        take(register);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_of_more_than_32_bits_takes_two_lanes() {
        let lanes = |constant| Operation::Constant { destination: 1, constant }.lanes();
        assert_eq!(lanes(Constant::Value(0x7fff_ffff)), 1);
        assert_eq!(lanes(Constant::Value(0x8000_0000)), 2);
        assert_eq!(lanes(Constant::Value(u64::MAX)), 1);
        assert_eq!(lanes(Constant::MapValue { map: 3, offset: 8 }), 1);
    }

    #[test]
    fn registers_are_those_that_are_named() {
        let exchange = Operation::Atomic {
            width: Width::Bits64,
            operation: AtomicOperation::CompareExchange,
            is_fetching: true,
            base: 10,
            offset: -8,
            source: 4,
        };
        assert_eq!(exchange.read().collect::<Vec<_>>(), [10, 4, 0]);
        assert_eq!(exchange.written(), Some(0));
        let moved = Operation::Alu {
            width: Width::Bits64,
            operation: Arithmetic::Move,
            destination: 3,
            left: 0,
            right: Operand::Register(7),
        };
        assert_eq!(moved.read().collect::<Vec<_>>(), [7]);
    }
}
