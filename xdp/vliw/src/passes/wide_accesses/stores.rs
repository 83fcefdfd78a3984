// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Combines adjacent stores.

use super::{is_free_between, is_size, original, take_over, uses};
use crate::analysis::Live;
use crate::operation::{Arithmetic, Operand, Operation};
use crate::region::{Region, Value};
use std::collections::HashMap;

/// A store: address, size, and node.
#[derive(Clone, Copy)]
struct Store {
    node: usize,
    base: Value,
    offset: i32,
    bytes: u32,
}

/// Source of a combined store.
enum Source {
    /// A constant.
    Constant(i32),
    /// An existing value.
    Value(Value),
    /// The result of a load node, widened to include the adjacent bytes.
    Loaded { load: usize, offset: i16, other: usize },
}

/// Combines two stores, if possible; returns whether it did.
pub fn join_any(region: &mut Region, live: &HashMap<usize, Live>) -> bool {
    let stores: Vec<Store> = (0..region.nodes.len()).filter_map(|at| store(region, at)).collect();
    for (number, first) in stores.iter().enumerate() {
        for second in &stores[number + 1..] {
            if join(region, live, first, second) {
                return true;
            }
        }
    }
    false
}

fn store(region: &Region, at: usize) -> Option<Store> {
    let node = &region.nodes[at];
    let Operation::Store { bytes, offset, .. } = node.operation else { return None };
    let (offset, bytes) = (offset.into(), bytes.into());
    (node.is_needed && node.arm.is_none()).then(|| Store {
        node: at,
        base: node.reads[0],
        offset,
        bytes,
    })
}

/// Replaces the second store by a combined one, if possible.
fn join(region: &mut Region, live: &HashMap<usize, Live>, first: &Store, second: &Store) -> bool {
    let (low, high) = if first.offset < second.offset { (first, second) } else { (second, first) };
    let bytes = low.bytes + high.bytes;
    let is_next = first.base == second.base && low.offset + low.bytes as i32 == high.offset;
    if !is_next || !is_size(bytes) || !moves_down(region, first.node, second.node) {
        return false;
    }
    let Some(source) = source(region, live, low, high, second.node) else { return false };
    let (operand, reads) = match source {
        Source::Constant(value) => (Operand::Immediate(value), vec![second.base]),
        Source::Value(value) => (Operand::Register(0), vec![second.base, value]),
        Source::Loaded { load, offset, other } => {
            let mut node = region.nodes[load].clone();
            if let Operation::Load { bytes: loaded, offset: from, .. } = &mut node.operation {
                (*loaded, *from) = (bytes as u8, offset);
            }
            take_over(&mut node, &region.nodes[other]);
            let Some(value) = node.result else { return false };
            region.values[value.0].bits = bytes * 8;
            region.nodes[load] = node;
            (Operand::Register(0), vec![second.base, value])
        }
    };
    let mut node = region.nodes[second.node].clone();
    let (bytes, offset) = (bytes as u8, low.offset as i16);
    node.operation = Operation::Store { bytes, base: 0, offset, source: operand };
    node.reads = reads;
    take_over(&mut node, &region.nodes[first.node]);
    region.nodes[second.node] = node;
    region.nodes[first.node].is_gone = true;
    region.nodes[first.node].is_needed = false;
    true
}

/// Returns whether a store can be moved down to the place of another.
fn moves_down(region: &Region, from: usize, to: usize) -> bool {
    let between = &region.nodes[from + 1..to];
    between.iter().all(|node| !node.is_control())
        && is_free_between(region, &region.nodes[from], from, to)
}

/// Returns the source of a combined store at `at`, if there is one.
fn source(
    region: &Region,
    live: &HashMap<usize, Live>,
    low: &Store,
    high: &Store,
    at: usize,
) -> Option<Source> {
    let value = |store: &Store| match region.nodes[store.node].operation {
        Operation::Store { source: Operand::Immediate(value), .. } => Err(value),
        _ => Ok(region.nodes[store.node].reads[1]),
    };
    match (value(low), value(high)) {
        (Err(one), Err(another)) => constant(one, low.bytes, another, high.bytes),
        (Ok(one), Ok(another)) => {
            let is_rest = is_shifted(region, one, another, low.bytes * 8);
            let exists = region.is_current(one, at);
            if is_rest && exists {
                return Some(Source::Value(one));
            }
            loaded(region, live, [one, another], [low, high], at)
        }
        _ => None,
    }
}

/// Returns the constant whose bytes are those of both.
fn constant(low: i32, low_bytes: u32, high: i32, high_bytes: u32) -> Option<Source> {
    let bits = low_bytes * 8;
    let mask = u64::MAX.checked_shr(64 - bits)?;
    let both = (low as i64 as u64 & mask) | (high as i64 as u64) << bits;
    let bytes = low_bytes + high_bytes;
    if bytes <= 4 {
        return Some(Source::Constant(both as i32));
    }
    // The stored constant is sign-extended.
    let shift = 64 - bytes * 8;
    let both = ((both << shift) as i64) >> shift;
    i32::try_from(both).ok().map(Source::Constant)
}

/// Returns whether a value is the upper part of another, from a given bit on.
fn is_shifted(region: &Region, whole: Value, part: Value, by: u32) -> bool {
    let (whole, whole_shift) = shifted(region, whole);
    let (part, part_shift) = shifted(region, part);
    whole == part && part_shift == whole_shift + by
}

/// Returns the value of which a value is a part, and the first bit of the part.
fn shifted(region: &Region, value: Value) -> (Value, u32) {
    let mut value = original(region, value);
    let mut shift = 0;
    while let Some(giver) = region.giver(value)
        && let Operation::Alu {
            operation: Arithmetic::ShiftRight,
            right: Operand::Immediate(by),
            width,
            ..
        } = giver.operation
        && (width == crate::operation::Width::Bits64 || region.known(giver.reads[0]).bits <= 32)
        && (0..64).contains(&by)
    {
        shift += by as u32;
        value = original(region, giver.reads[0]);
    }
    (value, shift)
}

/// Returns the combined result of two adjacent loads, if they have no other use.
fn loaded(
    region: &Region,
    live: &HashMap<usize, Live>,
    values: [Value; 2],
    stores: [&Store; 2],
    at: usize,
) -> Option<Source> {
    let loads = values.map(|value| {
        let node = region.known(value).node?;
        let giver = &region.nodes[node];
        if giver.arm.is_some() {
            return None;
        }
        let Operation::Load { bytes, is_signed: false, offset, .. } = giver.operation else {
            return None;
        };
        Some((node, u32::from(bytes), offset, giver.reads[0]))
    });
    let [Some(low), Some(high)] = loads else { return None };
    let sizes_fit = low.1 == stores[0].bytes && high.1 == stores[1].bytes;
    let is_next = low.3 == high.3 && i32::from(low.2) + low.1 as i32 == i32::from(high.2);
    let (early, late) = if low.0 < high.0 { (low, high) } else { (high, low) };
    let given = if low.0 < high.0 { values[1] } else { values[0] };
    let fits = sizes_fit
        && is_next
        && late.0 < at
        && is_free_between(region, &region.nodes[early.0], early.0, late.0)
        && region.is_current(late.3, late.0)
        && region.is_current(given, at)
        && uses(region, live, given) == 1;
    fits.then_some(Source::Loaded { load: late.0, offset: low.2, other: early.0 })
}
