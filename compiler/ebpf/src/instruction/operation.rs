// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations: the meaning of instructions, independent of their encoding.

/// The decoded meaning of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `destination = destination operation source`; a move ignores the old value. Results of 32
    /// bits are zero-extended.
    Alu {
        /// Operand width.
        width: Width,
        /// The arithmetic operation.
        operation: Arithmetic,
        /// Register that is written, and read except by a move.
        destination: u8,
        /// Second operand.
        source: Operand,
    },
    /// `destination = -destination`.
    Negate {
        /// Operand width.
        width: Width,
        /// Register that is read and written.
        destination: u8,
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
    /// Reorders the low bytes of a register and clears the others.
    Swap {
        /// Target byte order.
        order: ByteOrder,
        /// Register that is read and written.
        destination: u8,
        /// 16, 32 or 64.
        bits: u8,
    },
    /// Loads from `base + offset` to `destination`.
    Load {
        /// Number of bytes that are read.
        size: Size,
        /// Whether the value is sign-extended; otherwise it is zero-extended.
        is_signed: bool,
        /// Register that is written.
        destination: u8,
        /// Register with the address.
        base: u8,
        /// Offset from it in bytes.
        offset: i16,
    },
    /// Writes the low bytes of `source`, or a sign-extended constant, to `base + offset`.
    Store {
        /// Number of bytes that are written.
        size: Size,
        /// Register with the address.
        base: u8,
        /// Offset from it in bytes.
        offset: i16,
        /// Value that is written.
        source: Operand,
    },
    /// Reads, modifies and writes memory at `base + offset` atomically.
    Atomic {
        /// Operand width: 32 or 64 bits.
        width: Width,
        /// The modification.
        operation: AtomicOperation,
        /// Whether the register receives the old value; always true for exchanges.
        is_fetching: bool,
        /// Register with the address.
        base: u8,
        /// Offset from it in bytes.
        offset: i16,
        /// Register with the operand. It also receives the old value (with
        /// [`AtomicOperation::CompareExchange`], register 0 does).
        source: u8,
    },
    /// Loads a 64-bit constant; takes two slots.
    LoadConstant {
        /// Register that is written.
        destination: u8,
        /// The constant.
        constant: Constant,
    },
    /// Legacy packet access of socket filters: loads from packet offset `offset + index` to
    /// register 0, in host byte order.
    LoadPacket {
        /// Number of bytes that are read: at most 32 bits.
        size: Size,
        /// Register that is added to the offset.
        index: Option<u8>,
        /// Offset in bytes from the start of the packet.
        offset: i32,
    },
    /// Jumps by `distance` slots from the next one if `left condition right`.
    Jump {
        /// Operand width.
        width: Width,
        /// Comparison.
        condition: Condition,
        /// Left operand.
        left: u8,
        /// Right operand; constants are sign-extended.
        right: Operand,
        /// Distance in slots from the next instruction.
        distance: i16,
    },
    /// Jumps unconditionally.
    Goto {
        /// Whether it is encoded with a 32-bit distance (`gotol`).
        is_long: bool,
        /// Distance in slots from the next instruction.
        distance: i32,
    },
    /// Calls a function; registers 1 to 5 hold its arguments and register 0 its result.
    Call(Callee),
    /// Returns from the function.
    Exit,
}

/// Number of bits on which an operation works.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    /// The low 32.
    Bits32,
    /// All 64.
    Bits64,
}

/// Number of bytes of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// 1 byte.
    Byte,
    /// 2 bytes.
    Half,
    /// 4 bytes.
    Word,
    /// 8 bytes.
    Double,
}

impl Size {
    /// Returns the number of bytes.
    pub fn bytes(self) -> u8 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// A second operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A register.
    Register(u8),
    /// A constant, sign-extended to 64 bits for 64-bit operations.
    Immediate(i32),
}

impl Operand {
    /// Returns the register, if the operand is one.
    pub fn register(self) -> Option<u8> {
        match self {
            Self::Register(register) => Some(register),
            Self::Immediate(_) => None,
        }
    }
}

/// Operations on two numbers. Division by zero gives 0 and modulo by zero the dividend; shift
/// counts are taken modulo the width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    SignedDivide,
    Or,
    And,
    ShiftLeft,
    ShiftRight,
    Modulo,
    SignedModulo,
    Xor,
    Move,
    SignedShiftRight,
}

