// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Input ports that are never read, and those that a firing reads twice.

use crate::ast::walk::{each_expression, each_statement, expressions_in};
use crate::ast::{Element, Expr, ExprKind};
use crate::diagnostic::Diagnostic;
use crate::source::SourceMap;
use freeport_ir::analysis::Dominators;
use freeport_ir::{Function, FunctionId, Loc, Op, PortId, Program, Term};
use std::collections::HashMap;

const READ: &str = "read_input_port";

/// Warns about inputs that no section and no function of an element reads.
pub(super) fn check_read(element: &Element, found: &mut Vec<Diagnostic>) {
    let mut read: Vec<&Expr> = vec![];
    for block in super::blocks_of_element(element) {
        for statement in &block.statements {
            each_statement(statement, &mut |one| {
                for expr in expressions_in(one) {
                    each_expression(expr, &mut |part| read.extend(port_read(part)));
                }
            });
        }
    }
    let Some(names) = read.into_iter().map(port_name).collect::<Option<Vec<_>>>() else { return };
    for port in element.inputs.iter().filter(|port| !names.contains(&port.name.text.as_str())) {
        let name = &port.name.text;
        found.push(
            Diagnostic::warning("W0605", port.name.span, format!("`{name}` is never read"))
                .label("items that arrive here stay, and their sender waits forever")
                .help(format!("take each item with `{READ}({name})`, or remove the port")),
        );
    }
}

fn port_read(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Call(name, _, args) if name.text == READ => args.first(),
        _ => None,
    }
}

/// Returns the name of the port; `None` for a port given by number.
fn port_name(port: &Expr) -> Option<&str> {
    match &port.kind {
        ExprKind::Name(name, _) => Some(name),
        ExprKind::Index(of, _) => port_name(of),
        _ => None,
    }
}

/// Returns the warnings about the handlers of a program.
pub fn of_program(program: &Program, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut always = HashMap::new();
    let mut found = vec![];
    for element in program.elements.iter().filter(|element| !element.inputs.is_empty()) {
        let handler = program.function(element.handler);
        for (first, second, port) in reads_twice(program, handler, &mut always) {
            let name = &element.inputs[port.index()].name;
            let place = |loc: Loc| sources.span(loc, 1);
            let message = format!("`{name}` is read twice in a firing");
            found.push(
                Diagnostic::warning("W0611", place(second), message)
                    .label("gives 0: a firing takes one item from a port")
                    .note(place(first), "the first time, which always comes before")
                    .help("keep the item in a variable, or read the next one in the next firing"),
            );
        }
    }
    found
}

/// Returns the reads that certainly follow another read of the same port, each with that one.
fn reads_twice(
    program: &Program,
    function: &Function,
    always: &mut HashMap<FunctionId, Vec<PortId>>,
) -> Vec<(Loc, Loc, PortId)> {
    let dominators = Dominators::of(function);
    let reads = reads_of(program, function, always);
    let mut twice = vec![];
    for (at, (block, port, loc)) in reads.iter().enumerate() {
        let before = reads.iter().enumerate().find(|(other, (above, same, _))| {
            let is_above = if above == block { *other < at } else { true };
            same == port && is_above && *other != at && dominators.dominates(*above, *block)
        });
        if let Some((_, (_, _, first))) = before {
            twice.push((*first, *loc, *port));
        }
    }
    twice
}

/// Returns the reads of a function, including those in its calls, in the order of its blocks.
fn reads_of(
    program: &Program,
    function: &Function,
    always: &mut HashMap<FunctionId, Vec<PortId>>,
) -> Vec<(usize, PortId, Loc)> {
    let dominators = Dominators::of(function);
    let mut reads = vec![];
    for (at, block) in function.blocks.iter().enumerate() {
        if !dominators.is_reachable(at) {
            continue;
        }
        for inst in &block.insts {
            match &inst.op {
                Op::Take(port) => reads.push((at, *port, inst.loc)),
                Op::Call { function: callee, .. } => {
                    let ports = always_read(program, *callee, always);
                    reads.extend(ports.into_iter().map(|port| (at, port, inst.loc)));
                }
                _ => {}
            }
        }
    }
    reads
}

/// Returns the ports that a function reads whenever it is called.
fn always_read(
    program: &Program,
    id: FunctionId,
    known: &mut HashMap<FunctionId, Vec<PortId>>,
) -> Vec<PortId> {
    if let Some(ports) = known.get(&id) {
        return ports.clone();
    }
    // There is no recursion, but this code should not rely on that.
    known.insert(id, vec![]);
    let function = program.function(id);
    let dominators = Dominators::of(function);
    let blocks = function.blocks.iter().enumerate();
    let is_end = |term: &Term| matches!(term, Term::Return { .. } | Term::Done { .. });
    let ends: Vec<usize> = blocks
        .filter(|(at, block)| dominators.is_reachable(*at) && is_end(&block.term))
        .map(|(at, _)| at)
        .collect();
    let reads = reads_of(program, function, known).into_iter();
    let mut ports: Vec<PortId> = reads
        .filter(|(at, ..)| ends.iter().all(|end| dominators.dominates(*at, *end)))
        .map(|(_, port, _)| port)
        .collect();
    ports.dedup();
    known.insert(id, ports.clone());
    ports
}
