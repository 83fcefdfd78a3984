// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions of eBPF as in RFC 9669: 64-bit slots, decoding to operations
//! ([`decode`](decode())), encoding ([`Operation::encode`]), and a text form that LLVM prints and
//! [`assemble`](assemble()) parses.

mod assemble;
mod decode;
mod display;
mod encode;
mod operation;
pub(crate) mod tables;

pub use assemble::{AssemblyError, assemble};
pub use decode::{Field, Invalid, decode};
pub use display::disassemble;
pub use operation::{
    Arithmetic, AtomicOperation, ByteOrder, Callee, Condition, Constant, Operand, Operation, Size,
    Width,
};

/// The register that holds the frame pointer, which is read-only for programs.
pub const FRAME_POINTER: u8 = 10;
/// Number of registers.
pub const REGISTERS: u8 = 11;
/// Opcode of the load of a 64-bit constant, which takes two slots.
pub const WIDE_LOAD: u8 = 0x18;

/// `source` of a wide load of a map, whose number is the immediate.
pub const PSEUDO_MAP: u8 = 1;
/// `source` of a wide load of an address in a map's first value: the immediate is the map's number,
/// that of the second slot the offset in bytes.
pub const PSEUDO_MAP_VALUE: u8 = 2;
/// `source` of a wide load of a kernel variable's address, by its BTF id.
pub const PSEUDO_VARIABLE: u8 = 3;
/// `source` of a wide load of a local function: the immediate is the distance to it.
pub const PSEUDO_FUNCTION: u8 = 4;
/// `source` of a call of a local function: the immediate is the distance to it.
pub const PSEUDO_CALL: u8 = 1;
/// `source` of a call of a kernel function, by its BTF id.
pub const PSEUDO_KERNEL_CALL: u8 = 2;

/// A 64-bit slot. Most instructions take one; a wide load takes two, the second with opcode 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Instruction {
    /// Opcode; its low three bits are the class.
    pub opcode: u8,
    /// Destination register.
    pub destination: u8,
    /// Source register, or the kind of constant or callee that the immediate is.
    pub source: u8,
    /// Distance in bytes or slots, or a variant of the opcode.
    pub offset: i16,
    /// Constant operand.
    pub immediate: i32,
}

impl Instruction {
    /// Decodes a slot from little-endian bytes, as in an object for `bpfel`.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let [opcode, registers, offset @ .., a, b, c, d] = bytes;
        Self {
            opcode,
            destination: registers & 15,
            source: registers >> 4,
            offset: i16::from_le_bytes(offset),
            immediate: i32::from_le_bytes([a, b, c, d]),
        }
    }

    /// Encodes a slot; the inverse of [`Self::from_bytes`]. Registers above 15 lose their upper
    /// bits.
    pub fn to_bytes(self) -> [u8; 8] {
        let registers = self.destination & 15 | self.source << 4;
        let [low, high] = self.offset.to_le_bytes();
        let [a, b, c, d] = self.immediate.to_le_bytes();
        [self.opcode, registers, low, high, a, b, c, d]
    }

    /// Returns whether it is the first of two slots.
    pub fn is_wide(self) -> bool {
        self.opcode == WIDE_LOAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_slot_are_little_endian() {
        let bytes = [0x61, 0x2a, 0xfc, 0xff, 0x78, 0x56, 0x34, 0x12];
        let slot = Instruction::from_bytes(bytes);
        let (opcode, destination, source) = (0x61, 10, 2);
        let expected =
            Instruction { opcode, destination, source, offset: -4, immediate: 0x1234_5678 };
        assert_eq!(slot, expected);
        assert_eq!(slot.to_bytes(), bytes);
    }
}
