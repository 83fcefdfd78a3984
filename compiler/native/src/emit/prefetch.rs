// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prefetches the memory that a firing will access as soon as its item is known.
//!
//! For each element and port with an address slice (`freeport_ir::analysis`), a C function computes
//! the indexes and prefetches the cache lines. It has no other effect: indexes out of range are
//! skipped, and nothing is counted.

use super::channels::ring_slots;
use super::elements::is_large;
use super::plan::{AHEAD, Input, Plan};
use super::types::{assign, bytes_of, integer, is_wide, storage, zero};
use super::values::{Operand, extracted, pure};
use super::worker::build_at;
use super::{Emitter, comment, item_width};
use freeport_ir::analysis::{Access, AddressSlice, LargeMemory, Place, Round, address_slices};
use freeport_ir::{
    Element, ElementId, EndpointId, Function, Inst, InstanceId, Object, ObjectRef, Op, PortId,
    Program, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Size of a cache line.
const LINE_BYTES: u64 = 64;

/// Maximum lines prefetched for one access.
const MAX_LINES: usize = 4;

/// Address slices of the program's elements.
#[derive(Default)]
pub(super) struct Slices {
    by_element: BTreeMap<ElementId, Vec<AddressSlice>>,
}

impl Slices {
    /// Computes the slices of the elements that have instances.
    pub fn of(emitter: &Emitter<'_>, large: LargeMemory) -> Self {
        let instances = emitter.program.graph.instances.iter();
        let elements: BTreeSet<_> = instances.map(|instance| instance.element).collect();
        let slices = |id: ElementId| (id, address_slices(emitter.program, id, large));
        Self { by_element: elements.into_iter().map(slices).collect() }
    }

    fn of_port(&self, element: ElementId, port: PortId) -> impl Iterator<Item = &AddressSlice> {
        let slices = self.by_element.get(&element).into_iter().flatten();
        slices.filter(move |slice| slice.port == port)
    }

    /// Returns whether an item for that port predicts accesses.
    pub fn has(&self, element: ElementId, port: PortId) -> bool {
        self.of_port(element, port).next().is_some()
    }

    /// Returns whether the memory prefetched first predicts further accesses.
    pub fn has_second(&self, element: ElementId, port: PortId) -> bool {
        self.of_port(element, port).any(|slice| slice.round == Round::Second)
    }

    /// Returns the names of the variables and tables whose accesses an item for that port predicts.
    pub fn names(&self, program: &Program, id: ElementId, port: PortId) -> Vec<String> {
        let element = program.element(id);
        let accesses = self.of_port(id, port).flat_map(|slice| &slice.accesses);
        let names = accesses.map(|access| match access.place {
            Place::Object { object, .. } => element.state[object.index()].name.clone(),
            Place::Table(table) => element.tables[table.index()].name.clone(),
        });
        let mut is_new = BTreeSet::new();
        names.filter(|name| is_new.insert(name.clone())).collect()
    }

    /// Emits the functions of an element.
    pub fn functions(&self, emitter: &Emitter<'_>, element: ElementId) -> String {
        let slices = self.by_element.get(&element).into_iter().flatten();
        slices.map(|slice| function(emitter, element, slice)).collect()
    }
}

/// Returns the call for an item at the C pointer `item`.
pub(super) fn call(element: ElementId, port: PortId, state: &str, item: &str) -> String {
    format!("prefetch_{}_{}_{}({state}, {item});", element.0, port.0, suffix(Round::First))
}

fn suffix(round: Round) -> &'static str {
    match round {
        Round::First => "first",
        Round::Second => "second",
    }
}

/// Emits statements that run the second slice for the items of a ring for which it has not run yet:
/// those after `asked`, if that is a position among them. They run together, so that their cache
/// misses overlap.
pub(super) fn of_ring(plan: &Plan, program: &Program, id: InstanceId, port: usize) -> String {
    let (element, port) = (program.instance(id).element, PortId::new(port));
    let Input::Ring(channel) = plan.inputs[id.index()][port.index()] else {
        return String::new();
    };
    if plan.is_fused[channel.index()] || !plan.slices.has_second(element, port) {
        return String::new();
    }
    let (at, behind) = (channel.0, format!("graph->asked_{0} + ahead", channel.0));
    let item = format!("&graph->items_{at}[({behind}) & {}]", ring_slots(plan, channel) - 1);
    let suffix = suffix(Round::Second);
    format!(
        "    {{\n        const struct channel *const ring = &turn->channel_{at};\n\
         \x20       if (graph->asked_{at} - ring->head > ring->fill) \
         graph->asked_{at} = ring->head;\n\
         \x20       const uint32_t left = ring->head + ring->fill - graph->asked_{at};\n\
         \x20       for (uint32_t ahead = 0; ahead < left; ahead++) {{\n\
         \x20           prefetch_{}_{}_{suffix}(&graph->state_{}, {item});\n        }}\n\
         \x20       graph->asked_{at} += left;\n    }}\n",
        element.0, port.0, id.0
    )
}

