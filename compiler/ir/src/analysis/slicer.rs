// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies the computation of a value into straight-line code, if it depends only on the next item
//! of one port, constants, and small state that the function never stores to.
//!
//! A value that depends on the control path becomes a select by the branches in between. Inside a
//! loop, the copy describes the first iteration. Anything else cannot be copied: a second port,
//! memory that changes, oracles, values computed by a loop.
//!
//! In a second round, loads of large memory that the first round prefetched are allowed as well,
//! except loads whose index depends on another such load, which would have to wait for it.

use super::{Dominators, Loops, predecessors};
use crate::{
    BinaryOp, Bits, Block, BlockId, CompareOp, Function, Inst, Loc, ObjectId, ObjectRef, Op,
    PortId, Program, Target, Term, Type, UnaryOp, ValueId,
};
use std::collections::{BTreeSet, HashMap};

/// Maximum operations of a slice: a larger one costs as much as one or two cache misses.
const MAX_OPERATIONS: usize = 256;

/// Maximum depth of a chain of operations, which bounds the recursion.
const MAX_DEPTH: usize = 256;

/// Maximum size of an object that is assumed to be cached, so that a slice may load from it.
const SMALL_BYTES: u64 = 4096;

/// Analysis results of a function, shared by all of its slices.
pub(super) struct Facts<'p> {
    program: &'p Program,
    pub function: &'p Function,
    pub dominators: Dominators,
    loops: Loops,
    predecessors: Vec<Vec<usize>>,
    definitions: Vec<Option<Definition>>,
    stored: BTreeSet<ObjectId>,
    calls: bool,
}

/// Condition under which control reaches a block.
#[derive(Clone, Copy)]
pub(super) struct Condition {
    /// One bit of the slice; none if there is no condition.
    pub value: Option<ValueId>,
    /// Number of branches on the path that the slice cannot evaluate.
    pub unknown: usize,
}

/// Definition of a value.
#[derive(Clone, Copy)]
enum Definition {
    Result { block: usize, at: usize },
    Parameter { block: usize, at: usize },
}

/// An edge to a block, and the argument it passes for the parameter in question.
#[derive(Clone, Copy)]
struct Edge {
    from: usize,
    /// Index among the targets of `from`.
    target: usize,
    value: ValueId,
}

/// One slice under construction.
pub(super) struct Slicer<'f, 'p> {
    facts: &'f Facts<'p>,
    port: PortId,
    slice: Function,
    /// Copies by the loop they are used in and the value; none if copying failed.
    copies: HashMap<(Option<usize>, ValueId), Option<ValueId>>,
    /// Keys of `copies` in order of insertion.
    log: Vec<(Option<usize>, ValueId)>,
    item: Option<ValueId>,
    depth: usize,
    /// Large objects that it may load from.
    asked: BTreeSet<ObjectId>,
    /// By value of the slice: whether it depends on such a load.
    is_late: Vec<bool>,
    /// Whether it may also load small state that the function changes, with its current contents.
    for_condition: bool,
}

impl<'p> Facts<'p> {
    pub fn of(program: &'p Program, function: &'p Function) -> Self {
        let dominators = Dominators::of(function);
        let loops = Loops::of(function, &dominators);
        let mut definitions = vec![None; function.values.len()];
        let mut stored = BTreeSet::new();
        let mut calls = false;
        for (block, body) in function.blocks.iter().enumerate() {
            for (at, param) in body.params.iter().enumerate() {
                definitions[param.index()] = Some(Definition::Parameter { block, at });
            }
            for (at, inst) in body.insts.iter().enumerate() {
                if let Some(result) = inst.result {
                    definitions[result.index()] = Some(Definition::Result { block, at });
                }
                match inst.op {
                    Op::Store { object: ObjectRef::State(object), .. }
                    | Op::StoreBytes { object: ObjectRef::State(object), .. } => {
                        stored.insert(object);
                    }
                    Op::Call { .. } => calls = true,
                    _ => {}
                }
            }
        }
        let predecessors = predecessors(function);
        Self { program, function, dominators, loops, predecessors, definitions, stored, calls }
    }

    /// Returns whether the function never changes an object.
    fn is_steady(&self, object: ObjectRef) -> bool {
        matches!(object, ObjectRef::State(id) if !self.calls && !self.stored.contains(&id))
    }

