// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Initial contents of maps, in the syntax of bpftool's `map update` and similar commands, so that
//! its batch files can be used.

mod entry;

pub use entry::EntryName;

use crate::{Error, Target};
use freeport_ebpf::maps::flags;
use freeport_ebpf::object::{MapDefinition, MapKind, Object};
use std::str::FromStr;
use thiserror::Error as ThisError;

/// A change to a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    map: String,
    /// None for queues, stacks and Bloom filters, which have no keys.
    key: Option<Vec<u8>>,
    change: Change,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Change {
    Bytes(Vec<u8>, u64),
    /// A map or a program of the object.
    Named(String),
    Delete,
}

/// Text that is not a valid setting.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[error("{0}; write NAME key [hex] BYTES value [hex] BYTES [any|exist|noexist]")]
pub struct NotASetting(String);

/// Parses `NAME key ... value ...`, or bpftool's full syntax: `map update name NAME key ...`.
impl FromStr for Setting {
    type Err = NotASetting;

    fn from_str(text: &str) -> Result<Self, NotASetting> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let is_short = matches!(words.get(1), Some(&("key" | "value")));
        if !is_short && words.first() == Some(&"map") {
            words.remove(0);
        }
        let (command, words) = match words.as_slice() {
            [_, ..] if is_short => ("update", words.as_slice()),
            [command, "name", rest @ ..] => (*command, rest),
            _ => return Err(NotASetting(format!("`{text}` is not a command"))),
        };
        let Some((map, words)) = words.split_first() else {
            return Err(NotASetting(format!("`{text}` does not name a map")));
        };
        let (key, words) = named("key", words)?;
        let change = match (command, words) {
            ("update", ["value", "name", name]) if key.is_some() => Change::Named((*name).into()),
            ("update" | "push" | "enqueue", words) => {
                let (value, words) = named("value", words)?;
                let value = value.ok_or_else(|| NotASetting("there is no value".into()))?;
                Change::Bytes(value, update_flags(words)?)
            }
            ("delete", []) if key.is_some() => Change::Delete,
            ("delete", _) => return Err(NotASetting("`delete` has a key and nothing else".into())),
            _ => return Err(NotASetting(format!("there is no command `{command}`"))),
        };
        Ok(Self { map: (*map).to_owned(), key, change })
    }
}

/// Parses the bytes after a keyword, if the keyword comes next; returns them and the remaining
/// words.
fn named<'w, 't>(
    word: &str,
    words: &'w [&'t str],
) -> Result<(Option<Vec<u8>>, &'w [&'t str]), NotASetting> {
    let Some((_, words)) = words.split_first().filter(|(first, _)| **first == word) else {
        return Ok((None, words));
    };
    let (is_hex, words) = match words.split_first() {
        Some((&"hex", rest)) => (true, rest),
        _ => (false, words),
    };
    let is_end = |word: &&str| matches!(*word, "value" | "any" | "exist" | "noexist");
    let end = words.iter().position(is_end).unwrap_or(words.len());
    let (bytes, rest) = words.split_at(end);
    let bytes = bytes.iter().map(|text| {
        byte(text, is_hex)
            .ok_or_else(|| NotASetting(format!("`{text}` is not a valid byte of the {word}")))
    });
    Ok((Some(bytes.collect::<Result<_, _>>()?), rest))
}

