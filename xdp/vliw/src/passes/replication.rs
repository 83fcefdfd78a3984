// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Computes a result twice, in two lanes, if several operations of an arm need it: the next row
//! receives results only in their own lanes, and an arm is in one row.

use crate::machine::{PACKET, REGISTERS};
use crate::region::{Node, Region, Value};

/// Adds duplicated computations to a region.
pub fn run(region: &mut Region) {
    let mut at = 0;
    while at < region.nodes.len() {
        if region.nodes[at].is_skip() && region.nodes[at].is_needed {
            at += replicate(region, at);
        }
        at += 1;
    }
}

/// Duplicates the values that the arm beginning with node `first` reads twice; returns the number
/// of nodes added.
fn replicate(region: &mut Region, first: usize) -> usize {
    let arm = region.nodes[first].arm;
    let is_member = |node: &&Node| node.arm == arm && node.is_needed;
    let members = region.nodes[first..].iter().take_while(|node| node.arm == arm);
    let end = first + members.count();
    let reads = region.nodes[first..end].iter().filter(is_member).flat_map(|node| &node.reads);
    let reads: Vec<Value> = reads.copied().collect();
    let twice = |value: &&Value| reads.iter().filter(|read| read == value).count() > 1;
    let Some(&value) = reads.iter().find(twice) else { return 0 };
    let Some(at) = region.known(value).node.filter(|at| is_cheap(region, *at)) else { return 0 };
    let Some(register) = free_register(region, at) else { return 0 };
    let added = region.insert_again(at, register);
    let reader = region.nodes[first + 1..=end]
        .iter_mut()
        .rev()
        .find(|node| node.arm == arm && node.is_needed && node.reads.contains(&value));
    if let Some(reader) = reader {
        for read in reader.reads.iter_mut().filter(|read| **read == value) {
            *read = added;
        }
    }
    1
}

/// Returns whether a node can be duplicated, and only reads values that exist at the start.
fn is_cheap(region: &Region, at: usize) -> bool {
    let node = &region.nodes[at];
    let is_pure = !node.has_effect() && !node.is_control() && node.arm.is_none();
    is_pure && node.reads.iter().all(|read| region.known(*read).node.is_none())
}

/// Returns a register reserved for the compiler that no value needs from a node on.
pub fn free_register(region: &Region, at: usize) -> Option<u8> {
    let is_free = |register: &u8| {
        let mut values = region.values.iter().enumerate();
        let mut own = values.by_ref().filter(|(_, known)| known.register == *register);
        own.all(|(value, known)| {
            known.node.is_none() || last_use(region, Value(value)).is_some_and(|last| last < at)
        })
    };
    (PACKET + 1..REGISTERS).find(is_free)
}

fn last_use(region: &Region, value: Value) -> Option<usize> {
    region.nodes.iter().rposition(|node| node.used().any(|used| used == value))
}
