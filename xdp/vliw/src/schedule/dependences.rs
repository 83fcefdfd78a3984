// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dependences between nodes of a region (publication, section 3.3: data flow and data dependency
//! graphs): values, memory and control. Registers cause no dependences, since each result is a
//! separate value.

use crate::analysis::{Live, passed};
use crate::machine::STORE_TO_LOAD;
use crate::memory::{Touch, moves_packet, own_frame};
use crate::operation::Operation;
use crate::region::{Node, Region, START, Value};
use freeport_ebpf::analysis::graph::TAIL_CALL;
use freeport_ebpf::helper_functions::signature;
use std::collections::HashMap;
use std::ops::Range;

/// A dependence of a node on another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependence {
    /// The node on which it depends.
    pub on: usize,
    /// Minimum distance in rows. With 0 it may be in a later lane of the same row.
    pub rows: usize,
    /// Whether it reads the other node's result.
    pub is_value: bool,
}

/// Dependences of all nodes of a region.
#[derive(Debug)]
pub struct Dependences {
    /// By node; empty for those that are not needed.
    pub of: Vec<Vec<Dependence>>,
    /// By node, the minimum number of rows from it to the end of the region.
    pub heights: Vec<usize>,
}

impl Dependences {
    /// Computes the dependences of a region; `live` has the live values of the following regions.
    pub fn of(region: &Region, live: &HashMap<usize, Live>) -> Self {
        let mut of = vec![vec![]; region.nodes.len()];
        add_values(region, live, &mut of);
        add_memory(region, &mut of);
        add_control(region, live, &mut of);
        let heights = heights(&of);
        Self { of, heights }
    }
}

/// Returns whether nothing may be moved across a call: it calls functions, which clobber most
/// registers, or is a tail call.
pub fn is_barrier(operation: &Operation) -> bool {
    match *operation {
        Operation::CallFunction(_) | Operation::Call { helper: TAIL_CALL, .. } => true,
        Operation::Call { helper, .. } => signature(helper).is_none_or(|it| it.calls_function()),
        _ => false,
    }
}

fn add_values(region: &Region, live: &HashMap<usize, Live>, of: &mut [Vec<Dependence>]) {
    let (mut from_start, mut before) = (vec![], None);
    for (at, node) in region.needed() {
        // Nodes of an arm keep their order.
        if let Some((on, arm)) = before
            && node.arm == Some(arm)
        {
            of[at].push(Dependence { on, rows: 0, is_value: false });
        }
        before = node.arm.map(|arm| (at, arm));
        if node.reads.contains(&START) {
            from_start.push(at);
        }
        if moves_packet(&node.operation) {
            of[at].extend(from_start.drain(..).map(|on| Dependence {
                on,
                rows: 1,
                is_value: false,
            }));
        }
        let mut read: Vec<Value> = node.used().collect();
        read.sort_unstable();
        read.dedup();
        for value in read {
            if let Some(on) = region.known(value).node {
                of[at].push(Dependence { on, rows: 1, is_value: true });
            }
        }
        for (_, value) in passed(node, live) {
            if let Some(on) = region.known(value).node {
                of[at].push(Dependence { on, rows: 0, is_value: false });
            }
        }
    }
}

fn add_memory(region: &Region, of: &mut [Vec<Dependence>]) {
    let touches = |node: &Node| {
        let touches = matches!(node.operation, Operation::Load { .. } | Operation::Bound { .. });
        touches || node.has_effect()
    };
    let touching: Vec<_> = region.needed().filter(|(_, node)| touches(node)).collect();
    for (number, (at, node)) in touching.iter().enumerate() {
        let touch = Touch { operation: &node.operation, accesses: &node.accesses };
        for (on, other) in &touching[..number] {
            let earlier = Touch { operation: &other.operation, accesses: &other.accesses };
            if touch.conflicts(&earlier) {
                let rows = rows_between(&other.operation, &node.operation);
                of[*at].push(Dependence { on: *on, rows, is_value: false });
            }
        }
    }
}

/// Returns the minimum distance in rows of a memory access after one with which it conflicts.
pub fn rows_between(earlier: &Operation, later: &Operation) -> usize {
    let stores = matches!(earlier, Operation::Store { .. } | Operation::Atomic { .. });
    let loads =
        matches!(later, Operation::Load { .. } | Operation::Atomic { .. } | Operation::Call { .. });
    if stores && loads { STORE_TO_LOAD } else { 1 }
}

