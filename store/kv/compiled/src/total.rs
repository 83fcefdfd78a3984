// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Proves that functions are total and pure: each call returns, with a result that depends only on
//! its arguments, in bounded time and memory.
//!
//! Every operation of the language has a result for all operands, so a call could fail only by a
//! loop that runs more often than its bound, or too long. A loop is accepted if its condition alone
//! is proven to end it within its bound: by executing it, if it depends on constants only, or by a
//! counter that approaches a limit (`counters`).

use crate::counters::{Counters, conditions};
use freeport_clicknp::diagnostic::Diagnostic;
use freeport_clicknp::source::SourceMap;
use freeport_ir::analysis::{Dominators, Loop, Loops, watched_loops};
use freeport_ir::passes::{self, Options, PassSet, trip_count};
use freeport_ir::{Block, Function, FunctionId, Loc, Op, Probe, Program, Term, ValueId};
use std::collections::BTreeSet;

/// Maximum number of rounds of a loop in a call: its bound, multiplied by those of the loops around it.
const ROUNDS_MOST: u64 = 4096;
/// Maximum size of the arrays of a function in bytes. They are on the stack, and set to 0 in each
/// call.
const ARRAYS_MOST: u64 = 16 << 10;
/// Maximum width of a value in bits.
const WIDTH_MOST: u32 = 512;

/// Checks functions and those that they call; returns an error for each part that is refused.
pub(crate) fn check(
    program: &Program,
    functions: &[FunctionId],
    sources: &SourceMap,
) -> Vec<Diagnostic> {
    let checker = Checker { sources };
    let mut errors = vec![];
    let watched = watched_loops(program, ROUNDS_MOST);
    for id in reachable(program, functions) {
        let function = program.function(id);
        errors.extend(checker.effects(function));
        let headers = watched[id.index()].iter().zip(&function.blocks);
        let long = headers.filter(|(is_watched, _)| **is_watched);
        errors.extend(long.map(|(_, block)| checker.too_long(block.term_loc)));
    }
    if !errors.is_empty() {
        return errors;
    }
    let flat = flattened(program);
    for id in functions {
        errors.extend(checker.size(flat.function(*id)));
        errors.extend(checker.loops(flat.function(*id)));
    }
    errors
}

/// Returns the functions and all that they call.
fn reachable(program: &Program, functions: &[FunctionId]) -> BTreeSet<FunctionId> {
    let mut found = BTreeSet::new();
    let mut next = functions.to_vec();
    while let Some(id) = next.pop() {
        if !found.insert(id) {
            continue;
        }
        for inst in program.function(id).blocks.iter().flat_map(|block| &block.insts) {
            if let Op::Call { function, .. } = inst.op {
                next.push(function);
            }
        }
    }
    found
}

/// Returns the program without calls, with variables as values, and with loops as they were
/// written.
fn flattened(program: &Program) -> Program {
    let mut flat = program.clone();
    let passes = PassSet::only(&["inlining", "constant_folding", "ssa", "dead_code"]);
    let mut passes = passes.expect("these passes exist");
    passes.options = Options { inline_every_call: true, ..Options::default() };
    passes::run(&mut flat, &passes);
    flat
}

struct Checker<'a> {
    sources: &'a SourceMap,
}

