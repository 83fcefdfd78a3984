// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types and widths of every operation and terminator.

use super::Report;
use super::elements::param_types;
use crate::analysis::Dominators;
use crate::typing::{Produces, mask_bits, result_of};
use crate::{
    Addressing, Block, Element, Function, FunctionId, Inst, InstanceId, MethodId, Object,
    ObjectRef, Op, Program, Table, Target, Term, Type, UnaryOp, ValueId,
};

pub(super) fn check(program: &Program, id: FunctionId, report: &mut Report) {
    let function = program.function(id);
    report.enter(format!("function {}", function.name), function.loc);
    let owner = function.owner.map(|owner| program.element(owner));
    let is_handler = program.elements.iter().any(|element| element.handler == id);
    let mut checker = Checker { program, function, owner, is_handler, report };
    let dominators = Dominators::of(function);
    for (at, block) in function.blocks.iter().enumerate() {
        for (place, inst) in block.insts.iter().enumerate() {
            checker.report.go_to(at, Some(place), inst.loc);
            checker.inst(inst);
        }
        checker.report.go_to(at, None, block.term_loc);
        checker.term(block);
        // An unreachable block may lack a terminator: the builder leaves such blocks behind.
        if dominators.is_reachable(at) {
            checker.end(&block.term);
        }
    }
}

struct Checker<'p, 'r> {
    program: &'p Program,
    function: &'p Function,
    owner: Option<&'p Element>,
    is_handler: bool,
    report: &'r mut Report,
}

