// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The companion element that runs a slow path, and its place in the graph.

use super::{Link, Plan};
use crate::passes::edit::object_of_mut;
use crate::{
    Bits, Builder, CallOrder, Channel, Element, ElementId, Function, FunctionId, Instance,
    InstanceId, Item, Latency, Loc, ObjectId, ObjectRef, OnFull, Op, Port, PortId, Program, Sink,
    Source, TableId, Term, Type, ValueId,
};

/// Adds the element and moves the state of the plan to it.
pub(super) fn add_element(program: &mut Program, plan: &Plan) -> ElementId {
    let id = ElementId::new(program.elements.len());
    let owner = program.element(plan.element);
    let callee = program.function(plan.callee);
    let (name, loc) = (format!("{}.{}", owner.name, callee.name), callee.loc);
    let port = |name: &str, bits: u32| Port { name: name.into(), item: Item::Bits(bits), loc };
    program.elements.push(Element {
        name: name.clone(),
        inputs: vec![port("request", plan.request_bits())],
        outputs: vec![port("response", plan.response_bits())],
        state: vec![],
        tables: vec![],
        init: None,
        handler: plan.callee,
        signal: None,
        methods: vec![],
        await_all: false,
        initiation_interval: 1,
        loc,
    });
    let callee = move_functions(program, plan, id);
    move_state(program, plan, id);
    let handler =
        handler(program, plan, callee, Function::new(format!("{name}.handler"), Some(id), loc));
    program.elements[id.index()].handler = FunctionId::new(program.functions.len());
    program.functions.push(handler);
    id
}

/// Moves the functions of the group to the new element; those that others call too are copied.
/// Returns the new id of the callee.
fn move_functions(program: &mut Program, plan: &Plan, to: ElementId) -> FunctionId {
    let mut became: Vec<FunctionId> = vec![];
    for id in &plan.group {
        let is_owned = program.function(*id).owner.is_some();
        if is_owned && plan.shared.contains(id) {
            let copy = program.function(*id).clone();
            became.push(FunctionId::new(program.functions.len()));
            program.functions.push(copy);
        } else {
            became.push(*id);
        }
    }
    for id in became.clone() {
        let function = &mut program.functions[id.index()];
        if function.owner.is_none() {
            // It has no owner, and calls only functions without one.
            continue;
        }
        function.owner = Some(to);
        for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
            if let Op::Call { function, .. } = &mut inst.op
                && let Some(at) = plan.group.iter().position(|id| id == function)
            {
                *function = became[at];
            }
        }
    }
    let at = plan.group.iter().position(|id| *id == plan.callee);
    became[at.expect("the callee is in its group")]
}

/// Moves objects and tables, and renumbers them in the functions of both elements.
fn move_state(program: &mut Program, plan: &Plan, to: ElementId) {
    let from = &mut program.elements[plan.element.index()];
    let (objects, kept_objects) =
        part(std::mem::take(&mut from.state), |at| plan.objects.contains(&ObjectId::new(at)));
    let (tables, kept_tables) =
        part(std::mem::take(&mut from.tables), |at| plan.tables.contains(&TableId::new(at)));
    from.state = kept_objects;
    from.tables = kept_tables;
    let new = &mut program.elements[to.index()];
    new.state = objects;
    new.tables = tables;
    let moved_objects: Vec<usize> = plan.objects.iter().map(|object| object.index()).collect();
    let moved_tables: Vec<usize> = plan.tables.iter().map(|table| table.index()).collect();
    let new_object = |object: ObjectId| ObjectId::new(place(&moved_objects, object.index()));
    let new_table = |table: TableId| TableId::new(place(&moved_tables, table.index()));
    for function in &mut program.functions {
        if function.owner == Some(plan.element) || function.owner == Some(to) {
            renumber(function, new_object, new_table);
        }
    }
}

/// Splits a list into the chosen items and the rest.
fn part<T>(all: Vec<T>, is_chosen: impl Fn(usize) -> bool) -> (Vec<T>, Vec<T>) {
    let (chosen, rest): (Vec<_>, Vec<_>) =
        all.into_iter().enumerate().partition(|(at, _)| is_chosen(*at));
    let strip = |list: Vec<(usize, T)>| list.into_iter().map(|(_, each)| each).collect();
    (strip(chosen), strip(rest))
}

