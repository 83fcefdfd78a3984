// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random statements: effects and control flow.

use super::{Limits, Role, end_of, random_object, random_width};
use crate::{
    Addressing, BinaryOp, BlockId, Builder, CallOrder, CompareOp, Function, FunctionId, Latency,
    Lifetime, LocalId, LoopInfo, Object, ObjectId, ObjectRef, Op, PortId, Probe, Program, Target,
    Term, TrapCode, Type, Unroll, ValueId,
};

/// Writes the body of one function.
pub(super) struct Writer<'a> {
    pub(super) random: &'a mut fastrand::Rng,
    program: &'a Program,
    limits: &'a Limits,
    pub(super) builder: Builder,
    role: Role,
    /// Bit vectors available at the builder's position.
    pub(super) scope: Vec<ValueId>,
    pub(super) references: Vec<ValueId>,
    /// Number of statements left to write.
    left: u32,
    /// Enclosing loops: where to continue, and where to leave; each takes the values that the loop
    /// carries.
    loops: Vec<Around>,
}

#[derive(Clone)]
struct Around {
    again: BlockId,
    after: BlockId,
    iterator_width: u32,
    carried_width: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        random: &'a mut fastrand::Rng,
        program: &'a Program,
        limits: &'a Limits,
        mut builder: Builder,
        role: Role,
    ) -> Self {
        for at in 0..random.usize(1..4) {
            let local = random_object(random, format!("local{at}"), Lifetime::Firing);
            builder.function_mut().add_local(local);
        }
        let params = builder.function().params().to_vec();
        let is_bits = |param: &ValueId| builder.function().type_of(*param).bits().is_some();
        let (scope, references): (Vec<_>, Vec<_>) = params.into_iter().partition(is_bits);
        let left = limits.statements;
        let loops = vec![];
        Self { random, program, limits, builder, role, scope, references, left, loops }
    }

    pub(super) fn write_body(&mut self) {
        if self.role == Role::Handler {
            // Takes all remaining items, so that the program terminates.
            for at in 0..self.element().inputs.len() {
                let ty = self.element().inputs[at].item.value_type();
                let taken = self.builder.push(Op::Take(PortId::new(at)), ty);
                self.scope.push(taken);
            }
        }
        self.statements(0);
        let mask = self.mask();
        let value = match self.builder.function().result {
            Some(Type::Bits(width)) => Some(self.of_width(width)),
            _ => None,
        };
        self.builder.end(end_of(self.role, mask, value));
    }

    pub(super) fn finish(self) -> Function {
        self.builder.finish()
    }

    pub(super) fn element(&self) -> &'a crate::Element {
        &self.program.elements[0]
    }

    /// Draws a mask that waits for something, or no mask.
    fn mask(&mut self) -> Option<ValueId> {
        let count = self.element().inputs.len() as u32;
        if self.role != Role::Handler || self.random.bool() {
            return None;
        }
        let mask = self.random.u64(1..1 << count);
        let mask = self.builder.number(count, mask);
        if self.random.bool() {
            return Some(mask);
        }
        let other = self.of_width(count);
        Some(self.builder.binary(BinaryOp::Or, mask, other))
    }

    /// Writes statements until there are enough here; values stay available until the end of them.
    fn statements(&mut self, depth: u32) {
        let count = if depth == 0 { self.left } else { self.random.u32(1..6) };
        for _ in 0..count {
            if self.left == 0 || self.builder.is_ended() {
                return;
            }
            self.left -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        let can_nest = depth < self.limits.nesting;
        match self.random.u8(0..32) {
            0..=9 => {
                let value = self.pure();
                self.scope.push(value);
            }
            10..=17 => self.access(),
            18..=20 if can_nest => self.branch(depth),
            21..=23 if can_nest => self.repeat(depth),
            24 if can_nest => self.switch(depth),
            25 => self.call(),
            26 | 30 if !self.element().tables.is_empty() => self.table(),
            27 => self.oracle_or_probe(),
            28 if self.role == Role::Handler && self.limits.has_suspensions => self.suspend(),
            29 => self.leave(),
            _ if self.role == Role::Handler => self.port(),
            _ => self.access(),
        }
    }

    fn object(&mut self) -> (ObjectRef, &Object) {
        let locals = self.builder.function().locals.len();
        let states = self.element().state.len();
        let at = self.random.usize(0..locals + states);
        if at < locals {
            (ObjectRef::Local(LocalId::new(at)), &self.builder.function().locals[at])
        } else {
            let at = at - locals;
            (ObjectRef::State(ObjectId::new(at)), &self.element().state[at])
        }
    }

    fn access(&mut self) {
        let (object, &Object { elem_bits, addressing, .. }) = self.object();
        let index = self.index();
        if addressing == Addressing::Byte {
            let bytes = self.random.u32(1..5);
            if self.random.bool() {
                let op = Op::LoadBytes { object, offset: index, bytes };
                let loaded = self.builder.push(op, Type::Bits(bytes * 8));
                self.scope.push(loaded);
            } else {
                let value = self.of_width(bytes * 8);
                self.builder.push_effect(Op::StoreBytes { object, offset: index, value });
            }
            return;
        }
        let is_whole = self.random.bool();
        let lo = if is_whole { 0 } else { self.random.u32(0..elem_bits) };
        let width = if is_whole { elem_bits } else { self.random.u32(1..=elem_bits - lo) };
        if self.random.bool() {
            let loaded = self.builder.load(object, index, lo, width);
            self.scope.push(loaded);
        } else {
            let value = self.of_width(width);
            let is_masked = self.random.u8(0..4) == 0;
            let mask = if is_masked { Some(self.of_width(width)) } else { None };
            self.builder.push_effect(Op::Store { object, index, lo, value, mask });
        }
    }

    fn port(&mut self) {
        let (inputs, outputs) = (self.element().inputs.len(), self.element().outputs.len());
        let input = PortId::new(self.random.usize(0..inputs));
        let ty = self.element().inputs[input.index()].item.value_type();
        match self.random.u8(0..8) {
            0 => {
                let ready = self.builder.push(Op::ReadyMask, Type::Bits(inputs as u32));
                self.scope.push(ready);
            }
            1 => {
                let ready = self.builder.push(Op::Ready(input), Type::Bits(1));
                self.scope.push(ready);
            }
            2 => {
                let peeked = self.builder.push(Op::Peek(input), ty);
                self.scope.push(peeked);
            }
            _ => {
                let port = PortId::new(self.random.usize(0..outputs));
                let item = self.element().outputs[port.index()].item.value_type();
                let value = self.of_width(item.bits().expect("generated items are bits"));
                self.builder.push_effect(Op::Put { port, value });
            }
        }
    }

    fn call(&mut self) {
        let callees: Vec<usize> = (0..self.program.functions.len())
            .filter(|at| self.program.functions[*at].inline)
            .collect();
        if callees.is_empty() {
            return;
        }
        let at = callees[self.random.usize(0..callees.len())];
        let callee = &self.program.functions[at];
        let args = callee.params().iter().map(|param| match callee.type_of(*param) {
            Type::Bits(width) => self.of_width(width),
            _ => self.any_reference(),
        });
        let args = args.collect();
        let (function, order) = (FunctionId::new(at), CallOrder::InOrder);
        let op = Op::Call { function, args, latency: Latency::Inline, order };
        match callee.result {
            Some(ty) => {
                let result = self.builder.push(op, ty);
                self.scope.push(result);
            }
            None => self.builder.push_effect(op),
        }
    }

    fn oracle_or_probe(&mut self) {
        match self.random.u8(0..3) {
            0 => {
                let drawn = self.builder.push(Op::Random, Type::Bits(64));
                self.scope.push(drawn);
            }
            _ => {
                let args = vec![self.any()];
                self.builder.push_effect(Op::Probe { probe: Probe::Log("log".into()), args });
            }
        }
    }

    fn suspend(&mut self) {
        let count = self.element().inputs.len() as u32;
        // Waiting for an item could take forever, so it waits for nothing and continues at once.
        let mask = Some(self.builder.number(count, 0));
        let block = self.builder.new_block();
        self.builder.end(Term::Suspend { mask, resume: Target::to(block) });
        self.builder.switch_to(block);
    }

    /// Writes a trap, a break or a continue, each on a condition.
    fn leave(&mut self) {
        let cond = self.condition();
        let (gone, on) = (self.builder.new_block(), self.builder.new_block());
        self.builder.branch(cond, gone, on);
        self.builder.switch_to(gone);
        let known = self.scope.len();
        match self.loops.last().cloned() {
            Some(around) if self.random.u8(0..5) > 0 => {
                let carried = self.of_width(around.carried_width);
                if self.random.bool() {
                    let target = Target { block: around.after, args: vec![carried] };
                    self.builder.end(Term::Jump(target));
                } else {
                    self.jump_again(&around, carried);
                }
            }
            _ => self.builder.end(Term::Trap(TrapCode::User(self.random.u32(0..2)))),
        }
        self.scope.truncate(known);
        self.builder.switch_to(on);
    }

    fn jump_again(&mut self, around: &Around, carried: ValueId) {
        let target = Target { block: around.again, args: vec![carried] };
        self.builder.end(Term::Jump(target));
    }

    /// Writes statements into `block`, then jumps to `after` with a value of `width` bits, and with
    /// a reference if there are tables.
    fn arm(&mut self, block: BlockId, after: BlockId, width: u32, depth: u32) {
        let (known, references) = (self.scope.len(), self.references.len());
        self.builder.switch_to(block);
        self.statements(depth + 1);
        let mut args = vec![self.of_width(width)];
        if !self.element().tables.is_empty() {
            args.push(self.any_reference());
        }
        self.builder.end(Term::Jump(Target { block: after, args }));
        self.scope.truncate(known);
        self.references.truncate(references);
    }

    fn branch(&mut self, depth: u32) {
        let cond = self.condition();
        let [then, otherwise, after] = [0; 3].map(|_| self.builder.new_block());
        let width = random_width(self.random);
        self.builder.branch(cond, then, otherwise);
        self.arm(then, after, width, depth);
        self.arm(otherwise, after, width, depth);
        self.join_arms(after, width);
    }

    fn join_arms(&mut self, after: BlockId, width: u32) {
        self.builder.switch_to(after);
        let param = self.builder.add_param(after, Type::Bits(width), None);
        self.scope.push(param);
        if !self.element().tables.is_empty() {
            let param = self.builder.add_param(after, super::tables::reference(), None);
            self.references.push(param);
        }
    }

    fn switch(&mut self, depth: u32) {
        let value = self.of_width(3);
        let [one, two, three, after] = [0; 4].map(|_| self.builder.new_block());
        let width = random_width(self.random);
        let cases = vec![
            (crate::Bits::from_u64(3, 0), Target::to(one)),
            (crate::Bits::from_u64(3, 5), Target::to(two)),
        ];
        self.builder.end(Term::Switch { value, cases, default: Target::to(three) });
        for block in [one, two, three] {
            self.arm(block, after, width, depth);
        }
        self.join_arms(after, width);
    }

    /// Writes `for (i = start; i < limit; i++)`, as a front end does: the iterator in a local or in
    /// a block parameter, an accumulator carried around, and a bound that may be too low.
    fn repeat(&mut self, depth: u32) {
        let [header, body, again, after] = [0; 4].map(|_| self.builder.new_block());
        let around = Around {
            again,
            after,
            iterator_width: self.random.u32(3..10),
            carried_width: random_width(self.random),
        };
        let (start, first) = (self.random.u64(0..3), self.of_width(around.carried_width));
        let start = self.builder.number(around.iterator_width, start);
        let info = LoopInfo {
            bound: self.random.u64(1..6),
            unroll: [
                Unroll::Auto,
                Unroll::Full,
                Unroll::By(self.random.u32(2..4)),
                Unroll::Flatten,
            ][self.random.usize(0..4)],
            independent: false,
            is_watched: false,
        };
        self.builder.end(Term::Jump(Target { block: header, args: vec![start, first] }));
        let iterator = self.builder.add_param(header, Type::Bits(around.iterator_width), None);
        let carried = self.builder.add_param(header, Type::Bits(around.carried_width), None);
        self.builder.set_loop(header, info);
        self.builder.switch_to(header);
        let (known, references) = (self.scope.len(), self.references.len());
        self.scope.extend([iterator, carried]);
        let limit = self.limit(&around);
        let continues = self.builder.compare(CompareOp::ULt, iterator, limit);
        let (if_true, if_false) = (Target::to(body), Target { block: after, args: vec![carried] });
        self.builder.end(Term::Branch { cond: continues, if_true, if_false });
        self.loops.push(around.clone());
        self.builder.switch_to(body);
        self.statements(depth + 1);
        let value = self.of_width(around.carried_width);
        self.jump_again(&around, value);
        self.loops.pop();
        self.builder.switch_to(again);
        let value = self.builder.add_param(again, Type::Bits(around.carried_width), None);
        let one = self.builder.number(around.iterator_width, 1);
        let next = self.builder.binary(BinaryOp::Add, iterator, one);
        self.builder.end(Term::Jump(Target { block: header, args: vec![next, value] }));
        self.builder.switch_to(after);
        self.scope.truncate(known);
        self.references.truncate(references);
        let result = self.builder.add_param(after, Type::Bits(around.carried_width), None);
        self.scope.push(result);
    }

    fn limit(&mut self, around: &Around) -> ValueId {
        if self.random.bool() {
            let limit = self.random.u64(0..7);
            return self.builder.number(around.iterator_width, limit);
        }
        let limit = self.of_width(2);
        self.builder.resize(limit, around.iterator_width, false)
    }
}
