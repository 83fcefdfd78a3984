// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unrolling (ClickNP 4.8): iterations become copies of the body.
//!
//! In a loop with bound B, the header is copied B + 1 times and the rest B times. Each copy leads
//! to the header of the next, and where the last header would enter the loop again it traps. A
//! `break` or `continue` is only an edge, so nothing has to be rewritten for them; each header
//! keeps its condition, which guards its copy. If the number of iterations can be computed, there
//! are only that many copies, and constant folding removes the guards. Unrolling by a factor F
//! copies the first B mod F iterations in front, so that the remaining loop has exactly B / F
//! iterations.

mod trip_count;

use super::construct::{Current, Summary, Variables, construct};
use super::edit::{
    Copied, clear_unreachable_blocks, copy_blocks, remove_redundant_params,
    remove_unreachable_blocks, separate_entry,
};
use super::{Changes, Options};
use crate::analysis::{Dominators, Loop, Loops};
use crate::{
    Block, BlockId, Function, LoopInfo, Program, Target, Term, TrapCode, Unroll, Value, ValueId,
};
use std::collections::{HashMap, HashSet};

/// Returns the maximum number of times control enters a loop from its header, if the condition there
/// alone decides that and can be evaluated; an exit from the body may end the loop earlier. At most
/// a few thousand iterations are tried.
pub fn trip_count(function: &Function, found: &Loop) -> Option<u64> {
    trip_count::of(function, found)
}

pub(super) fn run(program: &mut Program, options: &Options, changes: &mut Changes) {
    for function in &mut program.functions {
        separate_entry(function);
        remove_unreachable_blocks(function);
        let loops = Loops::of(function, &Dominators::of(function));
        // Inner loops first, so that the size of an outer one is known.
        let headers: Vec<usize> = loops.loops.iter().rev().map(|each| each.header).collect();
        for header in headers {
            let loops = Loops::of(function, &Dominators::of(function));
            let found = loops.loops.iter().find(|each| each.header == header);
            if let Some(found) = found {
                consider(function, found, options, changes);
            }
        }
        remove_unreachable_blocks(function);
    }
}

fn consider(function: &mut Function, found: &Loop, options: &Options, changes: &mut Changes) {
    let Some(info) = function.blocks[found.header].loop_info else { return };
    // A watched loop may iterate very often and is not worth a copy, and its iterations are
    // counted.
    if info.is_watched || matches!(function.blocks[found.header].term, Term::Suspend { .. }) {
        return;
    }
    let trips = trip_count::of(function, found);
    let bound = trips.map_or(info.bound, |trips| trips.min(info.bound));
    let size: u64 =
        found.body.iter().map(|node| function.blocks[*node].insts.len() as u64 + 1).sum();
    let line = function.blocks[found.header].term_loc.line;
    let is_at_most = |limit: u64| bound.saturating_mul(size) <= limit;
    let plan = match info.unroll {
        Unroll::Flatten => None,
        // By default, only loops whose number of iterations is known are unrolled.
        Unroll::Auto => trips.is_some_and(|_| is_at_most(options.unroll_limit)).then_some(bound),
        Unroll::Full => Some(bound),
        Unroll::By(factor) => Some(bound.min(u64::from(factor))),
    };
    let Some(copies) = plan else {
        changes.count("loops kept", 1);
        return;
    };
    if copies.saturating_mul(size) > options.unroll_most {
        changes.count("loops kept", 1);
        changes.note(format!(
            "{}: the loop at line {line} stays: {copies} copies of {size} operations",
            function.name
        ));
        return;
    }
    if copies == bound {
        unroll(function, found, copies as usize, None);
        changes.count("loops unrolled", 1);
    } else {
        let ahead = bound % copies;
        let left = LoopInfo { bound: bound / copies, unroll: Unroll::Flatten, ..info };
        unroll(function, found, (ahead + copies) as usize, Some((ahead as usize, left)));
        changes.count("loops unrolled in part", 1);
    }
    changes.count("copies", copies);
}

/// Copies the loop `copies` times. With `around`, the last copy leads back to the header of that
/// copy, whose loop gets that description; otherwise to one more header, which traps.
fn unroll(function: &mut Function, found: &Loop, copies: usize, around: Option<(usize, LoopInfo)>) {
    let header = BlockId::new(found.header);
    let escaping = escaping_values(function, &found.body);
    function.block_mut(header).loop_info = None;
    let body: Vec<(BlockId, Block)> = found
        .body
        .iter()
        .map(|node| (BlockId::new(*node), function.blocks[*node].clone()))
        .collect();
    let values = function.values.clone();
    let outside: HashSet<BlockId> = (0..function.blocks.len())
        .filter(|node| found.body.binary_search(node).is_err())
        .map(BlockId::new)
        .collect();
    let mut rounds = vec![Copied::default()];
    for _ in 1..copies {
        rounds.push(copy_blocks(function, &body, &values));
    }
    let headers: Vec<BlockId> = rounds.iter().map(|round| round.block(header)).collect();
    match around {
        Some((first, info)) => function.block_mut(headers[first]).loop_info = Some(info),
        None if copies == 0 => {}
        None => {
            let last: Vec<_> = body.iter().filter(|(id, _)| *id == header).cloned().collect();
            rounds.push(copy_blocks(function, &last, &values));
        }
    }
    for (at, round) in rounds.iter().enumerate() {
        let is_last = at + 1 == rounds.len();
        let next = match around {
            Some((first, _)) if is_last => headers[first],
            None if is_last => {
                trap_instead(function, round.block(header), &found.body, round);
                continue;
            }
            _ => rounds[at + 1].block(header),
        };
        for node in &found.body {
            let block = function.block_mut(round.block(BlockId::new(*node)));
            for target in block.term.targets_mut() {
                if target.block == headers[at] {
                    target.block = next;
                }
            }
        }
    }
    clear_unreachable_blocks(function);
    repair(function, &escaping, &rounds, outside);
}

