// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of the program as C functions: blocks are labels, values are variables.
//!
//! A function returns 0, or the position of a trap code plus 1. Its arguments are the state and the
//! firing of its element (only the activation if it has no owner), its parameters, and a pointer to
//! the result. A handler that suspends keeps its values and objects in the instance instead, and
//! continues at the label where it stopped.

use super::packet_flow::{PacketFlow, Place};
use super::packets::kept_places;
use super::types::{assign_of, bytes_of, storage, storage_of, zero_of};
use super::values::{Operand, pure};
use super::{Emitter, comment};
use crate::Error;
use crate::manifest::{ProbeInfo, TrapInfo};
use freeport_ir::analysis::{Dominators, Loops, definitions, reverse_post_order, upper_bound};
use freeport_ir::{
    Bits, BlockId, Function, FunctionId, Inst, Loc, Object, Op, PortId, Probe, Target, Term,
    TrapCode, ValueId,
};
use std::collections::HashMap;

/// Emitter of one function.
pub(super) struct FunctionEmitter<'e, 'p> {
    pub emitter: &'e mut Emitter<'p>,
    pub function: &'p Function,
    pub text: String,
    /// Whether it is a handler that suspends.
    pub suspends: bool,
    is_handler: bool,
    bounds: Vec<Option<Bound>>,
    constants: HashMap<ValueId, &'p Bits>,
    definitions: Vec<Option<&'p Op>>,
    pub packets: PacketFlow,
}

/// A loop whose iterations are counted.
struct Bound {
    bound: u64,
    is_watched: bool,
    is_inside: Vec<bool>,
}

/// Returns whether a function has a suspension.
pub(super) fn suspends(function: &Function) -> bool {
    let blocks = reverse_post_order(function);
    blocks.iter().any(|at| matches!(function.blocks[*at].term, Term::Suspend { .. }))
}

/// Returns the declaration of a function, without the `;`.
pub(super) fn declaration(id: FunctionId, function: &Function) -> String {
    let context = match function.owner {
        Some(owner) => {
            format!("struct state_{0} *const state, struct firing_{0} *const firing", owner.0)
        }
        None => "struct activation *const activation".to_owned(),
    };
    let mut text = format!("INLINE uint32_t function_{}({context}", id.0);
    for param in function.params() {
        if let Some(ty) = storage_of(function.type_of(*param)) {
            text += &format!(", {ty} argument_{}", param.0);
        }
    }
    if let Some(ty) = function.result.and_then(storage_of) {
        text += &format!(", {ty} *const result");
    }
    text + ")"
}

/// Returns the structure in which a handler that suspends keeps its values.
pub(super) fn kept_frame(emitter: &Emitter<'_>, id: FunctionId, function: &Function) -> String {
    let mut text = format!("struct frame_{} {{\n", id.0);
    for (at, value) in function.values.iter().enumerate() {
        if let Some(ty) = storage_of(value.ty) {
            text += &format!("    {ty} value_{at};\n");
        }
    }
    for (at, object) in function.locals.iter().enumerate() {
        text += &format!("    {} local_{at}[{}];\n", storage(object.elem_bits), object.depth);
    }
    for at in 0..function.blocks.len() {
        text += &format!("    uint64_t turns_{at};\n");
    }
    text += &kept_places(emitter, function);
    text + "};\n"
}

impl<'e, 'p> FunctionEmitter<'e, 'p> {
    /// Emits the definition of a function.
    pub fn emit(emitter: &'e mut Emitter<'p>, id: FunctionId) -> Result<String, Error> {
        let function = emitter.function(id);
        let is_handler = emitter.is_handler(id);
        let loops = Loops::of(function, &Dominators::of(function));
        let mut bounds: Vec<_> = function.blocks.iter().map(|_| None).collect();
        for found in &loops.loops {
            if let Some(info) = function.blocks[found.header].loop_info {
                let mut is_inside = vec![false; function.blocks.len()];
                found.body.iter().for_each(|block| is_inside[*block] = true);
                bounds[found.header] =
                    Some(Bound { bound: info.bound, is_watched: info.is_watched, is_inside });
            }
        }
        let suspends = suspends(function);
        if suspends && !is_handler {
            return Err(emitter.unsupported(function, "a suspension outside a handler"));
        }
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        let constants = insts.filter_map(|inst| match (&inst.op, inst.result) {
            (Op::Const(bits), Some(result)) => Some((result, bits)),
            _ => None,
        });
        let constants = constants.collect();
        let packets = PacketFlow::of(emitter, id)?;
        let text = String::new();
        let definitions = definitions(function);
        let mut this = Self {
            emitter,
            function,
            text,
            suspends,
            is_handler,
            bounds,
            constants,
            definitions,
            packets,
        };
        this.definition(id)?;
        Ok(this.text)
    }

