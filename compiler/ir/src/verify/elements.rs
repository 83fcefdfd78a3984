// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verification of elements: declarations, roles of functions, and calls.

use super::{Report, repeated};
use crate::{
    Addressing, Element, ElementId, Function, FunctionId, Item, Lifetime, Object, Op, Program,
    SIGNAL_BITS, Space, Table, TableKind, Type,
};

/// Maximum inputs of an element: a set of ports fits 64 bits.
const MOST_INPUTS: usize = 64;

pub(super) fn check(program: &Program, report: &mut Report) {
    for (at, element) in program.elements.iter().enumerate() {
        report.enter(format!("element {}", element.name), element.loc);
        check_ports(element, report);
        for object in &element.state {
            report.loc = object.loc;
            check_object(object, Lifetime::Instance, report);
        }
        element.tables.iter().for_each(|table| check_table(table, report));
        report.loc = element.loc;
        report.require(element.initiation_interval > 0, || "its interval is 0 clocks".to_owned());
        check_roles(program, ElementId::new(at), element, report);
    }
    for function in &program.functions {
        report.enter(format!("function {}", function.name), function.loc);
        for object in &function.locals {
            report.loc = object.loc;
            check_object(object, Lifetime::Firing, report);
        }
    }
}

fn check_ports(element: &Element, report: &mut Report) {
    let count = element.inputs.len();
    report.require(count <= MOST_INPUTS, || format!("it has {count} inputs, over 64"));
    let visible = element.state.iter().filter(|object| object.host_visible);
    for (what, twice) in [
        ("input ports", repeated(element.inputs.iter().map(|port| &port.name))),
        ("output ports", repeated(element.outputs.iter().map(|port| &port.name))),
        ("tables", repeated(element.tables.iter().map(|table| &table.name))),
        ("methods", repeated(element.methods.iter().map(|method| &method.name))),
        ("visible variables", repeated(visible.map(|object| &object.name))),
    ] {
        let name = twice.map_or("", |name| name);
        report.require(twice.is_none(), || format!("two {what} are named {name}"));
    }
    for port in element.inputs.iter().chain(&element.outputs) {
        report.loc = port.loc;
        check_item(port.item, &port.name, report);
    }
}

/// Checks that an item has bits, or a window.
pub(super) fn check_item(item: Item, name: &str, report: &mut Report) {
    let has_room = match item {
        Item::Flit => true,
        Item::Bits(width) => width > 0,
        Item::Packet { window_bytes } => window_bytes > 0,
    };
    report.require(has_room, || format!("the items of {name} are empty"));
}

fn check_object(object: &Object, wanted: Lifetime, report: &mut Report) {
    let name = &object.name;
    report.require(object.elem_bits > 0 && object.depth > 0, || format!("{name} is empty"));
    report.require(object.lifetime == wanted, || {
        format!("{name} lives for a {:?}, where a {wanted:?} is expected", object.lifetime)
    });
    let is_memory = !matches!(object.space, Space::Packet | Space::TableValue);
    report.require(is_memory, || format!("{name} is neither a packet nor a table value"));
    let is_bytes = object.addressing == Addressing::Element || object.elem_bits == 8;
    report.require(is_bytes, || format!("{name} is addressed by byte, and has other elements"));
    let fits = object.init.len() as u64 <= object.depth
        && object.init.iter().all(|bits| bits.width() == object.elem_bits);
    report.require(fits, || format!("the first contents of {name} do not fit it"));
}

fn check_table(table: &Table, report: &mut Report) {
    report.loc = table.loc;
    let name = &table.name;
    report.require(table.key_bits > 0 && table.capacity > 0, || format!("{name} is empty"));
    let is_bytes = table.value_bits > 0 && table.value_bits.is_multiple_of(8);
    report.require(is_bytes, || format!("the values of {name} are not whole bytes"));
    let has_prefix = table.kind != TableKind::LongestPrefix || table.key_bits > 32;
    report.require(has_prefix, || format!("the keys of {name} hold only a prefix length"));
}