/// Makes a header trap where it would enter its loop.
fn trap_instead(function: &mut Function, header: BlockId, body: &[usize], round: &Copied) {
    let inside: Vec<BlockId> = body
        .iter()
        .flat_map(|node| [BlockId::new(*node), round.block(BlockId::new(*node))])
        .collect();
    let trap = function.add_block(Term::Trap(TrapCode::LoopBound));
    for target in function.block_mut(header).term.targets_mut() {
        if inside.contains(&target.block) {
            *target = Target::to(trap);
        }
    }
}

/// Returns the values that the loop defines and code outside it uses.
fn escaping_values(function: &Function, body: &[usize]) -> Vec<ValueId> {
    let mut is_inner = vec![false; function.values.len()];
    for node in body {
        let block = &function.blocks[*node];
        let results = block.insts.iter().filter_map(|inst| inst.result);
        block
            .params
            .iter()
            .copied()
            .chain(results)
            .for_each(|value| is_inner[value.index()] = true);
    }
    let mut found = vec![];
    for (node, block) in function.blocks.iter().enumerate() {
        if body.binary_search(&node).is_ok() {
            continue;
        }
        let mut look = |value: ValueId| {
            if is_inner[value.index()] && !found.contains(&value) {
                found.push(value);
            }
        };
        block.insts.iter().for_each(|inst| inst.op.for_each_operand(&mut look));
        block.term.for_each_operand(&mut look);
    }
    found
}

/// Gives uses after the loop the value of the copy that control came from.
fn repair(
    function: &mut Function,
    escaping: &[ValueId],
    rounds: &[Copied],
    outside: HashSet<BlockId>,
) {
    if escaping.is_empty() {
        return;
    }
    let describe = escaping.iter().map(|value| function.values[value.index()].clone()).collect();
    let mut numbers = HashMap::new();
    for (at, value) in escaping.iter().enumerate() {
        for round in rounds {
            numbers.insert(round.value(*value), at);
        }
    }
    let mut escaped = Escaped { describe, numbers, outside };
    construct(function, &mut escaped);
    remove_redundant_params(function);
}

/// Values of a loop that were copied with it, as variables: each copy assigns them.
struct Escaped {
    describe: Vec<Value>,
    numbers: HashMap<ValueId, usize>,
    outside: HashSet<BlockId>,
}

impl Escaped {
    fn definitions<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = (usize, ValueId)> + 'a {
        let results = block.insts.iter().filter_map(|inst| inst.result);
        let defined = block.params.iter().copied().chain(results);
        defined.filter_map(|value| Some((*self.numbers.get(&value)?, value)))
    }
}

impl Variables for Escaped {
    fn describe(&self) -> &[Value] {
        &self.describe
    }

    fn summarize(&self, function: &Function, block: usize) -> Summary {
        let mut summary = Summary::default();
        let content = &function.blocks[block];
        if self.outside.contains(&BlockId::new(block)) {
            let mut look = |value: ValueId| {
                if let Some(number) = self.numbers.get(&value) {
                    summary.read(*number);
                }
            };
            content.insts.iter().for_each(|inst| inst.op.for_each_operand(&mut look));
            content.term.for_each_operand(&mut look);
        }
        self.definitions(content).for_each(|(number, _)| summary.assign(number));
        summary
    }

    fn initial(&mut self, _: &mut Function, _: usize) -> ValueId {
        unreachable!("a value is defined on every way to its uses")
    }

    fn rewrite(&mut self, function: &mut Function, block: usize, current: &mut Current) {
        if self.outside.contains(&BlockId::new(block)) {
            let map = |value: ValueId| match self.numbers.get(&value) {
                Some(number) => current[*number].expect("a value is defined before it is used"),
                None => value,
            };
            let block = &mut function.blocks[block];
            block.insts.iter_mut().for_each(|inst| inst.op.map_operands(map));
            block.term.map_operands(map);
        }
        for (number, value) in self.definitions(&function.blocks[block]) {
            current[number] = Some(value);
        }
    }
}
