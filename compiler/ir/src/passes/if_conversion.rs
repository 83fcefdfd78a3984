// SPDX-License-Identifier: Apache-2.0 OR MIT
//! If-conversion: a branch around a few operations becomes those operations and selects, so that
//! the processor has nothing to predict.
//!
//! Every pure operation is total and so can be executed speculatively. So can a load that cannot be
//! out of range; one that could be is counted, and stays in place. The pass looks for a block that
//! branches to two arms that meet immediately. An arm is either the edge itself, or a block with no
//! other predecessor that only computes and loads, and that is cheap: the skipped code may be
//! seldom needed. A load from large memory is cheap only if the same location has been accessed on
//! the path. Inner branches are converted first, so that outer ones may become convertible. The
//! header of a bounded loop is left alone, because the bound counts one of its edges.

use super::dead_code::merge_blocks;
use super::edit::{Replacements, remove_unreachable_blocks};
use super::{Changes, Options};
use crate::analysis::{Dominators, definitions, is_in_range, predecessors};
use crate::{
    BinaryOp, Function, Inst, ObjectRef, Op, Program, Space, Target, Term, Type, Value, ValueId,
};
use std::collections::HashMap;

/// Maximum size of memory assumed to be in the nearest cache.
const SMALL_BITS: u64 = 8 * 4096;

pub(super) fn run(program: &mut Program, options: &Options, changes: &mut Changes) {
    for at in 0..program.functions.len() {
        loop {
            let costs = costs(program, &program.functions[at]);
            let function = &mut program.functions[at];
            let converted = convert_all(function, &costs, options.if_limit);
            if converted == 0 {
                break;
            }
            changes.count("branches", converted);
            remove_unreachable_blocks(function);
            merge_blocks(function);
        }
    }
}

/// Returns, by value, the cost of computing it speculatively, if that has no other effect.
fn costs(program: &Program, function: &Function) -> Vec<Option<u64>> {
    let definitions = definitions(function);
    let near = Near::of(function);
    let mut costs = vec![None; function.values.len()];
    for (node, block) in function.blocks.iter().enumerate() {
        for inst in &block.insts {
            let Some(result) = inst.result else { continue };
            costs[result.index()] = match &inst.op {
                Op::Load { object, .. } | Op::LoadBytes { object, .. } => {
                    let is_free = is_in_range(program, function, &definitions, &inst.op)
                        && (is_small(program, function, *object) || near.has(node, &inst.op));
                    is_free.then(|| 1 + words(function, result))
                }
                op => pure_cost(function, op, result),
            };
        }
    }
    costs
}

/// Returns the cost of an operation that is not an access; `None` if it has an effect or is
/// expensive.
fn pure_cost(function: &Function, op: &Op, result: ValueId) -> Option<u64> {
    let words = words(function, result);
    match op {
        Op::Const(_) => Some(0),
        Op::ReadyMask | Op::Ready(_) => Some(1),
        Op::Binary(BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::URem | BinaryOp::SRem, ..) => None,
        Op::Binary(BinaryOp::Mul, ..) => Some(3 * words * words),
        Op::ExtractDynamic { value, .. } | Op::InsertDynamic { value, .. } => {
            Some(2 * self::words(function, *value))
        }
        Op::Compare(_, left, _) => Some(self::words(function, *left)),
        op => op.is_pure().then_some(words),
    }
}

/// Returns the number of machine words of a value.
fn words(function: &Function, value: ValueId) -> u64 {
    function.type_of(value).bits().map_or(1, |bits| u64::from(bits.div_ceil(64)))
}

fn is_small(program: &Program, function: &Function, object: ObjectRef) -> bool {
    program.object(function, object).is_some_and(|object| {
        let bits = u64::from(object.elem_bits).saturating_mul(object.depth);
        object.space == Space::Register || bits <= SMALL_BITS
    })
}

/// Blocks that access each location of an object.
struct Near {
    dominators: Dominators,
    blocks: HashMap<(ObjectRef, ValueId), Vec<usize>>,
}

impl Near {
    fn of(function: &Function) -> Self {
        let mut blocks: HashMap<_, Vec<usize>> = HashMap::new();
        for (node, block) in function.blocks.iter().enumerate() {
            for place in block.insts.iter().filter_map(|inst| place_of(&inst.op)) {
                blocks.entry(place).or_default().push(node);
            }
        }
        Self { dominators: Dominators::of(function), blocks }
    }

    /// Returns whether control has always accessed the same location before it reaches that block.
    fn has(&self, node: usize, op: &Op) -> bool {
        let Some(blocks) = place_of(op).and_then(|place| self.blocks.get(&place)) else {
            return false;
        };
        blocks.iter().any(|above| *above != node && self.dominators.dominates(*above, node))
    }
}

fn place_of(op: &Op) -> Option<(ObjectRef, ValueId)> {
    match op {
        Op::Load { object, index, .. } | Op::Store { object, index, .. } => Some((*object, *index)),
        Op::LoadBytes { object, offset, .. } | Op::StoreBytes { object, offset, .. } => {
            Some((*object, *offset))
        }
        _ => None,
    }
}

