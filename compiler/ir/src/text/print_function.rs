// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints functions: the header, locals, blocks, operations and terminators.

use super::print::{
    Printer, Role, at, function_ref, literal, put, reference, table_ref, type_text,
};
use super::spelling::{
    BINARY, COMPARE, LATENCY, UNARY, function_name, is_identifier, quoted, word,
};
use crate::typing::{Produces, result_of};
use crate::{
    Block, BlockId, CallOrder, Element, Function, FunctionId, Inst, InstanceId, Lifetime, LocalId,
    MethodId, ObjectRef, Op, PortId, Probe, Program, Target, Term, TrapCode, Unroll, ValueId,
};
use std::collections::HashMap;

/// Prints the function `id` in its role.
pub(super) fn print_function(printer: &mut Printer, id: FunctionId, role: Role) {
    let program = printer.program;
    let Some(function) = program.functions.get(id.index()) else { return };
    let text = FunctionText::new(program, function);
    printer.open(text.header(id, &role, printer.next_function));
    printer.next_function = id.0.wrapping_add(1);
    for object in &function.locals {
        printer.object(object, Lifetime::Firing);
    }
    for value in unused_values(function) {
        printer.line(format!("unused {}: {}", text.value(value), text.type_of(value)));
    }
    for (at, block) in function.blocks.iter().enumerate() {
        text.block(printer, BlockId::new(at), block);
    }
    printer.close();
}

/// Names of everything inside a function.
pub(super) struct FunctionText<'p> {
    program: &'p Program,
    function: &'p Function,
    owner: Option<&'p Element>,
    values: Vec<String>,
}

impl<'p> FunctionText<'p> {
    pub(super) fn new(program: &'p Program, function: &'p Function) -> Self {
        let owner = function.owner.and_then(|owner| program.elements.get(owner.index()));
        Self { program, function, owner, values: value_names(function) }
    }

    fn header(&self, id: FunctionId, role: &Role, expected: u32) -> String {
        let mut text = role.keyword.to_owned();
        if let Some(method) = role.method {
            put(&mut text, format_args!(" {}", super::spelling::name(method)));
        }
        if role.default_name.as_ref() != Some(&self.function.name) {
            put(&mut text, format_args!(" @{}", function_name(&self.function.name)));
        }
        if id.0 != expected {
            put(&mut text, format_args!(" #{}", id.0));
        }
        let params = self.function.blocks.first().map_or(&[][..], |block| &block.params);
        if !params.is_empty() || matches!(role.keyword, "fn" | "method") {
            put(&mut text, format_args!("({})", self.params(params)));
        }
        if let Some(ty) = self.function.result {
            put(&mut text, format_args!(" -> {}", type_text(ty, self.owner)));
        }
        if self.function.inline {
            text.push_str(" inline");
        }
        text + &at(self.function.loc)
    }

