// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts calls of program functions and of helpers.

use super::flow::Frame;
use super::held::{Held, State};
use super::{Lifter, MapPlace, NotLiftable};
use crate::analysis::Type as Known;
use crate::helper_functions::signature;
use crate::instruction::{Callee, FRAME_POINTER};
use crate::maps::{ErrorNumber, flags};
use crate::object::{MapDefinition, MapKind};
use freeport_ir::{Op, Space, Spaces, TableId, Type, ValueId};

/// Maximum call depth.
const CALLS_MAX: usize = crate::abi::FRAMES_MAX;

impl Lifter<'_> {
    pub fn call(
        &mut self,
        frame: &Frame,
        callee: Callee,
        state: &mut State,
    ) -> Result<(), NotLiftable> {
        match callee {
            Callee::Local(distance) => {
                let slot = self.slot as i64 + 1 + i64::from(distance);
                let slot = usize::try_from(slot).unwrap_or_default();
                self.call_function(frame, slot, state)
            }
            Callee::Helper(number) => {
                let result = self.helper(frame, number, state)?;
                state.set(0, result);
                (1..=5).for_each(|register| state.set(register, Held::Nothing));
                Ok(())
            }
            Callee::Kernel { .. } => self.refuse("it calls a kernel function"),
        }
    }

    /// Inlines a function of the program at its call.
    fn call_function(
        &mut self,
        frame: &Frame,
        slot: usize,
        state: &mut State,
    ) -> Result<(), NotLiftable> {
        let at = self.slot;
        let function = self.analysis.graph().function_at(slot);
        let Some(function) = function.filter(|_| frame.ends.len() < CALLS_MAX) else {
            return self.refuse(format!("calls are more than {CALLS_MAX} deep"));
        };
        let back = self.builder.new_block();
        let next = at + 1;
        let is_needed = self.analysis.liveness().is_register_live(next, 0);
        let shape = match self.analysis.registers(next) {
            Some(facts) if is_needed => Some(self.shape(&facts[0], &frame.ends)?),
            _ => None,
        };
        let mut result = Held::Nothing;
        if let Some(shape) = shape {
            result = match shape {
                super::held::Shape::Known(_) => result,
                shape => shape.holding(self.builder.add_param(back, shape.ty(), None)),
            };
        }
        let mut ends = frame.ends.clone();
        ends.push(frame.end() + self.frame_bytes(function));
        self.function(function, ends, Some((back, shape)), state)?;
        self.go_to(at);
        self.builder.switch_to(back);
        if let Some(super::held::Shape::Known(known)) = shape {
            result = self.known(known);
        }
        state.set(0, result);
        (1..=5).for_each(|register| state.set(register, Held::Nothing));
        debug_assert!(state.get(FRAME_POINTER) != Held::Nothing);
        Ok(())
    }

    /// Returns the result of a helper.
    fn helper(
        &mut self,
        frame: &Frame,
        number: u32,
        state: &mut State,
    ) -> Result<Held, NotLiftable> {
        Ok(Held::Number(match number {
            1 => return self.lookup(state),
            2 => self.update(state)?,
            3 => self.delete(state)?,
            5 | 125 | 160 | 208 => self.builder.push(Op::Now, Type::Bits(64)),
            7 => {
                let random = self.builder.push(Op::Random, Type::Bits(64));
                self.low_half(random)
            }
            // Everything runs sequentially: the processor's number is 0, and locks are always free.
            8 | 42 | 93 | 94 => self.word(0),
            23 => self.redirect(state)?,
            28 => self.checksum_difference(state)?,
            44 => self.adjust_head(state)?,
            51 => self.redirect_by_map(state)?,
            65 => self.adjust_tail(state)?,
            181 => self.repeat(frame, state)?,
            188 => self.length(),
            189 => self.load_packet_bytes(frame, state)?,
            190 => self.store_packet_bytes(state)?,
            _ => {
                let name = signature(number).map_or("no helper that is known", |it| it.name);
                return self.refuse(format!("it calls {name}, which is not there"));
            }
        }))
    }

    /// Returns the table that register 1 refers to, and its map.
    pub fn table(&self, state: &State) -> Result<(TableId, &MapDefinition), NotLiftable> {
        let Held::Map(map) = state.get(1) else {
            return self.refuse("the map argument is not known");
        };
        let definition = &self.object.maps[map as usize];
        match self.maps[map as usize] {
            Some(MapPlace::Table(table)) => Ok((table, definition)),
            Some(MapPlace::Data(_)) => self.refuse("it uses a data section as a map"),
            None => self.refuse(format!(
                "map {} is of kind {}, which cannot become a table",
                definition.name, definition.kind
            )),
        }
    }

    pub fn handle(&mut self, table: TableId) -> ValueId {
        self.builder.push(Op::Handle(table), Type::Handle(table))
    }

    /// Looks up the entry of a key.
    pub fn found(&mut self, table: TableId, key: ValueId) -> ValueId {
        let table = self.handle(table);
        let ty = Type::Ref(Spaces::of(Space::TableValue));
        self.builder.push(Op::TableLookup { table, key }, ty)
    }

    /// Loads the key at the address in register 2.
    fn key(&mut self, bytes: u32, state: &State) -> Result<ValueId, NotLiftable> {
        self.read(state.get(2), 0, bytes, 2)
    }

    fn lookup(&mut self, state: &State) -> Result<Held, NotLiftable> {
        let (table, map) = self.table(state)?;
        let (key_size, kind) = (map.key_size, map.kind);
        if matches!(kind, MapKind::Devmap | MapKind::DevmapHash) {
            return self.refuse("it looks up an entry of a device map");
        }
        let key = self.key(key_size, state)?;
        Ok(Held::Value(self.found(table, key)))
    }

    /// Returns the number that a register always holds.
    pub fn always(&self, register: u8) -> Option<u64> {
        let facts = self.analysis.registers(self.slot)?;
        match facts[usize::from(register)].holds {
            Known::Number(scalar) => scalar.value(),
            _ => None,
        }
    }

    fn update(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        let (table, map) = self.table(state)?;
        let (key_size, value_size) = (map.key_size, map.value_size);
        let (kind, capacity) = (map.kind, map.max_entries);
        let lock_at = map.lock_at;
        let Some(how) = self.always(4) else {
            return self.refuse("its flags are not constant");
        };
        let key = self.key(key_size, state)?;
        let mut value = self.read(state.get(3), 0, value_size, 3)?;
        if let Some(at) = lock_at {
            // Locks are not copied, and they are always free here.
            let free = self.builder.number(32, 0);
            let ty = Type::Bits(value_size * 8);
            value = self.builder.push(Op::Insert { value, lo: at * 8, part: free }, ty);
        }
        let ok = self.word(0);
        if matches!(kind, MapKind::Array | MapKind::PerCpuArray) {
            if how != flags::ANY && how != flags::EXIST {
                return self.refuse("its flags are not valid for arrays");
            }
            let is_set = self.set(table, key, value);
            let beyond = self.error(ErrorNumber::E2BIG);
            debug_assert!(capacity > 0);
            return Ok(self.select(is_set, ok, beyond));
        }
        let full = match kind {
            MapKind::LpmTrie => ErrorNumber::ENOSPC,
            _ => ErrorNumber::E2BIG,
        };
        if how == flags::ANY && kind != MapKind::LpmTrie {
            let (is_set, full) = (self.set(table, key, value), self.error(full));
            return Ok(self.select(is_set, ok, full));
        }
        if kind == MapKind::LpmTrie || (how != flags::NOEXIST && how != flags::EXIST) {
            return self.refuse(format!("it sets an entry of a {kind} with flags {how}"));
        }
        self.set_if(table, key, value, how == flags::EXIST)
    }

    fn set(&mut self, table: TableId, key: ValueId, value: ValueId) -> ValueId {
        let table = self.handle(table);
        self.builder.push(Op::TableUpdate { table, key, value }, Type::Bits(1))
    }

    /// Sets an entry only if it exists, or only if it does not.
    fn set_if(
        &mut self,
        table: TableId,
        key: ValueId,
        value: ValueId,
        wants_there: bool,
    ) -> Result<ValueId, NotLiftable> {
        let found = self.found(table, key);
        let mut may = self.is_valid(found);
        if !wants_there {
            may = self.not(may);
        }
        let error = if wants_there { ErrorNumber::ENOENT } else { ErrorNumber::EEXIST };
        let error = self.error(error);
        let (ends, result) = self.only_if(may, error);
        let is_set = self.set(table, key, value);
        let (ok, full) = (self.word(0), self.error(ErrorNumber::E2BIG));
        let outcome = self.select(is_set, ok, full);
        self.end_if(ends, outcome);
        Ok(result)
    }

    fn delete(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        let (table, map) = self.table(state)?;
        let (key_size, kind) = (map.key_size, map.kind);
        let key = self.key(key_size, state)?;
        if matches!(kind, MapKind::Array | MapKind::PerCpuArray) {
            return Ok(self.error(ErrorNumber::EINVAL));
        }
        if kind == MapKind::LpmTrie {
            return self.refuse("it removes a prefix");
        }
        let table = self.handle(table);
        let was_there = self.builder.push(Op::TableDelete { table, key }, Type::Bits(1));
        let (ok, error) = (self.word(0), self.error(ErrorNumber::ENOENT));
        Ok(self.select(was_there, ok, error))
    }
}