/// Converts all branches that qualify; returns their number.
fn convert_all(function: &mut Function, costs: &[Option<u64>], limit: u64) -> u64 {
    let entries: Vec<usize> = predecessors(function).iter().map(Vec::len).collect();
    let mut is_gone = vec![false; function.blocks.len()];
    let mut replacements = Replacements::default();
    let mut converted = 0;
    for node in 0..function.blocks.len() {
        if is_gone[node] || function.blocks[node].loop_info.is_some() {
            continue;
        }
        let Some(hammock) = Hammock::of(function, node, &entries, costs, limit) else { continue };
        hammock.arms.iter().filter_map(|arm| arm.block).for_each(|arm| is_gone[arm] = true);
        hammock.convert(function, node, &mut replacements);
        converted += 1;
    }
    replacements.apply(function);
    converted
}

/// A side of a branch.
struct Arm {
    /// Block in between, if there is one.
    block: Option<usize>,
    /// Block where the two sides meet.
    target: Target,
    /// Cost of executing it speculatively.
    cost: u64,
}

impl Arm {
    /// Returns the arms that an edge may represent: with the block that it leads to, and without.
    fn of(
        function: &Function,
        edge: &Target,
        entries: &[usize],
        costs: &[Option<u64>],
    ) -> Vec<Arm> {
        let mut found = vec![Arm { block: None, target: edge.clone(), cost: 0 }];
        let node = edge.block.index();
        let block = function.block(edge.block);
        if let Term::Jump(target) = &block.term
            && entries[node] == 1
            && block.loop_info.is_none()
            && target.block != edge.block
        {
            // Selects of this round have no cost yet; the next round examines them.
            let cost = |inst: &Inst| costs.get(inst.result?.index()).copied().flatten();
            let cost = block.insts.iter().map(cost).sum::<Option<u64>>();
            let target = target.clone();
            found.extend(cost.map(|cost| Arm { block: Some(node), target, cost }));
        }
        found
    }
}

/// A branch whose sides meet immediately.
struct Hammock {
    cond: ValueId,
    arms: [Arm; 2],
}

impl Hammock {
    fn of(
        function: &Function,
        node: usize,
        entries: &[usize],
        costs: &[Option<u64>],
        limit: u64,
    ) -> Option<Hammock> {
        let Term::Branch { cond, if_true, if_false } = &function.blocks[node].term else {
            return None;
        };
        let others = Arm::of(function, if_false, entries, costs);
        for first in Arm::of(function, if_true, entries, costs) {
            let found = others.iter().find(|other| {
                let meets = other.target.block == first.target.block;
                meets && first.target.block.index() != node
            });
            let Some(other) = found else { continue };
            let second = Arm { block: other.block, target: other.target.clone(), cost: other.cost };
            let hammock = Hammock { cond: *cond, arms: [first, second] };
            if hammock.is_cheap(function, limit) {
                return Some(hammock);
            }
        }
        None
    }

    /// Returns whether each side is below the limit, selects included, and can be selected.
    fn is_cheap(&self, function: &Function, limit: u64) -> bool {
        let [first, second] = &self.arms;
        let pairs = || first.target.args.iter().zip(&second.target.args).filter(|(a, b)| a != b);
        let are_bits = pairs().all(|(a, _)| matches!(function.type_of(*a), Type::Bits(_)));
        let selects: u64 = pairs().map(|(a, _)| words(function, *a)).sum();
        are_bits && first.cost.max(second.cost) + selects <= limit
    }

    fn convert(self, function: &mut Function, node: usize, replacements: &mut Replacements) {
        let loc = function.blocks[node].term_loc;
        let Term::Branch { if_true, if_false, .. } = function.blocks[node].term.clone() else {
            return;
        };
        for (arm, edge) in self.arms.iter().zip([if_true, if_false]) {
            let Some(block) = arm.block else { continue };
            for (param, arg) in function.blocks[block].params.clone().into_iter().zip(edge.args) {
                replacements.insert(param, arg);
            }
            let insts = std::mem::take(&mut function.blocks[block].insts);
            function.blocks[node].insts.extend(insts);
        }
        let [first, second] = self.arms.map(|arm| arm.target);
        let params = function.block(first.block).params.clone();
        let mut args = vec![];
        for (at, (if_true, if_false)) in first.args.into_iter().zip(second.args).enumerate() {
            let [if_true, if_false] = [if_true, if_false].map(|it| replacements.resolve(it));
            if if_true == if_false {
                args.push(if_true);
                continue;
            }
            let Value { ty, name } = function.values[params[at].index()].clone();
            let result = function.add_value(ty, name);
            let op = Op::Select { cond: self.cond, if_true, if_false };
            function.blocks[node].insts.push(Inst { result: Some(result), op, loc });
            args.push(result);
        }
        function.blocks[node].term = Term::Jump(Target { block: first.block, args });
    }
}
