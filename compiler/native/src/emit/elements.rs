// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Code shared by all instances of an element: its state, the data of one firing, running the
//! handler once with its bookkeeping, and calls by the host.

use super::functions::{kept_frame, suspends};
use super::packets::is_packet;
use super::types::{bytes_of, is_wide, item_storage, literal, storage, zero};
use super::{Emitter, all_ports, breakpoints, comment, has_fixed_mask};
use crate::Error;
use crate::manifest::signature;
use crate::memory::{HUGE_PAGE_BYTES, LEAST_MOVED_BYTES};
use freeport_ir::{Bits, Element, ElementId, FunctionId, Object, Op, PortId, Program, Term};

/// Number of loop iterations in a firing above which each firing is followed by a check whether the
/// host wants to act.
const MANY_ROUNDS: u64 = 4096;

/// Emits the structures of an element.
pub(super) fn types(emitter: &Emitter<'_>, id: ElementId) -> Result<String, Error> {
    let element = emitter.program.element(id);
    let handler = emitter.function(element.handler);
    let mut text = format!("\n// Element {}.\n\n", comment(&element.name));
    if suspends(handler) {
        text += &kept_frame(emitter, element.handler, handler);
    }
    text += &format!("struct state_{} {{\n", id.0);
    for (at, object) in element.state.iter().enumerate() {
        if object.depth.saturating_mul(u64::from(bytes_of(object.elem_bits))) > 1 << 32 {
            let what = format!("a variable as large as {}", object.name);
            return Err(Error::unsupported(emitter.program, &what, &element.name, object.loc));
        }
        let (ty, depth, note) = (storage(object.elem_bits), object.depth, comment(&object.name));
        let bytes = object.depth.saturating_mul(u64::from(bytes_of(object.elem_bits)));
        let aligned = match is_large(object) {
            true => format!("_Alignas({}) ", alignment(bytes)),
            false => String::new(),
        };
        text += &format!("    {aligned}{ty} object_{at}[{depth}]; // {note}\n");
    }
    text += &super::tables::fields(emitter, id)?;
    if element.state.is_empty() && element.tables.is_empty() {
        text += "    uint8_t nothing;\n";
    }
    text += &format!("}};\n\nstruct firing_{} {{\n    struct activation activation;\n", id.0);
    text += "    uint64_t ready, taken, next_mask;\n    uint32_t resume;\n";
    if suspends(handler) {
        text += &format!("    struct frame_{} *frame;\n", element.handler.0);
    }
    for (at, port) in element.inputs.iter().enumerate() {
        let (ty, note) = (item_storage(port.item), comment(&port.name));
        text += &format!("    const {ty} *input_{at}; // {note}\n");
    }
    for (at, port) in element.outputs.iter().enumerate() {
        let (ty, note) = (item_storage(port.item), comment(&port.name));
        if emitter.passed(id, PortId::new(at)).is_none() {
            text += &format!("    {ty} staged_{at}; // {note}\n");
        }
        text += &format!("    bool is_staged_{at};\n");
    }
    text += "};\n\n";
    text += &begin(element, id, suspends(handler).then_some(element.handler));
    text += &super::tables::definitions(emitter, id);
    text += &object_layouts(element, id);
    text += &super::tables::layouts(element, id);
    text += &element.state.iter().enumerate().map(|it| initial(id, it)).collect::<String>();
    Ok(text)
}

/// Returns whether an object is large enough to be aligned to a cache line, so that elements that
/// fit a line do not cross a line boundary.
pub(super) fn is_large(object: &Object) -> bool {
    object.depth.saturating_mul(u64::from(bytes_of(object.elem_bits))) >= 1024
}

/// Returns the alignment of a large variable or table of that size: a cache line, or a huge page if
/// its pages may be moved to another graph.
pub(super) fn alignment(bytes: u64) -> usize {
    match bytes {
        LEAST_MOVED_BYTES.. => HUGE_PAGE_BYTES,
        _ => 64,
    }
}

/// Emits the start of a firing or a call.
fn begin(element: &Element, id: ElementId, frame: Option<FunctionId>) -> String {
    let at = id.0;
    let mut text = format!("INLINE void begin_{at}(struct firing_{at} *const firing, ");
    text += "struct instance *const instance, const uint64_t ready";
    if let Some(frame) = frame {
        text += &format!(", struct frame_{} *const frame", frame.0);
    }
    text += ") {\n    firing->activation = (struct activation){.instance = instance};\n";
    text += "    firing->ready = ready;\n    firing->taken = 0;\n    firing->resume = 0;\n";
    text += &format!("    firing->next_mask = {};\n", all_ports(element.inputs.len()));
    if frame.is_some() {
        text += "    firing->frame = frame;\n";
    }
    for at in 0..element.outputs.len() {
        text += &format!("    firing->is_staged_{at} = false;\n");
    }
    text + "}\n\n"
}

