// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The number of facts that a join of two states would lose, to join those that lose the fewest.

use super::{Frame, State};
use crate::analysis::value::{Kind, Region, Value};
use std::mem::discriminant;

impl State {
    /// Returns the number of values whose kind would become unknown in a join with `other`.
    pub fn losses(&self, other: &Self) -> usize {
        let frames = self.frames.iter().zip(&other.frames);
        count(&self.registers, &other.registers)
            + frames.map(|(one, other)| frame_losses(one, other)).sum::<usize>()
    }
}

fn count(some: &[Value], others: &[Value]) -> usize {
    some.iter().zip(others).filter(|(one, other)| is_lost(one, other)).count()
}

fn frame_losses(one: &Frame, other: &Frame) -> usize {
    let pieces = one.content.pieces().iter().filter(|piece| {
        let same = other.content.pieces().iter().find(|it| it.bytes() == piece.bytes());
        same.is_none_or(|same| is_lost(&piece.value, &same.value))
    });
    count(&one.saved, &other.saved) + pieces.count()
}

fn is_lost(one: &Value, other: &Value) -> bool {
    if !one.is_pointer() && !other.is_pointer() {
        return false;
    }
    match (one.kind, other.kind) {
        (Kind::Unknown(_) | Kind::Nothing, _) | (_, Kind::Unknown(_) | Kind::Nothing) => false,
        (Kind::Address { region: one, .. }, Kind::Address { region: other, .. }) => {
            match (one, other) {
                (Region::Record { slot: one, .. }, Region::Record { slot: other, .. }) => {
                    one != other
                }
                _ => one != other,
            }
        }
        _ if one.constant() == Some(0) || other.constant() == Some(0) => false,
        (one, other) => discriminant(&one) != discriminant(&other),
    }
}