fn add_control(region: &Region, live: &HashMap<usize, Live>, of: &mut [Vec<Dependence>]) {
    let mut barrier = None;
    let (mut jumps, mut all): (Vec<usize>, Vec<usize>) = (vec![], vec![]);
    // Nodes with effects; with the bytes of the frame if those are the only effect.
    let mut effects: Vec<(usize, Option<Range<usize>>)> = vec![];
    for (at, node) in region.needed() {
        if let Some(on) = barrier {
            of[at].push(Dependence { on, rows: 1, is_value: false });
        }
        if is_barrier(&node.operation) {
            of[at].extend(all.iter().map(|&on| Dependence { on, rows: 1, is_value: false }));
            (barrier, all) = (Some(at), vec![]);
        }
        all.push(at);
        if node.is_control() {
            of[at].extend(jumps.last().map(|&on| Dependence { on, rows: 0, is_value: false }));
            effects.retain(|(effect, frame)| {
                let matters = matters_at(node, live, frame.as_ref());
                if matters {
                    of[at].push(Dependence { on: *effect, rows: 0, is_value: false });
                }
                !matters
            });
            jumps.push(at);
        } else if node.has_effect() {
            let frame = stored_in_frame(node);
            let mut before = jumps.iter().rev();
            let jump = before.find(|jump| matters_at(&region.nodes[**jump], live, frame.as_ref()));
            of[at].extend(jump.map(|&on| Dependence { on, rows: 0, is_value: false }));
            effects.push((at, frame));
        }
    }
    end_after_all(region, of);
}

/// Returns whether an effect, limited to these bytes of the frame if given, matters at a jump's
/// target.
fn matters_at(jump: &Node, live: &HashMap<usize, Live>, frame: Option<&Range<usize>>) -> bool {
    let Some(bytes) = frame else { return true };
    let next = jump.successor().and_then(|block| live.get(&block));
    let calls = matches!(jump.operation, Operation::CallFunction(_));
    calls || next.is_some_and(|next| next.has_any(bytes.clone()))
}

/// Returns the bytes of the function's own frame that a node stores to, if it has no other effect
/// and is not part of an arm.
fn stored_in_frame(node: &Node) -> Option<Range<usize>> {
    let is_store = matches!(node.operation, Operation::Store { .. }) && node.arm.is_none();
    let mut bytes: Option<Range<usize>> = None;
    for access in node.accesses.iter().filter(|_| is_store) {
        let more = own_frame(access).filter(|_| access.is_proven)?;
        bytes = Some(match bytes {
            Some(bytes) => bytes.start.min(more.start)..bytes.end.max(more.end),
            None => more,
        });
    }
    bytes
}

/// Makes the end of the region depend on all nodes.
fn end_after_all(region: &Region, of: &mut [Vec<Dependence>]) {
    let Some((end, _)) = region.needed().last() else { return };
    let mut is_waited_for = vec![false; of.len()];
    of.iter().flatten().for_each(|it| is_waited_for[it.on] = true);
    let left = region.needed().map(|(at, _)| at).filter(|&at| at != end && !is_waited_for[at]);
    let left: Vec<_> = left.map(|on| Dependence { on, rows: 0, is_value: false }).collect();
    of[end].extend(left);
}

/// Computes heights in one pass, since nodes depend on earlier ones only. One operation of the next
/// row can use a row's results, the one in the same lane; others must wait for one more row.
fn heights(of: &[Vec<Dependence>]) -> Vec<usize> {
    let mut heights = vec![0; of.len()];
    // For each node with dependents in the next row: the greatest height among those.
    let mut first: Vec<Option<usize>> = vec![None; of.len()];
    for (at, dependences) in of.iter().enumerate().rev() {
        for dependence in dependences {
            let on = dependence.on;
            let mut height = heights[at] + dependence.rows;
            if dependence.is_value {
                let most = first[on].map_or(heights[at], |first| first.max(heights[at]));
                if let Some(first) = first[on] {
                    height = height.max(first.min(heights[at]) + 2);
                }
                first[on] = Some(most);
            }
            heights[on] = heights[on].max(height);
        }
    }
    heights
}
