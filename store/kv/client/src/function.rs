// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that a server has.

use freeport_kv_protocol::batch::{FunctionKind, read_functions};

/// A function of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Id in operations.
    pub id: u8,
    /// Kind of the function.
    pub kind: FunctionKind,
    /// Name; unique among the functions of a kind.
    pub name: String,
    /// Types of elements that it takes: bit n for the type with code n.
    pub elements: u16,
    /// Number of operands for an element.
    pub operands: u8,
}

impl From<&Function> for u8 {
    fn from(function: &Function) -> Self {
        function.id
    }
}

/// Reads the list of functions. `None` if it is none.
pub(crate) fn read(value: &[u8]) -> Option<Vec<Function>> {
    let entries = read_functions(value)?;
    let functions = entries.into_iter().map(|entry| Function {
        id: entry.id,
        kind: entry.kind,
        name: entry.name.to_owned(),
        elements: entry.elements,
        operands: entry.operands,
    });
    Some(functions.collect())
}
