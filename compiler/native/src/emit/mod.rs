// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Emits a program as one C file.
//!
//! In the order of the file: the prelude, value types, each element's state and firing (`elements`)
//! and its tables (`tables`), the functions of the program (`functions`, `values`, `effects`) and
//! their calls of other instances (`methods`), the graph with its channels (`channels`) and
//! passages through them (`body`), and the worker that fires the instances (`worker`). The worker's
//! functions are shared among identical instances (`units`), following a plan of fusion (`plan`)
//! and prefetching (`prefetch`).

mod body;
mod breakpoints;
mod channels;
mod effects;
mod elements;
mod functions;
mod kernels;
mod layouts;
mod methods;
mod packet_flow;
mod packets;
mod plan;
mod prefetch;
mod standalone;
mod tables;
mod types;
mod units;
mod values;
mod worker;

use crate::manifest::{Manifest, ProbeInfo, TrapInfo};
use crate::{Error, Options};
use freeport_ir::{
    ChannelId, Element, ElementId, Function, FunctionId, Item, Loc, ObjectRef, Op, PortId, Program,
    Type,
};
use functions::FunctionEmitter;
use packet_flow::passed;
use std::collections::BTreeSet;

pub(crate) use kernels::emit_kernels;
pub(crate) use standalone::emit_functions;

/// The text of `runtime/prelude.h`.
const PRELUDE: &str = include_str!("../../runtime/prelude.h");

/// The text of `runtime/flits.h`.
const FLITS: &str = include_str!("../../runtime/flits.h");

/// Emitted code, and the manifest to load it with.
pub(crate) struct Emission {
    pub text: String,
    pub manifest: Manifest,
}

/// Emits a whole program. `source` is the program before any passes: it determines what is
/// recorded.
pub(crate) fn emit_program(
    source: &Program,
    program: &Program,
    options: &Options,
) -> Result<Emission, Error> {
    let mut manifest = Manifest::of(source, options.record);
    let mut emitter = Emitter::new(program, options);
    emitter.has_choice = manifest.elements.iter().map(|element| element.has_choice).collect();
    let passed = (0..program.elements.len()).map(|at| passed(&emitter, ElementId::new(at)));
    emitter.passed = passed.collect();
    let plan = plan::Plan::of(&emitter, options)?;
    for (channel, at) in manifest.channels.iter_mut().zip(0..) {
        channel.is_fused = plan.is_fused[at];
        channel.room = plan.depths[at];
        channel.asked = plan.asked(program, ChannelId::new(at));
    }
    let elements: BTreeSet<ElementId> =
        program.graph.instances.iter().map(|instance| instance.element).collect();
    let mut roots = vec![];
    for id in &elements {
        let element = program.element(*id);
        roots.extend([element.init, Some(element.handler), element.signal].into_iter().flatten());
        roots.extend(element.methods.iter().map(|method| method.function));
    }
    let functions = emitter.functions(&roots)?;
    let mut text = emitter.opening();
    text += &emitter.wide_types(&functions);
    for id in &elements {
        text += &elements::types(&emitter, *id)?;
    }
    let called = methods::called(&emitter, &functions);
    text += &methods::declarations(&called);
    text += &emitter.definitions(&functions)?;
    for id in &elements {
        text += &elements::run(&emitter, *id);
        text += &elements::call(&emitter, *id)?;
        text += &plan.slices.functions(&emitter, *id);
    }
    text += &worker::emit(&emitter, &plan);
    text += &methods::definitions(&emitter, &called);
    manifest.traps = emitter.traps;
    manifest.probes = emitter.probes;
    Ok(Emission { text, manifest })
}

/// State shared by the parts of the emitter.
pub(super) struct Emitter<'p> {
    pub program: &'p Program,
    pub records: bool,
    /// Limit of iterations of watched loops in one firing.
    pub turn_limit: u64,
    /// By element: whether its ready bitmaps are recorded.
    pub has_choice: Vec<bool>,
    /// By element and output: the input whose packets it forwards.
    passed: Vec<Vec<Option<PortId>>>,
    traps: Vec<TrapInfo>,
    probes: Vec<ProbeInfo>,
}

impl<'p> Emitter<'p> {
    fn new(program: &'p Program, options: &Options) -> Self {
        let Options { record: records, turn_limit, .. } = *options;
        let (has_choice, passed, traps, probes) = (vec![], vec![], vec![], vec![]);
        Self { program, records, turn_limit, has_choice, passed, traps, probes }
    }

    /// Returns the input from which every packet for an output comes, still in its original place.
    pub fn passed(&self, element: ElementId, output: PortId) -> Option<PortId> {
        *self.passed.get(element.index())?.get(output.index())?
    }

