// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations. Every operation is total: cases that a machine leaves undefined have a defined
//! result here (see each operation), so that all back ends give the same answer.

use crate::{Bits, FunctionId, InstanceId, LocalId, MethodId, ObjectId, PortId, TableId, ValueId};

/// An operation of one operand; operand and result have the same width unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// Inverts every bit.
    Not,
    /// Negates, in two's complement.
    Neg,
    /// Reverses the order of bytes; the width is a multiple of 8.
    ByteSwap,
    /// Whether all bits are 1; 1 bit.
    ReduceAnd,
    /// Whether any bit is 1; 1 bit.
    ReduceOr,
    /// Parity; 1 bit.
    ReduceXor,
    /// Number of ones, truncated to the operand's width.
    PopCount,
    /// Number of zeros above the highest one; the width for 0. Truncated to the operand's width.
    LeadingZeros,
    /// Number of zeros below the lowest one; the width for 0. Truncated to the operand's width.
    TrailingZeros,
}

/// An operation on two operands of one width; the result has the same width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// Sum, modulo 2^width.
    Add,
    /// Difference, modulo 2^width.
    Sub,
    /// Product, modulo 2^width.
    Mul,
    /// Unsigned quotient; x / 0 = 0.
    UDiv,
    /// Signed quotient, rounded toward zero; x / 0 = 0, and the minimum / -1 is the minimum.
    SDiv,
    /// Unsigned remainder; x % 0 = x.
    URem,
    /// Signed remainder, with the sign of x; x % 0 = x, and the minimum % -1 is 0.
    SRem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift by the unsigned right operand; 0 if that is the width or more.
    Shl,
    /// Right shift by the unsigned right operand, filled with zeros; 0 if that is the width or
    /// more.
    LShr,
    /// Right shift by the unsigned right operand, filled with the sign; only sign bits if that is
    /// the width or more.
    AShr,
}

/// A comparison of two operands of one width; the result has 1 bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompareOp {
    /// Equal.
    Eq,
    /// Different.
    Ne,
    /// Less, unsigned.
    ULt,
    /// Less or equal, unsigned.
    ULe,
    /// Less, signed.
    SLt,
    /// Less or equal, signed.
    SLe,
}

impl UnaryOp {
    /// Every unary operation, in the order above.
    pub const ALL: [UnaryOp; 9] = [
        UnaryOp::Not,
        UnaryOp::Neg,
        UnaryOp::ByteSwap,
        UnaryOp::ReduceAnd,
        UnaryOp::ReduceOr,
        UnaryOp::ReduceXor,
        UnaryOp::PopCount,
        UnaryOp::LeadingZeros,
        UnaryOp::TrailingZeros,
    ];
}

impl BinaryOp {
    /// Every binary operation, in the order above.
    pub const ALL: [BinaryOp; 13] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::UDiv,
        BinaryOp::SDiv,
        BinaryOp::URem,
        BinaryOp::SRem,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::Shl,
        BinaryOp::LShr,
        BinaryOp::AShr,
    ];
}

impl CompareOp {
    /// Every comparison, in the order above.
    pub const ALL: [CompareOp; 6] = [
        CompareOp::Eq,
        CompareOp::Ne,
        CompareOp::ULt,
        CompareOp::ULe,
        CompareOp::SLt,
        CompareOp::SLe,
    ];
}

/// An object named from inside a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ObjectRef {
    /// State of the element that owns the function.
    State(ObjectId),
    /// A firing-lifetime object of the function.
    Local(LocalId),
}

/// Latency class of a call, which decides how it becomes hardware (ClickNP 4.11, 2.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Latency {
    /// Part of the caller.
    Inline,
    /// An element of its own in hardware: a function that is not `inline`.
    Element,
    /// A slow path: an `async` block. Its results may be used only after it ends.
    Async,
}

/// Whether later firings may overtake a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallOrder {
    /// The firing waits for the result, and so do later firings.
    InOrder,
    /// Firings that touch nothing that the callee touches may overtake.
    Overlap,
}

/// A probe; it never changes the result of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Probe {
    /// Prints the operands by a C-style format (`%d %u %x %%` with any width modifiers).
    Printf(String),
    /// Notifies the host, which may hold the element before the next firing.
    Breakpoint(String),
    /// Records the operands under a name.
    Log(String),
}

