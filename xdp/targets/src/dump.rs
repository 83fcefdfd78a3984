// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contents of a map as text.

mod json;

use crate::Contents;
use freeport_ebpf::object::{Datum, Layout, MapDefinition};
use std::fmt;

pub use json::bytes_json;

/// Bytes in a line.
const LINE: usize = 16;
/// Keys and values with more bytes in total do not share a line.
const SHARED_MAX: usize = 24;

/// Contents of a map to be printed: with the names of members if the object has types, else as
/// bytes in bpftool's format.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    /// Definition of the map.
    pub definition: &'a MapDefinition,
    /// Contents of the map.
    pub contents: &'a Contents,
}

impl Dump<'_> {
    /// Decodes a key, if the object has the type of the map's keys or of its values.
    pub fn key(&self, bytes: &[u8]) -> Option<Datum> {
        self.has_types().then(|| decode(self.definition.key_layout.as_ref(), bytes))
    }

    /// Decodes a value, if the object has the type of the map's keys or of its values.
    pub fn value(&self, bytes: &[u8]) -> Option<Datum> {
        self.has_types().then(|| decode(self.definition.value_layout.as_ref(), bytes))
    }

    fn has_types(&self) -> bool {
        self.definition.key_layout.is_some() || self.definition.value_layout.is_some()
    }
}

fn decode(layout: Option<&Layout>, bytes: &[u8]) -> Datum {
    layout.map_or_else(|| Datum::Bytes(bytes.to_vec()), |layout| layout.decode(bytes))
}

impl fmt::Display for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match self.contents {
            Contents::Opaque => return writeln!(f, "its contents cannot be listed"),
            Contents::Entries(entries) => {
                for (key, value) in entries {
                    match (self.key(key), self.value(value)) {
                        (Some(key), Some(value)) => writeln!(f, "key: {key}  value: {value}")?,
                        _ => write_entry(f, key, value)?,
                    }
                }
                entries.len()
            }
            Contents::Items(items) => {
                for item in items {
                    match self.value(item) {
                        Some(value) => write!(f, "value: {value}")?,
                        None => write_bytes(f, "value", item, item.len() > LINE)?,
                    }
                    writeln!(f)?;
                }
                items.len()
            }
        };
        writeln!(f, "Found {count} element{}", if count == 1 { "" } else { "s" })
    }
}

fn write_entry(f: &mut fmt::Formatter<'_>, key: &[u8], value: &[u8]) -> fmt::Result {
    let is_long = key.len() > LINE || value.len() > LINE;
    let shares_line = !is_long && key.len() + value.len() <= SHARED_MAX;
    write_bytes(f, "key", key, is_long)?;
    f.write_str(if shares_line { "  " } else { "\n" })?;
    write_bytes(f, "value", value, is_long)?;
    writeln!(f)
}

/// Writes a name and bytes, which start on a new line if they are long.
fn write_bytes(f: &mut fmt::Formatter<'_>, name: &str, bytes: &[u8], is_long: bool) -> fmt::Result {
    write!(f, "{name}:{}", if is_long { "\n" } else { " " })?;
    for (at, byte) in bytes.iter().enumerate() {
        let before = if at == 0 {
            ""
        } else if at % LINE == 0 {
            "\n"
        } else {
            " "
        };
        write!(f, "{before}{byte:02x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(definition: &MapDefinition, contents: &Contents) -> String {
        Dump { definition, contents }.to_string()
    }

    #[test]
    fn bytes_are_written_as_bpftool_does() {
        let untyped = MapDefinition::default();
        let short = Contents::Entries([(vec![1, 0], vec![0xff; 4]), (vec![2, 0], vec![7])].into());
        let expected = "key: 01 00  value: ff ff ff ff\nkey: 02 00  value: 07\nFound 2 elements\n";
        assert_eq!(text(&untyped, &short), expected);
        let middle = Contents::Entries([(vec![1; 10], vec![2; 15])].into());
        let expected = "key: 01 01 01 01 01 01 01 01 01 01\n\
            value: 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02\nFound 1 element\n";
        assert_eq!(text(&untyped, &middle), expected);
        let long = Contents::Entries([(vec![1; 2], vec![2; 17])].into());
        let expected = "key:\n01 01\n\
            value:\n02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02\n02\nFound 1 element\n";
        assert_eq!(text(&untyped, &long), expected);
        let items = Contents::Items(vec![vec![1, 2], vec![3]]);
        assert_eq!(text(&untyped, &items), "value: 01 02\nvalue: 03\nFound 2 elements\n");
        assert_eq!(text(&untyped, &Contents::Items(vec![])), "Found 0 elements\n");
    }

    #[test]
    fn types_are_used_as_far_as_there_are_any() {
        let value_layout = Some(Layout::Integer { bytes: 2, is_signed: false });
        let definition = MapDefinition { value_layout, ..MapDefinition::default() };
        let entries = Contents::Entries([(vec![1, 2], vec![3, 1])].into());
        let expected = "key: 01 02  value: 259\nFound 1 element\n";
        assert_eq!(text(&definition, &entries), expected);
        let items = Contents::Items(vec![vec![1, 0]]);
        assert_eq!(text(&definition, &items), "value: 1\nFound 1 element\n");
    }
}
