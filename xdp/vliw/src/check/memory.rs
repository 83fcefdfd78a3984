// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory accesses of operations, as the analysis of the program reports them for the instructions
//! from which they are made.

use super::registers::calls_functions;
use crate::image::Slot;
use crate::operation::Operation;
use freeport_ebpf::analysis::{Access, AccessKind, Analysis, Place, Space, Unknown, Why, graph};
use freeport_ebpf::helper_functions::{Effect, signature};

/// Memory accesses of an operation.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Accesses of the operation itself.
    pub accesses: Vec<Access>,
    /// Accesses of code that the operation starts, from the next row on.
    later: Vec<Access>,
    /// Whether it may move the packet's ends.
    pub moves_packet: bool,
    /// Whether it reads the packet's ends.
    pub asks_for_ends: bool,
    /// The function of the program that contains its instructions.
    function: Option<usize>,
}

impl Touched {
    /// Returns the accesses of an operation itself: for a call of a function none, since it runs
    /// later.
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
            // The other program may read any memory.
            self.later.push(anything(slot, AccessKind::Read));
        }
    }

    /// Returns whether both may access the same bytes and one of them writes.
    pub fn conflicts(&self, other: &Self) -> bool {
        let is_one_function = self.function == other.function;
        let all = |touched: &'_ Self| -> Vec<Access> {
            touched.accesses.iter().chain(&touched.later).copied().collect()
        };
        let others = all(other);
        all(self).iter().any(|one| {
            others.iter().any(|another| match (one.space, another.space) {
                // Frames are numbered relative to the function of an instruction.
                (Space::Stack { .. }, Space::Stack { .. }) if !is_one_function => {
                    one.kind.writes() || another.kind.writes()
                }
                _ => one.conflicts(another),
            })
        })
    }

    /// Returns whether this operation moves packet ends that the other needs unmoved.
    pub fn moves_packet_of(&self, other: &Self) -> bool {
        let is_packet = |access: &Access| {
            matches!(access.space, Space::Packet | Space::Metadata | Space::Unknown(_))
        };
        self.moves_packet && (other.asks_for_ends || other.accesses.iter().any(is_packet))
    }

    /// Returns its own reads.
    pub fn read(mut self) -> Self {
        self.accesses.retain(|access| access.kind != AccessKind::Write);
        self.later.clear();
        self
    }
}

/// Returns the accesses of a load, store or atomic operation: those of its instructions of the same
/// kind.
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
        // The operation accesses more than its instructions do.
        _ => vec![anything(slot, kind)],
    }
}

/// Returns an access to unknown memory.
fn anything(slot: &Slot, kind: AccessKind) -> Access {
    let at = slot.origins.first().copied().unwrap_or_default();
    let space = Space::Unknown(Unknown { slot: at, place: Place::Register(0), why: Why::Number });
    let (register, offset, size, is_proven) = (None, (0, 0), None, false);
    Access { slot: at, register, kind, space, offset, size, is_proven }
}
