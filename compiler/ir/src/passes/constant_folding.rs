// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Constant folding: evaluates operations on constants, and simplifies others.
//!
//! Blocks are visited in reverse post-order, so that the definition of every operand is known. Each
//! operation is replaced by a constant, by another value, or by a simpler operation. [`identities`]
//! has the rules of arithmetic; [`slices`] traces bits through inserts, concatenations and shifts,
//! which decomposes flits again after single assignment. A branch on a constant becomes a jump, and
//! unreachable blocks are removed.

mod identities;
mod slices;

use super::edit::{Replacements, remove_unreachable_blocks};
use super::{Changes, Options};
use crate::analysis::reverse_post_order;
use crate::interp::eval_pure;
use crate::{Bits, Function, Inst, Loc, Op, Program, Target, Term, Type, UnaryOp, ValueId};
use std::collections::HashMap;

/// Maximum rounds over a function; each sees what the previous one learned around loops.
const MAX_ROUNDS: usize = 8;

pub(super) fn run(program: &mut Program, _: &Options, changes: &mut Changes) {
    for function in &mut program.functions {
        for _ in 0..MAX_ROUNDS {
            let folded = fold_round(function);
            changes.count("folded", folded);
            changes.count("blocks removed", remove_unreachable_blocks(function));
            if folded == 0 {
                break;
            }
        }
    }
}

/// Result of applying a rule to an operation.
enum Folded {
    /// The operation's result is this value.
    Value(ValueId),
    /// The operation's result is that of this operation.
    Op(Op),
}

struct Folder<'a> {
    function: &'a mut Function,
    /// By value: its definition, with operands replaced; none for parameters.
    known: Vec<Option<Op>>,
    /// By value: number of uses when the round began.
    uses: Vec<u32>,
    replacements: Replacements,
    /// Constants of the current block.
    pool: HashMap<Bits, ValueId>,
    insts: Vec<Inst>,
    loc: Loc,
    folded: u64,
}

fn fold_round(function: &mut Function) -> u64 {
    let count = function.values.len();
    let mut folder = Folder {
        known: vec![None; count],
        uses: count_uses(function),
        replacements: Replacements::default(),
        pool: HashMap::new(),
        insts: vec![],
        loc: Loc::default(),
        folded: 0,
        function,
    };
    folder.fold_blocks();
    let Folder { function, replacements, folded, .. } = folder;
    replacements.apply(function);
    folded
}

fn count_uses(function: &Function) -> Vec<u32> {
    let mut uses = vec![0; function.values.len()];
    for block in &function.blocks {
        let mut count = |value: ValueId| uses[value.index()] += 1;
        block.insts.iter().for_each(|inst| inst.op.for_each_operand(&mut count));
        block.term.for_each_operand(&mut count);
    }
    uses
}