/// An operation. Each variant states its result type; "none" means it has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    // Pure
    /// A constant.
    Const(Bits),
    /// See [`UnaryOp`].
    Unary(UnaryOp, ValueId),
    /// See [`BinaryOp`].
    Binary(BinaryOp, ValueId, ValueId),
    /// See [`CompareOp`]. Result: 1 bit.
    Compare(CompareOp, ValueId, ValueId),
    /// `if_true` if the 1-bit condition is 1, else `if_false`; any type.
    Select {
        /// Condition; 1 bit.
        cond: ValueId,
        /// Result for 1.
        if_true: ValueId,
        /// Result for 0.
        if_false: ValueId,
    },
    /// The operand, extended with zeros to a greater or equal width.
    ZeroExtend(ValueId, u32),
    /// The operand, extended with its sign to a greater or equal width.
    SignExtend(ValueId, u32),
    /// The operand's low bits, in a smaller or equal width.
    Truncate(ValueId, u32),
    /// `width` bits from bit `lo`; `lo + width` is within the operand.
    Extract {
        /// Source value.
        value: ValueId,
        /// Lowest bit.
        lo: u32,
        /// Width of the result.
        width: u32,
    },
    /// Like `Extract`, from a computed bit; bits beyond the operand read as 0.
    ExtractDynamic {
        /// Source value.
        value: ValueId,
        /// Lowest bit, unsigned, of any width.
        lo: ValueId,
        /// Width of the result.
        width: u32,
    },
    /// `value` with the bits from `lo` on replaced by `part`; both within `value`.
    Insert {
        /// Original value.
        value: ValueId,
        /// Lowest bit replaced.
        lo: u32,
        /// Replacement bits.
        part: ValueId,
    },
    /// Like `Insert`, at a computed bit; bits beyond `value` are dropped.
    InsertDynamic {
        /// Original value.
        value: ValueId,
        /// Lowest bit replaced, unsigned, of any width.
        lo: ValueId,
        /// Replacement bits.
        part: ValueId,
    },
    /// Concatenation of the operands, the first one lowest.
    Concat(Vec<ValueId>),

    // References
    /// The handle of a table.
    Handle(TableId),
    /// A null reference into `spaces`: loads give 0, stores are dropped, both counted.
    NullRef(crate::Spaces),
    /// Whether a reference is not null. Result: 1 bit.
    RefIsValid(ValueId),
    /// A reference advanced by `offset` bytes (signed, of any width).
    RefOffset {
        /// Original reference.
        reference: ValueId,
        /// Distance in bytes, signed.
        offset: ValueId,
    },
    /// Loads `width` bits (a multiple of 8) through a reference. Out of range: 0, counted.
    RefLoad {
        /// Reference to load through.
        reference: ValueId,
        /// Width of the result.
        width: u32,
    },
    /// Stores `value` (a multiple of 8 bits) through a reference. Out of range: dropped, counted.
    RefStore {
        /// Reference to store through.
        reference: ValueId,
        /// Value to store.
        value: ValueId,
    },

    // Effects on objects
    /// Loads `width` bits from bit `lo` of element `index`. Index out of range: 0, counted.
    Load {
        /// An object addressed by element.
        object: ObjectRef,
        /// Element index, unsigned, of any width.
        index: ValueId,
        /// Lowest bit within the element.
        lo: u32,
        /// Width of the result.
        width: u32,
    },
    /// Stores into element `index` from bit `lo`. Index out of range: dropped, counted.
    Store {
        /// An object addressed by element.
        object: ObjectRef,
        /// Element index, unsigned, of any width.
        index: ValueId,
        /// Lowest bit within the element.
        lo: u32,
        /// Value to store.
        value: ValueId,
        /// Bits of `value` to store (same width); all if absent.
        mask: Option<ValueId>,
    },
    /// Loads `bytes` bytes at a byte offset. Any byte out of range: 0 for all of them, counted.
    LoadBytes {
        /// An object addressed by byte.
        object: ObjectRef,
        /// Byte offset, unsigned, of any width.
        offset: ValueId,
        /// Number of bytes in the result.
        bytes: u32,
    },
    /// Stores at a byte offset. Any byte out of range: the whole store is dropped, counted.
    StoreBytes {
        /// An object addressed by byte.
        object: ObjectRef,
        /// Byte offset, unsigned, of any width.
        offset: ValueId,
        /// Value to store; a multiple of 8 bits.
        value: ValueId,
    },

    // Effects on tables
    /// A reference to the value under `key`; null if there is none. Result: `Ref(TableValue)`.
    TableLookup {
        /// Table handle.
        table: ValueId,
        /// Key to look up.
        key: ValueId,
    },
    /// Sets the value under `key`. Result: 1 bit, whether there was room.
    TableUpdate {
        /// Table handle.
        table: ValueId,
        /// Key of the entry.
        key: ValueId,
        /// Value of the entry.
        value: ValueId,
    },
    /// Removes `key`. Result: 1 bit, whether it was present.
    TableDelete {
        /// Table handle.
        table: ValueId,
        /// Key to remove.
        key: ValueId,
    },

    // Effects on ports, by the snapshot of the firing
    /// The masked input ports that have an item, bit i for port i. Result: one bit for each input
    /// of the element (1 bit, 0, if it has none).
    ReadyMask,
    /// Whether a masked port has an item. Result: 1 bit.
    Ready(PortId),
    /// The next item, left in place; if there is none, 0 (an empty packet), counted.
    Peek(PortId),
    /// Consumes the next item; at most once per firing. A later take or peek in the firing, and one
    /// of a port that is not ready, give 0 (an empty packet) and are counted.
    Take(PortId),
    /// Stages an item for an output port; it leaves when the firing ends. The last put of a firing
    /// to a port wins, as with `set_output_port`.
    Put {
        /// The output port.
        port: PortId,
        /// Item to send.
        value: ValueId,
    },

    // Effects on packets
    /// A packet of `length` zeros, with the head room and tail room of a packet that has just
    /// entered the graph. If it is longer than
    /// [`TAIL_LIMIT_BYTES`](crate::interp::TAIL_LIMIT_BYTES), or the firing exceeds
    /// [`MOST_NEW_PACKETS`](crate::interp::MOST_NEW_PACKETS): an empty packet, counted.
    NewPacket {
        /// Length in bytes, unsigned, of any width.
        length: ValueId,
    },
    /// Length of a packet in bytes. Result: 32 bits.
    PacketLength(ValueId),
    /// Loads `bytes` bytes at an offset. Any byte out of range: 0 for all of them, counted.
    PacketLoad {
        /// Packet to load from.
        packet: ValueId,
        /// Byte offset from its start, unsigned, of any width.
        offset: ValueId,
        /// Number of bytes in the result.
        bytes: u32,
    },
    /// Stores at an offset. Any byte out of range: the whole store is dropped, counted.
    PacketStore {
        /// Packet to store into.
        packet: ValueId,
        /// Byte offset from its start, unsigned, of any width.
        offset: ValueId,
        /// Value to store; a multiple of 8 bits.
        value: ValueId,
    },
    /// Moves the packet's start by a signed number of bytes (negative: adds zero bytes in front).
    /// Result: 1 bit, whether head room and length allowed it.
    PacketAdjustHead {
        /// Packet to change.
        packet: ValueId,
        /// Bytes, signed, of any width.
        delta: ValueId,
    },
    /// Moves the packet's end by a signed number of bytes. Result: 1 bit, whether it was allowed.
    PacketAdjustTail {
        /// Packet to change.
        packet: ValueId,
        /// Bytes, signed, of any width.
        delta: ValueId,
    },

    // Oracles
    /// Nanoseconds of a monotonic clock. Result: 64 bits.
    Now,
    /// A random number. Result: 64 bits.
    Random,

    // Other operations
    /// Calls a function; its effects are those of its body. Result: that of the callee.
    Call {
        /// Function to call.
        function: FunctionId,
        /// Arguments.
        args: Vec<ValueId>,
        /// Latency class.
        latency: Latency,
        /// Whether later firings may overtake the call.
        order: CallOrder,
    },
    /// Calls a method of an instance, as the host does between firings. Its effects are on that
    /// instance; if it traps, the caller sees only a result of 0. Only functions that run between
    /// the firings of an element without ports may do so. Result: that of the method.
    CallMethod {
        /// Instance to call.
        instance: InstanceId,
        /// Method to call.
        method: MethodId,
        /// Arguments.
        args: Vec<ValueId>,
    },
    /// See [`Probe`].
    Probe {
        /// Kind of probe.
        probe: Probe,
        /// Operands.
        args: Vec<ValueId>,
    },
}