fn object_layouts(element: &Element, id: ElementId) -> String {
    let mut text = format!("static const struct object_layout objects_{}[] = {{\n", id.0);
    for (at, object) in element.state.iter().enumerate() {
        let ty = storage(object.elem_bits);
        text += &format!("    {{offsetof(struct state_{}, object_{at}), sizeof({ty})}},\n", id.0);
    }
    text + "    {0, 0},\n};\n\n"
}

/// Emits the constant with the initial contents of an object, unless they are zeros.
fn initial(id: ElementId, (at, object): (usize, &Object)) -> String {
    if !has_initial(object) {
        return String::new();
    }
    let ty = storage(object.elem_bits);
    let mut text = format!("static const {ty} initial_{}_{at}[] = {{\n", id.0);
    for bits in object.init.iter().take(object.depth as usize) {
        let bits = bits.resize(object.elem_bits);
        let literal = literal(&bits);
        // A structure's constant cannot be cast in a static initialiser.
        let literal = match is_wide(object.elem_bits) {
            true => literal.split_once('{').map_or(String::new(), |(_, rest)| format!("{{{rest}")),
            false => literal,
        };
        text += &format!("    {literal},\n");
    }
    text + "};\n\n"
}

/// Returns whether an object has nonzero initial contents.
pub(super) fn has_initial(object: &Object) -> bool {
    object.init.iter().take(object.depth as usize).any(|bits| !Bits::is_zero(bits))
}

/// Returns whether a firing that can begin may do nothing, so that the instance must be left quiet.
pub(super) fn may_do_nothing(program: &Program, element: &Element) -> bool {
    let handler = program.function(element.handler);
    let always_ready = element.inputs.len() == 1 && has_fixed_mask(program, element);
    let does_something = |op: &Op| match op {
        Op::Take(_) => always_ready,
        Op::Put { .. } | Op::Now | Op::Random | Op::Probe { .. } => true,
        Op::Store { object, .. } | Op::StoreBytes { object, .. } => {
            matches!(object, freeport_ir::ObjectRef::State(_))
        }
        op => super::tables::does_something(element, handler, op),
    };
    let mut is_seen = vec![false; handler.blocks.len()];
    let mut left = vec![0];
    while let Some(at) = left.pop() {
        let block = &handler.blocks[at];
        if std::mem::replace(&mut is_seen[at], true)
            || block.insts.iter().any(|inst| does_something(&inst.op))
        {
            continue;
        }
        if matches!(block.term, Term::Done { .. } | Term::Return { .. }) {
            return true;
        }
        left.extend(block.term.targets().iter().map(|target| target.block.index()));
    }
    false
}

/// Returns whether firings may only read the clock: an element may fire without items, or leave an
/// item in place until it is due.
pub(super) fn may_wait_for_time(program: &Program, element: &Element) -> bool {
    let mut insts = program.function(element.handler).blocks.iter().flat_map(|block| &block.insts);
    insts.any(|inst| matches!(inst.op, Op::Now))
}

/// Returns whether the loops of a function, and of those that it calls, may iterate so often that a
/// thousand firings keep the host waiting.
pub(super) fn may_take_long(emitter: &Emitter<'_>, id: FunctionId) -> bool {
    rounds(emitter, id) > MANY_ROUNDS
}

/// Returns the iterations of all loops of a function, as if they were all nested.
fn rounds(emitter: &Emitter<'_>, id: FunctionId) -> u64 {
    let blocks = || emitter.function(id).blocks.iter();
    let bounds = blocks().filter_map(|block| block.loop_info).map(|info| info.bound.max(1));
    let calls = blocks().flat_map(|block| &block.insts).filter_map(|inst| match inst.op {
        Op::Call { function, .. } => Some(rounds(emitter, function)),
        _ => None,
    });
    bounds.chain(calls).fold(1, u64::saturating_mul)
}

