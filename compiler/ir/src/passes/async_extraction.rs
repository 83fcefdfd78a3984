// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Async extraction (ClickNP 4.11, 2.5): a slow path becomes an element of its own.
//!
//! A call of [`Latency::Async`] or [`Latency::Element`] in a handler is replaced by a put of its
//! arguments on a request port, a suspension that waits for the response port alone, and a take of
//! the result. Every instance of the element gets a companion, connected by two channels; its
//! handler takes a request, runs the callee and puts the response. State and tables that only the
//! callee uses move there. If that would change the meaning of the program, the call stays, and the
//! report gives the reason.
//!
//! Observable changes: a firing with such a call counts as two, the element gains ports, and host
//! events may occur between the two halves. A trap of the callee reaches the caller as the top bit
//! of the response, so that the firing traps as before; the companion counts the trap as well.

mod caller;
mod companion;
mod eligibility;

use super::{Changes, Options};
use crate::{ElementId, FunctionId, Latency, ObjectId, Op, PortId, Program, TableId, TrapCode};

pub(super) fn run(program: &mut Program, _: &Options, changes: &mut Changes) {
    for at in 0..program.elements.len() {
        let element = ElementId::new(at);
        for callee in slow_callees(program, element) {
            let name = format!("{}.{}", program.elements[at].name, program.function(callee).name);
            match eligibility::plan(program, element, callee) {
                Ok(plan) => {
                    apply(program, &plan);
                    changes.count("elements", 1);
                    changes.note(format!("{name} is an element of its own"));
                }
                Err(reason) => changes.note(format!("{name} stays: {reason}")),
            }
        }
    }
}

/// An extraction: the callee and what moves with it.
struct Plan {
    element: ElementId,
    callee: FunctionId,
    /// The callee and all functions it calls.
    group: Vec<FunctionId>,
    /// Functions of the group that others call too; they are copied.
    shared: Vec<FunctionId>,
    /// State objects that move, in order.
    objects: Vec<ObjectId>,
    /// Tables that move, in order.
    tables: Vec<TableId>,
    /// Width of each argument.
    args: Vec<u32>,
    /// Width of the result, if there is one.
    result: Option<u32>,
    /// The trap that the callee may raise.
    trap: Option<TrapCode>,
}

impl Plan {
    /// Returns the width of a request; a dummy bit if there is no argument.
    fn request_bits(&self) -> u32 {
        self.args.iter().sum::<u32>().max(1)
    }

    /// Returns the width of a response: the result, and above it whether the callee trapped.
    fn response_bits(&self) -> u32 {
        (self.result.unwrap_or(0) + u32::from(self.trap.is_some())).max(1)
    }
}

/// Ports of the caller that lead to its companion.
#[derive(Clone, Copy)]
struct Link {
    request: PortId,
    response: PortId,
}

/// Returns the functions that the handler of an element calls as slow paths.
fn slow_callees(program: &Program, element: ElementId) -> Vec<FunctionId> {
    let handler = program.function(program.element(element).handler);
    let mut found = vec![];
    for inst in handler.blocks.iter().flat_map(|block| &block.insts) {
        if let Some(callee) = slow_callee(&inst.op)
            && !found.contains(&callee)
        {
            found.push(callee);
        }
    }
    found
}

fn slow_callee(op: &Op) -> Option<FunctionId> {
    match op {
        Op::Call { function, latency: Latency::Async | Latency::Element, .. } => Some(*function),
        _ => None,
    }
}

fn apply(program: &mut Program, plan: &Plan) {
    let element = companion::add_element(program, plan);
    let link = companion::connect(program, plan, element);
    caller::rewrite(program, plan, link);
}
