// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Async extraction (ClickNP 4.11, 2.5): a slow path becomes an element of its own.
//!
//! A call of [`Latency::Async`] or [`Latency::Element`] in a handler is replaced by a put of its
//! arguments on a request port, a suspension that waits for the response port alone, and a take of
//! the result. Every instance of the element gets a companion, joined by two channels; its handler
//! takes a request, runs the callee and puts the response. State and tables that only the callee
//! uses move there. Where that would change what the program means the call stays, and the report
//! says why.
//!
//! What changes: a firing with such a call counts as two, the element gains ports, and host events
//! may come between the two halves. A trap of the callee reaches the caller as the top bit of the
//! response, so that the firing is given up as before; the companion counts it as well.

mod caller;
mod companion;
mod eligibility;

use super::{Changes, Options};
use crate::{ElementId, FunctionId, Latency, ObjectId, Op, PortId, Program, TableId, TrapCode};

/// See the module.
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

/// What is to be extracted and how.
struct Plan {
    element: ElementId,
    callee: FunctionId,
    /// The callee and all it calls.
    group: Vec<FunctionId>,
    /// Those of the group that others call too; they are copied.
    shared: Vec<FunctionId>,
    /// State that moves, in order.
    objects: Vec<ObjectId>,
    /// Tables that move, in order.
    tables: Vec<TableId>,
    /// Bits of each argument.
    args: Vec<u32>,
    /// Bits of the result, if there is one.
    result: Option<u32>,
    /// How the callee can trap.
    trap: Option<TrapCode>,
}

impl Plan {
    /// Bits of a request; one without meaning where there is no argument.
    fn request_bits(&self) -> u32 {
        self.args.iter().sum::<u32>().max(1)
    }

    /// Bits of a response: the result, and on top whether the callee trapped.
    fn response_bits(&self) -> u32 {
        (self.result.unwrap_or(0) + u32::from(self.trap.is_some())).max(1)
    }
}

/// The ports of the caller that lead to its companion.
#[derive(Clone, Copy)]
struct Link {
    request: PortId,
    response: PortId,
}

/// The functions that the handler of an element calls as slow paths.
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
