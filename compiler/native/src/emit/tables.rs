// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables and references as C. A table is bytes in its element's state, with a layout that is
//! constant in the code; `runtime/tables.h` describes and implements it.

use super::elements::alignment;
use super::functions::{FunctionEmitter, suspends};
use super::types::{bytes_of, is_wide, signed_integer, storage};
use super::{Emitter, comment};
use crate::Error;
use freeport_ir::{
    Element, ElementId, Function, Inst, Loc, Op, Table, TableId, TableKind, TableShape, Type,
    ValueId,
};

/// The text of `runtime/tables.h`.
pub(super) const RUNTIME: &str = include_str!("../../runtime/tables.h");

/// Maximum size of a longest-prefix key, as in the runtime.
const PREFIX_KEY_BYTES_MAX: u32 = 4096;

fn kind(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Hash => "TABLE_HASH",
        TableKind::LruHash => "TABLE_LRU",
        TableKind::Array => "TABLE_ARRAY",
        TableKind::LongestPrefix => "TABLE_PREFIX",
    }
}

fn refuse(emitter: &Emitter<'_>, element: &Element, table: &Table, what: &str) -> Error {
    let what = format!("a table {what}, {}", table.name);
    Error::unsupported(emitter.program, &what, &element.name, table.loc)
}

/// Emits the fields of an element's state for its tables.
pub(super) fn fields(emitter: &Emitter<'_>, id: ElementId) -> Result<String, Error> {
    let element = emitter.program.element(id);
    let mut text = String::new();
    for (at, table) in element.tables.iter().enumerate() {
        let is_prefix = table.kind == TableKind::LongestPrefix;
        if is_prefix && bytes_of(table.key_bits) > PREFIX_KEY_BYTES_MAX {
            return Err(refuse(emitter, element, table, "with a key that wide"));
        }
        let shape = TableShape::of(table);
        let shape = shape.ok_or_else(|| refuse(emitter, element, table, "of over 4 GiB"))?;
        let note = comment(&table.name);
        text += &format!(
            "    _Alignas({}) uint8_t table_{at}[{}]; // {note}\n",
            alignment(shape.bytes),
            shape.bytes.max(1)
        );
    }
    Ok(text)
}

/// Emits the locations of an element's tables in its state.
pub(super) fn layouts(element: &Element, id: ElementId) -> String {
    let mut text = format!("static const struct object_layout tables_{}[] = {{\n", id.0);
    for at in 0..element.tables.len() {
        let table = format!("struct state_{}, table_{at}", id.0);
        let bytes = format!("sizeof(((struct state_{} *)NULL)->table_{at})", id.0);
        text += &format!("    {{offsetof({table}), {bytes}}},\n");
    }
    text + "    {0, 0},\n};\n\n"
}

/// Emits the shapes and functions of an element's tables, which are known to fit.
pub(super) fn definitions(emitter: &Emitter<'_>, id: ElementId) -> String {
    let element = emitter.program.element(id);
    let tables = element.tables.iter().enumerate();
    let mut text = tables.map(|(at, table)| definition(id, at, table)).collect::<String>();
    if element.tables.is_empty() {
        return text;
    }
    text += &format!(
        "OUT_OF_LINE bool table_act_{0}(struct state_{0} *const state, const uint32_t table, \
         const uint32_t action,\n    uint8_t *const key, uint8_t *const value, \
         uint64_t *const cursor) {{\n    switch (table) {{\n",
        id.0
    );
    for at in 0..element.tables.len() {
        text += &format!(
            "    case {at}: return table_act(&shape_{}_{at}, state->table_{at}, action, key, \
             value, cursor);\n",
            id.0
        );
    }
    text + "    default: return false;\n    }\n}\n\n"
}