    pub fn function(&self, id: FunctionId) -> &'p Function {
        self.program.function(id)
    }

    pub fn is_handler(&self, id: FunctionId) -> bool {
        self.program.elements.iter().any(|element| element.handler == id)
    }

    /// Returns the position of a trap's counter.
    pub fn trap_position(&mut self, code: TrapInfo) -> usize {
        let found = self.traps.iter().position(|it| *it == code);
        found.unwrap_or_else(|| {
            self.traps.push(code);
            self.traps.len() - 1
        })
    }

    /// Returns the number of codes counted, at least 1 so that the array is not empty.
    pub fn trap_count(&self) -> usize {
        self.traps.len().max(1)
    }

    /// Adds a probe; returns the number by which it is reported.
    pub fn add_probe(&mut self, probe: ProbeInfo) -> usize {
        self.probes.push(probe);
        self.probes.len() - 1
    }

    pub fn unsupported(&self, function: &Function, what: &str) -> Error {
        self.unsupported_at(function, what, function.loc)
    }

    pub fn unsupported_at(&self, function: &Function, what: &str, loc: Loc) -> Error {
        let whose = match function.owner {
            Some(owner) => &self.program.element(owner).name,
            None => &function.name,
        };
        Error::unsupported(self.program, what, whose, loc)
    }

    /// Returns the width of an item of an input port of the element that owns `function`.
    pub fn input_width(&self, function: &Function, port: PortId) -> u32 {
        let element = function.owner.map(|owner| self.program.element(owner));
        let port = element.and_then(|element| element.inputs.get(port.index()));
        port.map_or(1, |port| item_width(port.item))
    }

    /// Returns the mask of all ports of the element that owns a handler.
    pub fn all_ports_of(&self, function: &Function) -> String {
        let element = function.owner.map(|owner| self.program.element(owner));
        all_ports(element.map_or(0, |element| element.inputs.len()))
    }

    /// Returns `roots` and all functions they call, callees first.
    fn functions(&self, roots: &[FunctionId]) -> Result<Vec<FunctionId>, Error> {
        let mut order = vec![];
        for root in roots {
            self.visit(*root, &mut vec![], &mut order)?;
        }
        Ok(order)
    }

    fn visit(
        &self,
        id: FunctionId,
        open: &mut Vec<FunctionId>,
        order: &mut Vec<FunctionId>,
    ) -> Result<(), Error> {
        if order.contains(&id) {
            return Ok(());
        }
        let function = self.function(id);
        if open.contains(&id) {
            return Err(self.unsupported(function, "recursion"));
        }
        open.push(id);
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            if let Op::Call { function, .. } = inst.op {
                self.visit(function, open, order)?;
            }
        }
        open.pop();
        order.push(id);
        Ok(())
    }

    fn opening(&self) -> String {
        let (name, version) = (comment(&self.program.name), env!("CARGO_PKG_VERSION"));
        format!(
            "// {name}, made by freeport {version}. Do not edit.\n\n{PRELUDE}\n{FLITS}\n{}\n{}\n",
            packets::RUNTIME,
            tables::RUNTIME
        )
    }

    /// Emits the definitions of the wide types in use.
    fn wide_types(&self, functions: &[FunctionId]) -> String {
        let mut widths = BTreeSet::new();
        for function in functions.iter().map(|id| self.function(*id)) {
            widths.extend(function.values.iter().filter_map(|value| value.ty.bits()));
            widths.extend(function.locals.iter().map(|object| object.elem_bits));
            widths.extend(function.result.and_then(Type::bits));
        }
        for element in &self.program.elements {
            widths.extend(element.state.iter().map(|object| object.elem_bits));
            widths.extend(tables::widths(element));
            let ports = element.inputs.iter().chain(&element.outputs);
            widths.extend(ports.map(|port| item_width(port.item)));
        }
        widths.extend(self.program.graph.channels.iter().map(|it| item_width(it.item)));
        let is_new = |width: &u32| types::is_wide(*width) && *width != freeport_ir::flit::FLIT_BITS;
        widths.into_iter().filter(is_new).map(types::define).collect()
    }

    fn definitions(&mut self, functions: &[FunctionId]) -> Result<String, Error> {
        let mut text = String::from("\n// Functions.\n\n");
        for id in functions {
            self.check_types(*id)?;
            text += &FunctionEmitter::emit(self, *id)?;
        }
        Ok(text)
    }

    /// Rejects references to objects that do not exist.
    fn check_types(&self, id: FunctionId) -> Result<(), Error> {
        let function = self.function(id);
        for block in &function.blocks {
            for inst in &block.insts {
                if let Some(object) = object_of(&inst.op)
                    && self.program.object(function, object).is_none()
                {
                    return Err(self.unsupported_at(function, "an unknown object", inst.loc));
                }
            }
        }
        Ok(())
    }
}

/// Returns whether every firing of an element ends with the mask of all its inputs.
pub(super) fn has_fixed_mask(program: &Program, element: &Element) -> bool {
    let handler = program.function(element.handler);
    let insts = || handler.blocks.iter().flat_map(|block| &block.insts);
    let is_all = |mask| {
        insts().any(|inst| match &inst.op {
            Op::Const(bits) if inst.result == Some(mask) => {
                *bits == freeport_ir::Bits::ones(bits.width())
            }
            _ => false,
        })
    };
    handler.blocks.iter().all(|block| match &block.term {
        freeport_ir::Term::Done { mask } => mask.is_none_or(is_all),
        freeport_ir::Term::Suspend { .. } => false,
        _ => true,
    })
}

fn object_of(op: &Op) -> Option<ObjectRef> {
    match op {
        Op::Load { object, .. }
        | Op::Store { object, .. }
        | Op::LoadBytes { object, .. }
        | Op::StoreBytes { object, .. } => Some(*object),
        _ => None,
    }
}

/// Returns the width of an item.
pub(super) fn item_width(item: Item) -> u32 {
    item.value_type().bits().unwrap_or(1)
}

/// Returns the mask of that many ports, in C.
pub(super) fn all_ports(count: usize) -> String {
    format!("UINT64_C({:#x})", u64::MAX.checked_shr(64 - count as u32).unwrap_or(0))
}

/// Makes a name from the source safe for a comment of one line.
pub(super) fn comment(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).collect()
}
