// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Combines adjacent memory accesses (publication, section 3.1, uses six bytes; clang, which may
//! not assume that a packet is aligned, often emits single bytes).
//!
//! - Loads whose bytes are combined by shifts become one load.
//! - Stores of adjacent parts of a value, of constants, or of values loaded from adjacent memory,
//!   become one store; in the last case the loads are combined as well.

mod loads;
mod stores;

use crate::analysis::{Live, passed};
use crate::memory::Touch;
use crate::operation::{Arithmetic, Operand, Operation};
use crate::region::{Node, Region, Value};
use std::collections::HashMap;

/// Combines accesses of a region; `live` has the live values of the following regions.
pub fn run(region: &mut Region, live: &HashMap<usize, Live>) {
    for at in 0..region.nodes.len() {
        loads::join(region, at);
    }
    // Each step combines two stores into one, which may have another adjacent store.
    while stores::join_any(region, live) {}
}

/// Returns whether an access may have this size.
fn is_size(bytes: u32) -> bool {
    matches!(bytes, 2 | 4 | 6 | 8)
}

/// Returns whether no node between two places prevents moving an access from one to the other.
pub fn is_free_between(region: &Region, moved: &Node, from: usize, to: usize) -> bool {
    let touch = Touch { operation: &moved.operation, accesses: &moved.accesses };
    region.nodes[from + 1..to].iter().filter(|node| node.is_needed).all(|node| {
        let other = Touch { operation: &node.operation, accesses: &node.accesses };
        !touch.conflicts(&other)
    })
}

/// Adds origins and accesses of `other` to `node`, which replaces it.
pub fn take_over(node: &mut Node, other: &Node) {
    node.origins.extend(&other.origins);
    node.origins.sort_unstable();
    node.origins.dedup();
    node.accesses.extend(&other.accesses);
}

/// Returns the number of uses of a value.
pub fn uses(region: &Region, live: &HashMap<usize, Live>, value: Value) -> usize {
    let of_node = |node: &Node| {
        let passed = passed(node, live).map(|(_, value)| value);
        node.used().chain(passed).filter(|read| *read == value).count()
    };
    region.needed().map(|(_, node)| of_node(node)).sum()
}

/// Returns the value of which a value is a copy.
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