/// Parses a number as C does: `0x` is hexadecimal, any other leading `0` octal.
fn byte(text: &str, is_hex: bool) -> Option<u8> {
    let digits = text.strip_prefix("0x");
    let (digits, radix) = match digits {
        Some(digits) => (digits, 16),
        None if is_hex => (text, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // bpftool accepts no sign.
    let has_digits = digits.starts_with(|first: char| first.is_ascii_hexdigit());
    if has_digits { u8::from_str_radix(digits, radix).ok() } else { None }
}

fn update_flags(words: &[&str]) -> Result<u64, NotASetting> {
    match words {
        [] | ["any"] => Ok(flags::ANY),
        ["noexist"] => Ok(flags::NOEXIST),
        ["exist"] => Ok(flags::EXIST),
        _ => Err(NotASetting(format!("unexpected `{}` after the value", words.join(" ")))),
    }
}

impl Setting {
    /// Changes the map on a target that has loaded the object.
    ///
    /// # Errors
    /// A named map or program does not exist, sizes do not match the map, or the map refuses.
    pub fn apply(&self, object: &Object, target: &mut dyn Target) -> Result<(), Error> {
        let map = find(object, &self.map)?;
        // A map of a kind that is unsupported here may exist in the kernel.
        if !matches!(map.kind, MapKind::Other(_)) {
            map.check().map_err(|reason| self.refused(&reason))?;
        }
        let key = self.key.as_deref().unwrap_or_default();
        check(map, "key", key, map.key_size)?;
        match &self.change {
            Change::Named(name) if map.kind == MapKind::ProgramArray => {
                target.put_program(&self.map, key, name)
            }
            Change::Named(name) if map.kind.is_of_maps() => target.put_inside(&self.map, key, name),
            Change::Named(_) => Err(self.refused("its values are neither maps nor programs")),
            Change::Bytes(..) if has_names(map) => {
                Err(self.refused("its values are maps or programs: write `value name NAME`"))
            }
            Change::Delete => target.delete(&self.map, key),
            Change::Bytes(value, flags) => {
                check(map, "value", value, map.value_size)?;
                match map.key_size {
                    0 if *flags != flags::ANY => {
                        Err(self.refused("it has no keys, so `exist` and `noexist` do not apply"))
                    }
                    0 => target.push(&self.map, value),
                    _ => target.update_with(&self.map, key, value, *flags),
                }
            }
        }
    }

    /// Makes the setting the initial value of variables in an object that is not loaded yet.
    /// Returns whether it is a setting of variables.
    ///
    /// # Errors
    /// There is no such map, or the sizes do not match it.
    pub(crate) fn prepare(&self, object: &mut Object) -> Result<bool, Error> {
        let map = find(object, &self.map)?;
        let (key, place) = (self.key.as_deref().unwrap_or_default(), [0; 4]);
        let (Change::Bytes(value, flags), true) = (&self.change, map.initial.is_some()) else {
            return Ok(false);
        };
        check(map, "key", key, map.key_size)?;
        check(map, "value", value, map.value_size)?;
        if key != place || *flags == flags::NOEXIST {
            return Err(self.refused("variables are a single existing entry, whose key is 0 0 0 0"));
        }
        let name = &self.map;
        let map = object.maps.iter_mut().find(|map| map.name == *name);
        if let Some(map) = map {
            map.initial = Some(value.clone());
        }
        Ok(true)
    }

    /// Returns the map or program of the object that the setting stores in an entry.
    pub fn name(&self) -> Option<&str> {
        match &self.change {
            Change::Named(name) => Some(name),
            Change::Bytes(..) | Change::Delete => None,
        }
    }

    fn refused(&self, reason: &str) -> Error {
        refused(&self.map, reason)
    }
}

/// Returns the map of an object that has this name.
///
/// # Errors
/// There is no such map; the error lists those that exist.
fn find<'o>(object: &'o Object, name: &str) -> Result<&'o MapDefinition, Error> {
    object.maps.iter().find(|map| map.name == name).ok_or_else(|| {
        let names: Vec<&str> = object.maps.iter().map(|map| map.name.as_str()).collect();
        refused(name, &format!("there is none; there are: {}", names.join(", ")))
    })
}

fn check(map: &MapDefinition, what: &str, bytes: &[u8], size: u32) -> Result<(), Error> {
    if bytes.len() == size as usize {
        return Ok(());
    }
    let given = bytes.len();
    Err(refused(&map.name, &format!("its {what} has {size} bytes, and {given} are given")))
}

fn refused(map: &str, reason: &str) -> Error {
    Error::Refused { what: format!("map `{map}`"), reason: reason.into() }
}