impl Checker<'_> {
    fn error(&self, code: &'static str, loc: Loc, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.sources.span(loc, 1), message)
    }

    /// Finds operations whose result depends on more than the arguments, or that have effects.
    fn effects(&self, function: &Function) -> Option<Diagnostic> {
        let mut insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.find_map(|inst| {
            let what = match &inst.op {
                Op::Load { .. } | Op::Store { .. } | Op::LoadBytes { .. } => return None,
                Op::StoreBytes { .. } | Op::Call { .. } => return None,
                op if op.is_pure() => return None,
                Op::Now => "the time",
                Op::Random => "chance",
                Op::Probe { probe: Probe::Printf(_), .. } => "`printf`",
                Op::Probe { .. } => "a breakpoint",
                _ => "a packet",
            };
            let message = format!("`{}` uses {what}", function.name);
            let error = self.error("K0201", inst.loc, message);
            Some(error.help(
                "the result of a registered function depends on its arguments only, and it has \
                 no other effect",
            ))
        })
    }

    fn too_long(&self, loc: Loc) -> Diagnostic {
        let message = format!("this loop may run more than {ROUNDS_MOST} rounds for an element");
        self.error("K0202", loc, message)
            .label("the bounds of the loops around it are multiplied")
            .help("a request waits until the function has returned for all elements of a value")
    }

    /// Checks the memory that a call needs.
    fn size(&self, function: &Function) -> Option<Diagnostic> {
        let arrays = function
            .locals
            .iter()
            .map(|local| u64::from(local.elem_bits.div_ceil(8)).saturating_mul(local.depth));
        let bytes = arrays.fold(0_u64, u64::saturating_add);
        if bytes > ARRAYS_MOST {
            let message = format!("the arrays of `{}` take {bytes} bytes", function.name);
            let error = self.error("K0203", function.loc, message);
            return Some(error.help(format!("at most {ARRAYS_MOST} bytes are allowed")));
        }
        let widths = function.values.iter().filter_map(|value| value.ty.bits());
        let widths = widths.chain(function.locals.iter().map(|local| local.elem_bits));
        let width = widths.max().filter(|width| *width > WIDTH_MOST)?;
        let message = format!("`{}` computes with values of {width} bits", function.name);
        let error = self.error("K0203", function.loc, message);
        Some(error.help(format!("at most {WIDTH_MOST} bits are allowed")))
    }

    /// Finds loops that are not proven to end within their bounds.
    fn loops(&self, function: &Function) -> Vec<Diagnostic> {
        let error = |found: &Loop| {
            let header = &function.blocks[found.header];
            let bound = header.loop_info.map_or(0, |info| info.bound);
            let message = format!("this loop is not proven to end within {bound} rounds");
            self.error("K0204", header.term_loc, message)
                .label("its condition alone has to end it")
                .help(format!(
                    "count with `for (uint i = 0; i < {bound}; i++)`, and leave the loop with \
                     `break`"
                ))
        };
        let traps = function.blocks.iter().filter(|block| matches!(block.term, Term::Trap(_)));
        let trap = |block: &Block| {
            let message = format!("`{}` may end without a result", function.name);
            self.error("K0204", block.term_loc, message)
        };
        open_loops(function).iter().map(error).chain(traps.map(trap)).collect()
    }
}

/// Returns the loops of which no condition is proven to end them within their bounds.
fn open_loops(function: &Function) -> Vec<Loop> {
    let loops = Loops::of(function, &Dominators::of(function));
    let counters = Counters::of(function, &loops);
    let mut alone = function.clone();
    let mut ends = |at: usize, found: &Loop| {
        let bound = function.blocks[found.header].loop_info.map_or(0, |info| info.bound);
        let is_bounded = |rounds: Option<u64>| rounds.is_some_and(|rounds| rounds <= bound);
        let mut conditions = conditions(function, found).into_iter();
        is_bounded(counters.rounds(at))
            || conditions.any(|cond| is_bounded(rounds_by_execution(&mut alone, found, cond)))
    };
    let all = loops.loops.iter().enumerate();
    all.filter(|(at, found)| !ends(*at, found)).map(|(_, found)| found.clone()).collect()
}

/// Returns the number of rounds after which this condition ends the loop, if it depends only on
/// constants. The loop has no other condition afterwards.
fn rounds_by_execution(function: &mut Function, found: &Loop, cond: ValueId) -> Option<u64> {
    match &mut function.blocks[found.header].term {
        Term::Branch { cond: of_loop, .. } => *of_loop = cond,
        _ => return None,
    }
    trip_count(function, found)
}
