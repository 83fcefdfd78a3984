// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dead code: removes unneeded values, and merges blocks that only follow each other.
//!
//! A value is needed if an effect, a branch or another needed value uses it. A block parameter is
//! needed only if it is used so, which also removes parameters that only feed themselves around a
//! loop. An access that may be out of range is an effect, because it is counted; so is a read of an
//! oracle or of a port that may not be ready. Stores to locals that are never loaded are removed.
//! The header of a loop is not merged with its body: the bound of the loop counts how often control
//! enters the body from the header.

use super::edit::{
    Replacements, compact_values, edges_into, object_of, remove_params, remove_redundant_params,
    remove_unreachable_blocks, remove_unused_locals, retain_blocks,
};
use super::{Changes, Options};
use crate::analysis::{ControlFlow, Dominators, Loops, definitions, is_in_range};
use crate::{Block, BlockId, Function, ObjectRef, Op, Program, TableKind, Target, Term, ValueId};
use std::collections::HashMap;

pub(super) fn run(program: &mut Program, _: &Options, changes: &mut Changes) {
    for at in 0..program.functions.len() {
        let mut function = std::mem::replace(
            &mut program.functions[at],
            Function::new("", None, crate::Loc::default()),
        );
        changes.count("blocks removed", remove_unreachable_blocks(&mut function));
        changes.count("stores removed", remove_dead_stores(program, &mut function));
        changes.count("locals removed", remove_unused_locals(&mut function));
        changes.count("parameters removed", remove_redundant_params(&mut function));
        changes.count("loops that run once", forget_broken_loops(&mut function));
        changes.count("blocks merged", skip_empty_blocks(&mut function));
        changes.count("blocks merged", merge_blocks(&mut function));
        let needed = needed_values(program, &function);
        changes.count("parameters removed", remove_unneeded_params(&mut function, &needed));
        changes.count("operations removed", remove_unneeded_insts(&mut function, &needed));
        compact_values(&mut function);
        program.functions[at] = function;
    }
}

/// Removes stores to locals that are never loaded, if they cannot be out of range.
fn remove_dead_stores(program: &Program, function: &mut Function) -> u64 {
    let mut is_loaded = vec![false; function.locals.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let (Some(ObjectRef::Local(local)), Some(_)) = (object_of(&inst.op), inst.result) {
            is_loaded[local.index()] = true;
        }
    }
    let definitions = definitions(function);
    let is_dead = |op: &Op| match object_of(op) {
        Some(ObjectRef::Local(local)) if !is_loaded[local.index()] => {
            is_in_range(program, function, &definitions, op)
        }
        _ => false,
    };
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    let dead: Vec<bool> = insts.map(|inst| is_dead(&inst.op)).collect();
    let mut at = 0..;
    for block in &mut function.blocks {
        block.insts.retain(|_| at.next().is_some_and(|at| !dead[at]));
    }
    dead.iter().filter(|dead| **dead).count() as u64
}

/// Removes the bounds of loops that never return to their header. They run at most once, which only
/// a bound of 0 would forbid.
fn forget_broken_loops(function: &mut Function) -> u64 {
    let loops = Loops::of(function, &Dominators::of(function));
    let headers: Vec<usize> = loops.loops.iter().map(|each| each.header).collect();
    let mut forgotten = 0;
    for (node, block) in function.blocks.iter_mut().enumerate() {
        if block.loop_info.is_some_and(|info| info.bound > 0) && !headers.contains(&node) {
            block.loop_info = None;
            forgotten += 1;
        }
    }
    forgotten
}

/// Maximum number of consecutive blocks that an edge skips.
const MAX_HOPS: usize = 64;

/// Redirects edges to a block that only jumps to the target of that jump.
fn skip_empty_blocks(function: &mut Function) -> u64 {
    let onward = onward_jumps(function);
    let mut skipped = 0;
    for target in function.blocks.iter_mut().flat_map(|block| block.term.targets_mut()) {
        for _ in 0..MAX_HOPS {
            let Some((params, next)) = &onward[target.block.index()] else { break };
            let given = std::mem::replace(target, next.clone()).args;
            for arg in &mut target.args {
                if let Some(at) = params.iter().position(|param| param == arg) {
                    *arg = given[at];
                }
            }
            skipped += 1;
        }
    }
    remove_unreachable_blocks(function);
    skipped
}

