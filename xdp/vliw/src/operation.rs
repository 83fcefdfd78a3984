// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of the processor: those of eBPF, with the extensions of hXDP (three operands, memory
//! accesses of six bytes, exits with a verdict) and our own (a check of the packet's length in one
//! operation, speculative loads).

mod display;

pub use freeport_ebpf::instruction::{
    Arithmetic, AtomicOperation, ByteOrder, Condition, FRAME_POINTER, Operand, Width,
};

/// Operation of a lane in a row. Registers are below [`REGISTERS`](crate::machine::REGISTERS);
/// register 10 is never written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `destination = left operation right`; a move uses `right` alone, and `left` is 0. The
    /// semantics are those of eBPF.
    Alu {
        /// Operand width; 32-bit results are zero-extended.
        width: Width,
        /// The arithmetic operation.
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
        /// Operand width.
        width: Width,
        /// Register that is written.
        destination: u8,
        /// Register that is read.
        source: u8,
    },
    /// `destination` becomes the sign-extended low bits of `source`.
    MoveSigned {
        /// Width of the result; the upper bits are zero.
        width: Width,
        /// Register that is written.
        destination: u8,
        /// Register that is read.
        source: u8,
        /// Number of low bits that are used: 8, 16 or, for 64 bits, 32.
        bits: u8,
    },
    /// Copies the low bytes of `source` to `destination` in another order; the other bytes are
    /// zero.
    Swap {
        /// Target byte order.
        order: ByteOrder,
        /// Register that is written.
        destination: u8,
        /// Register that is read.
        source: u8,
        /// 16, 32 or 64.
        bits: u8,
    },
    /// Sets `destination` to a constant. One that does not fit a slot also occupies the next lane.
    Constant {
        /// Register that is written.
        destination: u8,
        /// The constant.
        constant: Constant,
    },
    /// Loads from `base + offset` to `destination`.
    Load {
        /// Number of bytes: 1, 2, 4, 6 or 8.
        bytes: u8,
        /// Whether the value is sign-extended; otherwise it is zero-extended. Never set for six
        /// bytes.
        is_signed: bool,
        /// Whether the load is speculative: outside of all memory it gives 0 instead of aborting
        /// the program, because it may be executed before it is known to be needed.
        is_speculative: bool,
        /// Register that is written.
        destination: u8,
        /// Register with the address.
        base: u8,
        /// Offset from it in bytes.
        offset: i16,
    },
    /// Writes the low bytes of `source`, or a sign-extended constant, to `base + offset`.
    Store {
        /// Number of bytes: 1, 2, 4, 6 or 8.
        bytes: u8,
        /// Register with the address.
        base: u8,
        /// Offset from it in bytes.
        offset: i16,
        /// Value that is written.
        source: Operand,
    },
    /// Atomic operation as in eBPF; a fetching one also writes `source`, or register 0 for
    /// compare-and-exchange.
    Atomic {
        /// Operand width: 32 or 64 bits.
        width: Width,
        /// The modification.
        operation: AtomicOperation,
        /// Whether a register receives the old value; always true for exchanges.
        is_fetching: bool,
        /// Register with the address.
        base: u8,
        /// Offset from it in bytes.
        offset: i16,
        /// Register with the operand.
        source: u8,
    },
    /// Jumps to `target` if `left condition right`.
    Jump {
        /// Operand width.
        width: Width,
        /// Comparison.
        condition: Condition,
        /// Left operand.
        left: u8,
        /// Right operand; constants are sign-extended.
        right: Operand,
        /// Target.
        target: Target,
    },
    /// Jumps to `target` if the packet ends before `base + bytes`, or, without a base, if it is
    /// shorter than `bytes`.
    Bound {
        /// Register with an address in the packet.
        base: Option<u8>,
        /// Offset from it in bytes.
        bytes: i32,
        /// Target.
        target: Target,
    },
    /// Jumps to `target` unconditionally.
    Goto(Target),
    /// Calls a helper by the kernel's number. Register 0 receives its result, and other registers
    /// change only if it calls functions of the program or moves the packet's start.
    Call {
        /// Number of the helper.
        helper: u32,
        /// Arguments in place of registers 1 to 5; those that the helper does not take are
        /// [`Argument::Register`].
        arguments: [Argument; 5],
    },
    /// Calls a function of the program by its first row. It returns to the next row; then registers
    /// 6 to 10 are unchanged, register 0 has its result, and the others are undefined.
    CallFunction(usize),
    /// Returns from the function with register 0.
    Exit,
}

/// Argument of a helper.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Argument {
    /// The content of the argument's register.
    #[default]
    Register,
    /// The context; only as the first argument.
    Context,
    /// A map, by its number in the object; only as the first argument, below [`Self::MAPS`].
    Map(u16),
    /// An address in the function's own frame, relative to the frame pointer; not as the first
    /// argument, and a multiple of 4.
    Stack(i16),
    /// A number; not as the first argument, below [`Self::NUMBERS`].
    Number(u8),
}

impl Argument {
    /// Number of maps that can be encoded.
    pub const MAPS: u16 = (1 << 12) - 2;
    /// Number of numbers that can be encoded.
    pub const NUMBERS: u8 = 1 << 6;
}

/// Kind of a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// A number.
    Value(u64),
    /// A reference to a map, by its number in the object.
    Map(u32),
    /// An address in the first value of a map.
    MapValue {
        /// The map.
        map: u32,
        /// Offset in bytes from the start of the value.
        offset: u32,
    },
    /// A reference to a function, by its first row.
    Function(usize),
}

/// Target of a jump.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A row.
    Row(usize),
    /// An exit with this verdict. Not allowed in called functions.
    Exit(u32),
}

impl Operation {
    /// Returns a call of a helper with all arguments in registers.
    pub fn call(helper: u32) -> Self {
        Self::Call { helper, arguments: Default::default() }
    }

    /// Returns the number of lanes: 2 for a constant that does not fit a signed 32-bit number, else
    /// 1.
    pub fn lanes(&self) -> usize {
        match *self {
            Self::Constant { constant: Constant::Value(value), .. } => {
                if i32::try_from(value as i64).is_ok() { 1 } else { 2 }
            }
            _ => 1,
        }
    }

    /// Returns the register that it writes.
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

    /// Returns the registers that it names as sources, without those of a call's arguments.
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

    /// Replaces registers: sources in the order of [`read`](Self::read), and the destination. Fixed
    /// registers stay (register 0 of exchanges, exits and calls, the source of fetching
    /// operations).
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

    /// Returns the jump target, if there is one.
    pub fn target(&self) -> Option<Target> {
        match *self {
            Self::Jump { target, .. } | Self::Bound { target, .. } | Self::Goto(target) => {
                Some(target)
            }
            _ => None,
        }
    }

    /// As [`target`](Self::target), mutable.
    pub fn target_mut(&mut self) -> Option<&mut Target> {
        match self {
            Self::Jump { target, .. } | Self::Bound { target, .. } | Self::Goto(target) => {
                Some(target)
            }
            _ => None,
        }
    }

    /// Returns whether it decides the next row: a jump, a call of a function, an exit.
    pub fn is_control(&self) -> bool {
        self.target().is_some() || matches!(self, Self::CallFunction(_) | Self::Exit)
    }

    /// Returns whether execution never continues with the next row.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Goto(_) | Self::Exit)
    }
}

/// Replaces the register of an operand, if it is one.
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
