// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations with effects as C: objects, ports, oracles, calls and probes.

use super::functions::FunctionEmitter;
use super::types::{assign, bytes_of, integer, is_wide, storage, value, zero};
use super::values::{Operand, extract, extracted, insert};
use crate::Error;
use freeport_ir::{Loc, ObjectRef, Op, PortId, ValueId};

impl FunctionEmitter<'_, '_> {
    /// Emits an operation that is not pure.
    pub(super) fn effect(
        &mut self,
        op: &Op,
        result: Option<Operand>,
        loc: Loc,
    ) -> Result<(), Error> {
        match (op, result) {
            (Op::Load { object, index, lo, .. }, Some(result)) => {
                self.load(*object, *index, *lo, &result, loc)
            }
            (Op::Store { object, index, lo, value, mask }, _) => {
                self.store(*object, *index, *lo, *value, *mask, loc)
            }
            (Op::LoadBytes { object, offset, bytes }, Some(result)) => {
                self.load_object_bytes(*object, *offset, *bytes, &result, loc)
            }
            (Op::StoreBytes { object, offset, value }, _) => {
                self.store_object_bytes(*object, *offset, *value, loc)
            }
            (Op::ReadyMask, Some(to)) => {
                self.line(&format!("{} = {};", to.name, value("firing->ready", to.width)));
                Ok(())
            }
            (Op::Ready(port), Some(to)) => {
                self.line(&format!("{} = firing->ready >> {} & 1;", to.name, port.0));
                Ok(())
            }
            (Op::Peek(port), Some(to)) => {
                self.read(*port, &to, false);
                Ok(())
            }
            (Op::Take(port), to) => {
                let unused = self.emitter.input_width(self.function, *port);
                self.line("{");
                let to = to.unwrap_or_else(|| Operand { name: "unused".into(), width: unused });
                if to.name == "unused" {
                    self.line(&format!("{} unused;", storage(unused)));
                }
                self.read(*port, &to, true);
                self.line("}");
                Ok(())
            }
            (Op::Put { port, value }, _) => {
                let Operand { name, width } = self.operand(*value);
                self.line(&assign(&format!("firing->staged_{}", port.0), &name, width));
                self.line(&format!("firing->is_staged_{} = true;", port.0));
                self.line("activation->did_something = true;");
                Ok(())
            }
            (Op::Now, Some(to)) => {
                self.oracle(&to, "clock_now(activation->instance->runtime)", "now");
                Ok(())
            }
            (Op::Random, Some(to)) => {
                self.oracle(&to, "next_random(activation->instance)", "random_values");
                Ok(())
            }
            (Op::Probe { probe, args }, _) => {
                self.probe(probe, args);
                Ok(())
            }
            (op, result) => self.other(op, result.is_some(), loc),
        }
    }

    /// Handles operations without effect whose result is unused, and reports unsupported ones.
    fn other(&mut self, op: &Op, has_result: bool, loc: Loc) -> Result<(), Error> {
        let what = match op {
            Op::Load { .. } | Op::LoadBytes { .. } | Op::Peek(_) => "a read without a result",
            _ if !has_result => return Ok(()),
            _ => "a value that is not a bit vector",
        };
        Err(self.unsupported(what, loc))
    }

    /// Returns the C array of an object, its number of elements and their width.
    fn object(&self, object: ObjectRef, loc: Loc) -> Result<(String, u64, u32), Error> {
        let found = self.emitter.program.object(self.function, object);
        let found = found.ok_or_else(|| self.unsupported("an unknown object", loc))?;
        let name = match object {
            ObjectRef::State(at) => format!("state->object_{}", at.0),
            ObjectRef::Local(at) => format!("{}local_{}", self.prefix(), at.0),
        };
        Ok((name, found.depth, found.elem_bits))
    }

    /// Returns the condition under which an index is below `depth`; `None` if it always is.
    fn within(&self, index: ValueId, depth: u64) -> Option<String> {
        let Operand { name, width } = self.operand(index);
        (self.upper_bound(index) >= depth)
            .then(|| format!("({}) < UINT64_C({depth})", integer(&name, width)))
    }