impl Folder<'_> {
    fn fold_blocks(&mut self) {
        let order = reverse_post_order(self.function);
        let mut progress = Progress::new(self.function, &order);
        for node in order {
            if !progress.is_reached[node] {
                continue;
            }
            self.pool.clear();
            self.fold_params(node, &progress);
            for inst in std::mem::take(&mut self.function.blocks[node].insts) {
                self.fold_inst(inst);
            }
            let block = &mut self.function.blocks[node];
            let old = std::mem::replace(&mut block.term, Term::Return { value: None });
            self.loc = block.term_loc;
            let term = self.fold_term(old.clone());
            progress.finish(node, &old, &term);
            let block = &mut self.function.blocks[node];
            block.insts = std::mem::take(&mut self.insts);
            block.term = term;
        }
    }

    /// Replaces parameters that are the same on every edge. An edge from a later block is used
    /// unmodified; one from an unreachable block is ignored.
    fn fold_params(&mut self, node: usize, progress: &Progress) {
        if node == Function::ENTRY.index() {
            return;
        }
        for (at, param) in self.function.blocks[node].params.clone().into_iter().enumerate() {
            let edges =
                progress.edges[node].iter().filter(|(from, _)| progress.counts(*from, node));
            let args = edges.map(|(_, args)| self.replacements.resolve(args[at]));
            let args: Vec<ValueId> = args.filter(|arg| *arg != param).collect();
            let Some(first) = args.first() else { continue };
            if args.iter().all(|arg| arg == first) {
                self.replace(param, *first);
            } else if let Some(bits) = self.constant(*first).cloned()
                && args.iter().all(|arg| self.constant(*arg) == Some(&bits))
            {
                let value = self.number(bits);
                self.replace(param, value);
            }
        }
    }

    fn replace(&mut self, old: ValueId, new: ValueId) {
        self.replacements.insert(old, new);
        if self.uses.get(old.index()).is_some_and(|uses| *uses > 0) {
            self.folded += 1;
        }
    }

    fn fold_inst(&mut self, mut inst: Inst) {
        self.loc = inst.loc;
        inst.op.map_operands(|value| self.replacements.resolve(value));
        let Some(result) = inst.result else {
            if let Op::Store { mask, .. } = &mut inst.op
                && mask.is_some_and(|mask| self.is_ones(mask))
            {
                *mask = None;
                self.folded += 1;
            }
            self.insts.push(inst);
            return;
        };
        if let Op::Const(bits) = &inst.op {
            match self.pool.get(bits) {
                Some(same) => return self.replace(result, *same),
                None => self.pool.insert(bits.clone(), result),
            };
        } else {
            match self.simplify(inst.op.clone()) {
                Folded::Value(value) => return self.replace(result, value),
                Folded::Op(op) if op == inst.op => {}
                Folded::Op(op) => {
                    self.folded += 1;
                    inst.op = op;
                }
            }
        }
        self.define(result, inst.op.clone());
        self.insts.push(inst);
    }

    fn fold_term(&mut self, mut term: Term) -> Term {
        term.map_operands(|value| self.replacements.resolve(value));
        let simpler = match &term {
            Term::Branch { if_true, if_false, .. } if if_true == if_false => {
                Some(Term::Jump(if_true.clone()))
            }
            Term::Branch { cond, if_true, if_false } => match self.definition(*cond) {
                Some(Op::Const(bits)) => {
                    Some(Term::Jump(if bits.is_zero() { if_false } else { if_true }.clone()))
                }
                Some(Op::Unary(UnaryOp::Not, cond)) => Some(Term::Branch {
                    cond: *cond,
                    if_true: if_false.clone(),
                    if_false: if_true.clone(),
                }),
                _ => None,
            },
            Term::Switch { value, cases, default } => self.fold_switch(*value, cases, default),
            _ => None,
        };
        match simpler {
            Some(simpler) => {
                self.folded += 1;
                simpler
            }
            None => term,
        }
    }

    fn fold_switch(
        &self,
        value: ValueId,
        cases: &[(Bits, Target)],
        default: &Target,
    ) -> Option<Term> {
        if cases.iter().all(|(_, target)| target == default) {
            return Some(Term::Jump(default.clone()));
        }
        let bits = self.constant(value)?;
        let found = cases.iter().find(|(case, _)| case == bits);
        Some(Term::Jump(found.map_or(default, |(_, target)| target).clone()))
    }

    /// Applies rules until none matches.
    fn simplify(&mut self, mut op: Op) -> Folded {
        loop {
            if let Some(bits) = self.evaluate(&op) {
                return Folded::Value(self.number(bits));
            }
            let next = self.fold_identity(&op).or_else(|| self.fold_slice(&op));
            match next {
                None => return Folded::Op(op),
                Some(Folded::Value(value)) => return Folded::Value(value),
                Some(Folded::Op(simpler)) => op = simpler,
            }
        }
    }

    /// Evaluates an operation whose operands are all constants.
    fn evaluate(&self, op: &Op) -> Option<Bits> {
        if !op.is_pure() {
            return None;
        }
        let mut is_constant = true;
        op.for_each_operand(|value| is_constant &= self.constant(value).is_some());
        if !is_constant {
            return None;
        }
        eval_pure(op, |value| self.constant(value).expect("every operand is a constant"))
    }

    /// Appends the simplest form of an operation; returns its value.
    fn emit(&mut self, op: Op, width: u32) -> ValueId {
        match self.simplify(op) {
            Folded::Value(value) => value,
            Folded::Op(op) => self.append(op, width),
        }
    }

    /// Returns a constant, in the current block.
    fn number(&mut self, bits: Bits) -> ValueId {
        if let Some(value) = self.pool.get(&bits) {
            return *value;
        }
        let value = self.append(Op::Const(bits.clone()), bits.width());
        self.pool.insert(bits, value);
        value
    }

    fn append(&mut self, op: Op, width: u32) -> ValueId {
        let result = self.function.add_value(Type::Bits(width), None);
        self.define(result, op.clone());
        self.insts.push(Inst { result: Some(result), op, loc: self.loc });
        result
    }

    fn define(&mut self, value: ValueId, op: Op) {
        if self.known.len() <= value.index() {
            self.known.resize(value.index() + 1, None);
        }
        self.known[value.index()] = Some(op);
    }

    fn definition(&self, value: ValueId) -> Option<&Op> {
        self.known.get(value.index())?.as_ref()
    }

    fn constant(&self, value: ValueId) -> Option<&Bits> {
        match self.definition(value)? {
            Op::Const(bits) => Some(bits),
            _ => None,
        }
    }

    fn is_ones(&self, value: ValueId) -> bool {
        self.constant(value).is_some_and(|bits| *bits == Bits::ones(bits.width()))
    }

    fn is_zero(&self, value: ValueId) -> bool {
        self.constant(value).is_some_and(Bits::is_zero)
    }

    fn width(&self, value: ValueId) -> u32 {
        self.function.width_of(value)
    }

    /// Returns whether only one operation used the value when the round began.
    fn is_used_once(&self, value: ValueId) -> bool {
        self.uses.get(value.index()) == Some(&1)
    }
}

/// State of the blocks during the visit.
struct Progress {
    position: Vec<Option<usize>>,
    is_reached: Vec<bool>,
    is_done: Vec<bool>,
    /// By block: the source of each edge to it, and its arguments.
    edges: Vec<Vec<(usize, Vec<ValueId>)>>,
}

impl Progress {
    fn new(function: &Function, order: &[usize]) -> Self {
        let count = function.blocks.len();
        let mut progress = Self {
            position: vec![None; count],
            is_reached: vec![false; count],
            is_done: vec![false; count],
            edges: vec![vec![]; count],
        };
        progress.is_reached[Function::ENTRY.index()] = true;
        for (at, node) in order.iter().enumerate() {
            progress.position[*node] = Some(at);
            progress.add_edges(*node, &function.blocks[*node].term);
        }
        progress
    }

    /// Returns whether control may pass from `from` to `node`: a visit has shown it, or is still to
    /// come.
    fn counts(&self, from: usize, node: usize) -> bool {
        self.is_done[from] || self.position[from] >= self.position[node]
    }

    fn finish(&mut self, node: usize, old: &Term, new: &Term) {
        for target in old.targets() {
            self.edges[target.block.index()].retain(|(from, _)| *from != node);
        }
        self.add_edges(node, new);
        for target in new.targets() {
            self.is_reached[target.block.index()] = true;
        }
        self.is_done[node] = true;
    }

    fn add_edges(&mut self, node: usize, term: &Term) {
        for target in term.targets() {
            self.edges[target.block.index()].push((node, target.args.clone()));
        }
    }
}