fn check_roles(program: &Program, id: ElementId, element: &Element, report: &mut Report) {
    let methods = element.methods.iter().map(|method| (method.name.as_str(), method.function));
    let roles =
        [("handler", Some(element.handler)), ("init", element.init), ("signal", element.signal)];
    let roles = roles.into_iter().filter_map(|(role, function)| Some((role, function?)));
    for (role, function) in roles.clone().chain(methods.clone()) {
        let is_own = program.function(function).owner == Some(id);
        report.require(is_own, || format!("its {role} belongs to another"));
    }
    for (role, function) in roles {
        let function = program.function(function);
        let (params, result) = match role {
            "signal" => (vec![Type::Bits(SIGNAL_BITS)], Some(Type::Bits(SIGNAL_BITS))),
            _ => (vec![], None),
        };
        let is_right = param_types(function) == params && function.result == result;
        report.require(is_right, || format!("its {role} has other parameters or another result"));
    }
    for (name, function) in methods {
        let function = program.function(function);
        let is_right = param_types(function).into_iter().chain(function.result);
        let is_right = is_right.into_iter().all(|ty| ty.bits().is_some());
        report.require(is_right, || format!("the host can only pass bits to method {name}"));
    }
}

/// Returns the types of a function's parameters.
pub(super) fn param_types(function: &Function) -> Vec<Type> {
    let known = |value: &crate::ValueId| function.values.get(value.index());
    function.params().iter().filter_map(known).map(|value| value.ty).collect()
}

/// Checks that there is no recursion, that ports are used only in firings, and that methods of
/// other instances are called only outside them.
pub(super) fn check_calls(program: &Program, report: &mut Report) {
    check_recursion(program, report);
    for element in &program.elements {
        report.enter(format!("element {}", element.name), element.loc);
        let methods = element.methods.iter().map(|method| method.function);
        let between = element.init.into_iter().chain(element.signal).chain(methods);
        for function in reached(program, between.collect()) {
            report.require(!uses_ports(function), || {
                format!("{} runs outside firings and uses a port", function.name)
            });
        }
        for function in reached(program, vec![element.handler]) {
            report.require(!calls_methods(function), || {
                format!("{} runs in a firing and calls a method", function.name)
            });
        }
    }
}

/// Returns the functions reachable from `left`, including those, as parts of one element.
fn reached(program: &Program, mut left: Vec<FunctionId>) -> Vec<&Function> {
    let mut is_seen = vec![false; program.functions.len()];
    let mut found = vec![];
    while let Some(id) = left.pop() {
        if !std::mem::replace(&mut is_seen[id.index()], true) {
            let function = program.function(id);
            left.extend(insts(function).filter_map(|op| match op {
                Op::Call { function, .. } => Some(*function),
                _ => None,
            }));
            found.push(function);
        }
    }
    found
}

fn check_recursion(program: &Program, report: &mut Report) {
    // Repeatedly removes functions that call none of the remaining ones.
    let mut is_done = vec![false; program.functions.len()];
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for (at, function) in program.functions.iter().enumerate() {
            let callees = callees(program, function);
            if !is_done[at] && callees.iter().all(|callee| is_done[callee.index()]) {
                is_done[at] = true;
                has_changed = true;
            }
        }
    }
    for function in program.functions.iter().zip(is_done).filter(|(_, is_done)| !is_done) {
        report.enter(format!("function {}", function.0.name), function.0.loc);
        report.require(false, || "it calls itself, at least through others".to_owned());
    }
}

/// Returns the callees of a function, including methods of other instances.
fn callees(program: &Program, function: &Function) -> Vec<FunctionId> {
    let callee = |op: &Op| match op {
        Op::Call { function, .. } => Some(*function),
        Op::CallMethod { instance, method, .. } => {
            let methods = &program.element_of(*instance).methods;
            Some(methods[method.index()].function)
        }
        _ => None,
    };
    insts(function).filter_map(callee).collect()
}

fn insts(function: &Function) -> impl Iterator<Item = &Op> {
    function.blocks.iter().flat_map(|block| &block.insts).map(|inst| &inst.op)
}

fn calls_methods(function: &Function) -> bool {
    insts(function).any(|op| matches!(op, Op::CallMethod { .. }))
}

fn uses_ports(function: &Function) -> bool {
    insts(function).any(|op| {
        let is_read = matches!(op, Op::Ready(_) | Op::ReadyMask | Op::Peek(_) | Op::Take(_));
        is_read || matches!(op, Op::Put { .. })
    })
}
