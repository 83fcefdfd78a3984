// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every index names something, and every type has a width.

use super::Report;
use crate::{
    Element, ElementId, Function, FunctionId, Inst, ObjectRef, Op, Program, Sink, Source, Type,
    ValueId,
};

/// Checks indexes outside functions; returns whether all are in range.
pub(super) fn check_program(program: &Program, report: &mut Report) -> bool {
    let before = report.errors.len();
    for element in &program.elements {
        report.enter(format!("element {}", element.name), element.loc);
        let methods = element.methods.iter().map(|method| method.function);
        let roles = [Some(element.handler), element.init, element.signal];
        for function in roles.into_iter().flatten().chain(methods) {
            check_callee(program, function, report);
        }
    }
    for function in &program.functions {
        report.enter(format!("function {}", function.name), function.loc);
        let is_known = |owner: ElementId| owner.index() < program.elements.len();
        report.require(function.owner.is_none_or(is_known), || "no such owner".to_owned());
        report.require(!function.blocks.is_empty(), || "it has no block".to_owned());
    }
    report.enter("graph", Default::default());
    for instance in &program.graph.instances {
        report.loc = instance.loc;
        let is_known = instance.element.index() < program.elements.len();
        report.require(is_known, || format!("instance {} has no element type", instance.name));
    }
    if report.errors.len() > before {
        return false;
    }
    for channel in &program.graph.channels {
        report.loc = channel.loc;
        let source = match channel.source {
            Source::Endpoint(at) => at.index() < program.graph.endpoints.len(),
            Source::Port(at, port) => {
                at.index() < program.graph.instances.len()
                    && port.index() < program.element_of(at).outputs.len()
            }
        };
        let sink = match channel.sink {
            Sink::Endpoint(at) => at.index() < program.graph.endpoints.len(),
            Sink::Port(at, port) => {
                at.index() < program.graph.instances.len()
                    && port.index() < program.element_of(at).inputs.len()
            }
        };
        report.require(source, || "a channel comes from nowhere".to_owned());
        report.require(sink, || "a channel leads nowhere".to_owned());
    }
    report.errors.len() == before
}

fn check_callee(program: &Program, function: FunctionId, report: &mut Report) {
    let is_known = function.index() < program.functions.len();
    report.require(is_known, || format!("there is no function {}", function.0));
}

/// Checks indexes inside a function; returns whether all are in range.
pub(super) fn check_function(program: &Program, function: &Function, report: &mut Report) -> bool {
    let before = report.errors.len();
    report.enter(format!("function {}", function.name), function.loc);
    let owner = function.owner.map(|owner| program.element(owner));
    for (at, value) in function.values.iter().enumerate() {
        check_type(owner, value.ty, report, || format!("value {at}"));
    }
    if let Some(ty) = function.result {
        check_type(owner, ty, report, || "the result".to_owned());
    }
    for (at, block) in function.blocks.iter().enumerate() {
        report.go_to(at, None, block.term_loc);
        block.params.iter().for_each(|value| check_value(function, *value, report));
        for (place, inst) in block.insts.iter().enumerate() {
            report.go_to(at, Some(place), inst.loc);
            check_inst(program, function, inst, report);
        }
        report.go_to(at, None, block.term_loc);
        block.term.for_each_operand(|value| check_value(function, value, report));
        for target in block.term.targets() {
            let is_known = target.block.index() < function.blocks.len();
            report.require(is_known, || format!("there is no block {}", target.block.0));
        }
    }
    report.errors.len() == before
}

fn check_type(owner: Option<&Element>, ty: Type, report: &mut Report, what: impl Fn() -> String) {
    match ty {
        Type::Bits(width) => {
            report.require(width > 0, || format!("{} has no bits", what()));
        }
        Type::Handle(table) => {
            let is_known = owner.is_some_and(|owner| table.index() < owner.tables.len());
            report.require(is_known, || format!("{} is a handle of no table", what()));
        }
        Type::Ref(spaces) => {
            let has_space = spaces.iter().next().is_some();
            report.require(has_space, || format!("{} refers into no space", what()));
        }
        Type::Packet => {}
    }
}

fn check_value(function: &Function, value: ValueId, report: &mut Report) {
    let is_known = value.index() < function.values.len();
    report.require(is_known, || format!("there is no value {}", value.0));
}

fn check_inst(program: &Program, function: &Function, inst: &Inst, report: &mut Report) {
    inst.op.for_each_operand(|value| check_value(function, value, report));
    inst.result.iter().for_each(|value| check_value(function, *value, report));
    let owner = function.owner.map(|owner| program.element(owner));
    let (what, is_known) = match &inst.op {
        Op::Load { object, .. }
        | Op::Store { object, .. }
        | Op::LoadBytes { object, .. }
        | Op::StoreBytes { object, .. } => match object {
            ObjectRef::Local(at) => ("local object", at.index() < function.locals.len()),
            ObjectRef::State(at) => {
                ("state", owner.is_some_and(|owner| at.index() < owner.state.len()))
            }
        },
        Op::Handle(at) => ("table", owner.is_some_and(|owner| at.index() < owner.tables.len())),
        Op::ReadyMask => ("port", owner.is_some()),
        Op::Ready(port) | Op::Peek(port) | Op::Take(port) => {
            ("input port", owner.is_some_and(|owner| port.index() < owner.inputs.len()))
        }
        Op::Put { port, .. } => {
            ("output port", owner.is_some_and(|owner| port.index() < owner.outputs.len()))
        }
        Op::Call { function, .. } => ("function", function.index() < program.functions.len()),
        Op::CallMethod { instance, method, .. } => {
            ("method of an instance", program.method(*instance, *method).is_some())
        }
        Op::NullRef(spaces) => ("space", spaces.iter().next().is_some()),
        _ => return,
    };
    report.require(is_known, || match owner {
        Some(_) => format!("it names no {what}"),
        None => format!("it names no {what}; a function without an owner has none"),
    });
}
