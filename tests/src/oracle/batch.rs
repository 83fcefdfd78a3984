// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Merges many programs into one, so that the C compiler runs once for all of them.
//!
//! Their graphs stay separate: only numbers are shifted, and names are prefixed with the program's
//! number.

use freeport_ir::{ElementId, EndpointId, FunctionId, InstanceId, Op, Program, Sink, Source};

/// Merges the programs; endpoint `to_tor` of program 3 becomes `3.to_tor`.
pub fn merge(programs: impl IntoIterator<Item = Program>) -> Program {
    let mut whole =
        Program { name: "batch".into(), files: vec!["batch".into()], ..Program::default() };
    for (number, program) in programs.into_iter().enumerate() {
        append(&mut whole, program, number);
    }
    whole
}

fn append(whole: &mut Program, mut program: Program, number: usize) {
    let functions = whole.functions.len() as u32;
    let elements = whole.elements.len() as u32;
    let instances = whole.graph.instances.len() as u32;
    let endpoints = whole.graph.endpoints.len() as u32;
    let function_id = |id: &mut FunctionId| id.0 += functions;
    for function in &mut program.functions {
        function.owner = function.owner.map(|ElementId(at)| ElementId(at + elements));
        let blocks = function.blocks.iter_mut();
        for inst in blocks.flat_map(|block| &mut block.insts) {
            if let Op::Call { function, .. } = &mut inst.op {
                function_id(function);
            }
        }
    }
    for element in &mut program.elements {
        element.name = format!("{number}.{}", element.name);
        function_id(&mut element.handler);
        element.init.iter_mut().chain(&mut element.signal).for_each(function_id);
        element.methods.iter_mut().for_each(|method| function_id(&mut method.function));
    }
    let graph = &mut program.graph;
    for instance in &mut graph.instances {
        instance.name = format!("{number}.{}", instance.name);
        instance.element.0 += elements;
    }
    for endpoint in &mut graph.endpoints {
        endpoint.name = format!("{number}.{}", endpoint.name);
    }
    let (instance_id, endpoint_id) = (
        |InstanceId(at): InstanceId| InstanceId(at + instances),
        |EndpointId(at): EndpointId| EndpointId(at + endpoints),
    );
    for channel in &mut graph.channels {
        channel.source = match channel.source {
            Source::Endpoint(id) => Source::Endpoint(endpoint_id(id)),
            Source::Port(id, port) => Source::Port(instance_id(id), port),
        };
        channel.sink = match channel.sink {
            Sink::Endpoint(id) => Sink::Endpoint(endpoint_id(id)),
            Sink::Port(id, port) => Sink::Port(instance_id(id), port),
        };
    }
    whole.functions.append(&mut program.functions);
    whole.elements.append(&mut program.elements);
    whole.graph.instances.append(&mut program.graph.instances);
    whole.graph.endpoints.append(&mut program.graph.endpoints);
    whole.graph.channels.append(&mut program.graph.channels);
}