    fn params(&self, params: &[ValueId]) -> String {
        let each = |value: &ValueId| format!("{}: {}", self.value(*value), self.type_of(*value));
        params.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    fn block(&self, printer: &mut Printer, id: BlockId, block: &Block) {
        let mut label = label(id);
        if id != Function::ENTRY && !block.params.is_empty() {
            put(&mut label, format_args!("({})", self.params(&block.params)));
        }
        if let Some(info) = block.loop_info {
            put(&mut label, format_args!(" loop(bound {}", info.bound));
            match info.unroll {
                Unroll::Auto => {}
                Unroll::Full => label.push_str(", unroll full"),
                Unroll::By(copies) => put(&mut label, format_args!(", unroll {copies}")),
                Unroll::Flatten => label.push_str(", flatten"),
            }
            if info.independent {
                label.push_str(", independent");
            }
            if info.is_watched {
                label.push_str(", watched");
            }
            label.push(')');
        }
        printer.line(label + ":");
        printer.indented(|printer| {
            for inst in &block.insts {
                printer.line(self.inst(inst));
            }
            printer.line(self.term(&block.term) + &at(block.term_loc));
        });
    }

    fn inst(&self, inst: &Inst) -> String {
        let known = |value: ValueId| Some(self.function.values.get(value.index())?.ty);
        let inferred = result_of(&inst.op, self.program, self.owner, known);
        self.defining(inst.result, inferred, self.op(&inst.op) + &at(inst.loc))
    }

    /// Formats an operation and its result, with the type if it is not the inferred one.
    pub(super) fn defining(
        &self,
        result: Option<ValueId>,
        inferred: Produces,
        op: String,
    ) -> String {
        let Some(result) = result else { return op };
        let known = |value: ValueId| Some(self.function.values.get(value.index())?.ty);
        if known(result).map(Produces::Value) == Some(inferred) {
            return format!("{} = {op}", self.value(result));
        }
        format!("{}: {} = {op}", self.value(result), self.type_of(result))
    }

    pub(super) fn op(&self, op: &Op) -> String {
        let v = |value: &ValueId| self.value(*value);
        match op {
            Op::Const(bits) => format!("const {bits:?}"),
            Op::Unary(op, value) => format!("{} {}", word(&UNARY, op), v(value)),
            Op::Binary(op, a, b) => format!("{} {}, {}", word(&BINARY, op), v(a), v(b)),
            Op::Compare(op, a, b) => format!("{} {}, {}", word(&COMPARE, op), v(a), v(b)),
            Op::Select { cond, if_true, if_false } => {
                format!("select {}, {}, {}", v(cond), v(if_true), v(if_false))
            }
            Op::ZeroExtend(value, width) => format!("zext {} to {width}", v(value)),
            Op::SignExtend(value, width) => format!("sext {} to {width}", v(value)),
            Op::Truncate(value, width) => format!("trunc {} to {width}", v(value)),
            Op::Extract { value, lo, width } => format!("extract {}[{lo} +: {width}]", v(value)),
            Op::ExtractDynamic { value, lo, width } => {
                format!("extract {}[{} +: {width}]", v(value), v(lo))
            }
            Op::Insert { value, lo, part } => format!("insert {}[{lo}], {}", v(value), v(part)),
            Op::InsertDynamic { value, lo, part } => {
                format!("insert {}[{}], {}", v(value), v(lo), v(part))
            }
            Op::Concat(parts) => format!("concat{}", self.list(parts, " ")),
            Op::Handle(table) => format!("handle {}", table_ref(self.owner, table.0)),
            Op::NullRef(spaces) => {
                format!("null {}", type_text(crate::Type::Ref(*spaces), self.owner))
            }
            Op::RefIsValid(value) => format!("is_valid {}", v(value)),
            Op::RefOffset { reference, offset } => {
                format!("ref_offset {}, {}", v(reference), v(offset))
            }
            Op::RefLoad { reference, width } => format!("ref_load {}, {width}", v(reference)),
            Op::RefStore { reference, value } => {
                format!("ref_store {}, {}", v(reference), v(value))
            }
            Op::Probe { probe, args } => {
                let (word, text) = match probe {
                    Probe::Printf(text) => ("printf", text),
                    Probe::Breakpoint(text) => ("breakpoint", text),
                    Probe::Log(text) => ("log", text),
                };
                format!("{word} {}{}", quoted(text), self.list(args, ", "))
            }
            Op::Call { function, args, latency, order } => {
                let callee = function_ref(self.program, *function);
                let latency = word(&LATENCY, latency);
                let order = if *order == CallOrder::Overlap { " overlap" } else { "" };
                format!("call {callee}({}) {latency}{order}", self.list(args, ""))
            }
            Op::CallMethod { instance, method, args } => {
                let callee = self.method(*instance, *method);
                format!("call_method {callee}({})", self.list(args, ""))
            }
            _ => self.effect(op),
        }
    }

    /// Formats `instance.method`.
    fn method(&self, instance: InstanceId, method: MethodId) -> String {
        let instances = &self.program.graph.instances;
        let element = instances.get(instance.index());
        let element = element.and_then(|each| self.program.elements.get(each.element.index()));
        let methods = element.map_or(&[][..], |element| &element.methods);
        let method = reference(methods.iter().map(|each| &each.name), method.0);
        format!("{}.{method}", reference(instances.iter().map(|each| &each.name), instance.0))
    }

    /// Formats operations on objects, tables, ports, packets and oracles.
    fn effect(&self, op: &Op) -> String {
        let v = |value: &ValueId| self.value(*value);
        match op {
            Op::Load { object, index, lo, width } => {
                let whole = self.program.object(self.function, *object);
                let name = self.object(*object);
                if *lo == 0 && whole.map(|object| object.elem_bits) == Some(*width) {
                    return format!("load {name}[{}]", v(index));
                }
                format!("load {name}[{}][{lo} +: {width}]", v(index))
            }
            Op::Store { object, index, lo, value, mask } => {
                let lo = if *lo == 0 { String::new() } else { format!("[{lo}]") };
                let mask = mask.map(|mask| format!(" mask {}", v(&mask))).unwrap_or_default();
                format!("store {}[{}]{lo}, {}{mask}", self.object(*object), v(index), v(value))
            }
            Op::LoadBytes { object, offset, bytes } => {
                format!("load_bytes {}[{}], {bytes}", self.object(*object), v(offset))
            }
            Op::StoreBytes { object, offset, value } => {
                format!("store_bytes {}[{}], {}", self.object(*object), v(offset), v(value))
            }
            Op::TableLookup { table, key } => format!("lookup {}, {}", v(table), v(key)),
            Op::TableUpdate { table, key, value } => {
                format!("update {}, {}, {}", v(table), v(key), v(value))
            }
            Op::TableDelete { table, key } => format!("delete {}, {}", v(table), v(key)),
            Op::ReadyMask => "ready_mask".to_owned(),
            Op::Ready(port) => format!("ready {}", self.port(*port, true)),
            Op::Peek(port) => format!("peek {}", self.port(*port, true)),
            Op::Take(port) => format!("take {}", self.port(*port, true)),
            Op::Put { port, value } => format!("put {}, {}", self.port(*port, false), v(value)),
            Op::NewPacket { length } => format!("new_packet {}", v(length)),
            Op::PacketLength(packet) => format!("length {}", v(packet)),
            Op::PacketLoad { packet, offset, bytes } => {
                format!("packet_load {}, {}, {bytes}", v(packet), v(offset))
            }
            Op::PacketStore { packet, offset, value } => {
                format!("packet_store {}, {}, {}", v(packet), v(offset), v(value))
            }
            Op::PacketAdjustHead { packet, delta } => {
                format!("adjust_head {}, {}", v(packet), v(delta))
            }
            Op::PacketAdjustTail { packet, delta } => {
                format!("adjust_tail {}, {}", v(packet), v(delta))
            }
            Op::Now => "now".to_owned(),
            Op::Random => "random".to_owned(),
            _ => unreachable!("`op` prints every other operation"),
        }
    }

    fn term(&self, term: &Term) -> String {
        let operand = |value: &Option<ValueId>| {
            value.map(|value| format!(" {}", self.value(value))).unwrap_or_default()
        };
        match term {
            Term::Jump(target) => format!("jump {}", self.target(target)),
            Term::Branch { cond, if_true, if_false } => format!(
                "br {}, {}, {}",
                self.value(*cond),
                self.target(if_true),
                self.target(if_false)
            ),
            Term::Switch { value, cases, default } => {
                let known = self.function.values.get(value.index());
                let width = known.and_then(|value| value.ty.bits());
                let mut text = format!("switch {} {{ ", self.value(*value));
                for (bits, target) in cases {
                    let case = literal(bits, width);
                    put(&mut text, format_args!("{case} -> {}, ", self.target(target)));
                }
                text + &format!("else -> {} }}", self.target(default))
            }
            Term::Done { mask } => format!("done{}", operand(mask)),
            Term::Suspend { mask: None, resume } => format!("suspend {}", self.target(resume)),
            Term::Suspend { mask, resume } => {
                format!("suspend{}, {}", operand(mask), self.target(resume))
            }
            Term::Return { value } => format!("ret{}", operand(value)),
            Term::Trap(TrapCode::LoopBound) => "trap loop_bound".to_owned(),
            Term::Trap(TrapCode::Watchdog) => "trap watchdog".to_owned(),
            Term::Trap(TrapCode::User(code)) => format!("trap user {code}"),
        }
    }

    fn target(&self, target: &Target) -> String {
        if target.args.is_empty() {
            return label(target.block);
        }
        format!("{}({})", label(target.block), self.list(&target.args, ""))
    }

    /// Formats values separated by commas, after `first` if there are any.
    fn list(&self, values: &[ValueId], first: &str) -> String {
        if values.is_empty() {
            return String::new();
        }
        let values: Vec<&str> = values.iter().map(|value| self.value(*value)).collect();
        format!("{first}{}", values.join(", "))
    }

    pub(super) fn value(&self, value: ValueId) -> &str {
        self.values.get(value.index()).map_or("%?", |name| name)
    }

    fn type_of(&self, value: ValueId) -> String {
        let known = self.function.values.get(value.index());
        known.map_or("?".to_owned(), |value| type_text(value.ty, self.owner))
    }

    /// Formats an object by name: a local hides state of the same name.
    fn object(&self, object: ObjectRef) -> String {
        let locals = self.function.locals.iter().map(|object| &object.name);
        let (side, index, text) = match object {
            ObjectRef::Local(LocalId(index)) => ("local", index, reference(locals, index)),
            ObjectRef::State(index) => {
                let state = self.owner.map_or(&[][..], |element| &element.state);
                let own = state.get(index.index()).map(|object| &object.name);
                let is_hidden = own.is_some_and(|own| locals.into_iter().any(|name| name == own));
                let text = match is_hidden {
                    true => format!("#{}", index.0),
                    false => reference(state.iter().map(|object| &object.name), index.0),
                };
                ("state", index.0, text)
            }
        };
        if text.starts_with('#') { format!("{side}#{index}") } else { text }
    }

    fn port(&self, port: PortId, is_input: bool) -> String {
        let ports = self.owner.map_or(&[][..], |element| match is_input {
            true => &element.inputs,
            false => &element.outputs,
        });
        reference(ports.iter().map(|port| &port.name), port.0)
    }
}

fn label(block: BlockId) -> String {
    if block == Function::ENTRY { "entry".to_owned() } else { format!("b{}", block.0) }
}

/// Returns the spelling of each value. A value's index is omitted if it is one more than that of
/// the previously defined value and the name is unique.
fn value_names(function: &Function) -> Vec<String> {
    let mut uses = HashMap::new();
    for value in &function.values {
        *uses.entry(&value.name).or_insert(0) += 1;
    }
    let mut implied = vec![false; function.values.len()];
    let mut next = 0;
    let params = function.blocks.first().map_or(0, |block| block.params.len());
    let mut order = definitions(function);
    order.splice(params..params, unused_values(function));
    for value in order {
        if let Some(slot) = implied.get_mut(value.index()) {
            *slot = value.0 == next;
        }
        next = value.0.wrapping_add(1);
    }
    let spell = |(at, value): (usize, &crate::Value)| match &value.name {
        None => format!("%{at}"),
        Some(name) => {
            let shown = if is_identifier(name) { name.clone() } else { quoted(name) };
            match implied[at] && uses[&value.name] == 1 {
                true => format!("%{shown}"),
                false => format!("%{shown}.{at}"),
            }
        }
    };
    function.values.iter().enumerate().map(spell).collect()
}

/// Returns every value defined, in the order of the text.
fn definitions(function: &Function) -> Vec<ValueId> {
    let of_block = |block: &Block| {
        let results = block.insts.iter().filter_map(|inst| inst.result);
        block.params.iter().copied().chain(results).collect::<Vec<_>>()
    };
    function.blocks.iter().flat_map(of_block).collect()
}

/// Returns values without a definition, which passes leave behind.
fn unused_values(function: &Function) -> Vec<ValueId> {
    let mut is_defined = vec![false; function.values.len()];
    for value in definitions(function) {
        if let Some(slot) = is_defined.get_mut(value.index()) {
            *slot = true;
        }
    }
    let undefined = (0..is_defined.len()).filter(|at| !is_defined[*at]);
    undefined.map(ValueId::new).collect()
}