/// Returns the new number of item `old`: among the moved if it moved, else among the rest.
fn place(moved: &[usize], old: usize) -> usize {
    let among_moved = moved.iter().position(|each| *each == old);
    among_moved.unwrap_or_else(|| old - moved.iter().filter(|each| **each < old).count())
}

fn renumber(
    function: &mut Function,
    new_object: impl Fn(ObjectId) -> ObjectId,
    new_table: impl Fn(TableId) -> TableId,
) {
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Some(ObjectRef::State(object)) = object_of_mut(&mut inst.op) {
            *object = new_object(*object);
        }
        if let Op::Handle(table) = &mut inst.op {
            *table = new_table(*table);
        }
    }
    for value in &mut function.values {
        if let Type::Handle(table) = &mut value.ty {
            *table = new_table(*table);
        }
    }
}

/// Builds a handler that takes a request, calls the callee and puts the response. If the callee can
/// trap, a response that reports a trap is staged before the call: the last put of a firing wins,
/// and staged items leave even after a trap.
fn handler(program: &Program, plan: &Plan, callee: FunctionId, function: Function) -> Function {
    let mut builder = Builder::new(function);
    builder.loc = program.function(callee).loc;
    let request = builder.push(Op::Take(PortId(0)), Type::Bits(plan.request_bits()));
    let mut lo = 0;
    let mut args: Vec<ValueId> = vec![];
    for width in &plan.args {
        args.push(builder.extract(request, lo, *width));
        lo += width;
    }
    let bits = plan.response_bits();
    if plan.trap.is_some() {
        let trapped = Bits::zero(bits).insert(bits - 1, &Bits::from_bool(true));
        let value = builder.constant(trapped);
        builder.push_effect(Op::Put { port: PortId(0), value });
    }
    let call =
        Op::Call { function: callee, args, latency: Latency::Inline, order: CallOrder::InOrder };
    let value = match plan.result {
        Some(width) => {
            let result = builder.push(call, Type::Bits(width));
            builder.resize(result, bits, false)
        }
        None => {
            builder.push_effect(call);
            builder.number(bits, 0)
        }
    };
    builder.push_effect(Op::Put { port: PortId(0), value });
    builder.end(Term::Done { mask: None });
    builder.finish()
}

/// Adds the ports of the caller, and a companion and two channels for each of its instances.
pub(super) fn connect(program: &mut Program, plan: &Plan, companion: ElementId) -> Link {
    let name = program.elements[companion.index()].name.clone();
    let name = name.rsplit('.').next().unwrap_or(&name).to_owned();
    let (request, response) = (Item::Bits(plan.request_bits()), Item::Bits(plan.response_bits()));
    let caller = &mut program.elements[plan.element.index()];
    let loc = caller.loc;
    let link = Link {
        request: add_port(&mut caller.outputs, format!("{name}_request"), request, loc),
        response: add_port(&mut caller.inputs, format!("{name}_response"), response, loc),
    };
    for at in 0..program.graph.instances.len() {
        let caller = program.graph.instances[at].clone();
        if caller.element != plan.element {
            continue;
        }
        let added = InstanceId::new(program.graph.instances.len());
        let name = unused_name(program, &format!("{}.{name}", caller.name));
        program.graph.instances.push(Instance {
            name,
            element: companion,
            controlled: false,
            ..caller.clone()
        });
        let caller_id = InstanceId::new(at);
        let ends = [
            (Source::Port(caller_id, link.request), Sink::Port(added, PortId(0)), request),
            (Source::Port(added, PortId(0)), Sink::Port(caller_id, link.response), response),
        ];
        for (source, sink, item) in ends {
            // At most one request is in flight.
            let (depth, on_full, loc) = (1, OnFull::Block, caller.loc);
            program.graph.channels.push(Channel { source, sink, item, depth, on_full, loc });
        }
    }
    link
}

fn add_port(ports: &mut Vec<Port>, name: String, item: Item, loc: Loc) -> PortId {
    let mut unused = name.clone();
    let mut number = 2;
    while ports.iter().any(|port| port.name == unused) {
        unused = format!("{name}_{number}");
        number += 1;
    }
    ports.push(Port { name: unused, item, loc });
    PortId::new(ports.len() - 1)
}

fn unused_name(program: &Program, name: &str) -> String {
    let is_used = |name: &str| program.graph.instances.iter().any(|each| each.name == name);
    let mut unused = name.to_owned();
    let mut number = 2;
    while is_used(&unused) {
        unused = format!("{name}_{number}");
        number += 1;
    }
    unused
}
