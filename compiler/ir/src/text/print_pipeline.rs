// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints the scheduled form of a handler.

use super::print::{at, put, reference};
use super::print_function::FunctionText;
use super::spelling::name;
use crate::schedule::{Access, Action, Pipeline, Step};
use crate::typing::{Produces, result_of};
use crate::{Bits, Element, Function, Inst, Op, Program, Type};

/// Returns the text form of a pipeline of an element of `program`;
/// [`parse_pipeline`](super::parse_pipeline()) restores the same pipeline.
pub fn print_pipeline(program: &Program, pipeline: &Pipeline) -> String {
    let function = naming_function(pipeline);
    let names = FunctionText::new(program, &function);
    let owner = program.elements.get(pipeline.element.index());
    let element = reference(program.elements.iter().map(|each| &each.name), pipeline.element.0);
    let mut out = format!("pipeline {element} interval {} {{\n", pipeline.initiation_interval);
    declarations(&mut out, pipeline, owner);
    let mut stage = None;
    for step in &pipeline.steps {
        if stage.replace(step.stage) != Some(step.stage) {
            put(&mut out, format_args!("  stage {}:\n", step.stage));
        }
        put(&mut out, format_args!("    {}\n", print_step(program, pipeline, owner, &names, step)));
    }
    if let Some(mask) = pipeline.next_mask {
        put(&mut out, format_args!("  next {}\n", names.value(mask)));
    }
    out + "}\n"
}

fn declarations(out: &mut String, pipeline: &Pipeline, owner: Option<&Element>) {
    let register =
        |index: usize| reference(pipeline.registers.iter().map(|each| &each.name), index as u32);
    let state = owner.map_or(&[][..], |element| &element.state);
    let object = |index: u32| reference(state.iter().map(|object| &object.name), index);
    for each in &pipeline.registers {
        let (name, reset) = (name(&each.name), &each.reset);
        put(out, format_args!("  register {name} = {reset:?}\n"));
    }
    for port in &pipeline.memory_ports {
        let access = match port.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::ReadWrite => "read_write",
        };
        let (name, object) = (name(&port.name), object(port.object.0));
        put(out, format_args!("  port {name}: {access} {object} latency {}\n", port.latency));
    }
    for forward in &pipeline.forwards {
        put(
            out,
            format_args!(
                "  forward {} stage {} address {} value {} valid {}\n",
                object(forward.object.0),
                forward.stage,
                register(forward.address),
                register(forward.value),
                register(forward.valid)
            ),
        );
    }
    let outputs = owner.map_or(&[][..], |element| &element.outputs);
    for (output, slots) in pipeline.fifo_slots.iter().enumerate() {
        let output = reference(outputs.iter().map(|port| &port.name), output as u32);
        put(out, format_args!("  fifo {output} {slots}\n"));
    }
}

fn print_step(
    program: &Program,
    pipeline: &Pipeline,
    owner: Option<&Element>,
    names: &FunctionText,
    step: &Step,
) -> String {
    let register =
        |index: usize| reference(pipeline.registers.iter().map(|each| &each.name), index as u32);
    let (op, inferred) = match &step.action {
        Action::Op(op) => {
            let known = |value: crate::ValueId| Some(pipeline.values.get(value.index())?.ty);
            (names.op(op), result_of(op, program, owner, known))
        }
        Action::Get(index) => {
            let width = pipeline.registers.get(*index).map(|each| each.reset.width());
            let ty = width.map_or(Produces::Unknown, |width| Produces::Value(Type::Bits(width)));
            (format!("get {}", register(*index)), ty)
        }
        Action::Set(index, value) => {
            (format!("set {}, {}", register(*index), names.value(*value)), Produces::Nothing)
        }
    };
    let mut text = names.defining(step.result, inferred, op);
    if let Some(port) = step.port {
        let ports = pipeline.memory_ports.iter().map(|port| &port.name);
        put(&mut text, format_args!(" via {}", reference(ports, port as u32)));
    }
    if let Some(predicate) = step.predicate {
        put(&mut text, format_args!(" if {}", names.value(predicate)));
    }
    text + &at(step.loc)
}

/// Returns a function with the same definitions in the same order, which determines the names of
/// values.
fn naming_function(pipeline: &Pipeline) -> Function {
    let mut function = Function::new("", Some(pipeline.element), Default::default());
    function.values = pipeline.values.clone();
    for step in &pipeline.steps {
        let op = Op::Const(Bits::zero(1));
        function.blocks[0].insts.push(Inst { result: step.result, op, loc: step.loc });
    }
    function
}
