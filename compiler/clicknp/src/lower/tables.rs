// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyed tables: their declarations in `.state`, and the lowering of their methods.
//!
//! A lookup returns a pointer that may be null. Its place is a reference of the IR and an offset,
//! so it cannot be selected at run time: a pointer variable keeps the lookup it was declared with.
//! A key consists of its numbers without the padding between them in memory, so that padding never
//! makes two keys differ.

use super::body::Body;
use super::expressions::Operand;
use super::names::Binding;
use super::packets::covering;
use super::places::{Base, Place};
use super::values::Value;
use super::{Lowered, Reported};
use crate::ast::{self, Expr, ExprKind, Name, TemplateArg, TypeExpr, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::layouts::{TableLayout, fields, packed_fields, packed_runs};
use crate::source::Span;
use crate::types::{INT, Type, UINT, layout};
use freeport_ir::{
    BinaryOp, ElementId, Op, Space, Spaces, Table, TableId, TableKind, TableShape, Type as IrType,
    UnaryOp, ValueId,
};
use std::sync::Arc;

/// Maximum width of a key.
const MOST_KEY_BITS: u64 = 4096;

/// Width of the prefix length in a longest-prefix key.
const LENGTH_BITS: u32 = 32;

/// A table of an element.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyedTable {
    /// Its name.
    pub name: String,
    /// Index in the element.
    pub id: TableId,
    /// How keys match.
    pub kind: TableKind,
    /// Type of its keys.
    pub key: Type,
    /// Type of its values.
    pub value: Type,
}

impl KeyedTable {
    /// Returns the width of a key in the IR, without a prefix length.
    fn key_bits(&self) -> u64 {
        packed_runs(&self.key).iter().map(|(_, width)| width).sum()
    }

    /// Returns the width of a value in the IR.
    fn value_bits(&self) -> u64 {
        layout::size_bytes(&self.value) * 8
    }
}

/// Returns whether a declaration declares a table.
pub(super) fn is_table(one: &ast::Declaration) -> bool {
    matches!(&one.ty.kind, TypeKind::Named(name, _) if name == "table")
}