/// Emits the function that runs the handler once and records what it did; it returns false if it
/// did nothing. The caller counts the firing.
pub(super) fn run(emitter: &Emitter<'_>, id: ElementId) -> String {
    let element = emitter.program.element(id);
    let (at, all) = (id.0, all_ports(element.inputs.len()));
    let mut text = format!(
        "INLINE bool run_{at}(struct instance *const instance, struct state_{at} *const state,\n\
         \x20           struct firing_{at} *const firing) {{\n\
         \x20   const uint32_t trap = function_{}(state, firing);\n\
         \x20   if (UNLIKELY(trap != 0)) {{\n\
         \x20       firing->activation.did_something = true;\n\
         \x20       firing->next_mask = {all};\n\
         \x20       firing->resume = 0;\n\
         \x20       instance->traps[trap - 1]++;\n\
         \x20   }}\n",
        element.handler.0
    );
    text += breakpoints::hold(emitter, element.handler);
    if may_do_nothing(emitter.program, element) {
        text += "    const bool changes_mask = firing->next_mask != instance->mask;\n\
                 \x20   if (!firing->activation.did_something && !changes_mask) {\n\
                 \x20       instance->is_quiet = true;\n\
                 \x20       instance->quiet_ready = firing->ready;\n\
                 \x20       return false;\n    }\n    instance->is_quiet = false;\n";
    }
    if !has_fixed_mask(emitter.program, element) {
        text += "    instance->mask = firing->next_mask;\n";
    }
    if suspends(emitter.function(element.handler)) {
        text += "    instance->resume = firing->resume;\n";
    }
    if emitter.records && emitter.has_choice[id.index()] {
        text += "    record(instance->runtime, &instance->ready, &firing->ready, 8);\n";
    }
    text += "    count_exceptions(instance, &firing->activation);\n    return true;\n}\n\n";
    text
}

/// Emits the calls by the host: methods by number, the signal handler, and init.
pub(super) fn call(emitter: &Emitter<'_>, id: ElementId) -> Result<String, Error> {
    let element = emitter.program.element(id);
    let at = id.0;
    let mut text = format!(
        "OUT_OF_LINE uint32_t call_{at}(struct instance *const instance, \
         struct state_{at} *const state,\n    const uint32_t method, \
         const uint8_t *const arguments, uint8_t *const result) {{\n\
         \x20   struct firing_{at} firing;\n\
         \x20   uint32_t trap = 0;\n    begin_{at}(&firing, instance, 0{});\n\
         \x20   switch (method) {{\n",
        if suspends(emitter.function(element.handler)) { ", NULL" } else { "" }
    );
    let methods = element.methods.iter().enumerate().map(|(at, it)| (at.to_string(), it.function));
    let signal = element.signal.map(|function| ("UINT32_MAX".to_owned(), function));
    let init = element.init.map(|function| ("UINT32_MAX - 1".to_owned(), function));
    for (case, function) in methods.chain(signal).chain(init) {
        text += &format!("    case {case}: {{\n");
        text += &call_function(emitter, function, "state, &firing")?;
        text += "        break;\n    }\n";
    }
    text += "    default: break;\n    }\n";
    for (at, port) in element.outputs.iter().enumerate() {
        if !is_packet(port.item) || emitter.passed(id, PortId::new(at)).is_some() {
            continue;
        }
        let release = format!("packet_release(instance->runtime, &firing.staged_{at})");
        text += &format!("    if (firing.is_staged_{at}) {release};\n");
    }
    text += "    if (trap != 0) instance->traps[trap - 1]++;\n\
             \x20   instance->out_of_range += firing.activation.out_of_range;\n\
             \x20   instance->empty_reads += firing.activation.empty_reads;\n\
             \x20   instance->is_quiet = false;\n    return trap;\n}\n\n";
    Ok(text)
}

/// Emits statements that read the arguments, call a function, and write its result.
pub(super) fn call_function(
    emitter: &Emitter<'_>,
    id: FunctionId,
    context: &str,
) -> Result<String, Error> {
    let function = emitter.function(id);
    let (params, result) = signature(emitter.program, id);
    let is_bits = function.result.is_none_or(|ty| ty.bits().is_some());
    if params.len() != function.params().len() || !is_bits {
        return Err(emitter.unsupported(function, "a parameter or result that is not a bit vector"));
    }
    let mut text = String::new();
    let mut call = format!("function_{}({context}", id.0);
    let mut offset = 0;
    for (at, width) in params.iter().enumerate() {
        let (ty, bytes) = (storage(*width), bytes_of(*width));
        text += &format!("        {ty} given_{at} = {};\n", zero(*width));
        text += &format!("        memcpy(&given_{at}, arguments + {offset}, {bytes});\n");
        call += &format!(", given_{at}");
        offset += bytes;
    }
    if let Some(width) = result {
        text += &format!("        {} returned = {};\n", storage(width), zero(width));
        call += ", &returned";
    }
    text += &format!("        trap = {call});\n");
    if let Some(width) = result {
        text += &format!("        memcpy(result, &returned, {});\n", bytes_of(width));
    }
    Ok(text)
}
