// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Neighbouring accesses to memory become one (publication, section 3.1, has six bytes; clang,
//! which may not assume that a packet lies aligned, often makes single bytes).
//!
//! - Loads whose bytes are put together by shifts become one load.
//! - Stores of neighbouring pieces of a value, of constants, or of what was loaded from neighbours,
//!   become one store; in the last case the loads become one as well.

mod loads;
mod stores;

use crate::analysis::{Live, passed};
use crate::memory::Touch;
use crate::operation::{Arithmetic, Operand, Operation};
use crate::region::{Node, Region, Value};
use std::collections::HashMap;

/// Joins accesses of a region, which is followed by regions that need what `live` says.
pub fn run(region: &mut Region, live: &HashMap<usize, Live>) {
    for at in 0..region.nodes.len() {
        loads::join(region, at);
    }
    // Each time two stores become one, which may have a neighbour again.
    while stores::join_any(region, live) {}
}

/// Whether that many bytes are one access.
fn is_size(bytes: u32) -> bool {
    matches!(bytes, 2 | 4 | 6 | 8)
}

/// Whether a node between two places stands against moving an access from one to the other.
pub fn is_free_between(region: &Region, moved: &Node, from: usize, to: usize) -> bool {
    let touch = Touch { operation: &moved.operation, accesses: &moved.accesses };
    region.nodes[from + 1..to].iter().filter(|node| node.is_needed).all(|node| {
        let other = Touch { operation: &node.operation, accesses: &node.accesses };
        !touch.conflicts(&other)
    })
}

/// Makes `node` one that also does what `other` did: where it comes from, and what it touches.
pub fn take_over(node: &mut Node, other: &Node) {
    node.origins.extend(&other.origins);
    node.origins.sort_unstable();
    node.origins.dedup();
    node.accesses.extend(&other.accesses);
}

/// How often a value is used.
pub fn uses(region: &Region, live: &HashMap<usize, Live>, value: Value) -> usize {
    let of_node = |node: &Node| {
        let passed = passed(node, live).map(|(_, value)| value);
        node.used().chain(passed).filter(|read| *read == value).count()
    };
    region.needed().map(|(_, node)| of_node(node)).sum()
}

/// What a value is a copy of.
fn original(region: &Region, mut value: Value) -> Value {
    while let Some(giver) = region.giver(value)
        && let Operation::Alu {
            operation: Arithmetic::Move,
            right: Operand::Register(_),
            width,
            ..
        } = giver.operation
        && (width == crate::operation::Width::Bits64 || region.known(giver.reads[0]).bits <= 32)
    {
        value = giver.reads[0];
    }
    value
}
