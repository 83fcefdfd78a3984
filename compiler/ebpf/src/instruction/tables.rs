// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Codes and symbols of operations, defined once for encoding, decoding, printing and parsing.

use super::operation::{Arithmetic, AtomicOperation, ByteOrder, Condition, Size};

/// Classes: the low three bits of an opcode.
pub(super) mod class {
    pub const LOAD_CONSTANT: u8 = 0;
    pub const LOAD: u8 = 1;
    pub const STORE_IMMEDIATE: u8 = 2;
    pub const STORE: u8 = 3;
    pub const ALU32: u8 = 4;
    pub const JUMP64: u8 = 5;
    pub const JUMP32: u8 = 6;
    pub const ALU64: u8 = 7;
}

/// Modes of memory access: the high three bits of the opcode of a load or store.
pub(super) mod mode {
    pub const ABSOLUTE: u8 = 0x20;
    pub const INDIRECT: u8 = 0x40;
    pub const MEMORY: u8 = 0x60;
    pub const MEMORY_SIGNED: u8 = 0x80;
    pub const ATOMIC: u8 = 0xc0;
}

/// Bit of an opcode for a register operand.
pub(super) const REGISTER: u8 = 0x08;
/// Bit of an atomic operation's immediate that requests the old value.
pub(super) const FETCH: i32 = 1;

/// Codes of arithmetic with one operand or with special forms.
pub(super) const NEGATE: u8 = 0x80;
pub(super) const MOVE: u8 = 0xb0;
pub(super) const SWAP: u8 = 0xd0;
/// Codes of unconditional jumps, calls and exits.
pub(super) const GOTO: u8 = 0x00;
pub(super) const CALL: u8 = 0x80;
pub(super) const EXIT: u8 = 0x90;

/// Operation, code, offset that distinguishes operations with the same code, and symbol.
pub(crate) const ARITHMETIC: [(Arithmetic, u8, i16, &str); 14] = [
    (Arithmetic::Add, 0x00, 0, "+="),
    (Arithmetic::Subtract, 0x10, 0, "-="),
    (Arithmetic::Multiply, 0x20, 0, "*="),
    (Arithmetic::Divide, 0x30, 0, "/="),
    (Arithmetic::SignedDivide, 0x30, 1, "s/="),
    (Arithmetic::Or, 0x40, 0, "|="),
    (Arithmetic::And, 0x50, 0, "&="),
    (Arithmetic::ShiftLeft, 0x60, 0, "<<="),
    (Arithmetic::ShiftRight, 0x70, 0, ">>="),
    (Arithmetic::Modulo, 0x90, 0, "%="),
    (Arithmetic::SignedModulo, 0x90, 1, "s%="),
    (Arithmetic::Xor, 0xa0, 0, "^="),
    (Arithmetic::Move, MOVE, 0, "="),
    (Arithmetic::SignedShiftRight, 0xc0, 0, "s>>="),
];

/// Comparison, code and symbol.
pub(crate) const CONDITIONS: [(Condition, u8, &str); 11] = [
    (Condition::Equal, 0x10, "=="),
    (Condition::Greater, 0x20, ">"),
    (Condition::GreaterOrEqual, 0x30, ">="),
    (Condition::Set, 0x40, "&"),
    (Condition::NotEqual, 0x50, "!="),
    (Condition::SignedGreater, 0x60, "s>"),
    (Condition::SignedGreaterOrEqual, 0x70, "s>="),
    (Condition::Less, 0xa0, "<"),
    (Condition::LessOrEqual, 0xb0, "<="),
    (Condition::SignedLess, 0xc0, "s<"),
    (Condition::SignedLessOrEqual, 0xd0, "s<="),
];

/// Atomic operation, code without [`FETCH`], symbol, and name of the form that returns the old
/// value.
pub(super) const ATOMIC: [(AtomicOperation, i32, &str, &str); 6] = [
    (AtomicOperation::Add, 0x00, "+=", "atomic_fetch_add"),
    (AtomicOperation::Or, 0x40, "|=", "atomic_fetch_or"),
    (AtomicOperation::And, 0x50, "&=", "atomic_fetch_and"),
    (AtomicOperation::Xor, 0xa0, "^=", "atomic_fetch_xor"),
    (AtomicOperation::Exchange, 0xe0, "", "xchg"),
    (AtomicOperation::CompareExchange, 0xf0, "", "cmpxchg"),
];

/// Size, code, and digits of its type.
pub(super) const SIZES: [(Size, u8, &str); 4] = [
    (Size::Word, 0x00, "32"),
    (Size::Half, 0x08, "16"),
    (Size::Byte, 0x10, "8"),
    (Size::Double, 0x18, "64"),
];

/// Byte order, class, operand bit, and name.
pub(super) const ORDERS: [(ByteOrder, u8, u8, &str); 3] = [
    (ByteOrder::Little, class::ALU32, 0, "le"),
    (ByteOrder::Big, class::ALU32, REGISTER, "be"),
    (ByteOrder::Reverse, class::ALU64, 0, "bswap"),
];

impl Arithmetic {
    /// Returns the assignment operator, such as `+=`.
    pub fn symbol(self) -> &'static str {
        ARITHMETIC.iter().find(|(known, ..)| *known == self).map_or("", |(.., symbol)| symbol)
    }
}

impl Condition {
    /// Returns the comparison operator, such as `s<=`.
    pub fn symbol(self) -> &'static str {
        CONDITIONS.iter().find(|(known, ..)| *known == self).map_or("", |(.., symbol)| symbol)
    }
}

impl AtomicOperation {
    /// Returns the name of the form that returns the old value, such as `atomic_fetch_add`.
    pub fn name(self) -> &'static str {
        ATOMIC.iter().find(|(known, ..)| *known == self).map_or("", |(.., name)| name)
    }
}

impl ByteOrder {
    /// Returns the name, such as `be`.
    pub fn name(self) -> &'static str {
        ORDERS.iter().find(|(known, ..)| *known == self).map_or("", |(.., name)| name)
    }
}