fn definition(id: ElementId, at: usize, table: &Table) -> String {
    let shape = TableShape::of(table).unwrap_or_default();
    let (element, name) = (id.0, comment(&table.name));
    let (key, value) = (storage(table.key_bits), storage(table.value_bits));
    let (key_bytes, value_bytes) = (bytes_of(table.key_bits), bytes_of(table.value_bits));
    let TableShape { data_bits, ways, entry_bytes, chunk_bytes, first, chunks, capacity, .. } =
        shape;
    let TableShape { root_bits, roots, .. } = shape;
    let kind = kind(table.kind);
    let mut text = format!(
        "// Table {name}.\nstatic const struct table_shape shape_{element}_{at} = {{\n    \
         {kind}, {key_bytes}, {value_bytes}, {data_bits}, {ways}, {entry_bytes}, {chunk_bytes}, \
         {root_bits}, {roots}, {first}, UINT64_C({chunks}), UINT64_C({capacity}),\n}};\n\n"
    );
    let state = format!("struct state_{element} *const state");
    let place = format!("&shape_{element}_{at}, state->table_{at}");
    let given = "(const uint8_t *)&key";
    let mut function = |head: &str, name: &str, rest: &str, body: &str| {
        text += &format!(
            "{head} table_{name}_{element}_{at}({state}, const {key} key{rest}) {{\n    \
             {body}\n}}\n\n"
        );
    };
    function(
        "INLINE struct reference",
        "lookup",
        ", const bool tracks",
        &format!("return table_lookup({place}, {given}, tracks);"),
    );
    function(
        "OUT_OF_LINE bool",
        "update",
        &format!(", const {value} value"),
        &format!("return table_update({place}, {given}, (const uint8_t *)&value);"),
    );
    let delete = format!("return table_delete({place}, {given});");
    function("OUT_OF_LINE bool", "delete", "", &delete);
    function("INLINE void", "prefetch", "", &format!("table_prefetch({place}, {given});"));
    text
}

/// Emits statements that initialise an instance's zeroed tables. The seed cannot be guessed from
/// outside, so that no sender can choose keys that all hash to one chunk.
pub(super) fn start(element: &Element, instance: usize) -> String {
    let tables = element.tables.iter().enumerate();
    let hashed = tables.filter(|(_, table)| table.kind != TableKind::Array);
    let seed = "(uint64_t)(uintptr_t)";
    hashed
        .map(|(at, _)| {
            let table = format!("graph->state_{instance}.table_{at}");
            format!(
                "    table_head({table})->seed = table_mix({seed}{table} ^ seed, \
                 UINT64_C(0x9e3779b97f4a7c15));\n"
            )
        })
        .collect()
}

/// Emits the function through which the host accesses all tables.
pub(super) fn dispatch(emitter: &Emitter<'_>) -> String {
    let mut text = String::from(
        "static uint32_t act_on_table(void *const memory, const uint32_t instance, \
         const uint32_t table,\n    const uint32_t action, uint8_t *const key, \
         uint8_t *const value, uint64_t *const cursor) {\n\
         \x20   struct graph *const graph = memory;\n    switch (instance) {\n",
    );
    for (at, instance) in emitter.program.graph.instances.iter().enumerate() {
        if !emitter.program.element(instance.element).tables.is_empty() {
            text += &format!(
                "    case {at}: return table_act_{}(&graph->state_{at}, table, action, key, value, \
                 cursor);\n",
                instance.element.0
            );
        }
    }
    text + "    default: return false;\n    }\n}\n\n"
}

/// Returns the widths of keys and values, for which the code needs types.
pub(super) fn widths(element: &Element) -> impl Iterator<Item = u32> {
    element.tables.iter().flat_map(|table| [table.key_bits, table.value_bits])
}

/// Returns whether an operation always counts as doing something because of a table.
pub(super) fn does_something(element: &Element, function: &Function, op: &Op) -> bool {
    match op {
        Op::TableUpdate { .. } | Op::TableDelete { .. } | Op::RefStore { .. } => true,
        Op::TableLookup { table, .. } => {
            let found = table_of(function, *table).and_then(|at| element.tables.get(at.index()));
            found.is_some_and(|table| table.kind == TableKind::LruHash)
        }
        _ => false,
    }
}

fn table_of(function: &Function, handle: ValueId) -> Option<TableId> {
    match function.type_of(handle) {
        Type::Handle(table) => Some(table),
        _ => None,
    }
}

