// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Order of operations that is required because of memory.

use crate::machine::FRAME_BYTES;
use crate::operation::Operation;
use freeport_ebpf::analysis::{Access, Space};
use freeport_ebpf::helper_functions::{Effect, signature};
use std::ops::Range;

/// An operation with its memory accesses.
#[derive(Clone, Copy)]
pub struct Touch<'a> {
    /// The operation.
    pub operation: &'a Operation,
    /// Its accesses.
    pub accesses: &'a [Access],
}

impl Touch<'_> {
    /// Returns whether the order of the two matters.
    pub fn conflicts(&self, other: &Self) -> bool {
        let (one, another) = (self.effect(), other.effect());
        if one.is_some() && another.is_some() {
            // Helpers always keep their order.
            return true;
        }
        self.disturbs(other, one) || other.disturbs(self, another) || self.meets(other)
    }

    /// Returns the effect of a helper: `None` for other operations, `Some(None)` for no side
    /// effect.
    fn effect(&self) -> Option<Option<Effect>> {
        match *self.operation {
            Operation::Call { helper, .. } => Some(signature(helper).and_then(|it| it.effect)),
            _ => None,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        if self.is_anywhere() || other.is_anywhere() {
            return self.writes() && other.touches() || self.touches() && other.writes();
        }
        self.accesses.iter().any(|one| other.accesses.iter().any(|another| one.conflicts(another)))
    }

    /// Returns whether it accesses unknown memory: control never reaches it.
    fn is_anywhere(&self) -> bool {
        let is_call = matches!(self.operation, Operation::Call { .. });
        self.touches() && self.accesses.is_empty() && !is_call
    }

    fn touches(&self) -> bool {
        matches!(self.operation, Operation::Load { .. }) || self.writes()
    }

    fn writes(&self) -> bool {
        use Operation::{Atomic, Call, Store};
        matches!(self.operation, Store { .. } | Atomic { .. } | Call { .. })
    }

    /// Returns whether a helper's side effect `effect` matters to the other operation.
    fn disturbs(&self, other: &Self, effect: Option<Option<Effect>>) -> bool {
        let Some(Some(effect)) = effect else { return false };
        let touches = |is_touched: fn(&Access) -> bool| other.accesses.iter().any(is_touched);
        match effect {
            Effect::MovesPacket => {
                matches!(other.operation, Operation::Bound { .. }) || touches(is_of_packet)
            }
            Effect::WritesPacket => touches(is_of_packet),
            Effect::ReadsPacket => touches(|it| is_of_packet(it) && it.kind.writes()),
            Effect::ChangesMap => touches(is_of_map),
            Effect::ReadsTexts => touches(|it| it.kind.writes()),
            Effect::Repeats | Effect::RepeatsForElements => true,
        }
    }
}

/// Returns whether an operation may move the packet's start.
pub fn moves_packet(operation: &Operation) -> bool {
    match *operation {
        Operation::Call { helper, .. } => signature(helper)
            .is_none_or(|it| it.effect == Some(Effect::MovesPacket) || it.calls_function()),
        Operation::CallFunction(_) => true,
        _ => false,
    }
}

/// Returns the bytes of the function's own frame, counted from its lowest, that an access may
/// touch, if it can touch nothing else.
pub fn own_frame(access: &Access) -> Option<Range<usize>> {
    let Space::Stack { calls_up: Some(0) } = access.space else { return None };
    let all = FRAME_BYTES as i64;
    let start = (access.offset.0 + all).clamp(0, all);
    let size = access.size.map_or(all, |size| size.min(FRAME_BYTES as u64) as i64);
    let end = access.offset.1.saturating_add(all + size).clamp(start, all);
    Some(start as usize..end as usize)
}

fn is_of_packet(access: &Access) -> bool {
    use Space::{Context, Metadata, Packet, Unknown};
    matches!(access.space, Context | Packet | Metadata | Unknown(_))
}

fn is_of_map(access: &Access) -> bool {
    use Space::{Key, MapValue, Record, Unknown};
    matches!(access.space, MapValue(_) | Record(_) | Key(_) | Unknown(_))
}