impl<'a> Body<'_, 'a> {
    /// Lowers `[lru|lpm|array] table<Key, Value> name[capacity];` in `.state`.
    pub(super) fn declare_table(
        &mut self,
        one: &'a ast::Declaration,
        name: &Name,
        element: ElementId,
    ) -> Lowered<()> {
        let kind = match one.table_kind.as_ref().map(|kind| kind.text.as_str()) {
            Some("lru") => TableKind::LruHash,
            Some("lpm") => TableKind::LongestPrefix,
            Some("array") => TableKind::Array,
            _ => TableKind::Hash,
        };
        let is_plain = one.place.is_none() && !one.is_const && one.ty.pointers == 0;
        let TypeKind::Named(_, args) = &one.ty.kind else { return Ok(()) };
        let ([key, value], [Some(capacity)], true, None) =
            (args.as_slice(), one.dimensions.as_slice(), is_plain, &one.init)
        else {
            return Err(self.bad_table(one.span, "not the way to declare one"));
        };
        let key = self.table_type(key, one.span)?;
        let value = self.table_type(value, one.span)?;
        let count = self.constant_u64(capacity)?;
        let tables = &self.lowering.program.elements[element.index()].tables;
        let id = TableId::new(tables.len());
        let table = KeyedTable { name: name.text.clone(), id, kind, key, value };
        self.check_table(&table, one.span)?;
        if count == 0 {
            return Err(self.bad_table(capacity.span, "a table has room for 1 entry at least"));
        }
        let prefix_bits = if kind == TableKind::LongestPrefix { LENGTH_BITS } else { 0 };
        let made = Table {
            name: name.text.clone(),
            kind,
            key_bits: table.key_bits() as u32 + prefix_bits,
            value_bits: table.value_bits() as u32,
            capacity: count,
            loc: self.lowering.sources.loc(name.span),
        };
        if TableShape::of(&made).is_none() {
            let label = "with keys and links a table takes 4 GiB at most";
            return Err(self.bad_table(capacity.span, label));
        }
        self.lowering.program.elements[element.index()].tables.push(made);
        let layout = TableLayout {
            name: name.text.clone(),
            table: id,
            key_ty: table.key.to_string(),
            key: packed_fields(&table.key),
            value_ty: table.value.to_string(),
            value: fields(&table.value),
        };
        self.lowering.layouts.elements[element.index()].tables.push(layout);
        self.declare(name, Binding::Keyed(Arc::new(table)));
        Ok(())
    }

    fn table_type(&mut self, arg: &TemplateArg, span: Span) -> Lowered<Type> {
        match arg {
            TemplateArg::Type(ty) => self.resolve(ty),
            TemplateArg::Value(Expr { kind: ExprKind::Name(name, args), span })
                if args.is_empty() =>
            {
                self.type_named(name, *span)
            }
            TemplateArg::Value(_) => Err(self.bad_table(span, "keys and values have types")),
        }
    }

    fn check_table(&mut self, table: &KeyedTable, span: Span) -> Lowered<()> {
        let is_data = |ty: &Type| ty.is_integer() || matches!(ty, Type::Record(_));
        if !is_data(&table.key) || !is_data(&table.value) {
            return Err(self.bad_table(span, "keys and values are numbers, structs or unions"));
        }
        if !(1..=MOST_KEY_BITS).contains(&table.key_bits()) || table.value_bits() == 0 {
            return Err(self.bad_table(span, "a key has 1 to 4096 bits, and a value some too"));
        }
        let integer = table.key.as_integer();
        match (table.kind, integer) {
            (TableKind::LongestPrefix, Some(int)) if int.width % 8 == 0 && !int.is_signed => Ok(()),
            (TableKind::LongestPrefix, _) => {
                let label = "a longest prefix is one of an unsigned number of whole bytes";
                Err(self.bad_table(span, label))
            }
            (TableKind::Array, None) => Err(self.bad_table(span, "an array is indexed by numbers")),
            _ => Ok(()),
        }
    }

    fn bad_table(&mut self, span: Span, label: &str) -> Reported {
        self.report(
            Diagnostic::error("E0410", span, "this table is not possible")
                .label(label)
                .help("write `table<Key, Value> name[1024];`, with `lru`, `lpm` or `array` before"),
        )
    }

    /// Reports a table type outside `.state`.
    pub(super) fn table_elsewhere(&mut self, ty: &TypeExpr) -> Reported {
        self.report(
            Diagnostic::error("E0401", ty.span, "a table outside `.state`")
                .label("tables live as long as their element")
                .help("declare it in the `.state` of the element; all its functions can use it"),
        )
    }

    /// Reports the name of a table where something else is needed.
    pub(super) fn table_as_value(&mut self, name: &str, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0331", span, format!("the table `{name}` is not a value"))
                .label("it is used by its methods alone")
                .help(METHODS),
        )
    }

    /// Lowers `of.method(args)`.
    pub(super) fn method_call(
        &mut self,
        of: &'a Expr,
        method: &'a Name,
        args: &'a [Expr],
        span: Span,
    ) -> Lowered<Operand> {
        if let Some(callees) = self.callees(of)? {
            return self.call_method(callees, method, args, span);
        }
        let found = match &of.kind {
            ExprKind::Name(name, _) => self.lookup(name),
            _ => None,
        };
        let Some(Binding::Keyed(table)) = found else {
            self.operand(of)?;
            return Err(self.report(
                Diagnostic::error("E0331", of.span, "this has no methods")
                    .label("not a table")
                    .help("call a function with it: `f(x)`"),
            ));
        };
        let prefix = usize::from(table.kind == TableKind::LongestPrefix);
        let wanted = match method.text.as_str() {
            "lookup" => 1,
            "delete" => 1 + prefix,
            "update" => 2 + prefix,
            _ => {
                let message = format!("a table has no method `{}`", method.text);
                return Err(self.report(
                    Diagnostic::error("E0331", method.span, message)
                        .label("no such method")
                        .help(METHODS),
                ));
            }
        };
        if args.len() != wanted {
            return Err(self.wrong_arguments(&method.text, wanted, args.len(), span));
        }
        if method.text == "lookup" {
            return self.table_lookup(&table, &args[0], span);
        }
        let key = self.value_as(&args[0], &table.key)?;
        let length = match args.get(1) {
            Some(length) if prefix == 1 => Some(self.value_as(length, &Type::Int(UINT))?),
            _ => None,
        };
        let value = match args.last() {
            Some(value) if method.text == "update" => Some(self.value_as(value, &table.value)?),
            _ => None,
        };
        self.at(span);
        let key = self.table_key(&table, &key, length.as_ref());
        let handle = self.handle(&table);
        let op = match value {
            Some(value) => {
                let value = self.materialise(&value);
                let value = self.builder.resize(value, table.value_bits() as u32, false);
                Op::TableUpdate { table: handle, key, value }
            }
            None => Op::TableDelete { table: handle, key },
        };
        let done = self.builder.push(op, IrType::Bits(1));
        Ok(Operand::Value(Value::computed(Type::Bool, done)))
    }

    fn table_lookup(&mut self, table: &KeyedTable, key: &'a Expr, span: Span) -> Lowered<Operand> {
        let key = self.value_as(key, &table.key)?;
        self.at(span);
        let key = self.table_key(table, &key, None);
        let handle = self.handle(table);
        let op = Op::TableLookup { table: handle, key };
        let found = self.builder.push(op, reference());
        self.builder.function_mut().values[found.index()].name = Some(table.name.clone());
        Ok(Operand::Pointer(Place {
            base: Base::TableValue(found),
            stride: 8,
            bit: 0,
            index: None,
            dynamic_bit: None,
            window: None,
            ty: table.value.clone(),
            bit_field: None,
            is_const: false,
        }))
    }

    fn handle(&mut self, table: &KeyedTable) -> ValueId {
        self.builder.push(Op::Handle(table.id), IrType::Handle(table.id))
    }

    /// Returns the key in the IR: a prefix's length and its number with the highest byte first, or
    /// the concatenation of the key's numbers.
    fn table_key(&mut self, table: &KeyedTable, key: &Value, length: Option<&Value>) -> ValueId {
        let id = self.materialise(key);
        if table.kind == TableKind::LongestPrefix {
            let width = key.width();
            let length = match length {
                Some(length) => self.materialise(length),
                None => self.builder.number(LENGTH_BITS, u64::from(width)),
            };
            let first_highest = self.builder.unary(UnaryOp::ByteSwap, id);
            let parts = Op::Concat(vec![length, first_highest]);
            return self.builder.push(parts, IrType::Bits(width + LENGTH_BITS));
        }
        let runs = packed_runs(&table.key);
        let parts: Vec<ValueId> = runs
            .iter()
            .map(|(bit, width)| self.builder.extract(id, *bit as u32, *width as u32))
            .collect();
        match parts.as_slice() {
            [only] => *only,
            _ => self.builder.push(Op::Concat(parts), IrType::Bits(table.key_bits() as u32)),
        }
    }

    /// Loads `width` bits of a table's value.
    pub(super) fn load_table_value(
        &mut self,
        reference: ValueId,
        place: &Place,
        width: u32,
    ) -> ValueId {
        let (first, bytes) = covering(place, width);
        let reference = self.moved_reference(reference, place, first);
        let op = Op::RefLoad { reference, width: bytes * 8 };
        let id = self.builder.push(op, IrType::Bits(bytes * 8));
        self.builder.extract(id, place.bit.rem_euclid(8) as u32, width)
    }

    /// Stores a value of the place's width into a table's value.
    pub(super) fn store_table_value(&mut self, reference: ValueId, place: &Place, value: ValueId) {
        let width = self.builder.function().width_of(value);
        let (first, bytes) = covering(place, width);
        let reference = self.moved_reference(reference, place, first);
        let lo = place.bit.rem_euclid(8) as u32;
        let is_part = place.bit_field.is_some() || lo != 0;
        let value = if is_part {
            let load = Op::RefLoad { reference, width: bytes * 8 };
            let before = self.builder.push(load, IrType::Bits(bytes * 8));
            let op = Op::Insert { value: before, lo, part: value };
            self.builder.push(op, IrType::Bits(bytes * 8))
        } else {
            // The bits above a number in its last byte have no meaning.
            self.builder.resize(value, bytes * 8, false)
        };
        self.builder.push_effect(Op::RefStore { reference, value });
    }

    /// Returns the reference advanced by the computed bytes of a place and `first` constant ones.
    fn moved_reference(&mut self, from: ValueId, place: &Place, first: i64) -> ValueId {
        let offset = match place.index {
            None if first == 0 => return from,
            None => self.offset(first as u64),
            Some(index) => {
                let index = self.builder.resize(index, 64, false);
                let first = self.offset(first as u64);
                self.builder.binary(BinaryOp::Add, index, first)
            }
        };
        self.builder.push(Op::RefOffset { reference: from, offset }, reference())
    }

    /// Lowers a condition: a number, or a pointer to a table's value, which is true unless it is
    /// null.
    pub(super) fn condition(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let operand = self.operand(expr)?;
        if let Operand::Pointer(Place { base: Base::TableValue(reference), .. }) = operand {
            self.at(expr.span);
            let exists = self.builder.push(Op::RefIsValid(reference), IrType::Bits(1));
            return Ok(Value::flag(exists));
        }
        let value = self.value_of(operand, expr.span)?;
        self.check_number(&value, expr.span)?;
        Ok(value)
    }

    /// Checks that a pointer to `target` may be bound to a place: the result of a lookup has the
    /// table's type, unless a cast overrides it.
    pub(super) fn check_pointed(
        &mut self,
        place: &Place,
        target: &Type,
        span: Span,
    ) -> Lowered<()> {
        if !matches!(place.base, Base::TableValue(_)) || place.ty == *target {
            return Ok(());
        }
        let (wanted, given) =
            (Type::Pointer(Arc::new(target.clone())), Type::Pointer(Arc::new(place.ty.clone())));
        Err(self.report(
            Diagnostic::error("E0206", span, format!("expected `{wanted}`, found `{given}`"))
                .label(format!("of type `{given}`"))
                .help("point to the type of the table's values, or cast the pointer"),
        ))
    }

    /// Reports an assignment to a pointer to a table's value outside its declaration.
    pub(super) fn table_pointer_moves(&mut self, name: &str, span: Span) -> Reported {
        let message = format!("`{name}` points to a table's value, and cannot be set here");
        self.report(
            Diagnostic::error("E0330", span, message)
                .label("such a pointer keeps the lookup it is declared with")
                .help("declare a pointer right where you look up"),
        )
    }

    /// Lowers `pointer == 0` or `pointer != 0` for the result of a lookup.
    pub(super) fn compared_with_nothing(
        &mut self,
        reference: ValueId,
        is_equal: bool,
        right: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let right_span = right.span;
        let right = self.number(right)?;
        let is_zero = right.as_constant().is_some_and(|it| it.ty == Type::Int(INT) && !it.truth());
        if !is_zero {
            return Err(self.report(
                Diagnostic::error("E0207", right_span, "pointers are not compared")
                    .label("not the constant 0")
                    .help("compare with 0 to see whether a lookup found something"),
            ));
        }
        self.at(span);
        let exists = self.builder.push(Op::RefIsValid(reference), IrType::Bits(1));
        let bit = match is_equal {
            true => self.builder.unary(UnaryOp::Not, exists),
            false => exists,
        };
        Ok(Operand::Value(Value::flag(bit)))
    }
}

const METHODS: &str = "its methods are `lookup(key)`, `update(key, value)` and `delete(key)`; \
                       of an `lpm` table `update(key, length, value)` and `delete(key, length)`";

fn reference() -> IrType {
    IrType::Ref(Spaces::of(Space::TableValue))
}
