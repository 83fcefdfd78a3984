// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts layouts of state variables from the form of the front end, a list of numbers with paths
//! and positions, to that of the manager, a tree of members and elements.

use freeport_clicknp::layouts::{
    FieldLayout, Layouts as FrontEndLayouts, MethodLayout as FrontEndMethod,
    TableLayout as FrontEndTable, VariableLayout,
};
use freeport_ir::{Element, Function, Program, Table, TableKind, Type};
use freeport_runtime::layout::{Layout, Member};
use freeport_runtime::layouts::{Layouts, MethodLayout, TableLayout};

/// The layouts of all variables, tables and methods of a compiled program.
pub fn of(program: &Program, known: &FrontEndLayouts) -> Layouts {
    let mut layouts = Layouts::default();
    for (element, layout) in program.elements.iter().zip(&known.elements) {
        for variable in &layout.variables {
            let key = (element.name.clone(), variable.name.clone());
            layouts.variables.insert(key, of_variable(element, variable));
        }
        for table in &layout.tables {
            let found = &element.tables[table.table.index()];
            let key = (element.name.clone(), table.name.clone());
            layouts.tables.insert(key, of_table(found, table));
        }
        for method in &layout.methods {
            let Some(found) = element.methods.iter().find(|it| it.name == method.name) else {
                continue;
            };
            let key = (element.name.clone(), method.name.clone());
            let shape = of_method(program.function(found.function), method);
            layouts.methods.insert(key, shape);
        }
    }
    layouts
}

fn of_variable(element: &Element, variable: &VariableLayout) -> Layout {
    of_fields(element.state[variable.object.index()].elem_bits, &variable.fields)
}

fn of_table(table: &Table, known: &FrontEndTable) -> TableLayout {
    let length_bits = if table.kind == TableKind::LongestPrefix { 32 } else { 0 };
    TableLayout {
        key: of_fields(table.key_bits - length_bits, &known.key),
        value: match known.value.as_slice() {
            [only] if only.path.is_empty() => number(only.is_signed, only.width),
            fields => of_fields(table.value_bits, fields),
        },
    }
}

fn of_method(function: &Function, method: &FrontEndMethod) -> MethodLayout {
    let bits = |ty: Type| ty.bits().unwrap_or(1);
    let params = method.params.iter().zip(function.params());
    MethodLayout {
        parameters: params
            .map(|((name, _, fields), value)| {
                (name.clone(), of_fields(bits(function.type_of(*value)), fields))
            })
            .collect(),
        result: match (function.result, &method.result) {
            (Some(ty), Some((_, fields))) => Some(of_fields(bits(ty), fields)),
            _ => None,
        },
    }
}

fn of_fields(bits: u32, fields: &[FieldLayout]) -> Layout {
    let fields: Vec<Field<'_>> = fields.iter().map(Field::of).collect();
    match fields.as_slice() {
        [only] if only.path.is_empty() => number(only.layout.is_signed, bits),
        _ => Layout::Struct { bits, members: members(&fields, 0) },
    }
}

/// A number, and the rest of its path.
#[derive(Clone, Copy)]
struct Field<'a> {
    path: &'a str,
    layout: &'a FieldLayout,
}

impl<'a> Field<'a> {
    fn of(layout: &'a FieldLayout) -> Self {
        Self { path: &layout.path, layout }
    }

    /// The first step of the path with its mark, `.name` or `[2]`, and the field with the rest.
    fn step(self) -> (&'a str, Self) {
        let end = self.path[1..].find(['.', '[']).map_or(self.path.len(), |at| at + 1);
        let (step, path) = self.path.split_at(end);
        (step, Self { path, ..self })
    }

    fn lo(self) -> u64 {
        self.layout.bit
    }

    fn end(self) -> u64 {
        self.layout.bit + u64::from(self.layout.width)
    }
}

