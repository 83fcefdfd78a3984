// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is in a map, as bpftool prints it when it knows no types.

use crate::Contents;
use std::fmt;

/// Bytes of a line.
const LINE: usize = 16;
/// Keys and values of more bytes together do not share a line.
const SHARED_MAX: usize = 24;

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match self {
            Self::Opaque => return writeln!(f, "what is in it cannot be listed"),
            Self::Entries(entries) => {
                entries.iter().try_for_each(|(key, value)| write_entry(f, key, value))?;
                entries.len()
            }
            Self::Items(items) => {
                for item in items {
                    write_bytes(f, "value", item, item.len() > LINE)?;
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

/// A name and bytes, which begin a line of their own if they are long.
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

    #[test]
    fn entries_are_written_as_bpftool_does() {
        let short = Contents::Entries([(vec![1, 0], vec![0xff; 4]), (vec![2, 0], vec![7])].into());
        let expected = "key: 01 00  value: ff ff ff ff\nkey: 02 00  value: 07\nFound 2 elements\n";
        assert_eq!(short.to_string(), expected);
        let middle = Contents::Entries([(vec![1; 10], vec![2; 15])].into());
        let expected = "key: 01 01 01 01 01 01 01 01 01 01\n\
            value: 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02\nFound 1 element\n";
        assert_eq!(middle.to_string(), expected);
        let long = Contents::Entries([(vec![1; 2], vec![2; 17])].into());
        let expected = "key:\n01 01\n\
            value:\n02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02\n02\nFound 1 element\n";
        assert_eq!(long.to_string(), expected);
    }

    #[test]
    fn what_has_no_keys_is_written_one_by_one() {
        let items = Contents::Items(vec![vec![1, 2], vec![3]]);
        assert_eq!(items.to_string(), "value: 01 02\nvalue: 03\nFound 2 elements\n");
        assert_eq!(Contents::Items(vec![]).to_string(), "Found 0 elements\n");
    }
}
