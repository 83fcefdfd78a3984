// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eligibility of slow paths for extraction.

use super::{Plan, slow_callee};
use crate::passes::edit::object_of;
use crate::{
    BlockId, Element, ElementId, Function, FunctionId, ObjectId, ObjectRef, Op, PortId, Program,
    TableId, Term, TrapCode, Type,
};
use std::collections::BTreeSet;

/// Number of ports that a mask can represent.
const MAX_PORTS: usize = 64;

/// Plans the extraction of `callee`, or returns why it is impossible.
pub(super) fn plan(
    program: &Program,
    element: ElementId,
    callee: FunctionId,
) -> Result<Plan, String> {
    check_element(program, element)?;
    let group = reachable(program, &[callee], None);
    check_group(program, &group)?;
    let (args, result) = signature(program.function(callee))?;
    check_calls(program, element, callee)?;
    let roots = roots(program.element(element));
    let others = reachable(program, &roots, Some((program.element(element).handler, callee)));
    let shared: Vec<FunctionId> = group.intersection(&others).copied().collect();
    let (objects, tables) = moved(program, element, &group, &shared)?;
    let trap = trap_of(program, &group)?;
    let group = group.into_iter().collect();
    Ok(Plan { element, callee, group, shared, objects, tables, args, result, trap })
}

fn check_element(program: &Program, id: ElementId) -> Result<(), String> {
    let element = program.element(id);
    if element.inputs.is_empty() {
        return Err("an element without inputs fires before any response".into());
    }
    if element.await_all {
        return Err("an element that awaits all its ports would await the response at first".into());
    }
    if element.inputs.len() >= MAX_PORTS {
        return Err("there is no bit of the mask left for the response".into());
    }
    let mut instances = program.graph.instances.iter();
    match instances.find(|instance| instance.element == id && instance.verilog) {
        Some(instance) => Err(format!("`{}` is a module given by hand", instance.name)),
        None => Ok(()),
    }
}

/// Returns all functions reachable from `from`. With `except`, slow calls of a callee by a handler
/// are not followed.
fn reachable(
    program: &Program,
    from: &[FunctionId],
    except: Option<(FunctionId, FunctionId)>,
) -> BTreeSet<FunctionId> {
    let mut found = BTreeSet::new();
    let mut left = from.to_vec();
    while let Some(id) = left.pop() {
        if !found.insert(id) {
            continue;
        }
        for op in ops(program.function(id)) {
            if let Op::Call { function, .. } = op {
                let is_slow = slow_callee(op).is_some() && except == Some((id, *function));
                left.extend((!is_slow).then_some(*function));
            }
        }
    }
    found
}

fn ops(function: &Function) -> impl Iterator<Item = &Op> {
    function.blocks.iter().flat_map(|block| &block.insts).map(|inst| &inst.op)
}

fn roots(element: &Element) -> Vec<FunctionId> {
    let methods = element.methods.iter().map(|method| method.function);
    methods.chain([element.handler]).chain(element.init).chain(element.signal).collect()
}

/// Checks that the callee only computes and uses state and tables.
fn check_group(program: &Program, group: &BTreeSet<FunctionId>) -> Result<(), String> {
    for id in group {
        let function = program.function(*id);
        for op in ops(function) {
            if port_use(op).is_some() {
                return Err(format!("`{}` uses ports", function.name));
            }
            if matches!(op, Op::Now | Op::Random) {
                return Err(format!("`{}` reads `now` or `random` of its instance", function.name));
            }
        }
        let ends_firing = |term: &Term| matches!(term, Term::Done { .. } | Term::Suspend { .. });
        if function.blocks.iter().any(|block| ends_firing(&block.term)) {
            return Err(format!("`{}` ends the firing", function.name));
        }
    }
    Ok(())
}

fn signature(callee: &Function) -> Result<(Vec<u32>, Option<u32>), String> {
    let bits = |ty: Type| {
        ty.bits().ok_or_else(|| "packets and references do not travel on a channel".to_owned())
    };
    let args = callee.params().iter().map(|param| bits(callee.type_of(*param)));
    Ok((args.collect::<Result<_, _>>()?, callee.result.map(bits).transpose()?))
}

/// Returns the state and tables that the group uses; fails if other functions use them.
fn moved(
    program: &Program,
    element: ElementId,
    group: &BTreeSet<FunctionId>,
    shared: &[FunctionId],
) -> Result<(Vec<ObjectId>, Vec<TableId>), String> {
    let (mut objects, mut tables) = (BTreeSet::new(), BTreeSet::new());
    for id in group {
        uses(program.function(*id), &mut objects, &mut tables);
    }
    for (at, function) in program.functions.iter().enumerate() {
        let id = FunctionId::new(at);
        let is_other = !group.contains(&id) || shared.contains(&id);
        if function.owner != Some(element) || !is_other {
            continue;
        }
        let (mut theirs, mut their_tables) = (BTreeSet::new(), BTreeSet::new());
        uses(function, &mut theirs, &mut their_tables);
        if let Some(object) = objects.intersection(&theirs).next() {
            let name = &program.element(element).state[object.index()].name;
            return Err(format!("`{}` also uses the state `{name}`", function.name));
        }
        if let Some(table) = tables.intersection(&their_tables).next() {
            let name = &program.element(element).tables[table.index()].name;
            return Err(format!("`{}` also uses the table `{name}`", function.name));
        }
    }
    Ok((objects.into_iter().collect(), tables.into_iter().collect()))
}

