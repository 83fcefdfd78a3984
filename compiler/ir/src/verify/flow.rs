// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control and data flow of one function: values are defined once and before use; loops have one
//! entry and a bound.

use super::Report;
use crate::analysis::{Dominators, Loops};
use crate::{Function, FunctionId, Program, Term, Unroll, ValueId};

/// Position of a definition: its block, and the number of operations before it.
type Place = (usize, usize);

pub(super) fn check(program: &Program, id: FunctionId, report: &mut Report) {
    let function = program.function(id);
    report.enter(format!("function {}", function.name), function.loc);
    let definitions = definitions(function, report);
    let dominators = Dominators::of(function);
    for (at, block) in function.blocks.iter().enumerate() {
        if !dominators.is_reachable(at) {
            continue;
        }
        let check_use = |value: ValueId, place: usize, report: &mut Report| {
            let Some((from, after)) = definitions[value.index()] else {
                report.require(false, || format!("value {} is used but not defined", value.0));
                return;
            };
            let is_before = match from == at {
                true => after <= place,
                false => dominators.dominates(from, at),
            };
            report.require(is_before, || {
                format!("value {} is used where it may not be defined yet", value.0)
            });
        };
        for (place, inst) in block.insts.iter().enumerate() {
            report.go_to(at, Some(place), inst.loc);
            inst.op.for_each_operand(|value| check_use(value, place, report));
        }
        report.go_to(at, None, block.term_loc);
        block.term.for_each_operand(|value| check_use(value, block.insts.len(), report));
    }
    check_loops(function, &dominators, report);
}

/// Returns the position of each definition; reports values defined twice.
fn definitions(function: &Function, report: &mut Report) -> Vec<Option<Place>> {
    let mut definitions = vec![None; function.values.len()];
    let mut define = |value: ValueId, place: Place, report: &mut Report| {
        let is_first = definitions[value.index()].replace(place).is_none();
        report.require(is_first, || format!("value {} is defined twice", value.0));
    };
    for (at, block) in function.blocks.iter().enumerate() {
        report.go_to(at, None, block.term_loc);
        block.params.iter().for_each(|value| define(*value, (at, 0), report));
        for (place, inst) in block.insts.iter().enumerate() {
            report.go_to(at, Some(place), inst.loc);
            inst.result.iter().for_each(|value| define(*value, (at, place + 1), report));
        }
    }
    definitions
}

fn check_loops(function: &Function, dominators: &Dominators, report: &mut Report) {
    let loops = Loops::of(function, dominators);
    for (from, to) in &loops.irreducible_edges {
        report.go_to(*from, None, function.blocks[*from].term_loc);
        report.require(false, || format!("it enters a loop at b{to}, which is not its header"));
    }
    for each in &loops.loops {
        let header = &function.blocks[each.header];
        report.go_to(each.header, None, header.term_loc);
        // Each iteration of a cycle that suspends is a firing, so it needs no bound.
        let is_suspended =
            |latch: &usize| matches!(function.blocks[*latch].term, Term::Suspend { .. });
        let is_bounded = header.loop_info.is_some() || each.latches.iter().all(is_suspended);
        report.require(is_bounded, || "the header of a loop says no bound".to_owned());
    }
    for (at, block) in function.blocks.iter().enumerate() {
        if let Some(Unroll::By(copies)) = block.loop_info.map(|info| info.unroll) {
            report.go_to(at, None, block.term_loc);
            report.require(copies >= 2, || "a loop is unrolled by 2 or more".to_owned());
        }
    }
}
