// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of loops for the watchdog: those whose bounds, multiplied by the bounds of all
//! enclosing loops, let a firing iterate more often than its limit. Other loops are short enough.
//!
//! The selection is made on the program as written. Passes preserve the mark and the number of
//! returns to the header of a marked loop, so that all back ends trap the same firings.

use super::{Dominators, Loops};
use crate::{Function, Op, Program, Term};

/// Default limit of loop iterations in one firing: more than a correct program needs, and some
/// hundredths of a second in native code.
pub const TURN_LIMIT: u64 = 1 << 24;

/// Returns, by function and block, whether it is the header of a watched loop.
pub fn watched_loops(program: &Program, limit: u64) -> Vec<Vec<bool>> {
    let count = program.functions.len();
    let loops: Vec<Loops> =
        program.functions.iter().map(|it| Loops::of(it, &Dominators::of(it))).collect();
    // How often a function may run in a firing, from the loops around its calls.
    let mut runs = vec![1_u64; count];
    for _ in 0..count {
        let mut more = runs.clone();
        for (at, function) in program.functions.iter().enumerate() {
            let turns = turns(function, &loops[at], runs[at]);
            for (node, block) in function.blocks.iter().enumerate() {
                let around = loops[at].innermost(node).map_or(runs[at], |inner| turns[inner]);
                for inst in &block.insts {
                    if let Op::Call { function: callee, .. } = &inst.op {
                        let callee = &mut more[callee.index()];
                        *callee = around.max(*callee);
                    }
                }
            }
        }
        if std::mem::replace(&mut runs, more) == runs {
            break;
        }
    }
    let functions = program.functions.iter().zip(&loops).zip(runs);
    functions
        .map(|((function, loops), runs)| {
            let mut is_watched = vec![false; function.blocks.len()];
            for (found, turns) in loops.loops.iter().zip(turns(function, loops, runs)) {
                is_watched[found.header] = turns > limit;
            }
            is_watched
        })
        .collect()
}

/// Marks the watched loops of a program, and clears all other marks.
pub fn mark_watched_loops(program: &mut Program, limit: u64) {
    let watched = watched_loops(program, limit);
    for (function, watched) in program.functions.iter_mut().zip(watched) {
        for (block, is_watched) in function.blocks.iter_mut().zip(watched) {
            if let Some(info) = &mut block.loop_info {
                info.is_watched = is_watched;
            }
        }
    }
}

/// Returns how often each loop may iterate in a firing in which its function runs `runs` times.
fn turns(function: &Function, loops: &Loops, runs: u64) -> Vec<u64> {
    let mut turns: Vec<u64> = vec![];
    for found in &loops.loops {
        let header = &function.blocks[found.header];
        let suspends = |latch: &usize| matches!(function.blocks[*latch].term, Term::Suspend { .. });
        let bound = match header.loop_info {
            Some(info) => info.bound,
            // Each iteration is a firing of its own.
            None if found.latches.iter().all(suspends) => 1,
            None => u64::MAX,
        };
        let around = found.parent.map_or(runs, |parent| turns[parent]);
        turns.push(around.saturating_mul(bound));
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// A loop of 100 iterations that calls one of 10, which is also called from outside it.
    const PROGRAM: &str = "
program nest

fn @inner() {
  entry:
    jump again
  again loop(bound 10):
    %stop = const 0:1
    br %stop, out, again
  out:
    ret
}

fn @outer() {
  entry:
    jump again
  again loop(bound 100):
    call @inner() inline
    %stop = const 0:1
    br %stop, out, again
  out:
    call @inner() inline
    ret
}
";

    #[test]
    fn what_counts_is_the_product_of_the_bounds_over_calls_too() {
        let program = parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
        let watched = |limit| {
            let watched = watched_loops(&program, limit);
            watched.iter().map(|blocks| blocks.contains(&true)).collect::<Vec<_>>()
        };
        assert_eq!(watched(1_000), [false, false]);
        assert_eq!(watched(999), [true, false]);
        assert_eq!(watched(99), [true, true]);
        let mut program = program.clone();
        mark_watched_loops(&mut program, 999);
        let marks = program.functions.iter().flat_map(|function| &function.blocks);
        let marks: Vec<bool> =
            marks.filter_map(|block| Some(block.loop_info?.is_watched)).collect();
        assert_eq!(marks, [true, false]);
    }
}