fn uses(function: &Function, objects: &mut BTreeSet<ObjectId>, tables: &mut BTreeSet<TableId>) {
    for op in ops(function) {
        if let Some(ObjectRef::State(object)) = object_of(op) {
            objects.insert(object);
        }
        if let Op::Handle(table) = op {
            tables.insert(*table);
        }
    }
}

/// Returns the only trap that the group can raise, if any. A bound that is never reached counts
/// too.
fn trap_of(program: &Program, group: &BTreeSet<FunctionId>) -> Result<Option<TrapCode>, String> {
    let mut codes = BTreeSet::new();
    for block in group.iter().flat_map(|id| &program.function(*id).blocks) {
        codes.extend(block.loop_info.map(|_| TrapCode::LoopBound));
        if let Term::Trap(code) = block.term {
            codes.insert(code);
        }
    }
    match codes.len() {
        0 | 1 => Ok(codes.first().copied()),
        _ => Err("it can trap in several ways, and the response reports only one".into()),
    }
}

/// A use of ports by an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PortUse {
    Read,
    Put(PortId),
}

fn port_use(op: &Op) -> Option<PortUse> {
    match op {
        Op::ReadyMask | Op::Ready(_) | Op::Peek(_) | Op::Take(_) => Some(PortUse::Read),
        Op::Put { port, .. } => Some(PortUse::Put(*port)),
        _ => None,
    }
}

/// Returns the port uses of an operation, including those of functions it calls.
fn port_uses(program: &Program, op: &Op) -> Vec<PortUse> {
    match op {
        Op::Call { function, .. } => {
            let called = reachable(program, &[*function], None);
            let functions = called.iter().map(|id| program.function(*id));
            functions.flat_map(ops).filter_map(port_use).collect()
        }
        op => port_use(op).into_iter().collect(),
    }
}

/// Checks the code around the calls. A suspension releases the staged items and takes a new
/// snapshot, so after the call nothing may read ports, nor put to a port that may have been put to
/// before.
fn check_calls(program: &Program, element: ElementId, callee: FunctionId) -> Result<(), String> {
    let handler = program.function(program.element(element).handler);
    for (node, block) in handler.blocks.iter().enumerate() {
        for (at, inst) in block.insts.iter().enumerate() {
            if slow_callee(&inst.op) != Some(callee) {
                continue;
            }
            let is_header = block.loop_info.is_some();
            if is_header && (node == 0 || matches!(block.term, Term::Suspend { .. })) {
                return Err("it is called in the header of a loop that cannot be divided".into());
            }
            let before = port_uses_around(program, handler, (node, at), false);
            let after = port_uses_around(program, handler, (node, at), true);
            if after.contains(&PortUse::Read) {
                return Err("ports are read after the call, in the same firing".into());
            }
            let put_twice = before.iter().find_map(|each| match each {
                PortUse::Put(port) if after.contains(each) => Some(port),
                _ => None,
            });
            if let Some(port) = put_twice {
                let name = &program.element(element).outputs[port.index()].name;
                return Err(format!("`{name}` may be put to both before and after the call"));
            }
        }
    }
    Ok(())
}

/// Returns the port uses in the same firing after (or before) an instruction.
fn port_uses_around(
    program: &Program,
    handler: &Function,
    (node, at): (usize, usize),
    is_after: bool,
) -> Vec<PortUse> {
    let insts = &handler.blocks[node].insts;
    let part = if is_after { &insts[at + 1..] } else { &insts[..at] };
    let mut found: Vec<PortUse> =
        part.iter().flat_map(|inst| port_uses(program, &inst.op)).collect();
    let edges = firing_edges(handler);
    let next = |node: usize| {
        let edges =
            edges.iter().filter(move |(from, to)| if is_after { *from } else { *to } == node);
        edges.map(|(from, to)| if is_after { *to } else { *from })
    };
    let mut is_seen = vec![false; handler.blocks.len()];
    let mut left: Vec<usize> = next(node).collect();
    while let Some(node) = left.pop() {
        if !std::mem::replace(&mut is_seen[node], true) {
            let insts = handler.blocks[node].insts.iter();
            found.extend(insts.flat_map(|inst| port_uses(program, &inst.op)));
            left.extend(next(node));
        }
    }
    found
}

/// Returns the edges that control takes within a firing.
fn firing_edges(handler: &Function) -> Vec<(usize, usize)> {
    let mut edges = vec![];
    for (node, block) in handler.blocks.iter().enumerate() {
        if !matches!(block.term, Term::Suspend { .. }) {
            let targets = block.term.targets();
            edges.extend(targets.iter().map(|target| (node, BlockId::index(target.block))));
        }
    }
    edges
}
