// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses operations.

use super::body::Body;
use super::cursor::Result;
use super::lex::Kind;
use super::parse::Parser;
use super::spelling::{BINARY, COMPARE, LATENCY, UNARY, meaning};
use crate::{CallOrder, LocalId, MethodId, ObjectId, ObjectRef, Op, PortId, Probe, ValueId};

/// Placeholder for the width of a whole element until the object is resolved.
const LOWEST: u32 = 0;

impl Parser<'_> {
    pub(super) fn op(&mut self, body: &mut Body) -> Result<Op> {
        let at = self.cursor.index();
        let Some(word) = self.cursor.word().map(str::to_owned) else {
            return Err(self.cursor.expected("an operation or the block's end"));
        };
        self.cursor.next();
        let op = match word.as_str() {
            "const" => Op::Const(self.cursor.literal(None)?),
            "select" => {
                let (cond, if_true, if_false) = self.three(body)?;
                Op::Select { cond, if_true, if_false }
            }
            "zext" => {
                let (value, width) = self.value_and_width(body)?;
                Op::ZeroExtend(value, width)
            }
            "sext" => {
                let (value, width) = self.value_and_width(body)?;
                Op::SignExtend(value, width)
            }
            "trunc" => {
                let (value, width) = self.value_and_width(body)?;
                Op::Truncate(value, width)
            }
            "extract" => self.extract(body)?,
            "insert" => self.insert(body)?,
            "concat" => Op::Concat(self.some_values(body)?),
            "handle" => Op::Handle(self.table_ref(body.owner)?),
            "null" => Op::NullRef(self.spaces()?),
            "is_valid" => Op::RefIsValid(self.value(body)?),
            "ref_offset" => {
                let (reference, offset) = self.two(body)?;
                Op::RefOffset { reference, offset }
            }
            "ref_load" => {
                let reference = self.value(body)?;
                self.cursor.sign(",")?;
                Op::RefLoad { reference, width: self.cursor.width()? }
            }
            "ref_store" => {
                let (reference, value) = self.two(body)?;
                Op::RefStore { reference, value }
            }
            "printf" => self.probe(body, Probe::Printf)?,
            "breakpoint" => self.probe(body, Probe::Breakpoint)?,
            "log" => self.probe(body, Probe::Log)?,
            "call" => self.call(body)?,
            "call_method" => self.call_method(body)?,
            word => match self.arithmetic(body, word)? {
                Some(op) => op,
                None => match self.effect(body, word)? {
                    Some(op) => op,
                    None => {
                        let message = format!("expected an operation, found `{word}`");
                        return Err(self.cursor.error_at(at, message));
                    }
                },
            },
        };
        Ok(op)
    }

    fn arithmetic(&mut self, body: &mut Body, word: &str) -> Result<Option<Op>> {
        if let Some(op) = meaning(&UNARY, word) {
            return Ok(Some(Op::Unary(op, self.value(body)?)));
        }
        if let Some(op) = meaning(&BINARY, word) {
            let (left, right) = self.two(body)?;
            return Ok(Some(Op::Binary(op, left, right)));
        }
        if let Some(op) = meaning(&COMPARE, word) {
            let (left, right) = self.two(body)?;
            return Ok(Some(Op::Compare(op, left, right)));
        }
        Ok(None)
    }

    /// Parses operations on objects, tables, ports, packets and oracles.
    fn effect(&mut self, body: &mut Body, word: &str) -> Result<Option<Op>> {
        let op = match word {
            "load" => self.load(body)?,
            "store" => self.store(body)?,
            "load_bytes" => {
                let (object, offset) = self.place(body)?;
                self.cursor.sign(",")?;
                Op::LoadBytes { object, offset, bytes: self.bytes()? }
            }
            "store_bytes" => {
                let (object, offset) = self.place(body)?;
                self.cursor.sign(",")?;
                Op::StoreBytes { object, offset, value: self.value(body)? }
            }
            "lookup" => {
                let (table, key) = self.two(body)?;
                Op::TableLookup { table, key }
            }
            "update" => {
                let (table, key, value) = self.three(body)?;
                Op::TableUpdate { table, key, value }
            }
            "delete" => {
                let (table, key) = self.two(body)?;
                Op::TableDelete { table, key }
            }
            "ready_mask" => Op::ReadyMask,
            "ready" => Op::Ready(self.port_ref(body, true)?),
            "peek" => Op::Peek(self.port_ref(body, true)?),
            "take" => Op::Take(self.port_ref(body, true)?),
            "put" => {
                let port = self.port_ref(body, false)?;
                self.cursor.sign(",")?;
                Op::Put { port, value: self.value(body)? }
            }
            "new_packet" => Op::NewPacket { length: self.value(body)? },
            "length" => Op::PacketLength(self.value(body)?),
            "packet_load" => {
                let (packet, offset) = self.two(body)?;
                self.cursor.sign(",")?;
                Op::PacketLoad { packet, offset, bytes: self.bytes()? }
            }
            "packet_store" => {
                let (packet, offset, value) = self.three(body)?;
                Op::PacketStore { packet, offset, value }
            }
            "adjust_head" => {
                let (packet, delta) = self.two(body)?;
                Op::PacketAdjustHead { packet, delta }
            }
            "adjust_tail" => {
                let (packet, delta) = self.two(body)?;
                Op::PacketAdjustTail { packet, delta }
            }
            "now" => Op::Now,
            "random" => Op::Random,
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    fn two(&mut self, body: &mut Body) -> Result<(ValueId, ValueId)> {
        let first = self.value(body)?;
        self.cursor.sign(",")?;
        Ok((first, self.value(body)?))
    }

    fn three(&mut self, body: &mut Body) -> Result<(ValueId, ValueId, ValueId)> {
        let (first, second) = self.two(body)?;
        self.cursor.sign(",")?;
        Ok((first, second, self.value(body)?))
    }

    /// Parses one or more values separated by commas; none if no value is next.
    fn some_values(&mut self, body: &mut Body) -> Result<Vec<ValueId>> {
        let mut values = vec![];
        values.extend(self.optional_value(body)?);
        while !values.is_empty() && self.cursor.take_sign(",") {
            values.push(self.value(body)?);
        }
        Ok(values)
    }

    fn value_and_width(&mut self, body: &mut Body) -> Result<(ValueId, u32)> {
        let value = self.value(body)?;
        self.cursor.keyword("to")?;
        Ok((value, self.cursor.width()?))
    }

    fn bytes(&mut self) -> Result<u32> {
        let at = self.cursor.index();
        match self.cursor.number_u32()? {
            bytes if bytes.checked_mul(8).is_some_and(|bits| bits > 0) => Ok(bytes),
            _ => Err(self.cursor.error_at(at, "a number of bytes from 1 to 2^29")),
        }
    }

    /// Parses `%x[8 +: 16]` or `%x[%lo +: 16]`.
    fn extract(&mut self, body: &mut Body) -> Result<Op> {
        let value = self.value(body)?;
        self.cursor.sign("[")?;
        let op = match self.optional_value(body)? {
            Some(lo) => Op::ExtractDynamic { value, lo, width: self.range_width()? },
            None => {
                let lo = self.cursor.number_u32()?;
                Op::Extract { value, lo, width: self.range_width()? }
            }
        };
        Ok(op)
    }

    /// Parses `+: 16]`.
    fn range_width(&mut self) -> Result<u32> {
        self.cursor.sign("+:")?;
        let width = self.cursor.width()?;
        self.cursor.sign("]")?;
        Ok(width)
    }

    /// Parses `%x[8], %part` or `%x[%lo], %part`.
    fn insert(&mut self, body: &mut Body) -> Result<Op> {
        let value = self.value(body)?;
        self.cursor.sign("[")?;
        let dynamic = self.optional_value(body)?;
        let fixed = if dynamic.is_none() { self.cursor.number_u32()? } else { LOWEST };
        self.cursor.sign("]")?;
        self.cursor.sign(",")?;
        let part = self.value(body)?;
        Ok(match dynamic {
            Some(lo) => Op::InsertDynamic { value, lo, part },
            None => Op::Insert { value, lo: fixed, part },
        })
    }

    fn load(&mut self, body: &mut Body) -> Result<Op> {
        let at = self.cursor.index();
        let (object, index) = self.place(body)?;
        if self.cursor.take_sign("[") {
            let lo = self.cursor.number_u32()?;
            return Ok(Op::Load { object, index, lo, width: self.range_width()? });
        }
        let whole = match object {
            ObjectRef::Local(local) => body.raw.function.locals.get(local.index()),
            ObjectRef::State(state) => {
                let owner = self.owner_element(body.owner);
                owner.and_then(|element| element.state.get(state.index()))
            }
        };
        match whole {
            Some(object_type) => {
                Ok(Op::Load { object, index, lo: LOWEST, width: object_type.elem_bits })
            }
            None => Err(self.cursor.error_at(at, "no object has that number")),
        }
    }

    fn store(&mut self, body: &mut Body) -> Result<Op> {
        let (object, index) = self.place(body)?;
        let mut lo = LOWEST;
        if self.cursor.take_sign("[") {
            lo = self.cursor.number_u32()?;
            self.cursor.sign("]")?;
        }
        self.cursor.sign(",")?;
        let value = self.value(body)?;
        let mask = match self.cursor.take_word("mask") {
            true => Some(self.value(body)?),
            false => None,
        };
        Ok(Op::Store { object, index, lo, value, mask })
    }

    /// Parses `object[%index]`.
    fn place(&mut self, body: &mut Body) -> Result<(ObjectRef, ValueId)> {
        let object = self.object_ref(body)?;
        self.cursor.sign("[")?;
        let index = self.value(body)?;
        self.cursor.sign("]")?;
        Ok((object, index))
    }

    /// Parses an object by name (a local hides state), or as `local#0` or `state#0`.
    fn object_ref(&mut self, body: &mut Body) -> Result<ObjectRef> {
        let at = self.cursor.index();
        let name = self.cursor.name("the name of an object")?;
        if let Some(index) = self.cursor.optional_index()? {
            return match name.as_str() {
                "local" => Ok(ObjectRef::Local(LocalId(index))),
                "state" => Ok(ObjectRef::State(ObjectId(index))),
                _ => Err(self.cursor.error_at(at, "expected `local#` or `state#` and a number")),
            };
        }
        let locals = &body.raw.function.locals;
        if let Some(index) = locals.iter().position(|object| object.name == name) {
            return Ok(ObjectRef::Local(LocalId::new(index)));
        }
        let state = self.owner_element(body.owner).map_or(&[][..], |element| &element.state);
        match state.iter().position(|object| object.name == name) {
            Some(index) => Ok(ObjectRef::State(ObjectId::new(index))),
            None => Err(self.cursor.error_at(at, format!("no object has the name `{name}`"))),
        }
    }

    fn port_ref(&mut self, body: &mut Body, is_input: bool) -> Result<PortId> {
        let ports = self.owner_element(body.owner).map_or(&[][..], |element| match is_input {
            true => &element.inputs,
            false => &element.outputs,
        });
        let names = ports.iter().map(|port| port.name.clone()).collect();
        let what = if is_input { "input port" } else { "output port" };
        self.named(names, what).map(PortId)
    }

    fn probe(&mut self, body: &mut Body, probe: fn(String) -> Probe) -> Result<Op> {
        let text = self.cursor.text("a text in quotes")?;
        let mut args = vec![];
        while self.cursor.take_sign(",") {
            args.push(self.value(body)?);
        }
        Ok(Op::Probe { probe: probe(text), args })
    }

    /// Parses `@f(%a) inline overlap`.
    fn call(&mut self, body: &mut Body) -> Result<Op> {
        let function = self.function_ref()?;
        self.cursor.sign("(")?;
        let args = self.values(body, ")")?;
        let latency = match self.cursor.peek() {
            Kind::Word(word) => meaning(&LATENCY, word),
            _ => None,
        };
        let Some(latency) = latency else {
            return Err(self.cursor.expected("`inline`, `element` or `async`"));
        };
        self.cursor.next();
        let order = match self.cursor.take_word("overlap") {
            true => CallOrder::Overlap,
            false => CallOrder::InOrder,
        };
        Ok(Op::Call { function, args, latency, order })
    }

    /// Parses `instance.method(%a)`.
    fn call_method(&mut self, body: &mut Body) -> Result<Op> {
        let reference = self.method_ref()?;
        self.cursor.sign("(")?;
        let args = self.values(body, ")")?;
        Ok(Op::CallMethod { instance: reference, method: MethodId(0), args })
    }
}
