// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layout information of elements for the host: the types and positions of state variables, so that
//! it can read and write them by name, and the types of methods.

use crate::types::Type;
use freeport_ir::{ElementId, ObjectId, TableId};

/// Layouts of all elements of a program.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    /// Layouts by [`ElementId`].
    pub elements: Vec<ElementLayout>,
}

/// Variables, tables and methods of an element.
#[derive(Clone, Debug, Default)]
pub struct ElementLayout {
    /// State variables, in order.
    pub variables: Vec<VariableLayout>,
    /// Keyed tables, in order.
    pub tables: Vec<TableLayout>,
    /// Methods, in order.
    pub methods: Vec<MethodLayout>,
    /// Types of the input ports, then of the output ports, as spelled in the source.
    pub ports: Vec<(String, String)>,
}

/// A state variable.
#[derive(Clone, Debug)]
pub struct VariableLayout {
    /// Its name.
    pub name: String,
    /// Its object in the element.
    pub object: ObjectId,
    /// Type as spelled in the source: `uint[16]`.
    pub ty: String,
    /// Numbers in each element of the object; a plain number is one entry with an empty path.
    pub fields: Vec<FieldLayout>,
}

/// A keyed table.
#[derive(Clone, Debug)]
pub struct TableLayout {
    /// Its name.
    pub name: String,
    /// Its position in the element.
    pub table: TableId,
    /// Type of its keys, as spelled in the source.
    pub key_ty: String,
    /// Numbers in a key of the IR, which has no padding. The key of a longest-prefix table is one
    /// number; in the IR its bytes are reversed and follow the length.
    pub key: Vec<FieldLayout>,
    /// Type of its values, as spelled in the source.
    pub value_ty: String,
    /// Numbers in a value.
    pub value: Vec<FieldLayout>,
}

/// A number in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Access path within an element: `.key.port[2]`.
    pub path: String,
    /// Its type.
    pub ty: String,
    /// Whether it is signed.
    pub is_signed: bool,
    /// Its lowest bit.
    pub bit: u64,
    /// Width.
    pub width: u32,
}

/// A method.
#[derive(Clone, Debug)]
pub struct MethodLayout {
    /// Its name.
    pub name: String,
    /// Parameters: name, type and numbers.
    pub params: Vec<(String, String, Vec<FieldLayout>)>,
    /// Result: type and numbers.
    pub result: Option<(String, Vec<FieldLayout>)>,
}

impl Layouts {
    /// Returns the layout of an element.
    pub fn element(&self, id: ElementId) -> Option<&ElementLayout> {
        self.elements.get(id.index())
    }
}

/// Maximum numbers of one variable that are listed individually.
const MOST_FIELDS: usize = 4096;

/// Returns the numbers in a value of type `ty`.
pub fn fields(ty: &Type) -> Vec<FieldLayout> {
    let mut found = vec![];
    collect(ty, String::new(), 0, None, &mut found);
    found
}

fn collect(ty: &Type, path: String, bit: u64, width: Option<u32>, found: &mut Vec<FieldLayout>) {
    if found.len() >= MOST_FIELDS {
        return;
    }
    match ty {
        Type::Bool | Type::Int(_) => {
            let is_signed = ty.as_integer().is_some_and(|int| int.is_signed);
            let width = width.unwrap_or(ty.value_bits() as u32);
            found.push(FieldLayout { path, ty: ty.to_string(), is_signed, bit, width });
        }
        Type::Record(record) => {
            for field in &record.fields {
                let name = field.name.as_ref().map_or(String::new(), |name| format!(".{name}"));
                let inner = format!("{path}{name}");
                collect(&field.ty, inner, bit + field.bit, field.bit_field, found);
            }
        }
        Type::Array(item, count) => {
            let stride = crate::types::layout::size_bytes(item) * 8;
            for at in 0..*count {
                if found.len() >= MOST_FIELDS {
                    return;
                }
                collect(item, format!("{path}[{at}]"), bit + at * stride, None, found);
            }
        }
        Type::Void | Type::Pointer(_) | Type::Packet(_) => {}
    }
}

/// Returns the parts of a value of type `ty` that hold numbers, each with its first bit and its
/// width. For a union this is the whole value.
pub fn packed_runs(ty: &Type) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = vec![];
    collect_runs(ty, 0, None, &mut runs);
    runs
}

fn collect_runs(ty: &Type, bit: u64, width: Option<u32>, runs: &mut Vec<(u64, u64)>) {
    match ty {
        Type::Record(record) if !record.is_union => {
            for field in &record.fields {
                collect_runs(&field.ty, bit + field.bit, field.bit_field, runs);
            }
        }
        Type::Array(item, count) => {
            let stride = crate::types::layout::size_bytes(item) * 8;
            for at in 0..*count {
                collect_runs(item, bit + at * stride, None, runs);
            }
        }
        _ => {
            let end = bit + width.map_or(ty.value_bits(), u64::from);
            match runs.last_mut() {
                // The members of a flit overlap.
                Some((first, width)) if bit <= *first + *width => {
                    *width = (*width).max(end - *first);
                }
                _ if end > bit => runs.push((bit, end - bit)),
                _ => {}
            }
        }
    }
}

/// Returns the numbers in a value of type `ty` without padding, as [`packed_runs`] divides it.
pub fn packed_fields(ty: &Type) -> Vec<FieldLayout> {
    let runs = packed_runs(ty);
    let packed = |bit: u64| {
        let before = runs.iter().take_while(|(first, _)| *first <= bit);
        let cut: u64 = before.map(|(first, width)| (*width).min(bit - first)).sum();
        cut
    };
    let fields = fields(ty).into_iter();
    fields.map(|field| FieldLayout { bit: packed(field.bit), ..field }).collect()
}
