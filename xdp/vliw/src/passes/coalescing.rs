// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Computes a result directly in the register to which it is only copied, if no value in that
//! register is needed between computation and copy.

use super::wide_accesses::{take_over, uses};
use crate::analysis::{Live, passed};
use crate::operation::{Arithmetic, Operand, Operation, Width};
use crate::region::Region;
use std::collections::HashMap;

/// Removes copies of a region.
pub fn run(region: &mut Region, live: &HashMap<usize, Live>) {
    for copy in 0..region.nodes.len() {
        if let Some(giver) = giver(region, live, copy) {
            let result = region.nodes[copy].result;
            if let Some(value) = result {
                region.values[value.0].node = Some(giver);
            }
            let node = region.nodes[copy].clone();
            take_over(&mut region.nodes[giver], &node);
            region.nodes[giver].result = result;
            region.nodes[copy].is_gone = true;
            region.nodes[copy].is_needed = false;
        }
    }
}

/// Returns the node whose result can be written directly to the destination of a copy.
fn giver(region: &Region, live: &HashMap<usize, Live>, copy: usize) -> Option<usize> {
    let node = &region.nodes[copy];
    let Operation::Alu {
        width: Width::Bits64,
        operation: Arithmetic::Move,
        right: Operand::Register(_),
        ..
    } = node.operation
    else {
        return None;
    };
    let (source, result) = (*node.reads.first()?, node.result?);
    let giver = region.known(source).node?;
    let register = region.known(result).register;
    let given = &region.nodes[giver];
    let is_plain = node.is_needed
        && node.arm.is_none()
        && given.arm.is_none()
        && !given.is_result_fixed
        && uses(region, live, source) == 1;
    let is_of_register = |value| region.known(value).register == register;
    let mut between = region.nodes[giver + 1..copy].iter().filter(|node| node.is_needed);
    let is_unused = between.all(|node| {
        let passed = passed(node, live).map(|(_, value)| value);
        !node.used().chain(passed).chain(node.result).any(is_of_register)
    });
    (is_plain && is_unused).then_some(giver)
}
