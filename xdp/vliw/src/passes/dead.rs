// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dead code elimination: removes results that no needed node reads, and stores to the function's
//! own frame that are never read. Nodes with an effect or a control transfer are needed, and so are
//! the values that they read, in this region or, through registers and the frame, in the following
//! ones.

use crate::analysis::{Live, passed};
use crate::machine::{FRAME_BYTES, REGISTERS};
use crate::memory::own_frame;
use crate::operation::Operation;
use crate::region::{Node, Region, Value};
use freeport_ebpf::analysis::Space;
use std::collections::HashMap;

/// Determines which nodes are needed, and the live values at each region's start, by its block.
/// Unless `removes`, all nodes are needed.
pub fn run(regions: &mut [Region], removes: bool) -> HashMap<usize, Live> {
    let mut live: HashMap<usize, Live> =
        regions.iter().map(|region| (region.block, Live::NOTHING)).collect();
    loop {
        let mut is_changed = false;
        for region in regions.iter_mut().rev() {
            let found = needs(region, &live, removes);
            is_changed |= live.insert(region.block, found.clone()) != Some(found);
        }
        if !is_changed {
            return live;
        }
    }
}

/// Marks needed nodes of a region, and returns its live values.
fn needs(region: &mut Region, live: &HashMap<usize, Live>, removes: bool) -> Live {
    let mut is_read = vec![false; region.values.len()];
    let mut frame = Live::NOTHING.frame;
    // The current arm, and whether any of its nodes is needed.
    let mut arm = (None, false);
    for node in region.nodes.iter_mut().rev() {
        let next = node.successor().and_then(|block| live.get(&block));
        if let Some(next) = next {
            frame.iter_mut().zip(next.frame).for_each(|(one, other)| *one |= other);
        }
        let is_result_read = node.result.is_some_and(|value| is_read[value.0]);
        let is_wanted = match node.is_skip() {
            true => arm == (node.arm, true),
            false => !removes || is_result_read || is_done_anyway(node, &frame),
        };
        node.is_needed = is_wanted && !node.is_gone;
        let is_more = arm == (node.arm, true);
        arm = (node.arm, node.arm.is_some() && (node.is_needed || is_more));
        if !node.is_needed {
            continue;
        }
        touch_frame(node, &mut frame);
        let passed = passed(node, live).map(|(_, value)| value);
        for value in node.used().chain(passed) {
            is_read[value.0] = true;
        }
    }
    let is_needed = |register: &u8| is_read[Value(usize::from(*register)).0];
    let registers = (0..REGISTERS).filter(is_needed).fold(0, |set, register| set | 1 << register);
    Live { registers, frame }
}

/// Returns whether a node is needed although its result is not read.
fn is_done_anyway(node: &Node, frame: &[u64; 8]) -> bool {
    if !node.has_effect() {
        return node.is_control();
    }
    match (&node.operation, node.accesses.as_slice()) {
        (Operation::Store { .. }, accesses) if !accesses.is_empty() => {
            !accesses.iter().all(|access| match own_frame(access) {
                Some(mut bytes) if access.is_proven => {
                    bytes.all(|byte| frame[byte / 64] >> (byte % 64) & 1 == 0)
                }
                _ => false,
            })
        }
        _ => true,
    }
}

/// Updates the live bytes of the frame from after a node to before it.
fn touch_frame(node: &Node, frame: &mut [u64; 8]) {
    let calls = match node.operation {
        Operation::CallFunction(_) => true,
        Operation::Call { helper, .. } => {
            freeport_ebpf::helper_functions::signature(helper).is_none_or(|it| it.calls_function())
        }
        _ => false,
    };
    if calls {
        *frame = [u64::MAX; 8];
    }
    if let (Operation::Store { .. }, [access]) = (&node.operation, node.accesses.as_slice()) {
        // A store that may be skipped leaves the old contents live.
        if let Some(bytes) = own_frame(access)
            && node.arm.is_none()
            && access.is_proven
            && access.offset.0 == access.offset.1
        {
            bytes.for_each(|byte| frame[byte / 64] &= !(1 << (byte % 64)));
        }
        return;
    }
    for access in &node.accesses {
        let is_read = access.kind != freeport_ebpf::analysis::AccessKind::Write;
        let bytes = match access.space {
            Space::Stack { .. } | Space::Unknown(_) => own_frame(access).unwrap_or(0..FRAME_BYTES),
            _ => continue,
        };
        if is_read {
            bytes.for_each(|byte| frame[byte / 64] |= 1 << (byte % 64));
        }
    }
}
