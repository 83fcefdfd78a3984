// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random tables and operations on them: few keys and little room, so that tables fill up, evict
//! and delete entries, and references outlive their entries.

use super::statements::Writer;
use crate::{BinaryOp, Loc, Op, Space, Spaces, Table, TableId, TableKind, Type, UnaryOp, ValueId};

/// Width of the data of longest-prefix keys: not a multiple of 8.
const PREFIX_DATA_BITS: u32 = 20;

/// Returns the type of references into tables.
pub(super) fn reference() -> Type {
    Type::Ref(Spaces::of(Space::TableValue))
}

/// Draws one or two tables.
pub(super) fn random_tables(random: &mut fastrand::Rng) -> Vec<Table> {
    let count = random.usize(1..3);
    (0..count).map(|at| random_table(random, at)).collect()
}

fn random_table(random: &mut fastrand::Rng, at: usize) -> Table {
    let kinds = [TableKind::Hash, TableKind::LruHash, TableKind::LongestPrefix, TableKind::Array];
    let kind = kinds[random.usize(0..4)];
    let key_bits = match kind {
        TableKind::Array => [3, 32, 70][random.usize(0..3)],
        TableKind::LongestPrefix => 32 + PREFIX_DATA_BITS,
        _ => [5, 24, 64, 104, 200][random.usize(0..5)],
    };
    Table {
        name: format!("table{at}_{}", kind.name()),
        kind,
        key_bits,
        value_bits: [48, 64, 320][random.usize(0..3)],
        capacity: [1, 3, 6, 12][random.usize(0..4)],
        loc: Loc::default(),
    }
}

impl Writer<'_> {
    /// Writes an update, a deletion or a lookup, usually followed by a use of a reference.
    pub(super) fn table(&mut self) {
        let at = self.random.usize(0..self.element().tables.len());
        let found = &self.element().tables[at];
        let (key_bits, value_bits, kind) = (found.key_bits, found.value_bits, found.kind);
        let id = TableId::new(at);
        let table = self.builder.push(Op::Handle(id), Type::Handle(id));
        let key = match kind {
            TableKind::LongestPrefix => self.prefix(),
            _ => self.small(key_bits, 15),
        };
        match self.random.u8(0..8) {
            0..=2 => {
                let value = self.of_width(value_bits);
                let op = Op::TableUpdate { table, key, value };
                let done = self.builder.push(op, Type::Bits(1));
                self.scope.push(done);
            }
            3 => {
                let done = self.builder.push(Op::TableDelete { table, key }, Type::Bits(1));
                self.scope.push(done);
            }
            _ => {
                let found = self.builder.push(Op::TableLookup { table, key }, reference());
                self.references.push(found);
            }
        }
        for _ in 0..self.random.u8(0..3) {
            self.reference();
        }
    }

    /// Draws a number of `width` bits, seldom above `most`.
    fn small(&mut self, width: u32, most: u64) -> ValueId {
        if self.random.bool() {
            let number = self.random.u64(0..=most) & (u64::MAX >> (64 - width.min(64)));
            return self.builder.number(width, number);
        }
        let value = self.of_width(width);
        if self.random.u8(0..8) == 0 {
            return value;
        }
        let mask = self.builder.number(width, most & (u64::MAX >> (64 - width.min(64))));
        self.builder.binary(BinaryOp::And, value, mask)
    }

    /// Draws a longest-prefix key with one of few lengths and few different bytes.
    fn prefix(&mut self) -> ValueId {
        let length = [0, 3, 8, 9, 16, 17, 20, 24][self.random.usize(0..8)];
        let length = match self.random.bool() {
            true => self.builder.number(32, length),
            false => self.small(32, 31),
        };
        let data = self.random.u64(0..1 << PREFIX_DATA_BITS) & 0x1_8081;
        let data = self.builder.number(PREFIX_DATA_BITS, data);
        self.builder.push(Op::Concat(vec![length, data]), Type::Bits(32 + PREFIX_DATA_BITS))
    }

    /// Returns an available reference, or a null one.
    pub(super) fn any_reference(&mut self) -> ValueId {
        let count = self.references.len();
        match self.random.usize(0..=count) {
            at if at < count => self.references[at],
            _ => {
                let spaces = Spaces::of(Space::TableValue);
                self.builder.push(Op::NullRef(spaces), reference())
            }
        }
    }

    /// Writes a choice between references, or accesses through one.
    fn reference(&mut self) {
        let from = self.any_reference();
        let valid = self.builder.push(Op::RefIsValid(from), Type::Bits(1));
        self.scope.push(valid);
        if self.random.u8(0..4) == 0 {
            let (cond, if_false) = (self.condition(), self.any_reference());
            let op = Op::Select { cond, if_true: from, if_false };
            let chosen = self.builder.push(op, reference());
            self.references.push(chosen);
            return;
        }
        // Narrow offsets are often negative.
        let width = [5, 64, 80][self.random.usize(0..3)];
        let offset = self.random.u64(0..6);
        let mut offset = self.builder.number(width, offset);
        if self.random.u8(0..4) == 0 {
            offset = self.builder.unary(UnaryOp::Neg, offset);
        }
        let moved = Op::RefOffset { reference: from, offset };
        let moved = self.builder.push(moved, reference());
        if self.random.u8(0..4) == 0 {
            self.references.push(moved);
        }
        let width = [16, 24, 64][self.random.usize(0..3)];
        if self.random.bool() {
            let value = self.of_width(width);
            self.builder.push_effect(Op::RefStore { reference: moved, value });
        }
        let load = Op::RefLoad { reference: moved, width };
        let loaded = self.builder.push(load, Type::Bits(width));
        self.scope.push(loaded);
    }
}
