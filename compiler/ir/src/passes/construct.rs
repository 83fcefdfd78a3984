// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single assignment: gives a variable that is assigned in several places one value at each point.
//!
//! A block with several incoming edges gets a parameter for every variable that it may still need;
//! other blocks take the values at the end of their only predecessor. Parameters with the same
//! value on every edge are then redundant; removing those leaves the minimum in a reducible graph.

use super::edit::separate_entry;
use crate::analysis::{ControlFlow, DataFlow, Liveness, predecessors, reverse_post_order};
use crate::{Function, Value, ValueId};

/// By variable: its value at some point, if it has one.
pub(super) type Current = Vec<Option<ValueId>>;

/// Variables, numbered from 0, and the code that assigns and reads them.
pub(super) trait Variables {
    /// Returns the type and name of each variable.
    fn describe(&self) -> &[Value];

    /// Returns the variables that `block` reads before assigning them, and those it assigns.
    fn summarize(&self, function: &Function, block: usize) -> Summary;

    /// Returns the value of `variable` at the entry.
    fn initial(&mut self, function: &mut Function, variable: usize) -> ValueId;

    /// Rewrites `block` to use values, given those at its start; leaves those at its end in
    /// `current`.
    fn rewrite(&mut self, function: &mut Function, block: usize, current: &mut Current);
}

/// See [`Variables::summarize`].
#[derive(Default)]
pub(super) struct Summary {
    pub(super) exposed: Vec<usize>,
    pub(super) assigned: Vec<usize>,
}

impl Summary {
    pub(super) fn read(&mut self, variable: usize) {
        if !self.assigned.contains(&variable) && !self.exposed.contains(&variable) {
            self.exposed.push(variable);
        }
    }

    pub(super) fn assign(&mut self, variable: usize) {
        if !self.assigned.contains(&variable) {
            self.assigned.push(variable);
        }
    }
}

/// Rewrites every block; unreachable blocks must have been removed. Leaves redundant parameters to
/// the caller, which may have uses to replace first.
pub(super) fn construct(function: &mut Function, variables: &mut impl Variables) {
    separate_entry(function);
    let live = live_variables(function, variables);
    let predecessors = predecessors(function);
    let mut params: Vec<Vec<usize>> = vec![vec![]; function.blocks.len()];
    let mut ends: Vec<Current> = vec![vec![]; function.blocks.len()];
    for node in reverse_post_order(function) {
        let mut current: Current = vec![None; variables.describe().len()];
        match predecessors[node][..] {
            [] => {
                for variable in live.live_in(node).iter() {
                    current[variable] = Some(variables.initial(function, variable));
                }
            }
            [from] => current.clone_from(&ends[from]),
            _ => {
                for variable in live.live_in(node).iter() {
                    let Value { ty, name } = variables.describe()[variable].clone();
                    let param = function.add_value(ty, name);
                    function.blocks[node].params.push(param);
                    current[variable] = Some(param);
                    params[node].push(variable);
                }
            }
        }
        variables.rewrite(function, node, &mut current);
        ends[node] = current;
    }
    for (block, end) in function.blocks.iter_mut().zip(&ends) {
        for target in block.term.targets_mut() {
            let needed = params[target.block.index()].iter();
            target.args.extend(needed.map(|variable| {
                end[*variable].expect("a variable is assigned on every way to where it is read")
            }));
        }
    }
}

struct Flow<'a> {
    function: &'a Function,
    count: usize,
    summaries: Vec<Summary>,
}

impl ControlFlow for Flow<'_> {
    fn node_count(&self) -> usize {
        self.function.node_count()
    }

    fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        self.function.for_each_successor(node, visit);
    }
}

impl DataFlow for Flow<'_> {
    fn value_count(&self) -> usize {
        self.count
    }

    fn for_each_use(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        self.summaries[node].exposed.iter().for_each(|variable| visit(*variable));
    }

    fn for_each_definition(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        self.summaries[node].assigned.iter().for_each(|variable| visit(*variable));
    }
}

fn live_variables(function: &Function, variables: &impl Variables) -> Liveness {
    let blocks = 0..function.blocks.len();
    let summaries = blocks.map(|block| variables.summarize(function, block)).collect();
    Liveness::of(&Flow { function, count: variables.describe().len(), summaries })
}