fn has_names(map: &MapDefinition) -> bool {
    map.kind == MapKind::ProgramArray || map.kind.is_of_maps()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contents, Interpreter};
    use freeport_ebpf::interpreter::Environment;

    fn setting(text: &str) -> Setting {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn both_spellings_mean_the_same() {
        let expected = Setting {
            map: "inside".into(),
            key: Some(vec![0, 16, 8, 255]),
            change: Change::Bytes(vec![2, 0], flags::NOEXIST),
        };
        for text in [
            "inside key 0 16 010 255 value hex 02 0 noexist",
            "inside key hex 0 10 0x8 ff value 0x2 0 noexist",
            "map update name inside key 0 0x10 8 255 value 2 0 noexist",
            "update  name inside key 0 16 8 255 value 2 0  noexist",
        ] {
            assert_eq!(setting(text), expected, "{text}");
        }
        let named = setting("map key 1 value name other");
        assert_eq!((named.map.as_str(), named.change), ("map", Change::Named("other".into())));
        assert_eq!(setting("map push name queue value 1").key, None);
        assert_eq!(setting("map delete name flows key 1 2").change, Change::Delete);
    }

    #[test]
    fn what_is_no_setting_is_said() {
        for (text, reason) in [
            ("", "is not a command"),
            ("inside", "is not a command"),
            ("map update name", "does not name a map"),
            ("inside key 1", "there is no value"),
            ("inside key 256 value 1", "`256` is not a valid byte of the key"),
            ("inside key 08 value 1", "`08` is not a valid byte of the key"),
            ("inside key +1 value 1", "`+1` is not a valid byte of the key"),
            ("inside key 1 value hex 100", "`100` is not a valid byte of the value"),
            ("inside key 1 value 1 exist any", "unexpected `exist any` after the value"),
            ("map delete name inside key 1 value 1", "a key and nothing else"),
            ("map lookup name inside key 1", "no command `lookup`"),
        ] {
            let error = text.parse::<Setting>().expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn settings_reach_maps_and_sizes_are_checked() {
        let definition = |name: &str, kind, key_size, value_size| MapDefinition {
            name: name.into(),
            kind,
            key_size,
            value_size,
            max_entries: 4,
            ..MapDefinition::default()
        };
        let maps = vec![
            definition("words", MapKind::Hash, 2, 1),
            definition("queue", MapKind::Queue, 0, 1),
            definition("programs", MapKind::ProgramArray, 4, 4),
        ];
        let object = Object { maps, ..Object::default() };
        let mut target = Interpreter::load(&object, Environment::default()).expect("small maps");
        let mut apply = |text: &str| setting(text).apply(&object, &mut target);
        apply("words key 1 2 value 3").expect("it fits");
        apply("words key 1 2 value 4 exist").expect("it is there");
        apply("words key 1 3 value 5").expect("it fits");
        apply("map delete name words key 1 3").expect("it is there");
        apply("queue value 9").expect("there is room");
        for (text, reason) in [
            ("word key 1 value 1", "map `word`: there is none; there are: words, queue, programs"),
            ("words key 1 value 1", "map `words`: its key has 2 bytes, and 1 are given"),
            ("words key 1 2 value 1 2", "map `words`: its value has 1 bytes, and 2 are given"),
            ("words key 1 2 value 1 noexist", "updating words: EEXIST: exists already"),
            ("words key 1 2 value name x", "map `words`: its values are neither"),
            (
                "queue value 9 exist",
                "map `queue`: it has no keys, so `exist` and `noexist` do not apply",
            ),
            ("programs key 0 0 0 0 value 1 0 0 0", "map `programs`: its values are maps or"),
            ("programs key 0 0 0 0 value name x", "no program x in the object"),
        ] {
            let error = apply(text).expect_err(text).to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
        let words = target.contents("words").expect("it is there");
        assert_eq!(words, Contents::Entries([(vec![1, 2], vec![4])].into()));
        let queue = target.contents("queue").expect("it is there");
        assert_eq!(queue, Contents::Items(vec![vec![9]]));
    }
}
