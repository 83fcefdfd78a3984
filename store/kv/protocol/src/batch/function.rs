// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of functions that a server returns.

/// Kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FunctionKind {
    /// Replaces elements.
    Update = 0,
    /// Folds elements.
    Reduce = 1,
    /// Selects elements.
    Filter = 2,
}

/// A function in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionEntry<'a> {
    /// Id in operations.
    pub id: u8,
    /// Kind of the function.
    pub kind: FunctionKind,
    /// Types of elements that it takes: bit n for the type with code n.
    pub elements: u16,
    /// Name, of at most 255 bytes. Names are unique among the functions of a kind.
    pub name: &'a str,
    /// Number of operands.
    pub operands: u8,
}

/// Appends an entry to the value of a reply.
///
/// # Panics
/// The name has more than 255 bytes.
pub fn write_function(into: &mut Vec<u8>, entry: &FunctionEntry<'_>) {
    let name_bytes = u8::try_from(entry.name.len()).expect("names of functions are short");
    into.extend_from_slice(&[entry.id, entry.kind as u8]);
    into.extend_from_slice(&entry.elements.to_le_bytes());
    into.push(name_bytes);
    into.extend_from_slice(entry.name.as_bytes());
    into.push(entry.operands);
}

/// Reads the value of a reply. `None` if it is no list of functions.
pub fn read_functions(mut value: &[u8]) -> Option<Vec<FunctionEntry<'_>>> {
    let mut entries = Vec::new();
    while !value.is_empty() {
        let (&[id, kind, e0, e1, name_bytes], rest) = value.split_first_chunk()?;
        let kind = match kind {
            0 => FunctionKind::Update,
            1 => FunctionKind::Reduce,
            2 => FunctionKind::Filter,
            _ => return None,
        };
        let (name, rest) = rest.split_at_checked(name_bytes.into())?;
        let (&operands, rest) = rest.split_first()?;
        let (elements, name) = (u16::from_le_bytes([e0, e1]), str::from_utf8(name).ok()?);
        entries.push(FunctionEntry { id, kind, elements, name, operands });
        value = rest;
    }
    Some(entries)
}