    fn definition(&mut self, id: FunctionId) -> Result<(), Error> {
        let function = self.function;
        self.text += &format!("// {}\n", comment(&function.name));
        self.text += &format!("{} {{\n", declaration(id, function));
        if function.owner.is_some() {
            self.line("struct activation *const activation = &firing->activation;");
        }
        let order = reverse_post_order(function);
        if self.suspends {
            self.line(&format!("struct frame_{} *const frame = firing->frame;", id.0));
        } else {
            self.declare(&order);
        }
        if self.suspends {
            self.text += "    switch (activation->instance->resume) {\n";
            for at in order.iter().filter(|at| **at != 0) {
                self.text += &format!("    case {at}: goto resume_{at};\n");
            }
            self.text += "    default: break;\n    }\n";
            self.line("memset(frame, 0, sizeof *frame);");
        }
        for (at, object) in function.locals.iter().enumerate() {
            self.initial_contents(at, object);
        }
        for param in function.params() {
            if storage_of(function.type_of(*param)).is_some() {
                self.line(&format!("{} = argument_{};", self.name(*param), param.0));
            }
        }
        for at in order {
            self.block(BlockId::new(at))?;
        }
        self.text += "}\n\n";
        Ok(())
    }

    fn declare(&mut self, order: &[usize]) {
        let function = self.function;
        for block in order.iter().map(|at| &function.blocks[*at]) {
            let results = block.insts.iter().filter_map(|inst| inst.result);
            for value in block.params.iter().copied().chain(results) {
                let Some(ty) = storage_of(function.type_of(value)) else { continue };
                let name = function.values[value.index()].name.as_deref();
                let note = name.map(|name| format!(" // {}", comment(name))).unwrap_or_default();
                self.line(&format!("{ty} value_{};{note}", value.0));
            }
        }
        for (at, object) in function.locals.iter().enumerate() {
            let ty = storage(object.elem_bits);
            let (depth, note) = (object.depth, comment(&object.name));
            self.line(&format!("{ty} local_{at}[{depth}]; // {note}"));
            self.line(&format!("memset(local_{at}, 0, sizeof local_{at});"));
        }
        for at in 0..self.bounds.len() {
            if self.bounds[at].is_some() {
                self.line(&format!("uint64_t turns_{at} = 0;"));
            }
        }
        self.declare_packets();
    }

    fn initial_contents(&mut self, at: usize, object: &Object) {
        for (index, bits) in object.init.iter().enumerate().filter(|(_, bits)| !bits.is_zero()) {
            let bits = super::types::literal(&bits.resize(object.elem_bits));
            self.line(&format!("{}local_{at}[{index}] = {bits};", self.prefix()));
        }
    }

    fn block(&mut self, id: BlockId) -> Result<(), Error> {
        let function = self.function;
        let block = function.block(id);
        if self.suspends && id != Function::ENTRY {
            self.text += &format!("resume_{}:\n", id.0);
        }
        self.text += &format!("block_{}:;\n", id.0);
        for (at, inst) in block.insts.iter().enumerate() {
            self.instruction(inst, (id.index(), at))?;
        }
        self.end(id, &block.term);
        Ok(())
    }

    fn instruction(&mut self, inst: &'p Inst, place: Place) -> Result<(), Error> {
        if let Op::Call { function, args, .. } = &inst.op {
            return self.call(*function, args, inst.result);
        }
        if let Op::CallMethod { instance, method, args } = &inst.op {
            return self.call_method(*instance, *method, args, inst.result, inst.loc);
        }
        if self.packet_operation(inst, place) || self.table_operation(inst)? {
            return Ok(());
        }
        let result = inst.result.and_then(|result| {
            let width = self.function.type_of(result).bits()?;
            Some(Operand { name: self.name(result), width })
        });
        if let Some(result) = &result {
            let text = pure(self.function, &inst.op, result, |value| self.operand(value));
            if let Some(text) = text {
                self.line(&text);
                return Ok(());
            }
        }
        self.effect(&inst.op, result, inst.loc)
    }

