// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces a load, an operation and a store of the same bytes by one atomic operation of eBPF: an
//! update of a counter takes one row instead of three (the publication leaves further memory
//! operations to future work).

use super::replication::free_register;
use super::wide_accesses::{is_free_between, take_over, uses};
use crate::analysis::Live;
use crate::operation::{Arithmetic, AtomicOperation, Operand, Operation, Width};
use crate::region::{Node, Region, Value};
use std::collections::HashMap;

/// A change of memory by three nodes.
struct Change {
    load: usize,
    compute: usize,
    store: usize,
    width: Width,
    operation: AtomicOperation,
    /// A value, or a constant that has no register yet.
    operand: Result<Value, i32>,
}

/// Replaces changes of memory in a region.
pub fn run(region: &mut Region, live: &HashMap<usize, Live>) {
    let mut at = 0;
    while at < region.nodes.len() {
        if let Some(change) = change(region, live, at) {
            at += replace(region, &change);
        }
        at += 1;
    }
}

/// Returns the change of memory that a node completes, if it does.
fn change(region: &Region, live: &HashMap<usize, Live>, store: usize) -> Option<Change> {
    let node = &region.nodes[store];
    let Operation::Store { bytes, offset, source: Operand::Register(_), .. } = node.operation
    else {
        return None;
    };
    let width = match bytes {
        4 => Width::Bits32,
        8 => Width::Bits64,
        _ => return None,
    };
    let &[base, result] = node.reads.as_slice() else { return None };
    let compute = single(region, live, result)?;
    let Operation::Alu { width: computed, operation, right, .. } = region.nodes[compute].operation
    else {
        return None;
    };
    // A 32-bit operation does not give the upper half of a 64-bit result.
    if computed == Width::Bits32 && width == Width::Bits64 {
        return None;
    }
    let operation = match operation {
        Arithmetic::Add => AtomicOperation::Add,
        Arithmetic::Or => AtomicOperation::Or,
        Arithmetic::And => AtomicOperation::And,
        Arithmetic::Xor => AtomicOperation::Xor,
        _ => return None,
    };
    let reads = &region.nodes[compute].reads;
    let loads = |value: &Value| {
        let load = single(region, live, *value)?;
        let Operation::Load { bytes: loaded, offset: from, is_signed: false, .. } =
            region.nodes[load].operation
        else {
            return None;
        };
        let is_same = loaded == bytes && from == offset && region.nodes[load].reads[0] == base;
        is_same.then_some(load)
    };
    let number = reads.iter().position(|value| loads(value).is_some())?;
    let load = loads(&reads[number])?;
    let operand = match right {
        Operand::Immediate(constant) => Err(constant),
        Operand::Register(_) => Ok(reads[1 - number]),
    };
    let exists = operand.is_err() || operand.is_ok_and(|it| region.is_current(it, store));
    let is_free = is_free_between(region, &region.nodes[load], load, store);
    let change = Change { load, compute, store, width, operation, operand };
    (node.is_needed && exists && is_free).then_some(change)
}

/// Returns the node whose result is used exactly once, if it is unconditional.
fn single(region: &Region, live: &HashMap<usize, Live>, value: Value) -> Option<usize> {
    let node = region.known(value).node?;
    let is_plain = region.nodes[node].arm.is_none() && region.nodes[node].is_needed;
    (is_plain && uses(region, live, value) == 1).then_some(node)
}

/// Replaces three nodes by one; returns the number of nodes inserted before it.
fn replace(region: &mut Region, change: &Change) -> usize {
    let &Change { load, compute, store, width, operation, operand } = change;
    let value = match operand {
        Ok(value) => value,
        Err(constant) => {
            let Some(register) = free_register(region, load) else { return 0 };
            region.insert_constant(load, register, constant)
        }
    };
    let more = usize::from(operand.is_err());
    let [load, compute, store] = [load, compute, store].map(|node| node + more);
    let Operation::Store { offset, .. } = region.nodes[store].operation else { return more };
    let mut node: Node = region.nodes[store].clone();
    let (is_fetching, base, source) = (false, 0, 0);
    node.operation = Operation::Atomic { width, operation, is_fetching, base, offset, source };
    node.reads[1] = value;
    take_over(&mut node, &region.nodes[load]);
    take_over(&mut node, &region.nodes[compute]);
    region.nodes[store] = node;
    for gone in [load, compute] {
        region.nodes[gone].is_gone = true;
        region.nodes[gone].is_needed = false;
    }
    more
}