impl<'p> Checker<'p, '_> {
    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) -> bool {
        self.report.require(holds, message)
    }

    fn ty(&self, value: ValueId) -> Type {
        self.function.type_of(value)
    }

    /// Returns the width of an operand that must be a bit vector; 0 if it is not.
    fn width(&mut self, value: ValueId) -> u32 {
        let width = self.ty(value).bits();
        self.require(width.is_some(), || format!("value {} is not a bit vector", value.0));
        width.unwrap_or(0)
    }

    fn of_width(&mut self, value: ValueId, wanted: u32, what: &str) {
        let width = self.width(value);
        self.require(width == 0 || width == wanted, || {
            format!("{what} has {width} bits, not {wanted}")
        });
    }

    fn same_width(&mut self, left: ValueId, right: ValueId) {
        let (left, right) = (self.width(left), self.width(right));
        let is_same = left == right || left == 0 || right == 0;
        self.require(is_same, || format!("operands have {left} and {right} bits"));
    }

    fn whole_bytes(&mut self, width: u32, what: &str) {
        let is_whole = width > 0 && width.is_multiple_of(8);
        self.require(is_whole, || format!("{what} is not a number of whole bytes"));
    }

    fn bytes_value(&mut self, value: ValueId) {
        let width = self.width(value);
        if width > 0 {
            self.whole_bytes(width, "the value stored");
        }
    }

    /// Checks a constant range of bits.
    fn range(&mut self, lo: u32, width: u32, whole: u32) {
        let end = u64::from(lo) + u64::from(width);
        let is_within = width > 0 && (whole == 0 || end <= u64::from(whole));
        self.require(is_within, || format!("bits {lo} to {end} are not all within {whole} bits"));
    }

    fn is_type(&mut self, value: ValueId, ty: Type, what: &str) {
        let is_right = self.ty(value) == ty;
        self.require(is_right, || format!("value {} is not {what}", value.0));
    }

    fn is_ref(&mut self, value: ValueId) {
        let is_ref = matches!(self.ty(value), Type::Ref(_));
        self.require(is_ref, || format!("value {} is not a reference", value.0));
    }

    fn object(&mut self, object: ObjectRef, addressing: Addressing) -> Option<&'p Object> {
        let found = self.program.object(self.function, object)?;
        self.require(found.addressing == addressing, || {
            format!("{} is addressed by {:?}", found.name, found.addressing)
        });
        Some(found)
    }

    fn table(&mut self, value: ValueId) -> Option<&'p Table> {
        let table = match self.ty(value) {
            Type::Handle(table) => self.owner.and_then(|owner| owner.tables.get(table.index())),
            _ => None,
        };
        self.require(table.is_some(), || format!("value {} is not a table handle", value.0));
        table
    }

    fn inst(&mut self, inst: &Inst) {
        self.operands(&inst.op);
        let produces = result_of(&inst.op, self.program, self.owner, |value| Some(self.ty(value)));
        let Some(result) = inst.result else {
            let is_useless = inst.op.is_pure();
            self.require(!is_useless, || "it only computes, and its result has no name".to_owned());
            return;
        };
        let ty = self.ty(result);
        match produces {
            Produces::Nothing => {
                self.require(false, || "it has no result, and defines one".to_owned());
            }
            Produces::Value(right) => {
                self.require(ty == right, || format!("its result is {right:?}, not {ty:?}"));
            }
            // An operand is wrong, which has already been reported.
            Produces::Unknown => {}
        }
    }

    fn operands(&mut self, op: &Op) {
        match op {
            Op::Const(_) | Op::Handle(_) | Op::NullRef(_) | Op::Now | Op::Random => {}
            Op::Unary(UnaryOp::ByteSwap, value) => {
                let width = self.width(*value);
                self.whole_bytes(width, "the swapped value");
            }
            Op::Unary(_, value) => {
                self.width(*value);
            }
            Op::Binary(_, left, right) | Op::Compare(_, left, right) => {
                self.same_width(*left, *right);
            }
            Op::Select { cond, if_true, if_false } => {
                self.of_width(*cond, 1, "the condition");
                let is_same = self.ty(*if_true) == self.ty(*if_false);
                self.require(is_same, || "the two sides have different types".to_owned());
            }
            Op::ZeroExtend(value, width) | Op::SignExtend(value, width) => {
                let from = self.width(*value);
                self.require(*width >= from, || format!("{from} bits extend to {width}"));
            }
            Op::Truncate(value, width) => {
                let from = self.width(*value);
                let is_less = *width > 0 && (*width <= from || from == 0);
                self.require(is_less, || format!("{from} bits are cut to {width}"));
            }
            Op::Extract { value, lo, width } => {
                let whole = self.width(*value);
                self.range(*lo, *width, whole);
            }
            Op::ExtractDynamic { value, lo, width } => {
                self.width(*value);
                self.width(*lo);
                self.require(*width > 0, || "it extracts no bits".to_owned());
            }
            Op::Insert { value, lo, part } => {
                let (whole, part) = (self.width(*value), self.width(*part));
                self.range(*lo, part, whole);
            }
            Op::InsertDynamic { value, lo, part } => {
                for operand in [value, lo, part] {
                    self.width(*operand);
                }
            }
            Op::Concat(parts) => {
                self.require(!parts.is_empty(), || "it joins nothing".to_owned());
                for part in parts {
                    self.width(*part);
                }
            }
            Op::Call { function, args, .. } => self.call(*function, args),
            Op::CallMethod { instance, method, args } => self.method(*instance, *method, args),
            Op::Probe { args, .. } => {
                for value in args {
                    self.width(*value);
                }
            }
            _ => self.effect(op),
        }
    }

    fn effect(&mut self, op: &Op) {
        match op {
            Op::RefIsValid(reference) => self.is_ref(*reference),
            Op::RefOffset { reference, offset } => {
                self.is_ref(*reference);
                self.width(*offset);
            }
            Op::RefLoad { reference, width } => {
                self.is_ref(*reference);
                self.whole_bytes(*width, "the width");
            }
            Op::RefStore { reference, value } => {
                self.is_ref(*reference);
                self.bytes_value(*value);
            }
            Op::Load { object, index, lo, width } => {
                self.width(*index);
                let whole = self.object(*object, Addressing::Element);
                self.range(*lo, *width, whole.map_or(0, |object| object.elem_bits));
            }
            Op::Store { object, index, lo, value, mask } => {
                self.width(*index);
                let whole = self.object(*object, Addressing::Element);
                let part = self.width(*value);
                self.range(*lo, part, whole.map_or(0, |object| object.elem_bits));
                if let Some(mask) = mask {
                    self.same_width(*value, *mask);
                }
            }
            Op::LoadBytes { object, offset, bytes } => {
                self.width(*offset);
                self.object(*object, Addressing::Byte);
                self.require(*bytes > 0, || "it loads nothing".to_owned());
            }
            Op::StoreBytes { object, offset, value } => {
                self.width(*offset);
                self.object(*object, Addressing::Byte);
                self.bytes_value(*value);
            }
            Op::TableLookup { table, key } | Op::TableDelete { table, key } => {
                if let Some(table) = self.table(*table) {
                    self.of_width(*key, table.key_bits, "the key");
                }
            }
            Op::TableUpdate { table, key, value } => {
                if let Some(table) = self.table(*table) {
                    self.of_width(*key, table.key_bits, "the key");
                    self.of_width(*value, table.value_bits, "the value");
                }
            }
            Op::Put { port, value } => {
                let item = self.owner.map(|owner| owner.outputs[port.index()].item.value_type());
                let is_right = item == Some(self.ty(*value));
                self.require(is_right, || "the port has items of another type".to_owned());
            }
            Op::NewPacket { length } => {
                self.width(*length);
            }
            Op::PacketLength(packet) => self.is_type(*packet, Type::Packet, "a packet"),
            Op::PacketLoad { packet, offset, bytes } => {
                self.is_type(*packet, Type::Packet, "a packet");
                self.width(*offset);
                self.require(*bytes > 0, || "it loads nothing".to_owned());
            }
            Op::PacketStore { packet, offset, value } => {
                self.is_type(*packet, Type::Packet, "a packet");
                self.width(*offset);
                self.bytes_value(*value);
            }
            Op::PacketAdjustHead { packet, delta } | Op::PacketAdjustTail { packet, delta } => {
                self.is_type(*packet, Type::Packet, "a packet");
                self.width(*delta);
            }
            _ => {}
        }
    }

    fn call(&mut self, id: FunctionId, args: &[ValueId]) {
        let callee = self.program.function(id);
        let is_handler = self.program.elements.iter().any(|element| element.handler == id);
        self.require(!is_handler, || format!("{} is a handler; nothing calls it", callee.name));
        let may_call = callee.owner.is_none() || callee.owner == self.function.owner;
        self.require(may_call, || format!("{} belongs to another element", callee.name));
        let given: Vec<Type> = args.iter().map(|value| self.ty(*value)).collect();
        let is_right = given == param_types(callee);
        self.require(is_right, || format!("{} has other parameters", callee.name));
    }

    fn method(&mut self, instance: InstanceId, method: MethodId, args: &[ValueId]) {
        let has_ports = |it: &Element| !it.inputs.is_empty() || !it.outputs.is_empty();
        let may_call = self.owner.is_some_and(|owner| !has_ports(owner));
        self.require(may_call, || "only an element without ports calls methods".to_owned());
        if let Some(callee) = self.program.method(instance, method) {
            let given: Vec<Type> = args.iter().map(|value| self.ty(*value)).collect();
            let is_right = given == param_types(callee);
            self.require(is_right, || format!("{} has other parameters", callee.name));
        }
    }

    fn term(&mut self, block: &Block) {
        let term = &block.term;
        match term {
            Term::Branch { cond, .. } => self.of_width(*cond, 1, "the condition"),
            Term::Switch { value, cases, .. } => {
                let width = self.width(*value);
                for (at, (case, _)) in cases.iter().enumerate() {
                    let is_right = case.width() == width || width == 0;
                    self.require(is_right, || format!("case {case:?} is not {width} bits wide"));
                    let is_new = cases[..at].iter().all(|(before, _)| before != case);
                    self.require(is_new, || format!("case {case} occurs twice"));
                }
            }
            Term::Done { mask: Some(mask) } | Term::Suspend { mask: Some(mask), .. } => {
                if let Some(owner) = self.owner {
                    self.of_width(*mask, mask_bits(owner), "the mask");
                }
            }
            _ => {}
        }
        for target in term.targets() {
            self.target(target);
        }
    }

    /// Checks that a terminator fits the role of the function.
    fn end(&mut self, term: &Term) {
        let is_end_of_firing = matches!(term, Term::Done { .. } | Term::Suspend { .. });
        let is_return = matches!(term, Term::Return { .. });
        self.require(!is_end_of_firing || self.is_handler, || {
            "only a handler ends a firing".to_owned()
        });
        self.require(!is_return || !self.is_handler, || "a handler does not return".to_owned());
        if let Term::Return { value } = term {
            let ty = value.map(|value| self.ty(value));
            let is_right = self.is_handler || ty == self.function.result;
            self.require(is_right, || "it returns another type than declared".to_owned());
        }
    }

    fn target(&mut self, target: &Target) {
        let params = &self.function.block(target.block).params;
        let wanted: Vec<Type> = params.iter().map(|value| self.ty(*value)).collect();
        let given: Vec<Type> = target.args.iter().map(|value| self.ty(*value)).collect();
        let at = target.block.0;
        self.require(given == wanted, || format!("b{at} has other parameters"));
    }
}
