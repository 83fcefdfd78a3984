// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which operations have to stay in their order because of memory.

use crate::machine::FRAME_BYTES;
use crate::operation::Operation;
use freeport_ebpf::analysis::{Access, Space};
use freeport_ebpf::helper_functions::{Effect, signature};
use std::ops::Range;

/// An operation with the memory that it touches.
#[derive(Clone, Copy)]
pub struct Touch<'a> {
    /// What is done.
    pub operation: &'a Operation,
    /// What it touches.
    pub accesses: &'a [Access],
}

impl Touch<'_> {
    /// Whether the order of both matters.
    pub fn conflicts(&self, other: &Self) -> bool {
        let (one, another) = (self.effect(), other.effect());
        if one.is_some() && another.is_some() {
            // Helpers keep their order, whatever they do.
            return true;
        }
        self.disturbs(other, one) || other.disturbs(self, another) || self.meets(other)
    }

    /// The effect of a helper; nothing if it is no call, nothing inside if it has none.
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

    /// Whether it touches memory of which nothing is known: control never comes there.
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

    /// Whether what a helper does besides, which is this one, matters to the other.
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

/// Whether an operation may move where the packet begins.
pub fn moves_packet(operation: &Operation) -> bool {
    match *operation {
        Operation::Call { helper, .. } => signature(helper)
            .is_none_or(|it| it.effect == Some(Effect::MovesPacket) || it.calls_function()),
        Operation::CallFunction(_) => true,
        _ => false,
    }
}

/// The bytes of the function's own frame that an access may touch, counted from its lowest, if it
/// can touch nothing else.
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