/// Returns, by block, its parameters and its jump target, if it does nothing else and its
/// parameters have no other use.
fn onward_jumps(function: &Function) -> Vec<Option<(Vec<ValueId>, Target)>> {
    let mut user: Vec<Option<usize>> = vec![None; function.values.len()];
    let mut has_other_user = vec![false; function.values.len()];
    for (node, block) in function.blocks.iter().enumerate() {
        let mut look = |value: ValueId| {
            let user = user[value.index()].get_or_insert(node);
            has_other_user[value.index()] |= *user != node;
        };
        block.insts.iter().for_each(|inst| inst.op.for_each_operand(&mut look));
        block.term.for_each_operand(&mut look);
    }
    let is_own = |node: usize, param: &ValueId| {
        !has_other_user[param.index()] && user[param.index()].is_none_or(|user| user == node)
    };
    let onward = |(node, block): (usize, &Block)| match &block.term {
        Term::Jump(target) if node > 0 && block.insts.is_empty() && block.loop_info.is_none() => {
            let is_onward = target.block.index() != node;
            let is_free = block.params.iter().all(|param| is_own(node, param));
            (is_onward && is_free).then(|| (block.params.clone(), target.clone()))
        }
        _ => None,
    };
    function.blocks.iter().enumerate().map(onward).collect()
}

/// Merges each block with its jump target if no other edge leads there.
pub(super) fn merge_blocks(function: &mut Function) -> u64 {
    let mut entries: Vec<usize> = edges_into(function).iter().map(Vec::len).collect();
    entries[function.entry()] += 1;
    let mut is_kept = vec![true; function.blocks.len()];
    let mut replacements = Replacements::default();
    for node in 0..function.blocks.len() {
        while is_kept[node] && function.blocks[node].loop_info.is_none() {
            let Term::Jump(target) = &function.blocks[node].term else { break };
            let next = target.block.index();
            if next == node || entries[next] != 1 {
                break;
            }
            let args = target.args.clone();
            let dead = Block::new(Term::Return { value: None });
            let taken = std::mem::replace(&mut function.blocks[next], dead);
            for (param, arg) in taken.params.iter().zip(args) {
                replacements.insert(*param, arg);
            }
            let block = &mut function.blocks[node];
            block.insts.extend(taken.insts);
            block.term = taken.term;
            block.term_loc = taken.term_loc;
            block.loop_info = taken.loop_info;
            is_kept[next] = false;
        }
    }
    replacements.apply(function);
    retain_blocks(function, &is_kept)
}

/// Returns, by value, whether an effect or a branch needs it.
fn needed_values(program: &Program, function: &Function) -> Vec<bool> {
    let definitions = definitions(function);
    let edges = edges_into(function);
    let mut given: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for (block, edges) in function.blocks.iter().zip(&edges) {
        for (at, param) in block.params.iter().enumerate() {
            given.insert(*param, edges.iter().map(|args| args[at]).collect());
        }
    }
    let mut is_needed = vec![false; function.values.len()];
    let mut left: Vec<ValueId> = function.params().to_vec();
    for block in &function.blocks {
        for inst in &block.insts {
            if !is_removable(program, function, &definitions, &inst.op) {
                left.extend(inst.result);
                inst.op.for_each_operand(|value| left.push(value));
            }
        }
        let mut own = block.term.clone();
        own.targets_mut().into_iter().for_each(|target| target.args.clear());
        own.for_each_operand(|value| left.push(value));
    }
    while let Some(value) = left.pop() {
        if std::mem::replace(&mut is_needed[value.index()], true) {
            continue;
        }
        if let Some(op) = definitions[value.index()] {
            op.for_each_operand(|operand| left.push(operand));
        }
        left.extend(given.get(&value).into_iter().flatten());
    }
    is_needed
}

/// Returns whether the operation has no observable effect except its result.
fn is_removable(
    program: &Program,
    function: &Function,
    definitions: &[Option<&Op>],
    op: &Op,
) -> bool {
    match op {
        Op::Load { .. } | Op::LoadBytes { .. } => is_in_range(program, function, definitions, op),
        Op::ReadyMask | Op::Ready(_) | Op::PacketLength(_) => true,
        Op::TableLookup { table, .. } => match (definitions[table.index()], function.owner) {
            (Some(Op::Handle(table)), Some(owner)) => {
                // A lookup in the LRU kind changes the order of use.
                program.element(owner).tables[table.index()].kind != TableKind::LruHash
            }
            _ => false,
        },
        op => op.is_pure(),
    }
}

fn remove_unneeded_params(function: &mut Function, is_needed: &[bool]) -> u64 {
    let mut gone: HashMap<BlockId, Vec<usize>> = HashMap::new();
    let mut removed = 0;
    for (node, block) in function.blocks.iter().enumerate().skip(1) {
        for (at, param) in block.params.iter().enumerate() {
            if !is_needed[param.index()] {
                gone.entry(BlockId::new(node)).or_default().push(at);
                removed += 1;
            }
        }
    }
    remove_params(function, &gone);
    removed
}

fn remove_unneeded_insts(function: &mut Function, is_needed: &[bool]) -> u64 {
    let mut removed = 0;
    for block in &mut function.blocks {
        let before = block.insts.len();
        block.insts.retain(|inst| inst.result.is_none_or(|result| is_needed[result.index()]));
        removed += (before - block.insts.len()) as u64;
    }
    removed
}
