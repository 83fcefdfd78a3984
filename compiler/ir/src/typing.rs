// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Result types of operations. They follow from the operands, the callee and the owner, so the text
//! form omits them and the verifier checks them.

use crate::{Element, Op, Program, Space, Spaces, Type, UnaryOp, ValueId};

/// The result of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Produces {
    /// No result.
    Nothing,
    /// One value of this type.
    Value(Type),
    /// Unknown: the operation names something that does not exist, or an operand has the wrong
    /// type.
    Unknown,
}

impl Produces {
    /// Returns the type, if it is known.
    pub fn ty(self) -> Option<Type> {
        match self {
            Produces::Value(ty) => Some(ty),
            Produces::Nothing | Produces::Unknown => None,
        }
    }
}

/// Returns the result of `op` in a function owned by `owner`, with operands of the types that
/// `type_of` gives.
pub fn result_of(
    op: &Op,
    program: &Program,
    owner: Option<&Element>,
    type_of: impl Fn(ValueId) -> Option<Type>,
) -> Produces {
    let of_operand = |value: &ValueId| type_of(*value);
    let known = match op {
        Op::Const(bits) => Some(Type::Bits(bits.width())),
        Op::Unary(UnaryOp::ReduceAnd | UnaryOp::ReduceOr | UnaryOp::ReduceXor, _) => BIT,
        Op::Unary(_, value) | Op::Binary(_, value, _) => of_operand(value),
        Op::Compare(..) | Op::RefIsValid(_) | Op::Ready(_) => BIT,
        Op::TableUpdate { .. } | Op::TableDelete { .. } => BIT,
        Op::PacketAdjustHead { .. } | Op::PacketAdjustTail { .. } => BIT,
        Op::Select { if_true, .. } => of_operand(if_true),
        Op::ZeroExtend(_, width) | Op::SignExtend(_, width) | Op::Truncate(_, width) => {
            Some(Type::Bits(*width))
        }
        Op::Extract { width, .. } | Op::ExtractDynamic { width, .. } => Some(Type::Bits(*width)),
        Op::RefLoad { width, .. } | Op::Load { width, .. } => Some(Type::Bits(*width)),
        Op::Insert { value, .. } | Op::InsertDynamic { value, .. } => of_operand(value),
        Op::Concat(parts) => concat_width(parts, &type_of).map(Type::Bits),
        Op::Handle(table) => Some(Type::Handle(*table)),
        Op::NullRef(spaces) => Some(Type::Ref(*spaces)),
        Op::RefOffset { reference, .. } => of_operand(reference),
        Op::LoadBytes { bytes, .. } | Op::PacketLoad { bytes, .. } => {
            bytes.checked_mul(8).map(Type::Bits)
        }
        Op::TableLookup { .. } => Some(Type::Ref(Spaces::of(Space::TableValue))),
        Op::ReadyMask => owner.map(|element| Type::Bits(mask_bits(element))),
        Op::Peek(port) | Op::Take(port) => {
            let port = owner.and_then(|element| element.inputs.get(port.index()));
            port.map(|port| port.item.value_type())
        }
        Op::NewPacket { .. } => Some(Type::Packet),
        Op::PacketLength(_) => Some(Type::Bits(32)),
        Op::Now | Op::Random => Some(Type::Bits(64)),
        Op::Call { function, .. } => match program.functions.get(function.index()) {
            Some(callee) => match callee.result {
                Some(ty) => Some(ty),
                None => return Produces::Nothing,
            },
            None => None,
        },
        Op::CallMethod { instance, method, .. } => match program.method(*instance, *method) {
            Some(callee) => match callee.result {
                Some(ty) => Some(ty),
                None => return Produces::Nothing,
            },
            None => None,
        },
        Op::RefStore { .. }
        | Op::Store { .. }
        | Op::StoreBytes { .. }
        | Op::Put { .. }
        | Op::PacketStore { .. }
        | Op::Probe { .. } => return Produces::Nothing,
    };
    known.map_or(Produces::Unknown, Produces::Value)
}

/// Returns the width of a mask of an element's input ports; 1 for an element without inputs.
pub fn mask_bits(element: &Element) -> u32 {
    u32::try_from(element.inputs.len()).unwrap_or(u32::MAX).max(1)
}

const BIT: Option<Type> = Some(Type::Bits(1));

fn concat_width(parts: &[ValueId], type_of: &impl Fn(ValueId) -> Option<Type>) -> Option<u32> {
    let widths = parts.iter().map(|part| type_of(*part)?.bits());
    widths.reduce(|sum, width| sum?.checked_add(width?))?
}