    /// Returns whether an object is small enough to be cached.
    fn is_small(&self, object: ObjectRef) -> bool {
        let found = self.program.object(self.function, object);
        let bytes = |bits: u32, depth: u64| u64::from(bits.div_ceil(8)).saturating_mul(depth);
        found.is_some_and(|it| bytes(it.elem_bits, it.depth) <= SMALL_BYTES)
    }

    /// Returns whether `node` is in the loop `at` or one inside it.
    fn is_in_loop(&self, node: usize, at: usize) -> bool {
        self.loops.loops[at].body.binary_search(&node).is_ok()
    }
}

impl<'f, 'p> Slicer<'f, 'p> {
    /// Creates a slice that may load from small objects and from those of `asked`.
    pub fn new(facts: &'f Facts<'p>, port: PortId, asked: BTreeSet<ObjectId>) -> Self {
        let name = format!("{} slice", facts.function.name);
        let slice = Function::new(name, facts.function.owner, facts.function.loc);
        let (copies, log) = (HashMap::new(), vec![]);
        let (item, depth, is_late) = (None, 0, vec![]);
        Self { facts, port, slice, copies, log, item, depth, asked, is_late, for_condition: false }
    }

    /// Returns whether a value depends on large memory.
    pub fn is_late(&self, value: ValueId) -> bool {
        self.is_late.get(value.index()).is_some_and(|is_late| *is_late)
    }

    /// Returns the straight-line code.
    pub fn finish(self) -> Function {
        self.slice
    }

    /// Copies `value` as block `user` sees it; if that fails, undoes what it has added.
    pub fn copy_for(&mut self, value: ValueId, user: usize) -> Option<ValueId> {
        let (insts, values) = (self.slice.blocks[0].insts.len(), self.slice.values.len());
        let (logged, item) = (self.log.len(), self.item);
        let copy = self.copy(value, user);
        if copy.is_none() {
            self.slice.blocks[0].insts.truncate(insts);
            self.slice.values.truncate(values);
            self.is_late.truncate(values);
            self.item = item;
            for key in self.log.drain(logged..) {
                self.copies.remove(&key);
            }
        }
        copy
    }

