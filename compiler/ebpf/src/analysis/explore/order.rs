// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order in which places are followed, and the steps to which moving bounds are widened.

use crate::abi::PACKET_MAX;
use crate::analysis::graph::Graph;
use crate::instruction::{Operand, Operation};
use std::collections::BTreeSet;

/// Constants of the program to which bounds are widened, at most.
const STEPS_MAX: usize = 64;

/// Returns the positions of blocks in the order of their functions, and the targets of back edges.
pub(super) fn order(graph: &Graph) -> (Vec<usize>, BTreeSet<usize>) {
    let mut positions = vec![usize::MAX; graph.blocks().len()];
    let mut heads = BTreeSet::new();
    for (number, function) in graph.functions().iter().enumerate() {
        let flow = graph.flow(number);
        let order = freeport_ir::analysis::reverse_post_order(&flow);
        for (position, node) in order.iter().enumerate() {
            positions[flow.block(*node)] = position;
        }
        for block in function.blocks.clone() {
            let back = |next: &&usize| positions[**next] <= positions[block];
            let successors = graph.blocks()[block].successors.iter();
            heads.extend(successors.filter(back).map(|next| graph.blocks()[*next].slots.start));
        }
        if function.is_callback {
            heads.insert(function.slots.start);
        }
    }
    (positions, heads)
}

/// Returns the numbers to which bounds are widened: powers of two, and constants in comparisons.
pub(super) fn steps(graph: &Graph) -> Vec<u64> {
    let mut steps: BTreeSet<u64> = (0..64).step_by(8).map(|bits| (1 << bits) - 1).collect();
    steps.extend([1, 1500, PACKET_MAX as u64, i32::MAX as u64, i64::MAX as u64, u64::MAX]);
    let usual = steps.len();
    for (_, operation) in graph.operations(0..graph.slots()) {
        let Operation::Jump { right: Operand::Immediate(number), .. } = operation else { continue };
        if steps.len() < usual + STEPS_MAX {
            let number = u64::from(number.unsigned_abs());
            steps.extend([number.saturating_sub(1), number, number + 1]);
        }
    }
    steps.into_iter().collect()
}