impl FunctionEmitter<'_, '_> {
    /// Emits an operation on tables or references; returns false for any other.
    pub(super) fn table_operation(&mut self, inst: &Inst) -> Result<bool, Error> {
        let result = inst.result.map(|result| self.name(result));
        let to = result.as_ref().map_or(String::new(), |name| format!("{name} = "));
        match &inst.op {
            Op::Handle(_) => {}
            Op::NullRef(_) => self.line(&format!("{to}(struct reference){{NULL, 0, 0, 0}};")),
            Op::RefIsValid(reference) => {
                let reference = self.name(*reference);
                self.line(&format!("{to}{reference}.value != NULL;"));
            }
            Op::Select { cond, if_true, if_false } => {
                if !matches!(self.function.type_of(*if_true), Type::Ref(_)) {
                    return Ok(false);
                }
                let [cond, if_true, if_false] = [cond, if_true, if_false].map(|it| self.name(*it));
                self.line(&format!("{to}{cond} ? {if_true} : {if_false};"));
            }
            Op::RefOffset { reference, offset } => {
                let (reference, offset) = (self.name(*reference), self.signed_word(*offset));
                if let Some(result) = result {
                    self.line(&format!("{result} = {reference}; {result}.offset += {offset};"));
                }
            }
            Op::RefLoad { reference, width } => self.ref_load(inst.result, *reference, *width),
            Op::RefStore { reference, value } => self.ref_store(*reference, *value),
            Op::TableLookup { table, key } => {
                let (call, is_lru) = self.table_call("lookup", *table, *key, inst.loc)?;
                let tracks = table_of(self.function, *table).is_none_or(|it| self.tracks(it));
                self.line(&format!("{to}{call}, {tracks});"));
                if is_lru {
                    self.line(DID_SOMETHING);
                }
            }
            Op::TableUpdate { table, key, value } => {
                let (call, _) = self.table_call("update", *table, *key, inst.loc)?;
                let value = self.name(*value);
                self.line(&format!("{to}{call}, {value});"));
                self.line(DID_SOMETHING);
            }
            Op::TableDelete { table, key } => {
                let (call, _) = self.table_call("delete", *table, *key, inst.loc)?;
                self.line(&format!("{to}{call});"));
                self.line(DID_SOMETHING);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn ref_load(&mut self, result: Option<ValueId>, reference: ValueId, width: u32) {
        let (reference, bytes) = (self.name(reference), bytes_of(width));
        self.line(&format!(
            "{{ const uint8_t *const place = reference_place({reference}, {bytes});"
        ));
        if let Some(result) = result.map(|result| self.name(result)) {
            let zero = super::types::zero(width);
            self.line(&format!("{result} = {zero};"));
            self.line(&format!("if (LIKELY(place != NULL)) memcpy(&{result}, place, {bytes});"));
        }
        self.line(&format!("if (UNLIKELY(place == NULL)) {OUT_OF_RANGE} }}"));
    }

    fn ref_store(&mut self, reference: ValueId, value: ValueId) {
        let (reference, value) = (self.name(reference), self.operand(value));
        let bytes = bytes_of(value.width);
        self.line(&format!("{{ uint8_t *const place = reference_place({reference}, {bytes});"));
        self.line(&format!(
            "if (LIKELY(place != NULL)) memcpy(place, &{}, {bytes}); else {OUT_OF_RANGE} }}",
            value.name
        ));
        self.line(DID_SOMETHING);
    }

    /// Returns the start of a call to a table's function, and whether the table orders by use.
    fn table_call(
        &self,
        what: &str,
        handle: ValueId,
        key: ValueId,
        loc: Loc,
    ) -> Result<(String, bool), Error> {
        let unknown = || self.unsupported("a table that is not known", loc);
        let owner = self.function.owner.ok_or_else(unknown)?;
        let id = table_of(self.function, handle).ok_or_else(unknown)?;
        let element = self.emitter.program.element(owner);
        let table = element.tables.get(id.index()).ok_or_else(unknown)?;
        let call = format!("table_{what}_{}_{}(state, {}", owner.0, id.0, self.name(key));
        Ok((call, table.kind == TableKind::LruHash))
    }

    /// Returns whether an entry of `table` may be removed while a reference made by this function
    /// is in use: the function removes entries, suspends, calls another, or returns a reference.
    fn tracks(&self, table: TableId) -> bool {
        let function = self.function;
        let owner = function.owner.map(|owner| self.emitter.program.element(owner));
        let found = owner.and_then(|owner| owner.tables.get(table.index()));
        let is_lru = found.is_none_or(|table| table.kind == TableKind::LruHash);
        let is_it = |handle: &ValueId| table_of(function, *handle) == Some(table);
        let ends = |inst: &Inst| match &inst.op {
            Op::TableDelete { table, .. } => is_it(table),
            Op::TableUpdate { table, .. } => is_lru && is_it(table),
            Op::Call { .. } => true,
            _ => false,
        };
        suspends(function)
            || matches!(function.result, Some(Type::Ref(_)))
            || function.blocks.iter().flat_map(|block| &block.insts).any(ends)
    }

    /// Returns a signed value modulo 2^64.
    fn signed_word(&self, value: ValueId) -> String {
        let super::values::Operand { name, width } = self.operand(value);
        match width {
            _ if is_wide(width) => format!("load_bytes({name}.b, 8)"),
            0..64 => format!("(uint64_t)(int64_t){}", signed_integer(&name, width)),
            _ => format!("(uint64_t)({name})"),
        }
    }
}

const OUT_OF_RANGE: &str = "activation->out_of_range++;";
const DID_SOMETHING: &str = "activation->did_something = true;";