    fn load(
        &mut self,
        object: ObjectRef,
        index: ValueId,
        lo: u32,
        result: &Operand,
        loc: Loc,
    ) -> Result<(), Error> {
        let (array, depth, elem_bits) = self.object(object, loc)?;
        let place = format!("{array}[{}]", self.index(index));
        let Operand { name, width } = result;
        let loaded = extracted(name, &place, elem_bits, lo, *width);
        match self.within(index, depth) {
            None => self.line(&loaded),
            Some(condition) => {
                self.line(&format!("if (LIKELY({condition})) {{ {loaded} }}"));
                self.line(&format!("else {{ {name} = {}; {OUT_OF_RANGE} }}", zero(*width)));
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        object: ObjectRef,
        index: ValueId,
        lo: u32,
        stored: ValueId,
        mask: Option<ValueId>,
        loc: Loc,
    ) -> Result<(), Error> {
        let (array, depth, elem_bits) = self.object(object, loc)?;
        let place = format!("{array}[{}]", self.index(index));
        let part = self.operand(stored);
        let statements = match mask {
            None => insert(&place, elem_bits, lo, &part),
            Some(mask) => {
                let width = part.width;
                let mask = integer(&self.name(mask), width);
                let new = integer(&part.name, width);
                let old = integer("old", width);
                let mixed = value(&format!("({old} & ~({mask})) | ({new} & {mask})"), width);
                let ty = storage(width);
                let part = Operand { name: "mixed".to_owned(), width };
                let inserted = insert(&place, elem_bits, lo, &part);
                format!(
                    "const {ty} old = {}; const {ty} mixed = {mixed}; {inserted}",
                    extract(&place, elem_bits, lo, width)
                )
            }
        };
        self.note_store(object);
        self.guarded(index, depth, &statements);
        Ok(())
    }

    /// Emits statements guarded by the condition that an index is in range.
    fn guarded(&mut self, index: ValueId, depth: u64, statements: &str) {
        match self.within(index, depth) {
            None => self.line(&format!("{{ {statements} }}")),
            Some(condition) => {
                self.line(&format!("if (LIKELY({condition})) {{ {statements} }}"));
                self.line(&format!("else {{ {OUT_OF_RANGE} }}"));
            }
        }
    }

    fn load_object_bytes(
        &mut self,
        object: ObjectRef,
        offset: ValueId,
        bytes: u32,
        result: &Operand,
        loc: Loc,
    ) -> Result<(), Error> {
        let (array, depth, _) = self.object(object, loc)?;
        let Operand { name, width } = result;
        let from = format!("{array} + {}", self.index(offset));
        let loaded = format!("{name} = {}; memcpy(&{name}, {from}, {bytes});", zero(*width));
        let positions = (depth + 1).saturating_sub(u64::from(bytes));
        match self.within(offset, positions) {
            None => self.line(&loaded),
            Some(condition) => {
                self.line(&format!("if (LIKELY({condition})) {{ {loaded} }}"));
                self.line(&format!("else {{ {name} = {}; {OUT_OF_RANGE} }}", zero(*width)));
            }
        }
        Ok(())
    }

    fn store_object_bytes(
        &mut self,
        object: ObjectRef,
        offset: ValueId,
        stored: ValueId,
        loc: Loc,
    ) -> Result<(), Error> {
        let (array, depth, _) = self.object(object, loc)?;
        let Operand { name, width } = self.operand(stored);
        let bytes = bytes_of(width);
        let to = format!("{array} + {}", self.index(offset));
        let positions = (depth + 1).saturating_sub(u64::from(bytes));
        self.note_store(object);
        self.guarded(offset, positions, &format!("memcpy({to}, &{name}, {bytes});"));
        Ok(())
    }

    fn note_store(&mut self, object: ObjectRef) {
        if matches!(object, ObjectRef::State(_)) {
            self.line("activation->did_something = true;");
        }
    }

    /// Returns an index that is in range, so that it fits 64 bits.
    fn index(&self, index: ValueId) -> String {
        let Operand { name, width } = self.operand(index);
        match is_wide(width) {
            true => format!("load_bytes({name}.b, 8)"),
            false => format!("(uint64_t)({name})"),
        }
    }

    fn read(&mut self, port: PortId, to: &Operand, takes: bool) {
        let bit = self.port_bit(port);
        let (name, port) = (&to.name, port.0);
        self.line(&format!("if (firing->ready & ~firing->taken & {bit}) {{"));
        let item = format!("(*firing->input_{port})");
        self.line(&format!("    {}", assign(name, &item, to.width)));
        if takes {
            self.line(&format!("    firing->taken |= {bit};"));
            self.line("    activation->did_something = true;");
        }
        self.line(&format!("}} else {{ {name} = {};", zero(to.width)));
        self.line("    activation->empty_reads++; }");
    }

    fn oracle(&mut self, to: &Operand, source: &str, stream: &str) {
        let name = &to.name;
        self.line(&format!("{name} = {source};"));
        self.line("activation->did_something = true;");
        if self.emitter.records {
            self.line(&format!(
                "record(activation->instance->runtime, &activation->instance->{stream}, \
                 &{name}, sizeof {name});"
            ));
        }
    }
}

const OUT_OF_RANGE: &str = "activation->out_of_range++;";