impl Op {
    /// Calls `visit` on every operand, in order.
    pub fn for_each_operand(&self, mut visit: impl FnMut(ValueId)) {
        self.clone().map_operands(|value| {
            visit(value);
            value
        });
    }

    /// Replaces every operand by the result of `map`, in order.
    pub fn map_operands(&mut self, mut map: impl FnMut(ValueId) -> ValueId) {
        let mut each = |value: &mut ValueId| *value = map(*value);
        match self {
            Op::Const(_) | Op::Handle(_) | Op::NullRef(_) | Op::ReadyMask | Op::Ready(_) => {}
            Op::Peek(_) | Op::Take(_) | Op::Now | Op::Random => {}
            Op::Unary(_, value)
            | Op::ZeroExtend(value, _)
            | Op::SignExtend(value, _)
            | Op::Truncate(value, _)
            | Op::Extract { value, .. }
            | Op::RefIsValid(value)
            | Op::NewPacket { length: value }
            | Op::PacketLength(value)
            | Op::Put { value, .. }
            | Op::Load { index: value, .. }
            | Op::LoadBytes { offset: value, .. }
            | Op::RefLoad { reference: value, .. } => each(value),
            Op::Binary(_, left, right) | Op::Compare(_, left, right) => {
                each(left);
                each(right);
            }
            Op::Select { cond, if_true, if_false } => {
                each(cond);
                each(if_true);
                each(if_false);
            }
            Op::ExtractDynamic { value, lo, .. } => {
                each(value);
                each(lo);
            }
            Op::Insert { value, part, .. } => {
                each(value);
                each(part);
            }
            Op::InsertDynamic { value, lo, part } => {
                each(value);
                each(lo);
                each(part);
            }
            Op::RefOffset { reference, offset } => {
                each(reference);
                each(offset);
            }
            Op::RefStore { reference, value } => {
                each(reference);
                each(value);
            }
            Op::Store { index, value, mask, .. } => {
                each(index);
                each(value);
                mask.iter_mut().for_each(each);
            }
            Op::StoreBytes { offset, value, .. } => {
                each(offset);
                each(value);
            }
            Op::TableLookup { table, key } | Op::TableDelete { table, key } => {
                each(table);
                each(key);
            }
            Op::TableUpdate { table, key, value } => {
                each(table);
                each(key);
                each(value);
            }
            Op::PacketLoad { packet, offset, .. } => {
                each(packet);
                each(offset);
            }
            Op::PacketStore { packet, offset, value } => {
                each(packet);
                each(offset);
                each(value);
            }
            Op::PacketAdjustHead { packet, delta } | Op::PacketAdjustTail { packet, delta } => {
                each(packet);
                each(delta);
            }
            Op::Concat(values)
            | Op::Call { args: values, .. }
            | Op::CallMethod { args: values, .. }
            | Op::Probe { args: values, .. } => values.iter_mut().for_each(each),
        }
    }

    /// Returns whether the operation only computes: it has no effect, reads no oracle, and gives
    /// the same result for the same operands.
    pub fn is_pure(&self) -> bool {
        matches!(
            self,
            Op::Const(_)
                | Op::Unary(..)
                | Op::Binary(..)
                | Op::Compare(..)
                | Op::Select { .. }
                | Op::ZeroExtend(..)
                | Op::SignExtend(..)
                | Op::Truncate(..)
                | Op::Extract { .. }
                | Op::ExtractDynamic { .. }
                | Op::Insert { .. }
                | Op::InsertDynamic { .. }
                | Op::Concat(_)
                | Op::Handle(_)
                | Op::NullRef(_)
                | Op::RefIsValid(_)
                | Op::RefOffset { .. }
        )
    }
}
