// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Differences between two packets or two maps, as text.

use crate::Contents;
use std::fmt::Write;

/// Bytes in a line of a dump.
const LINE: usize = 16;
/// Lines that are shown, at most; further ones are only counted.
const LINES_MAX: usize = 16;

/// Returns the differing lines of the hex dumps of two byte sequences: first those of one, then
/// those of the other, with marks below the bytes. Empty if the sequences are equal.
pub(crate) fn differing_lines(names: [&str; 2], both: [&[u8]; 2]) -> String {
    let width = names.map(str::len).into_iter().max().unwrap_or(0);
    let longer = both.map(<[u8]>::len).into_iter().max().unwrap_or(0);
    let line = |bytes: &[u8], start: usize| -> Vec<u8> {
        bytes.iter().skip(start).take(LINE).copied().collect()
    };
    let starts = (0..longer).step_by(LINE);
    let mut differing = starts.filter(|&start| line(both[0], start) != line(both[1], start));
    let mut text = String::new();
    for start in differing.by_ref().take(LINES_MAX) {
        let [one, other] = both.map(|bytes| line(bytes, start));
        let marks = (0..LINE).map(|at| if one.get(at) == other.get(at) { "   " } else { "^^ " });
        let marks: String = marks.collect();
        let place = format!("{start:04x}");
        for (place, name, bytes) in [
            (place.as_str(), names[0], spaced(&one)),
            ("", names[1], spaced(&other)),
            ("", "", marks),
        ] {
            let line = format!("  {place:4}  {name:width$}  {bytes}");
            text += line.trim_end();
            text.push('\n');
        }
    }
    let more = differing.count();
    if more > 0 {
        text += &format!("  and {more} lines more\n");
    }
    text
}

/// Returns the first difference between the contents of a map.
pub(crate) fn difference(
    names: [&str; 2],
    expected: &Contents,
    found: &Contents,
) -> Option<String> {
    if expected == found {
        return None;
    }
    let [one, other] = names;
    let say = |value: Option<&Vec<u8>>| value.map_or("nothing".into(), |value| hexadecimal(value));
    Some(match (expected, found) {
        (Contents::Entries(expected), Contents::Entries(found)) => {
            let mut keys = expected.keys().chain(found.keys());
            let key = keys.find(|key| expected.get(*key) != found.get(*key))?;
            let (expected, found) = (say(expected.get(key)), say(found.get(key)));
            format!("key {}: {one} {expected}, {other} {found}", hexadecimal(key))
        }
        (Contents::Items(expected), Contents::Items(found)) => {
            let longer = expected.len().max(found.len());
            let at = (0..longer).find(|&at| expected.get(at) != found.get(at))?;
            let (expected, found) = (say(expected.get(at)), say(found.get(at)));
            format!("item {at}: {one} {expected}, {other} {found}")
        }
        _ => format!("{one} {expected:?}, {other} {found:?}"),
    })
}

fn spaced(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x} ");
        text
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    spaced(bytes).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_first_difference_is_named() {
        let names = ["one", "other"];
        let entries = |value: u8| Contents::Entries([(vec![1], vec![value])].into());
        let empty = Contents::Entries(BTreeMap::new());
        assert_eq!(difference(names, &entries(1), &entries(1)), None);
        let said = difference(names, &entries(1), &entries(2));
        assert_eq!(said.as_deref(), Some("key 01: one 01, other 02"));
        let said = difference(names, &empty, &entries(2));
        assert_eq!(said.as_deref(), Some("key 01: one nothing, other 02"));
        let items = |count| Contents::Items(vec![vec![7]; count]);
        let said = difference(names, &items(2), &items(1));
        assert_eq!(said.as_deref(), Some("item 1: one 07, other nothing"));
        assert!(difference(names, &items(1), &empty).is_some());
    }

    #[test]
    fn lines_that_are_the_same_are_left_out() {
        let one: Vec<u8> = (0..40).collect();
        let mut other = one[..36].to_vec();
        other[3] = 0xee;
        let expected = "  0000  a  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n\
            \x20       b  00 01 02 ee 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n\
            \x20                   ^^\n\
            \x20 0020  a  20 21 22 23 24 25 26 27\n\
            \x20       b  20 21 22 23\n\
            \x20                      ^^ ^^ ^^ ^^\n";
        assert_eq!(differing_lines(["a", "b"], [&one, &other]), expected);
        assert_eq!(differing_lines(["a", "b"], [&one, &one]), "");
        let lines = differing_lines(["a", "b"], [&[1; 600], &[]]);
        assert!(lines.ends_with("  and 22 lines more\n"), "{lines}");
    }
}