    /// Returns the C name of a value.
    pub fn name(&self, value: ValueId) -> String {
        format!("{}value_{}", self.prefix(), value.0)
    }

    /// Returns the prefix of variables.
    pub fn prefix(&self) -> &'static str {
        if self.suspends { "frame->" } else { "" }
    }

    /// Returns a value that is a bit vector as an operand.
    pub fn operand(&self, value: ValueId) -> Operand {
        Operand { name: self.name(value), width: self.function.width_of(value) }
    }

    /// Returns the constant of a value, if it is one.
    pub fn constant(&self, value: ValueId) -> Option<&'p Bits> {
        self.constants.get(&value).copied()
    }

    /// Returns an upper bound of a value, as far as known.
    pub fn upper_bound(&self, value: ValueId) -> u64 {
        upper_bound(self.function, &self.definitions, value)
    }

    /// Appends a line of code.
    pub fn line(&mut self, line: &str) {
        self.text += "    ";
        self.text += line;
        self.text.push('\n');
    }

    /// Returns the error for an unsupported feature.
    pub fn unsupported(&self, what: &str, loc: Loc) -> Error {
        self.emitter.unsupported_at(self.function, what, loc)
    }

    fn end(&mut self, from: BlockId, term: &Term) {
        match term {
            Term::Jump(target) => self.go(from, target),
            Term::Branch { cond, if_true, if_false } => {
                self.line(&format!("if ({}) {{", self.name(*cond)));
                self.go(from, if_true);
                self.line("} else {");
                self.go(from, if_false);
                self.line("}");
            }
            Term::Switch { value, cases, default } => {
                let Operand { name, width } = self.operand(*value);
                for (case, target) in cases {
                    let bits = super::types::literal(case);
                    let (left, right) = match super::types::is_wide(width) {
                        true => {
                            (format!("integer_{width}({name})"), format!("integer_{width}({bits})"))
                        }
                        false => (name.clone(), bits),
                    };
                    self.line(&format!("if ({left} == {right}) {{"));
                    self.go(from, target);
                    self.line("}");
                }
                self.go(from, default);
            }
            Term::Done { mask } => {
                self.mask(*mask);
                self.leave("0");
            }
            Term::Suspend { mask, resume } => {
                self.mask(*mask);
                self.pass(from, resume);
                self.line("activation->did_something = true;");
                self.line(&format!("firing->resume = {};", resume.block.0));
                self.line("return 0;");
            }
            Term::Return { value } => {
                let ty = self.function.result.filter(|ty| storage_of(*ty).is_some());
                if let (Some(value), Some(ty)) = (value, ty) {
                    self.line(&assign_of("(*result)", &self.name(*value), ty));
                }
                if self.is_handler {
                    self.mask(None);
                }
                self.leave("0");
            }
            Term::Trap(code) => self.trap(*code),
        }
    }

    /// Emits a return from the function, and from the firing, with a trap.
    pub fn trap(&mut self, code: TrapCode) {
        let at = self.emitter.trap_position(TrapInfo::from(code));
        self.leave(&(at + 1).to_string());
    }

    /// Emits the final return of the function.
    fn leave(&mut self, code: &str) {
        let leave = format!("{}return {code};", self.end_packets());
        self.line(&leave);
    }

    fn mask(&mut self, mask: Option<ValueId>) {
        if !self.is_handler {
            return;
        }
        let all = self.emitter.all_ports_of(self.function);
        let mask = match mask {
            Some(mask) => format!("(uint64_t)({}) & {all}", self.name(mask)),
            None => all,
        };
        self.line(&format!("firing->next_mask = {mask};"));
    }

    fn go(&mut self, from: BlockId, target: &Target) {
        self.pass(from, target);
        self.line(&format!("goto block_{};", target.block.0));
    }

    /// Emits the counting of loop iterations, and the assignment of the target's parameters, all at
    /// once.
    fn pass(&mut self, from: BlockId, target: &Target) {
        let (from, to) = (from.index(), target.block.index());
        let prefix = self.prefix();
        if let Some(bound) = &self.bounds[from]
            && bound.is_inside[to]
        {
            let limit = bound.bound;
            let code = self.emitter.trap_position(TrapInfo::LoopBound) + 1;
            let end = self.end_packets();
            self.line(&format!(
                "if (++{prefix}turns_{from} > UINT64_C({limit})) {{ {end}return {code}; }}"
            ));
        }
        if let Some(bound) = &self.bounds[to] {
            if !bound.is_inside[from] {
                self.line(&format!("{prefix}turns_{to} = 0;"));
            } else if bound.is_watched {
                let limit = self.emitter.turn_limit;
                let code = self.emitter.trap_position(TrapInfo::Watchdog) + 1;
                let end = self.end_packets();
                self.line(&format!(
                    "if (UNLIKELY(++activation->turns > UINT64_C({limit}))) \
                     {{ {end}return {code}; }}"
                ));
            }
        }
        let params = &self.function.block(target.block).params;
        let pairs = params.iter().zip(&target.args).filter(|(to, arg)| to != arg);
        let pairs: Vec<_> = pairs
            .filter_map(|(to, arg)| {
                let ty = self.function.type_of(*to);
                Some((self.name(*to), self.name(*arg), ty, storage_of(ty)?))
            })
            .collect();
        if let [(param, arg, ty, _)] = &pairs[..] {
            self.line(&assign_of(param, arg, *ty));
            return;
        }
        if pairs.is_empty() {
            return;
        }
        self.line("{");
        for (at, (_, arg, ty, storage)) in pairs.iter().enumerate() {
            let next = format!("next_{at}");
            self.line(&format!("{storage} {next};"));
            self.line(&assign_of(&next, arg, *ty));
        }
        for (at, (param, _, ty, _)) in pairs.iter().enumerate() {
            self.line(&assign_of(param, &format!("next_{at}"), *ty));
        }
        self.line("}");
    }

    /// Emits a call of another function of the program.
    pub fn call(
        &mut self,
        callee: FunctionId,
        args: &[ValueId],
        result: Option<ValueId>,
    ) -> Result<(), Error> {
        let function = self.emitter.function(callee);
        let context = match (function.owner, self.function.owner) {
            (None, _) => "activation",
            (Some(_), Some(_)) => "state, firing",
            (Some(_), None) => {
                return Err(self.unsupported("a call into an element", function.loc));
            }
        };
        let mut call = format!("function_{}({context}", callee.0);
        for arg in args.iter().filter(|arg| storage_of(self.function.type_of(**arg)).is_some()) {
            call += &format!(", {}", self.name(*arg));
        }
        self.line("{");
        let returned = function.result.and_then(|ty| Some((ty, storage_of(ty)?)));
        if let Some((ty, storage)) = &returned {
            self.line(&format!("{storage} returned = {};", zero_of(*ty)));
            call += ", &returned";
        }
        self.line(&format!("const uint32_t trap = {call});"));
        let end = self.end_packets();
        self.line(&format!("if (UNLIKELY(trap != 0)) {{ {end}return trap; }}"));
        if let (Some(result), Some((ty, _))) = (result, returned) {
            self.line(&assign_of(&self.name(result), "returned", ty));
        }
        self.line("}");
        Ok(())
    }

    /// Emits the report of a probe to the host.
    pub fn probe(&mut self, probe: &Probe, args: &[ValueId]) {
        let operands: Vec<Operand> = args.iter().map(|arg| self.operand(*arg)).collect();
        let widths: Vec<u32> = operands.iter().map(|operand| operand.width).collect();
        let bytes: u32 = widths.iter().map(|width| bytes_of(*width)).sum();
        let at = self.emitter.add_probe(ProbeInfo::of(probe, widths));
        self.line(&format!("{{ uint8_t operands[{}];", bytes.max(1)));
        let mut offset = 0;
        for operand in operands {
            let count = bytes_of(operand.width);
            self.line(&format!("memcpy(operands + {offset}, &{}, {count});", operand.name));
            offset += count;
        }
        self.line(&format!("tell(activation->instance, {at}, operands, {bytes}); }}"));
        self.line("activation->did_something = true;");
        if matches!(probe, Probe::Breakpoint(_)) {
            self.line("activation->passed_breakpoint = true;");
        }
    }

    /// Returns the bit of a port in masks.
    pub fn port_bit(&self, port: PortId) -> String {
        format!("UINT64_C({:#x})", 1_u64 << (port.0 & 63))
    }
}
