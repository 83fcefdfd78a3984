// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that are lowered, verified, and run in the interpreter, before and after the passes.

mod elements;
mod functions;
mod packets;
mod tables;
mod wide;

use super::Lowering;
use crate::diagnostic::Severity;
use crate::load::load_text;
use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::{self as ir, Bits, InstanceId, Program};
use std::path::Path;

/// Lowers the elements and functions of a text.
fn lowered(text: &str) -> Result<Program, String> {
    let loaded = load_text(Path::new("test.cnp"), text, &[]);
    let render = |all: &[crate::diagnostic::Diagnostic]| {
        all.iter().map(|one| one.render(&loaded.sources)).collect::<Vec<_>>().join("\n")
    };
    if !loaded.diagnostics.is_empty() {
        return Err(render(&loaded.diagnostics));
    }
    let mut lowering = Lowering::new(&loaded.files, &loaded.sources);
    lowering.check_file(&loaded.files, 0);
    let finished = lowering.finish();
    if finished.diagnostics.iter().any(|one| one.severity == Severity::Error) {
        return Err(render(&finished.diagnostics));
    }
    Ok(finished.program)
}

/// Returns a correct program with one instance `it` of its first element, with an endpoint at each
/// port.
fn with_instance(text: &str) -> Program {
    let mut program = lowered(text).unwrap_or_else(|errors| panic!("{errors}"));
    let element = &program.elements[0];
    let (inputs, outputs) = (element.inputs.clone(), element.outputs.clone());
    let graph = &mut program.graph;
    graph.instances.push(ir::Instance {
        name: "it".into(),
        element: ir::ElementId(0),
        host: false,
        controlled: true,
        verilog: false,
        loc: ir::Loc::default(),
    });
    for (ports, direction) in [(inputs, ir::Direction::Into), (outputs, ir::Direction::OutOf)] {
        for (at, port) in ports.into_iter().enumerate() {
            let endpoint = ir::EndpointId::new(graph.endpoints.len());
            let (own, other) = (ir::PortId::new(at), InstanceId(0));
            let (source, sink) = match direction {
                ir::Direction::Into => (ir::Source::Endpoint(endpoint), ir::Sink::Port(other, own)),
                ir::Direction::OutOf => {
                    (ir::Source::Port(other, own), ir::Sink::Endpoint(endpoint))
                }
            };
            let item = port.item;
            graph.endpoints.push(ir::Endpoint { name: port.name, direction, item });
            graph.channels.push(ir::Channel {
                source,
                sink,
                item,
                depth: ir::DEFAULT_DEPTH,
                on_full: ir::OnFull::Block,
                loc: ir::Loc::default(),
            });
        }
    }
    ir::verify(&program).unwrap_or_else(|errors| panic!("{errors:#?}"));
    program
}

/// Returns the result of the method `call` of the only element of a text; the passes must not
/// change it.
fn call(text: &str, args: &[Bits]) -> Bits {
    let program = with_instance(text);
    let run = |program: &Program| {
        let mut interpreter = Interpreter::new(program, &Options::default()).unwrap();
        let answer = interpreter.call_method(InstanceId(0), "call", args.to_vec()).unwrap();
        answer.expect("the method has a result")
    };
    let before = run(&program);
    let mut optimised = program.clone();
    ir::passes::run(&mut optimised, &ir::passes::PassSet::for_cpu());
    assert_eq!(before, run(&optimised), "after the passes");
    before
}

/// Returns the value of `body`, statements that return a `result`, with `functions` before them.
fn value(functions: &str, result: &str, body: &str) -> u64 {
    let text = format!(
        "{functions}\n.element Test (->) {{ .handler {{}} .method {result} call() {{ {body} }} }}"
    );
    call(&text, &[]).to_u64()
}

/// Returns the errors of a text.
fn errors(text: &str) -> String {
    lowered(text).err().unwrap_or_default()
}