/// Conditions of a jump.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    /// Some bit is set in both operands.
    Set,
    NotEqual,
    SignedGreater,
    SignedGreaterOrEqual,
    Less,
    LessOrEqual,
    SignedLess,
    SignedLessOrEqual,
}

/// Operations on memory that are atomic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum AtomicOperation {
    Add,
    Or,
    And,
    Xor,
    Exchange,
    /// Compares register 0 with memory and sets register 0 to the old value; if they were equal,
    /// memory is set to the source.
    CompareExchange,
}

/// Byte order established by [`Operation::Swap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ByteOrder {
    /// Between host order and little-endian.
    Little,
    /// Between host order and big-endian.
    Big,
    /// Reverses the bytes.
    Reverse,
}

/// Constant that a wide load stores in a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// A number.
    Value(u64),
    /// A map: its number in the object after linking, or a file descriptor for the kernel.
    Map(u32),
    /// An address in the first value of a map.
    MapValue {
        /// The map, as in `Map`.
        map: u32,
        /// Offset in bytes from the start of the value.
        offset: u32,
    },
    /// The address of a kernel variable, by its BTF id.
    Variable(u32),
    /// A local function, by its distance in slots from the slot after the first one.
    Function(i32),
}

/// Callee of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Callee {
    /// A helper by the kernel's number.
    Helper(u32),
    /// A function of the program, by its distance in slots from the next instruction.
    Local(i32),
    /// A function of the kernel.
    Kernel {
        /// BTF id of the function.
        id: i32,
        /// Index among the program's BTF descriptors; 0 is the kernel itself.
        module: i16,
    },
}

impl Operation {
    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        if matches!(self, Self::LoadConstant { .. }) { 2 } else { 1 }
    }

    /// Returns the register that the instruction writes, apart from those that a call clobbers.
    pub fn written(&self) -> Option<u8> {
        use AtomicOperation::CompareExchange;
        match *self {
            Self::Alu { destination, .. }
            | Self::Negate { destination, .. }
            | Self::MoveSigned { destination, .. }
            | Self::Swap { destination, .. }
            | Self::Load { destination, .. }
            | Self::LoadConstant { destination, .. } => Some(destination),
            Self::Atomic { operation: CompareExchange, .. }
            | Self::LoadPacket { .. }
            | Self::Call(_) => Some(0),
            Self::Atomic { is_fetching, source, .. } => is_fetching.then_some(source),
            Self::Store { .. } | Self::Jump { .. } | Self::Goto { .. } | Self::Exit => None,
        }
    }

    /// Returns the registers that it reads, apart from a call's arguments; an exit reads register
    /// 0.
    pub fn read(&self) -> impl Iterator<Item = u8> {
        let found = match *self {
            Self::Alu { operation: Arithmetic::Move, source, .. } => {
                [source.register(), None, None]
            }
            Self::Alu { destination, source, .. } => [Some(destination), source.register(), None],
            Self::Negate { destination, .. } | Self::Swap { destination, .. } => {
                [Some(destination), None, None]
            }
            Self::MoveSigned { source, .. } => [Some(source), None, None],
            Self::Load { base, .. } => [Some(base), None, None],
            Self::Store { base, source, .. } => [Some(base), source.register(), None],
            Self::Atomic { operation: AtomicOperation::CompareExchange, base, source, .. } => {
                [Some(base), Some(source), Some(0)]
            }
            Self::Atomic { base, source, .. } => [Some(base), Some(source), None],
            // The context is always in register 6.
            Self::LoadPacket { index, .. } => [Some(6), index, None],
            Self::Jump { left, right, .. } => [Some(left), right.register(), None],
            Self::Exit => [Some(0), None, None],
            Self::LoadConstant { .. } | Self::Goto { .. } | Self::Call(_) => [None; 3],
        };
        found.into_iter().flatten()
    }

    /// Returns the distance in slots from the next instruction to the jump target, if it is a jump.
    pub fn distance(&self) -> Option<i32> {
        match *self {
            Self::Jump { distance, .. } => Some(distance.into()),
            Self::Goto { distance, .. } => Some(distance),
            _ => None,
        }
    }

    /// Returns whether execution never continues with the next instruction.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Goto { .. } | Self::Exit)
    }
}
