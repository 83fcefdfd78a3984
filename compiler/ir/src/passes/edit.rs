// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of a function's shape that several passes share: copying blocks, replacing values,
//! renumbering.

use crate::analysis::{ControlFlow, predecessors, reverse_post_order};
use crate::{
    Bits, Block, BlockId, Function, Inst, LocalId, ObjectRef, Op, Target, Term, Value, ValueId,
};
use std::collections::HashMap;

/// Replacements for values; chains are followed.
#[derive(Default)]
pub(super) struct Replacements(HashMap<ValueId, ValueId>);

impl Replacements {
    pub(super) fn insert(&mut self, old: ValueId, new: ValueId) {
        let new = self.resolve(new);
        if old != new {
            self.0.insert(old, new);
        }
    }

    pub(super) fn resolve(&self, mut value: ValueId) -> ValueId {
        while let Some(next) = self.0.get(&value) {
            value = *next;
        }
        value
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces every use in `function`.
    pub(super) fn apply(&self, function: &mut Function) {
        if self.is_empty() {
            return;
        }
        for block in &mut function.blocks {
            for inst in &mut block.insts {
                inst.op.map_operands(|value| self.resolve(value));
            }
            block.term.map_operands(|value| self.resolve(value));
        }
    }
}

/// Mapping of copied values and blocks; others map to themselves.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) values: HashMap<ValueId, ValueId>,
    pub(super) blocks: HashMap<BlockId, BlockId>,
}

impl Copied {
    pub(super) fn value(&self, value: ValueId) -> ValueId {
        self.values.get(&value).copied().unwrap_or(value)
    }

    pub(super) fn block(&self, block: BlockId) -> BlockId {
        self.blocks.get(&block).copied().unwrap_or(block)
    }
}

/// Appends copies of `blocks` (with their original ids) to `function`; `values` describes their
/// values.
pub(super) fn copy_blocks(
    function: &mut Function,
    blocks: &[(BlockId, Block)],
    values: &[Value],
) -> Copied {
    let mut copied = Copied::default();
    for (id, block) in blocks {
        copied.blocks.insert(*id, function.add_block(Term::Return { value: None }));
        let results = block.insts.iter().filter_map(|inst| inst.result);
        for old in block.params.iter().copied().chain(results) {
            let Value { ty, name } = values[old.index()].clone();
            copied.values.insert(old, function.add_value(ty, name));
        }
    }
    for (id, block) in blocks {
        let mut copy = block.clone();
        copy.params.iter_mut().for_each(|value| *value = copied.value(*value));
        for inst in &mut copy.insts {
            inst.result = inst.result.map(|value| copied.value(value));
            inst.op.map_operands(|value| copied.value(value));
        }
        copy.term.map_operands(|value| copied.value(value));
        for target in copy.term.targets_mut() {
            target.block = copied.block(target.block);
        }
        *function.block_mut(copied.block(*id)) = copy;
    }
    copied
}

/// Removes unreachable blocks; returns how many.
pub fn remove_unreachable_blocks(function: &mut Function) -> u64 {
    let mut is_reachable = vec![false; function.blocks.len()];
    reverse_post_order(function).into_iter().for_each(|node| is_reachable[node] = true);
    retain_blocks(function, &is_reachable)
}

/// Empties unreachable blocks, without renumbering.
pub(super) fn clear_unreachable_blocks(function: &mut Function) {
    let mut is_reachable = vec![false; function.blocks.len()];
    reverse_post_order(function).into_iter().for_each(|node| is_reachable[node] = true);
    for (block, is_reachable) in function.blocks.iter_mut().zip(is_reachable) {
        if !is_reachable {
            *block = Block::new(Term::Return { value: None });
        }
    }
}

/// Keeps the blocks for which `is_kept`; no kept block may lead to a removed one.
pub(super) fn retain_blocks(function: &mut Function, is_kept: &[bool]) -> u64 {
    let mut count = 0;
    let renumbered: Vec<BlockId> = is_kept
        .iter()
        .map(|is_kept| {
            let id = BlockId::new(count);
            count += usize::from(*is_kept);
            id
        })
        .collect();
    let removed = function.blocks.len() - count;
    if removed > 0 {
        let mut at = 0..;
        function.blocks.retain(|_| at.next().is_some_and(|at| is_kept[at]));
        for target in function.blocks.iter_mut().flat_map(|block| block.term.targets_mut()) {
            target.block = renumbered[target.block.index()];
        }
    }
    removed as u64
}

/// Gives the entry a block of its own that no other block leads to.
pub(super) fn separate_entry(function: &mut Function) {
    if predecessors(function)[function.entry()].is_empty() {
        return;
    }
    let params = function.params().to_vec();
    let moved = BlockId::new(function.blocks.len());
    for target in function.blocks.iter_mut().flat_map(|block| block.term.targets_mut()) {
        if target.block == Function::ENTRY {
            target.block = moved;
        }
    }
    let outer: Vec<ValueId> = params
        .iter()
        .map(|param| {
            let Value { ty, name } = function.values[param.index()].clone();
            function.add_value(ty, name)
        })
        .collect();
    let mut entry = Block::new(Term::Jump(Target { block: moved, args: outer.clone() }));
    entry.params = outer;
    let body = std::mem::replace(function.block_mut(Function::ENTRY), entry);
    function.blocks.push(body);
}