/// The layout of a value whose lowest bit is `start`. Bits before its first number belong to the
/// preceding value.
fn layout_of(fields: &[Field<'_>], start: u64) -> Layout {
    let first = fields[0];
    if first.path.is_empty() {
        return number(first.layout.is_signed, first.layout.width);
    }
    if first.path.starts_with('[') {
        let elements = grouped(fields);
        let starts: Vec<u64> = elements.iter().map(|(_, fields)| lowest(fields)).collect();
        let element = layout_of(&elements[0].1, starts[0]);
        let stride_bits = match starts.get(1) {
            Some(second) => (second - starts[0]) as u32,
            None => element.bits(),
        };
        let count = elements.len() as u32;
        return Layout::Array { element: Box::new(element), stride_bits, count };
    }
    let end = fields.iter().map(|field| field.end()).max().unwrap_or(start);
    Layout::Struct { bits: (end - start) as u32, members: members(fields, start) }
}

fn members(fields: &[Field<'_>], start: u64) -> Vec<Member> {
    let member = |(step, fields): (&str, Vec<Field<'_>>)| {
        let lo = lowest(&fields);
        let name = step.trim_start_matches('.').to_owned();
        Member { name, lo: (lo - start) as u32, layout: layout_of(&fields, lo) }
    };
    grouped(fields).into_iter().map(member).collect()
}

/// The fields grouped by the first step of their paths, in order.
fn grouped<'a>(fields: &[Field<'a>]) -> Vec<(&'a str, Vec<Field<'a>>)> {
    let mut groups: Vec<(&str, Vec<Field<'_>>)> = vec![];
    for (step, field) in fields.iter().map(|field| field.step()) {
        match groups.last_mut() {
            Some((last, group)) if *last == step => group.push(field),
            _ => groups.push((step, vec![field])),
        }
    }
    groups
}

fn lowest(fields: &[Field<'_>]) -> u64 {
    fields.iter().map(|field| field.lo()).min().unwrap_or_default()
}

fn number(is_signed: bool, bits: u32) -> Layout {
    if is_signed { Layout::Signed(bits) } else { Layout::Unsigned(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_clicknp::{Options, compile_text};
    use serde_json::json;

    const PROGRAM: &str = "
        typedef struct { uint address; ushort ports[2]; int priority : 4; uint mark : 3; } rule;
        typedef struct { rule inner[2]; uint5 small; } table_entry;
        .element Keep (flit in -> flit out) {
            .state { table_entry entries[3]; int balance; uint5 small[4]; uint128 wide; }
            .handler { if (test_input_port(in)) set_output_port(out, read_input_port(in)); }
        }
        Keep :: keep
        from_tor -> keep -> to_tor
    ";

    fn layout(variable: &str) -> Layout {
        let compiled = compile_text("keep.cnp", PROGRAM, &Options::default());
        let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
        let layouts = of(&compiled.program, &compiled.layouts);
        layouts.variables[&("Keep".to_owned(), variable.to_owned())].clone()
    }

    #[test]
    fn methods_have_the_shapes_of_their_parameters_and_results() {
        let text = PROGRAM.replace(
            ".handler",
            ".method rule swap(rule old, int by) { rule r = old; r.mark = by; return r; }
             .method void clear() { balance = 0; }
             .handler",
        );
        let compiled = compile_text("keep.cnp", &text, &Options::default());
        let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
        let layouts = of(&compiled.program, &compiled.layouts);
        let method = |name: &str| &layouts.methods[&("Keep".to_owned(), name.to_owned())];
        assert_eq!(method("swap").signature("swap"), "swap(old, by)");
        let rule = json!({"address": 9, "ports": [80, 443], "priority": -3, "mark": 5});
        let [(_, old), (_, by)] = &method("swap").parameters[..] else { panic!("two") };
        let bits = old.parse(&rule).unwrap();
        assert_eq!(method("swap").result.as_ref().unwrap().show(&bits), rule);
        assert_eq!(*by, Layout::Signed(32));
        assert_eq!(*method("clear"), MethodLayout::default());
    }

    #[test]
    fn keys_of_tables_are_packed_and_values_are_as_in_memory() {
        let text = PROGRAM.replace(
            ".state {",
            ".state { table<rule, int13> marks[4]; lpm table<uint, table_entry> routes[4];",
        );
        let compiled = compile_text("keep.cnp", &text, &Options::default());
        let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
        let layouts = of(&compiled.program, &compiled.layouts);
        let table = |name: &str| &layouts.tables[&("Keep".to_owned(), name.to_owned())];
        let rule = json!({"address": 9, "ports": [80, 443], "priority": -3, "mark": 5});
        let bits = table("marks").key.parse(&rule).unwrap();
        assert_eq!(bits.width(), 32 + 2 * 16 + 4 + 3);
        assert_eq!(bits.extract(48, 16).to_u64(), 443);
        assert_eq!(table("marks").key.show(&bits), rule);
        assert_eq!(table("marks").value, Layout::Signed(13));
        assert_eq!(table("routes").key, Layout::Unsigned(32));
        assert_eq!(table("routes").value, layout("entries"));
    }

    #[test]
    fn plain_numbers_keep_sign_and_width() {
        assert_eq!(layout("balance"), Layout::Signed(32));
        assert_eq!(layout("small"), Layout::Unsigned(5));
        assert_eq!(layout("wide"), Layout::Unsigned(128));
    }

    #[test]
    fn structs_and_arrays_in_structs_become_a_tree() {
        let entry = layout("entries");
        let rule = json!({"address": 9, "ports": [80, 443], "priority": -3, "mark": 5});
        let zero = json!({"address": 0, "ports": [0, 0], "priority": 0, "mark": 0});
        let value = json!({"inner": [zero, rule], "small": 21});
        let bits = entry.parse(&value).unwrap();
        assert_eq!(entry.show(&bits), value);
        // Rules take 12 bytes each: an address, two ports, and a word with the bit fields.
        assert_eq!(bits.extract(96, 32).to_u64(), 9);
        assert_eq!(bits.extract(96 + 48, 16).to_u64(), 443);
        assert_eq!(bits.extract(96 + 64, 4).to_u64(), 13);
        assert_eq!(bits.extract(96 + 68, 3).to_u64(), 5);
        assert_eq!(bits.extract(192, 5).to_u64(), 21);
    }
}
