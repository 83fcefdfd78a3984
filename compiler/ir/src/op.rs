// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations. Every one is total: what a machine would leave undefined has a value here (see each
//! operation), so that all back ends give the same answer.

use crate::{Bits, FunctionId, InstanceId, LocalId, MethodId, ObjectId, PortId, TableId, ValueId};

/// An operation of one operand; operand and result have the same width unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// Every bit inverted.
    Not,
    /// Two's complement.
    Neg,
    /// Bytes in the opposite order; the width is a multiple of 8.
    ByteSwap,
    /// 1 bit: whether all bits are 1.
    ReduceAnd,
    /// 1 bit: whether any bit is 1.
    ReduceOr,
    /// 1 bit: the parity.
    ReduceXor,
    /// The number of ones, in the operand's width (cut to it).
    PopCount,
    /// The number of zeros above the highest one, the width for 0 (cut to the width).
    LeadingZeros,
    /// The number of zeros below the lowest one, the width for 0 (cut to the width).
    TrailingZeros,
}

/// An operation of two operands of one width, which is also the result's.
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
    /// Signed quotient, rounded to zero; x / 0 = 0, and the lowest value / -1 is itself.
    SDiv,
    /// Unsigned remainder; x % 0 = x.
    URem,
    /// Signed remainder, with the sign of x; x % 0 = x, and the lowest value % -1 is 0.
    SRem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left by the unsigned right operand; 0 for the width or more.
    Shl,
    /// Right by the unsigned right operand, zeros shifted in; 0 for the width or more.
    LShr,
    /// Right by the unsigned right operand, the sign shifted in; all sign for the width or more.
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
    /// Every one, in the order above.
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
    /// Every one, in the order above.
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
    /// Every one, in the order above.
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

/// How long a call may take, and so how it becomes hardware (ClickNP 4.11, 2.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Latency {
    /// Part of the caller.
    Inline,
    /// An element of its own in hardware: a function that is not `inline`.
    Element,
    /// A slow path: an `async` block. Results may be used only after it ends.
    Async,
}

/// Whether later firings may overtake a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallOrder {
    /// The firing waits for the result, and so do those behind it.
    InOrder,
    /// Firings that touch nothing of the callee's may pass.
    Overlap,
}

/// What a probe does; it never changes the result of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Probe {
    /// Prints the operands by a C-style format (`%d %u %x %%` with any width modifiers).
    Printf(String),
    /// Tells the host, which may hold the element before the next firing.
    Breakpoint(String),
    /// Records the operands under a name.
    Log(String),
}