    fn copy(&mut self, value: ValueId, user: usize) -> Option<ValueId> {
        let key = (self.facts.loops.innermost(user), value);
        if let Some(known) = self.copies.get(&key) {
            return *known;
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let copy = self.copy_definition(value, user);
        self.depth -= 1;
        self.copies.insert(key, copy);
        self.log.push(key);
        copy
    }

    fn copy_definition(&mut self, value: ValueId, user: usize) -> Option<ValueId> {
        let function = self.facts.function;
        match self.facts.definitions[value.index()]? {
            Definition::Result { block, at } => {
                let Inst { op, loc, .. } = &function.blocks[block].insts[at];
                self.copy_operation(op, function.type_of(value), *loc, user)
            }
            Definition::Parameter { block, at } => self.copy_parameter(block, at, user),
        }
    }

    fn copy_operation(&mut self, op: &Op, ty: Type, loc: Loc, user: usize) -> Option<ValueId> {
        match op {
            Op::Take(port) | Op::Peek(port) => return self.item(*port, ty, loc),
            Op::Ready(port) if *port == self.port => {
                return self.add(Op::Const(Bits::from_u64(1, 1)), ty, loc);
            }
            Op::Load { object, .. } | Op::LoadBytes { object, .. } if self.may_load(*object) => {}
            _ if is_pure(op) => {}
            _ => return None,
        }
        let mut copied = op.clone();
        let mut is_whole = true;
        copied.map_operands(|operand| match self.copy(operand, user) {
            Some(copy) if is_whole => copy,
            _ => {
                is_whole = false;
                operand
            }
        });
        if is_whole { self.add(copied, ty, loc) } else { None }
    }

    /// Returns the next item of the port, peeked only once.
    fn item(&mut self, port: PortId, ty: Type, loc: Loc) -> Option<ValueId> {
        if port != self.port || ty.bits().is_none() {
            return None;
        }
        if self.item.is_none() {
            self.item = self.add(Op::Peek(port), ty, loc);
        }
        self.item
    }

    fn add(&mut self, op: Op, ty: Type, loc: Loc) -> Option<ValueId> {
        if self.slice.blocks[0].insts.len() >= MAX_OPERATIONS {
            return None;
        }
        let mut depends = false;
        op.for_each_operand(|operand| depends |= self.is_late(operand));
        if let Op::Load { object, .. } | Op::LoadBytes { object, .. } = &op
            && !self.facts.is_small(*object)
        {
            if depends {
                return None;
            }
            depends = true;
        }
        self.is_late.push(depends);
        let result = self.slice.add_value(ty, None);
        self.slice.blocks[0].insts.push(Inst { result: Some(result), op, loc });
        Some(result)
    }

    fn may_load(&self, object: ObjectRef) -> bool {
        let ObjectRef::State(id) = object else { return false };
        match self.facts.is_small(object) {
            true => self.for_condition || self.facts.is_steady(object),
            false => self.facts.is_steady(object) && self.asked.contains(&id),
        }
    }

    /// Returns the condition for control to reach a block, as far as it can be evaluated before the
    /// memory arrives; small state counts with its current contents. Must be called after all
    /// indexes are copied, because those must not depend on such state.
    pub fn condition(&mut self, block: usize) -> Condition {
        self.for_condition = true;
        let facts = self.facts;
        let mut found = Condition { value: None, unknown: 0 };
        let mut at = block;
        while let Some(above) = facts.dominators.immediate(at).filter(|above| *above != at) {
            let Term::Branch { cond, .. } = &facts.function.blocks[above].term else {
                at = above;
                continue;
            };
            let targets = facts.function.blocks[above].term.targets();
            let leads_on = |to: &&Target| {
                let to = to.block.index();
                facts.predecessors[to].iter().all(|from| *from == above)
                    && facts.dominators.dominates(to, block)
            };
            if let Some(side) = targets.iter().position(leads_on) {
                self.narrow(&mut found, *cond, above, side == 0);
            }
            at = above;
        }
        found
    }

    /// Adds to a condition that `cond`, as block `user` sees it, equals `wanted`.
    fn narrow(&mut self, found: &mut Condition, cond: ValueId, user: usize, wanted: bool) {
        let Some(mut copy) = self.copy_for(cond, user) else {
            found.unknown += 1;
            return;
        };
        if self.is_late(copy) {
            return;
        }
        let (bit, loc) = (Type::Bits(1), self.facts.function.loc);
        if !wanted {
            let Some(not) = self.add(Op::Unary(UnaryOp::Not, copy), bit, loc) else { return };
            copy = not;
        }
        if let Some(other) = found.value {
            let both = Op::Binary(BinaryOp::And, other, copy);
            let Some(both) = self.add(both, bit, loc) else { return };
            copy = both;
        }
        found.value = Some(copy);
    }

    /// Copies parameter `at` of a block.
    fn copy_parameter(&mut self, block: usize, at: usize, user: usize) -> Option<ValueId> {
        let facts = self.facts;
        let mut froms = facts.predecessors[block].clone();
        froms.sort_unstable();
        froms.dedup();
        froms.retain(|from| facts.dominators.is_reachable(*from));
        let header_of = facts.loops.loops.iter().position(|it| it.header == block);
        if let Some(found) = header_of {
            // After a loop, a value differs from the one at its start.
            if !facts.is_in_loop(user, found) {
                return None;
            }
            froms.retain(|from| !facts.is_in_loop(*from, found));
        }
        let mut edges = vec![];
        for from in froms {
            if matches!(facts.function.blocks[from].term, Term::Suspend { .. }) {
                return None;
            }
            let targets = facts.function.blocks[from].term.targets();
            for (target, to) in targets.iter().enumerate().filter(|(_, to)| leads(to, block)) {
                edges.push(Edge { from, target, value: *to.args.get(at)? });
            }
        }
        self.choose(block, &edges, user)
    }

    /// Copies the value passed by the edge that control takes to `block`: a select by the branch at
    /// which the paths diverge.
    fn choose(&mut self, block: usize, edges: &[Edge], user: usize) -> Option<ValueId> {
        let facts = self.facts;
        let (first, rest) = edges.split_first()?;
        if rest.iter().all(|edge| edge.value == first.value) {
            return self.copy(first.value, user);
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let mut parting = first.from;
        while !edges.iter().all(|edge| facts.dominators.dominates(parting, edge.from)) {
            parting = facts.dominators.immediate(parting)?;
        }
        let term = &facts.function.blocks[parting].term;
        let targets = term.targets();
        let mut sides: Vec<Vec<Edge>> = vec![vec![]; targets.len()];
        for edge in edges {
            let side = match edge.from == parting {
                true => edge.target,
                false => {
                    let goes = |to: &&Target| {
                        let to = to.block.index();
                        to != block && facts.dominators.dominates(to, edge.from)
                    };
                    targets.iter().position(goes)?
                }
            };
            sides[side].push(*edge);
        }
        self.depth += 1;
        let chosen = self.choose_side(block, term, &sides, user);
        self.depth -= 1;
        chosen
    }

    fn choose_side(
        &mut self,
        block: usize,
        term: &Term,
        sides: &[Vec<Edge>],
        user: usize,
    ) -> Option<ValueId> {
        let (value, cases) = match term {
            Term::Branch { cond, .. } => (*cond, vec![Bits::from_u64(1, 1)]),
            Term::Switch { value, cases, .. } => {
                (*value, cases.iter().map(|(case, _)| case.clone()).collect())
            }
            _ => return None,
        };
        let loc = self.facts.function.loc;
        let cases: Vec<_> = cases.into_iter().map(Some).chain([None]).collect();
        let mut chosen = None;
        // Starts with the last target, which is the default.
        for (edges, case) in sides.iter().zip(cases).rev().filter(|(edges, _)| !edges.is_empty()) {
            let side = self.choose(block, edges, user)?;
            chosen = match (chosen, case) {
                (Some(if_false), Some(case)) => {
                    let on = self.copy(value, user)?;
                    let cond = self.equals(on, case, loc)?;
                    let ty = self.slice.type_of(side);
                    self.add(Op::Select { cond, if_true: side, if_false }, ty, loc)
                }
                _ => Some(side),
            };
        }
        chosen
    }

    fn equals(&mut self, value: ValueId, case: Bits, loc: Loc) -> Option<ValueId> {
        if case.width() == 1 && !case.is_zero() {
            return Some(value);
        }
        let case = self.add(Op::Const(case), self.slice.type_of(value), loc)?;
        self.add(Op::Compare(CompareOp::Eq, value, case), Type::Bits(1), loc)
    }
}

fn leads(target: &Target, block: usize) -> bool {
    target.block == BlockId::new(block)
}

fn is_pure(op: &Op) -> bool {
    use Op::{Binary, Compare, Concat, Const, Select, SignExtend, Truncate, Unary, ZeroExtend};
    let is_part = matches!(op, Op::Extract { .. } | Op::ExtractDynamic { .. });
    let is_whole = matches!(op, Op::Insert { .. } | Op::InsertDynamic { .. } | Concat(_));
    let is_resized = matches!(op, ZeroExtend(..) | SignExtend(..) | Truncate(..));
    let is_computed = matches!(op, Const(_) | Unary(..) | Binary(..) | Compare(..));
    is_part || is_whole || is_resized || is_computed || matches!(op, Select { .. })
}

/// Removes values that `wanted` does not need, and renumbers the rest, including `wanted`.
pub(super) fn tidy(slice: &mut Function, wanted: &mut [&mut ValueId]) {
    let mut is_needed = vec![false; slice.values.len()];
    wanted.iter().for_each(|value| is_needed[value.index()] = true);
    let Block { insts, .. } = &mut slice.blocks[0];
    for inst in insts.iter().rev() {
        if inst.result.is_some_and(|result| is_needed[result.index()]) {
            inst.op.for_each_operand(|operand| is_needed[operand.index()] = true);
        }
    }
    insts.retain(|inst| inst.result.is_some_and(|result| is_needed[result.index()]));
    let mut renamed = vec![None; slice.values.len()];
    let mut values = vec![];
    for inst in insts.iter_mut() {
        inst.op.map_operands(|operand| renamed[operand.index()].unwrap_or(operand));
        if let Some(result) = &mut inst.result {
            values.push(slice.values[result.index()].clone());
            let new = ValueId::new(values.len() - 1);
            renamed[result.index()] = Some(new);
            *result = new;
        }
    }
    wanted.iter_mut().for_each(|value| **value = renamed[value.index()].unwrap_or(**value));
    slice.values = values;
}
