// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory that operations touch, as the analysis of the program has it of the instructions that
//! they are made of.

use super::registers::calls_functions;
use crate::image::Slot;
use crate::operation::Operation;
use freeport_ebpf::analysis::{Access, AccessKind, Analysis, Place, Space, Unknown, Why, graph};
use freeport_ebpf::helper_functions::{Effect, signature};

/// The memory that one operation touches.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// What it accesses.
    pub accesses: Vec<Access>,
    /// What is accessed by whatever runs because of it, which begins a row later.
    later: Vec<Access>,
    /// Whether it may move the packet's ends.
    pub moves_packet: bool,
    /// Whether it asks where they are.
    pub asks_for_ends: bool,
    /// The function of the program that its instructions are in.
    function: Option<usize>,
}

impl Touched {
    /// What an operation touches by itself: of a call of a function nothing, since that runs later.
    pub fn by(slot: &Slot, analysis: &Analysis) -> Self {
        let graph = analysis.graph();
        let mut touched = Self {
            function: slot.origins.first().map(|at| graph.blocks()[graph.block_of(*at)].function),
            ..Self::default()
        };
        match slot.operation {
            Operation::Load { bytes, .. } => {
                touched.accesses = of_access(slot, analysis, AccessKind::Read, bytes);
            }
            Operation::Store { bytes, .. } => {
                touched.accesses = of_access(slot, analysis, AccessKind::Write, bytes);
            }
            Operation::Atomic { .. } => {
                touched.accesses = of_access(slot, analysis, AccessKind::Change, 0);
            }
            Operation::Bound { .. } => touched.asks_for_ends = true,
            Operation::Call { helper, .. } => touched.call(slot, helper, analysis),
            _ => {}
        }
        touched
    }

    fn call(&mut self, slot: &Slot, number: u32, analysis: &Analysis) {
        let origins = slot.origins.iter();
        self.accesses = origins.flat_map(|at| analysis.accesses(*at)).copied().collect();
        let effect = signature(number).map(|it| it.effect);
        self.moves_packet = effect.is_none() || effect == Some(Some(Effect::MovesPacket));
        if calls_functions(&slot.operation) {
            self.moves_packet = true;
            self.later.push(anything(slot, AccessKind::Change));
        } else if number == graph::TAIL_CALL {
            // Another program reads what is there.
            self.later.push(anything(slot, AccessKind::Read));
        }
    }

    /// Whether both may touch the same bytes and one of them writes.
    pub fn conflicts(&self, other: &Self) -> bool {
        let is_one_function = self.function == other.function;
        let all = |touched: &'_ Self| -> Vec<Access> {
            touched.accesses.iter().chain(&touched.later).copied().collect()
        };
        let others = all(other);
        all(self).iter().any(|one| {
            others.iter().any(|another| match (one.space, another.space) {
                // Frames are counted from the function that an instruction is in.
                (Space::Stack { .. }, Space::Stack { .. }) if !is_one_function => {
                    one.kind.writes() || another.kind.writes()
                }
                _ => one.conflicts(another),
            })
        })
    }

    /// Whether this moves ends of the packet that the other needs where they are.
    pub fn moves_packet_of(&self, other: &Self) -> bool {
        let is_packet = |access: &Access| {
            matches!(access.space, Space::Packet | Space::Metadata | Space::Unknown(_))
        };
        self.moves_packet && (other.asks_for_ends || other.accesses.iter().any(is_packet))
    }

    /// What it reads itself.
    pub fn read(mut self) -> Self {
        self.accesses.retain(|access| access.kind != AccessKind::Write);
        self.later.clear();
        self
    }
}

/// What a load, store or atomic operation touches: what its instructions do in the same way.
fn of_access(slot: &Slot, analysis: &Analysis, kind: AccessKind, bytes: u8) -> Vec<Access> {
    let does_so = |access: &&Access| match kind {
        AccessKind::Read => access.kind != AccessKind::Write,
        AccessKind::Write => access.kind.writes(),
        AccessKind::Change => true,
    };
    let origins = slot.origins.iter().flat_map(|at| analysis.accesses(*at));
    let found: Vec<_> = origins.filter(does_so).map(|it| Access { kind, ..*it }).collect();
    let least = found.iter().map(|access| access.offset.0).min();
    let end = |access: &Access| {
        access.size.map_or(i64::MAX, |size| access.offset.1.saturating_add_unsigned(size))
    };
    let most = found.iter().map(end).max();
    match least.zip(most) {
        Some((least, most)) if most.saturating_sub(least) >= bytes.into() => found,
        // It touches more than its instructions do.
        _ => vec![anything(slot, kind)],
    }
}

/// An access to memory of which nothing is known.
fn anything(slot: &Slot, kind: AccessKind) -> Access {
    let at = slot.origins.first().copied().unwrap_or_default();
    let space = Space::Unknown(Unknown { slot: at, place: Place::Register(0), why: Why::Number });
    let (register, offset, size, is_proven) = (None, (0, 0), None, false);
    Access { slot: at, register, kind, space, offset, size, is_proven }
}