/// Emits statements that prefetch the predicted accesses for the host's next records.
pub(super) fn of_records(
    emitter: &Emitter<'_>,
    plan: &Plan,
    id: InstanceId,
    port: usize,
    endpoint: EndpointId,
) -> String {
    let (element, port) = (emitter.program.instance(id).element, PortId::new(port));
    if !plan.slices.has(element, port) {
        return String::new();
    }
    let from = format!("graph->endpoint_{}", endpoint.0);
    let ty = storage(item_width(emitter.program.element(element).inputs[port.index()].item));
    let build = build_at(emitter, endpoint, &format!("{from}.asked"), "next");
    let call = call(element, port, &format!("&graph->state_{}", id.0), "&next");
    let continues = format!("{from}.asked < {from}.count && {from}.asked < {from}.at + {AHEAD}");
    format!("for (; {continues}; {from}.asked++) {{ {ty} next; {build} {call} }} ")
}

fn function(emitter: &Emitter<'_>, id: ElementId, slice: &AddressSlice) -> String {
    let element = emitter.program.element(id);
    let port = &element.inputs[slice.port.index()];
    let mut text = format!(
        "// Prefetches the memory that an item at {} determines.\n\
         INLINE void prefetch_{}_{}_{}(struct state_{1} *const state, \
         const {} *const item) {{\n",
        comment(&port.name),
        id.0,
        slice.port.0,
        suffix(slice.round),
        storage(item_width(port.item))
    );
    let function = &slice.function;
    for inst in &function.blocks[0].insts {
        text += &instruction(element, function, inst);
    }
    for access in &slice.accesses {
        text += &ask(id, element, function, access);
    }
    text + "}\n\n"
}

fn operand(function: &Function, value: ValueId) -> Operand {
    Operand { name: format!("value_{}", value.0), width: function.width_of(value) }
}

fn instruction(element: &Element, function: &Function, inst: &Inst) -> String {
    let Some(result) = inst.result else { return String::new() };
    let to = operand(function, result);
    let declared = format!("    {} {};\n", storage(to.width), to.name);
    let statements = match &inst.op {
        Op::Peek(_) => assign(&to.name, "(*item)", to.width),
        Op::Load { object: ObjectRef::State(at), index, lo, .. } => {
            let object = &element.state[at.index()];
            let (within, index) = position(&operand(function, *index), object.depth);
            let place = format!("state->object_{}[{index}]", at.0);
            let loaded = extracted(&to.name, &place, object.elem_bits, *lo, to.width);
            format!("if ({within}) {{ {loaded} }} else {{ {} = {}; }}", to.name, zero(to.width))
        }
        Op::LoadBytes { object: ObjectRef::State(at), offset, bytes } => {
            let depth = element.state[at.index()].depth;
            let places = (depth + 1).saturating_sub(u64::from(*bytes));
            let (within, offset) = position(&operand(function, *offset), places);
            let from = format!("state->object_{} + {offset}", at.0);
            let (name, zero) = (&to.name, zero(to.width));
            format!("{name} = {zero}; if ({within}) memcpy(&{name}, {from}, {bytes});")
        }
        op => pure(function, op, &to, |value| operand(function, value)).unwrap_or_default(),
    };
    format!("{declared}    {statements}\n")
}

/// Returns the condition that a position is below `depth`, and the position if so.
fn position(at: &Operand, depth: u64) -> (String, String) {
    let Operand { name, width } = at;
    let within = format!("({}) < UINT64_C({depth})", integer(name, *width));
    match is_wide(*width) {
        true => (within, format!("load_bytes({name}.b, 8)")),
        false => (within, format!("(uint64_t)({name})")),
    }
}

/// Returns one byte offset for each cache line of an element that contains bytes from `first` to
/// `last`.
fn places(object: &Object, first: u64, last: u64) -> Vec<u64> {
    let stride = match is_wide(object.elem_bits) {
        true => u64::from(bytes_of(object.elem_bits)),
        false => u64::from(bytes_of(object.elem_bits)).next_power_of_two(),
    };
    // The alignment of such elements within a line is known; others may cross a boundary anywhere.
    let fits = LINE_BYTES.is_multiple_of(stride) || stride.is_multiple_of(LINE_BYTES);
    let is_aligned = fits && is_large(object) && last < stride;
    let start = if is_aligned { first / LINE_BYTES * LINE_BYTES } else { first };
    let end = (!is_aligned && last > first).then_some(last);
    (start..=last).step_by(LINE_BYTES as usize).chain(end).take(MAX_LINES).collect()
}

/// Emits the prefetch of the lines of an access.
fn ask(id: ElementId, element: &Element, function: &Function, access: &Access) -> String {
    let (at, first, last) = match access.place {
        Place::Object { object, first, last } => (object, first, last),
        Place::Table(table) => {
            let key = operand(function, access.at).name;
            let ask = format!("table_prefetch_{}_{}(state, {key});", id.0, table.0);
            return match access.when {
                Some(when) => format!("    if ({}) {ask}\n", operand(function, when).name),
                None => format!("    {ask}\n"),
            };
        }
    };
    let object = &element.state[at.index()];
    let (within, index) = position(&operand(function, access.at), object.depth);
    let within = match access.when {
        Some(when) => format!("{} && {within}", operand(function, when).name),
        None => within,
    };
    let places = places(object, u64::from(first), u64::from(last));
    let mut text = format!(
        "    if ({within}) {{\n        const uint8_t *const at = \
         (const uint8_t *)&state->object_{}[{index}];\n",
        at.0
    );
    for place in places {
        text += &format!("        __builtin_prefetch(at + {place});\n");
    }
    text + "    }\n"
}