/// An operation. The result type is given with each; "none" means it has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    // Pure
    /// That constant.
    Const(Bits),
    /// See [`UnaryOp`].
    Unary(UnaryOp, ValueId),
    /// See [`BinaryOp`].
    Binary(BinaryOp, ValueId, ValueId),
    /// See [`CompareOp`]. Result: 1 bit.
    Compare(CompareOp, ValueId, ValueId),
    /// `if_true` where the 1-bit condition is 1, else `if_false`; any type.
    Select {
        /// 1 bit.
        cond: ValueId,
        /// The result for 1.
        if_true: ValueId,
        /// The result for 0.
        if_false: ValueId,
    },
    /// The operand in a greater or equal width, filled with zeros.
    ZeroExtend(ValueId, u32),
    /// The operand in a greater or equal width, filled with its sign.
    SignExtend(ValueId, u32),
    /// The operand's low bits, in a smaller or equal width.
    Truncate(ValueId, u32),
    /// `width` bits from bit `lo`; `lo + width` is within the operand.
    Extract {
        /// Taken from.
        value: ValueId,
        /// Lowest bit.
        lo: u32,
        /// Bits of the result.
        width: u32,
    },
    /// As `Extract`, from a computed bit; bits beyond the operand read as 0.
    ExtractDynamic {
        /// Taken from.
        value: ValueId,
        /// Lowest bit, unsigned, of any width.
        lo: ValueId,
        /// Bits of the result.
        width: u32,
    },
    /// `value` with the bits from `lo` on replaced by `part`; both within `value`.
    Insert {
        /// The whole.
        value: ValueId,
        /// Lowest bit replaced.
        lo: u32,
        /// What replaces them.
        part: ValueId,
    },
    /// As `Insert`, at a computed bit; bits beyond `value` are dropped.
    InsertDynamic {
        /// The whole.
        value: ValueId,
        /// Lowest bit replaced, unsigned, of any width.
        lo: ValueId,
        /// What replaces them.
        part: ValueId,
    },
    /// The operands side by side, the first one lowest.
    Concat(Vec<ValueId>),

    // References
    /// The handle of a table.
    Handle(TableId),
    /// A reference to nothing in `spaces`: loads give 0, stores are dropped, both counted.
    NullRef(crate::Spaces),
    /// Whether a reference points at something. Result: 1 bit.
    RefIsValid(ValueId),
    /// A reference `offset` bytes (signed, of any width) further.
    RefOffset {
        /// Where from.
        reference: ValueId,
        /// Bytes, signed.
        offset: ValueId,
    },
    /// `width` bits (a multiple of 8) at a reference. Out of range: 0, counted.
    RefLoad {
        /// Where.
        reference: ValueId,
        /// Bits of the result.
        width: u32,
    },
    /// Stores `value` (a multiple of 8 bits) at a reference. Out of range: dropped, counted.
    RefStore {
        /// Where.
        reference: ValueId,
        /// What.
        value: ValueId,
    },

    // Effects on objects
    /// `width` bits from bit `lo` of element `index`. Index out of range: 0, counted.
    Load {
        /// An object addressed by element.
        object: ObjectRef,
        /// Unsigned, of any width.
        index: ValueId,
        /// Lowest bit within the element.
        lo: u32,
        /// Bits of the result.
        width: u32,
    },
    /// Stores into bits from `lo` of element `index`. Index out of range: dropped, counted.
    Store {
        /// An object addressed by element.
        object: ObjectRef,
        /// Unsigned, of any width.
        index: ValueId,
        /// Lowest bit within the element.
        lo: u32,
        /// What.
        value: ValueId,
        /// Which bits of `value` are stored (same width); all where absent.
        mask: Option<ValueId>,
    },
    /// `bytes` bytes from a byte offset. Any byte out of range: 0 for all of them, counted.
    LoadBytes {
        /// An object addressed by byte.
        object: ObjectRef,
        /// Unsigned, of any width.
        offset: ValueId,
        /// Bytes of the result.
        bytes: u32,
    },
    /// Stores at a byte offset. Any byte out of range: dropped whole, counted.
    StoreBytes {
        /// An object addressed by byte.
        object: ObjectRef,
        /// Unsigned, of any width.
        offset: ValueId,
        /// What; a multiple of 8 bits.
        value: ValueId,
    },

    // Effects on tables
    /// A reference to the value under `key`, or to nothing. Result: `Ref(TableValue)`.
    TableLookup {
        /// Which table.
        table: ValueId,
        /// Its key.
        key: ValueId,
    },
    /// Sets the value under `key`. Result: 1 bit, whether there was room.
    TableUpdate {
        /// Which table.
        table: ValueId,
        /// Its key.
        key: ValueId,
        /// Its value.
        value: ValueId,
    },
    /// Removes `key`. Result: 1 bit, whether it was there.
    TableDelete {
        /// Which table.
        table: ValueId,
        /// Its key.
        key: ValueId,
    },

    // Effects on ports, by the snapshot of the firing
    /// The masked input ports that have an item, bit i for port i. Result: as many bits as the
    /// element has inputs (1 bit, 0, where it has none).
    ReadyMask,
    /// Whether that masked port has an item. Result: 1 bit.
    Ready(PortId),
    /// The next item, left in place; 0 (an empty packet) and counted where there is none.
    Peek(PortId),
    /// The next item, consumed; at most once a firing. A later take or peek of the firing, and one
    /// of a port that is not ready, give 0 (an empty packet) and are counted.
    Take(PortId),
    /// Stages an item for that output; it leaves when the firing ends. The last put of a firing
    /// to a port wins, as with `set_output_port`.
    Put {
        /// The output port.
        port: PortId,
        /// The item.
        value: ValueId,
    },

    // Effects on packets
    /// A packet of that many zeros, with the room of one that has just entered. Longer than
    /// [`TAIL_LIMIT_BYTES`](crate::interp::TAIL_LIMIT_BYTES), or beyond the
    /// [`MOST_NEW_PACKETS`](crate::interp::MOST_NEW_PACKETS) of a firing: an empty packet, counted.
    NewPacket {
        /// Bytes, unsigned, of any width.
        length: ValueId,
    },
    /// Bytes of a packet. Result: 32 bits.
    PacketLength(ValueId),
    /// `bytes` bytes at an offset. Any byte out of range: 0 for all of them, counted.
    PacketLoad {
        /// Which packet.
        packet: ValueId,
        /// Bytes from its start, unsigned, of any width.
        offset: ValueId,
        /// Bytes of the result.
        bytes: u32,
    },
    /// Stores at an offset. Any byte out of range: dropped whole, counted.
    PacketStore {
        /// Which packet.
        packet: ValueId,
        /// Bytes from its start, unsigned, of any width.
        offset: ValueId,
        /// What; a multiple of 8 bits.
        value: ValueId,
    },
    /// Moves the packet's start by a signed number of bytes (negative: room in front, as 0).
    /// Result: 1 bit, whether head room and length allowed it.
    PacketAdjustHead {
        /// Which packet.
        packet: ValueId,
        /// Bytes, signed, of any width.
        delta: ValueId,
    },
    /// Moves the packet's end by a signed number of bytes. Result: 1 bit, whether it was allowed.
    PacketAdjustTail {
        /// Which packet.
        packet: ValueId,
        /// Bytes, signed, of any width.
        delta: ValueId,
    },

    // Oracles
    /// Nanoseconds of a clock that never goes back. Result: 64 bits.
    Now,
    /// A random number. Result: 64 bits.
    Random,

    // Others
    /// Calls a function; its effects are those of its body. Result: the callee's.
    Call {
        /// Whom.
        function: FunctionId,
        /// With what.
        args: Vec<ValueId>,
        /// What it becomes in hardware.
        latency: Latency,
        /// Who may pass.
        order: CallOrder,
    },
    /// Calls a method of an instance, as the host does between firings: its effects are on that
    /// instance, and of a trap there only a result of 0 is seen here. Only what runs between the
    /// firings of an element without ports may do so. Result: the method's.
    CallMethod {
        /// Of which instance.
        instance: InstanceId,
        /// Which.
        method: MethodId,
        /// With what.
        args: Vec<ValueId>,
    },
    /// See [`Probe`].
    Probe {
        /// What to do.
        probe: Probe,
        /// With what.
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

    /// Replaces every operand by what `map` gives for it, in order.
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

    /// Whether the operation only computes: no effect, no oracle, same result for same operands.
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
