// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Combines loads that are assembled by shifts.

use super::{is_free_between, is_size, original, take_over};
use crate::operation::{Arithmetic, Operand, Operation, Width};
use crate::region::{Region, Value};

/// Maximum number of pieces of a value.
const PIECES_MAX: usize = 8;

/// A piece of a value: the result of a load, shifted left.
struct Piece {
    shift: u32,
    node: usize,
}

/// Replaces node `at` by a load if it only assembles loads.
pub fn join(region: &mut Region, at: usize) {
    let Operation::Alu { operation: Arithmetic::Or | Arithmetic::Add, width, .. } =
        region.nodes[at].operation
    else {
        return;
    };
    if region.nodes[at].arm.is_some() {
        return;
    }
    let mut pieces = vec![];
    let reads = region.nodes[at].reads.clone();
    if reads.len() != 2 || !reads.iter().all(|it| collect(region, *it, 0, &mut pieces)) {
        return;
    }
    pieces.sort_by_key(|piece| piece.shift);
    let Some((bytes, offset, base)) = joined(region, &pieces) else { return };
    let most = if width == Width::Bits32 { 4 } else { 8 };
    let moves =
        pieces.iter().all(|it| is_free_between(region, &region.nodes[it.node], it.node, at));
    if !is_size(bytes) || bytes > most || !moves || !region.is_current(base, at) {
        return;
    }
    let mut node = region.nodes[at].clone();
    node.operation = Operation::Load {
        bytes: bytes as u8,
        is_signed: false,
        is_speculative: false,
        destination: 0,
        base: 0,
        offset,
    };
    node.reads = vec![base];
    pieces.iter().for_each(|piece| take_over(&mut node, &region.nodes[piece.node]));
    if let Some(value) = node.result {
        region.values[value.0].bits = bytes * 8;
    }
    region.nodes[at] = node;
}

/// Collects the pieces of a value; returns whether it consists only of such pieces.
fn collect(region: &Region, value: Value, shift: u32, pieces: &mut Vec<Piece>) -> bool {
    let value = original(region, value);
    let (Some(at), Some(giver)) = (region.known(value).node, region.giver(value)) else {
        return false;
    };
    match giver.operation {
        Operation::Load { bytes, is_signed: false, .. } if giver.arm.is_none() => {
            pieces.push(Piece { shift, node: at });
            shift + u32::from(bytes) * 8 <= 64 && pieces.len() <= PIECES_MAX
        }
        Operation::Alu {
            operation: Arithmetic::ShiftLeft,
            right: Operand::Immediate(by),
            width,
            ..
        } => {
            // Bits that are shifted out would be lost.
            let most = if width == Width::Bits32 { 32 } else { 64 };
            let bits = region.known(giver.reads[0]).bits;
            (0..64).contains(&by)
                && bits + by as u32 <= most
                && collect(region, giver.reads[0], shift + by as u32, pieces)
        }
        Operation::Alu { operation: Arithmetic::Or | Arithmetic::Add, .. }
            if giver.reads.len() == 2 =>
        {
            giver.reads.iter().all(|read| collect(region, *read, shift, pieces))
        }
        _ => false,
    }
}

/// Returns size, offset and base of the load that covers all pieces, which are in the order of
/// their shifts.
fn joined(region: &Region, pieces: &[Piece]) -> Option<(u32, i16, Value)> {
    let mut found: Option<(u32, i16, Value)> = None;
    for piece in pieces {
        let node = &region.nodes[piece.node];
        let Operation::Load { bytes, offset, .. } = node.operation else { return None };
        let base = node.reads[0];
        found = Some(match found {
            None if piece.shift == 0 => (bytes.into(), offset, base),
            Some((size, first, known))
                if known == base
                    && piece.shift == size * 8
                    && i32::from(offset) == i32::from(first) + size as i32 =>
            {
                (size + u32::from(bytes), first, base)
            }
            _ => return None,
        });
    }
    found
}