/// Removes parameters that have the same value on every edge (apart from themselves) and replaces
/// their uses with that value. Returns the number removed.
pub(super) fn remove_redundant_params(function: &mut Function) -> u64 {
    let mut removed = 0;
    loop {
        let found = redundant_params(function);
        if found.is_empty() {
            return removed;
        }
        removed += found.len() as u64;
        let mut replacements = Replacements::default();
        let mut gone: HashMap<BlockId, Vec<usize>> = HashMap::new();
        for (block, at, value) in found {
            replacements.insert(function.block(block).params[at], value);
            gone.entry(block).or_default().push(at);
        }
        remove_params(function, &gone);
        replacements.apply(function);
    }
}

/// Returns at most one parameter of a chain at a time, so that replacements never form a cycle.
fn redundant_params(function: &Function) -> Vec<(BlockId, usize, ValueId)> {
    let edges = edges_into(function);
    let mut found = vec![];
    let mut is_busy = vec![false; function.values.len()];
    for (node, block) in function.blocks.iter().enumerate().skip(1) {
        for (at, param) in block.params.iter().enumerate() {
            let mut others = edges[node].iter().map(|args| args[at]).filter(|arg| arg != param);
            let Some(only) = others.next() else { continue };
            let is_free = !is_busy[param.index()] && !is_busy[only.index()];
            if is_free && others.all(|arg| arg == only) {
                is_busy[param.index()] = true;
                is_busy[only.index()] = true;
                found.push((BlockId::new(node), at, only));
            }
        }
    }
    found
}

/// Returns, for every block, the arguments of each edge to it.
pub(super) fn edges_into(function: &Function) -> Vec<Vec<Vec<ValueId>>> {
    let mut edges = vec![vec![]; function.blocks.len()];
    for target in function.blocks.iter().flat_map(|block| block.term.targets()) {
        edges[target.block.index()].push(target.args.clone());
    }
    edges
}

/// Removes the parameters at the given positions, and the arguments for them.
pub(super) fn remove_params(function: &mut Function, gone: &HashMap<BlockId, Vec<usize>>) {
    fn keep(list: &mut Vec<ValueId>, gone: &[usize]) {
        let mut at = 0..;
        list.retain(|_| at.next().is_some_and(|at| !gone.contains(&at)));
    }
    for (block, positions) in gone {
        keep(&mut function.block_mut(*block).params, positions);
    }
    for target in function.blocks.iter_mut().flat_map(|block| block.term.targets_mut()) {
        if let Some(positions) = gone.get(&target.block) {
            keep(&mut target.args, positions);
        }
    }
}

/// Returns, by value, its constant, if it is defined as one.
pub(super) fn constants(function: &Function) -> Vec<Option<Bits>> {
    let mut found = vec![None; function.values.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let (Some(result), Op::Const(bits)) = (inst.result, &inst.op) {
            found[result.index()] = Some(bits.clone());
        }
    }
    found
}

/// Returns the object that an operation loads from or stores to.
pub(super) fn object_of(op: &Op) -> Option<ObjectRef> {
    match op {
        Op::Load { object, .. }
        | Op::Store { object, .. }
        | Op::LoadBytes { object, .. }
        | Op::StoreBytes { object, .. } => Some(*object),
        _ => None,
    }
}

/// Returns the object that an operation accesses, mutably.
pub(super) fn object_of_mut(op: &mut Op) -> Option<&mut ObjectRef> {
    match op {
        Op::Load { object, .. }
        | Op::Store { object, .. }
        | Op::LoadBytes { object, .. }
        | Op::StoreBytes { object, .. } => Some(object),
        _ => None,
    }
}

/// Removes unused locals and renumbers the others; returns the number removed.
pub(super) fn remove_unused_locals(function: &mut Function) -> u64 {
    let mut is_used = vec![false; function.locals.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let Some(ObjectRef::Local(local)) = object_of(&inst.op) {
            is_used[local.index()] = true;
        }
    }
    let mut count = 0;
    let renumbered: Vec<LocalId> = is_used
        .iter()
        .map(|is_used| {
            let id = LocalId::new(count);
            count += usize::from(*is_used);
            id
        })
        .collect();
    let removed = function.locals.len() - count;
    let mut at = 0..;
    function.locals.retain(|_| at.next().is_some_and(|at| is_used[at]));
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Some(ObjectRef::Local(local)) = object_of_mut(&mut inst.op) {
            *local = renumbered[local.index()];
        }
    }
    removed as u64
}

/// Renumbers values in the order of their definitions and drops undefined ones.
pub(super) fn compact_values(function: &mut Function) {
    let mut renumbered = vec![None; function.values.len()];
    let mut values = vec![];
    let mut define = |value: &mut ValueId| {
        let id = ValueId::new(values.len());
        values.push(function.values[value.index()].clone());
        renumbered[value.index()] = Some(id);
        *value = id;
    };
    for block in &mut function.blocks {
        block.params.iter_mut().for_each(&mut define);
        block.insts.iter_mut().filter_map(|inst| inst.result.as_mut()).for_each(&mut define);
    }
    let map = |value: ValueId| renumbered[value.index()].expect("a used value has a definition");
    for block in &mut function.blocks {
        block.insts.iter_mut().for_each(|inst| inst.op.map_operands(map));
        block.term.map_operands(map);
    }
    function.values = values;
}

/// Creates an instruction for a pass.
pub(super) fn inst(result: Option<ValueId>, op: Op, like: &Inst) -> Inst {
    Inst { result, op, loc: like.loc }
}
