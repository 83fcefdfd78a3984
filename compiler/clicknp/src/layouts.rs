// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host needs to know of elements: the types and places of state variables, so that it can
//! read and write them by name, and the types of methods.

use crate::types::Type;
use freeport_ir::{ElementId, ObjectId};

/// The layouts of all elements of a program.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    /// By [`ElementId`].
    pub elements: Vec<ElementLayout>,
}

/// The variables and methods of an element.
#[derive(Clone, Debug, Default)]
pub struct ElementLayout {
    /// State variables, in order.
    pub variables: Vec<VariableLayout>,
    /// Methods, in order.
    pub methods: Vec<MethodLayout>,
    /// Types of the input ports, then of the output ports, as written.
    pub ports: Vec<(String, String)>,
}

/// A state variable.
#[derive(Clone, Debug)]
pub struct VariableLayout {
    /// Its name.
    pub name: String,
    /// Its object in the element.
    pub object: ObjectId,
    /// Its type, as written: `uint[16]`.
    pub ty: String,
    /// The numbers in each element of the object: of a plain number, one with an empty path.
    pub fields: Vec<FieldLayout>,
}

/// A number in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// How it is reached in an element: `.key.port[2]`.
    pub path: String,
    /// Its type.
    pub ty: String,
    /// Whether it has negative values.
    pub is_signed: bool,
    /// Its lowest bit.
    pub bit: u64,
    /// How many bits it has.
    pub width: u32,
}

/// A method.
#[derive(Clone, Debug)]
pub struct MethodLayout {
    /// Its name.
    pub name: String,
    /// Its parameters: name and numbers.
    pub params: Vec<(String, String, Vec<FieldLayout>)>,
    /// Its result: type and numbers.
    pub result: Option<(String, Vec<FieldLayout>)>,
}

impl Layouts {
    /// The layout of an element.
    pub fn element(&self, id: ElementId) -> Option<&ElementLayout> {
        self.elements.get(id.index())
    }
}

/// Most numbers of one variable that are listed one by one.
const MOST_FIELDS: usize = 4096;

/// The numbers in a value of type `ty`.
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
