// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an instruction does, free of how it is written in its slots.

/// The decoded meaning of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `destination = destination operation source`; a move ignores the old value. Results of 32
    /// bits are zero-extended.
    Alu {
        /// Bits that take part.
        width: Width,
        /// What is computed.
        operation: Arithmetic,
        /// Register that is read, except by a move, and written.
        destination: u8,
        /// Second operand.
        source: Operand,
    },
    /// `destination = -destination`.
    Negate {
        /// Bits that take part.
        width: Width,
        /// Register that is read and written.
        destination: u8,
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
    /// Reorders the low bytes of a register and clears the others.
    Swap {
        /// Which order they are brought in.
        order: ByteOrder,
        /// Register that is read and written.
        destination: u8,
        /// 16, 32 or 64.
        bits: u8,
    },
    /// `destination` becomes what is at `base + offset`.
    Load {
        /// How much is read.
        size: Size,
        /// Whether it is sign-extended; else zero-extended.
        is_signed: bool,
        /// Register that is written.
        destination: u8,
        /// Register with the address.
        base: u8,
        /// Bytes behind it.
        offset: i16,
    },
    /// Writes the low bytes of `source`, or a sign-extended constant, to `base + offset`.
    Store {
        /// How much is written.
        size: Size,
        /// Register with the address.
        base: u8,
        /// Bytes behind it.
        offset: i16,
        /// What is written.
        source: Operand,
    },
    /// Reads, changes and writes memory at `base + offset` as one step.
    Atomic {
        /// How much: 32 or 64 bits.
        width: Width,
        /// How it is changed.
        operation: AtomicOperation,
        /// Whether the register gets the old value; always so for exchanges.
        is_fetching: bool,
        /// Register with the address.
        base: u8,
        /// Bytes behind it.
        offset: i16,
        /// Register with the operand, which also gets the old value (register 0 with
        /// [`AtomicOperation::CompareExchange`]).
        source: u8,
    },
    /// Loads a 64-bit constant; takes two slots.
    LoadConstant {
        /// Register that is written.
        destination: u8,
        /// What it gets.
        constant: Constant,
    },
    /// Old access to a packet of sockets' programs: register 0 becomes what is at
    /// `offset + index`, in host order.
    LoadPacket {
        /// How much is read: at most 32 bits.
        size: Size,
        /// Register that is added to the offset.
        index: Option<u8>,
        /// Bytes from the start of the packet.
        offset: i32,
    },
    /// Jumps by `distance` slots from the next one if `left condition right`.
    Jump {
        /// Bits that are compared.
        width: Width,
        /// How they are compared.
        condition: Condition,
        /// Register on the left.
        left: u8,
        /// Right side; constants are sign-extended.
        right: Operand,
        /// Slots from the next instruction.
        distance: i16,
    },
    /// Jumps always.
    Goto {
        /// Whether it is written with 32 bits (`gotol`).
        is_long: bool,
        /// Slots from the next instruction.
        distance: i32,
    },
    /// Calls a function; registers 1 to 5 hold its arguments and register 0 its result.
    Call(Callee),
    /// Returns from the function.
    Exit,
}

/// How many bits an operation works on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    /// The low 32.
    Bits32,
    /// All 64.
    Bits64,
}

/// How many bytes an access to memory has.
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
    /// The number of bytes.
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
    /// A constant, sign-extended to 64 bits where 64 take part.
    Immediate(i32),
}

impl Operand {
    /// The register, if it is one.
    pub fn register(self) -> Option<u8> {
        match self {
            Self::Register(register) => Some(register),
            Self::Immediate(_) => None,
        }
    }
}

/// Operations on two numbers. Division by zero gives 0 and modulo by zero the dividend; shifts
/// count modulo the width.
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

/// Comparisons of a jump.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    /// Any bit is set in both.
    Set,
    NotEqual,
    SignedGreater,
    SignedGreaterOrEqual,
    Less,
    LessOrEqual,
    SignedLess,
    SignedLessOrEqual,
}

/// How an atomic operation changes memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum AtomicOperation {
    Add,
    Or,
    And,
    Xor,
    Exchange,
    /// Register 0 is compared with memory and gets the old value; if they were equal, memory
    /// becomes the source.
    CompareExchange,
}

/// The order that bytes are brought in by [`Operation::Swap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ByteOrder {
    /// From host order to little-endian, or back.
    Little,
    /// From host order to big-endian, or back.
    Big,
    /// The reverse of what it was.
    Reverse,
}

/// What a wide load gives a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// A number.
    Value(u64),
    /// A map: its number in the object once that is linked, a file descriptor for the kernel.
    Map(u32),
    /// An address in the first value of a map.
    MapValue {
        /// The map, as above.
        map: u32,
        /// Bytes behind the start of the value.
        offset: u32,
    },
    /// The address of a kernel variable, by its BTF id.
    Variable(u32),
    /// A local function, by its distance in slots from the one behind the first slot.
    Function(i32),
}

/// What a call leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Callee {
    /// A helper by the kernel's number.
    Helper(u32),
    /// A function of the program, by its distance in slots from the next instruction.
    Local(i32),
    /// A function of the kernel.
    Kernel {
        /// Its BTF id.
        id: i32,
        /// Which of the program's BTF descriptors it is in; 0 is the kernel itself.
        module: i16,
    },
}

impl Operation {
    /// How many slots it takes.
    pub fn slots(&self) -> usize {
        if matches!(self, Self::LoadConstant { .. }) { 2 } else { 1 }
    }

    /// The register it writes by being executed, besides what a call leaves behind.
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

    /// The registers it reads, besides what a call passes; an exit returns register 0.
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

    /// Slots from the next instruction to where it may jump, if it is a jump.
    pub fn distance(&self) -> Option<i32> {
        match *self {
            Self::Jump { distance, .. } => Some(distance.into()),
            Self::Goto { distance, .. } => Some(distance),
            _ => None,
        }
    }

    /// Whether execution never goes on with the next instruction.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Goto { .. } | Self::Exit)
    }
}
