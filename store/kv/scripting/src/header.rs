// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first line of a script, `#!lua flags=no-writes,...`, and of a library, `#!lua name=x`.

use std::ops::{BitOr, BitOrAssign};

/// Properties that a script or function declares.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags(u8);

/// Names of flags, in the order in which they are listed.
const NAMES: [(&str, Flags); 5] = [
    ("no-writes", Flags::NO_WRITES),
    ("allow-oom", Flags::ALLOW_OOM),
    ("allow-stale", Flags::ALLOW_STALE),
    ("no-cluster", Flags::NO_CLUSTER),
    ("allow-cross-slot-keys", Flags::ALLOW_CROSS_SLOT_KEYS),
];

impl Flags {
    /// It changes no data: its commands that would are refused.
    pub const NO_WRITES: Self = Self(1);
    /// It may run when memory is full.
    pub const ALLOW_OOM: Self = Self(1 << 1);
    /// It may run on a replica without its primary.
    pub const ALLOW_STALE: Self = Self(1 << 2);
    /// It does not run in a cluster.
    pub const NO_CLUSTER: Self = Self(1 << 3);
    /// Its keys may be in different slots of a cluster.
    pub const ALLOW_CROSS_SLOT_KEYS: Self = Self(1 << 4);
    /// A script without a first line that declares anything: commands are checked one by one.
    pub const UNDECLARED: Self = Self(1 << 5);

    /// All of `flags` are set.
    pub fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| name)
    }

    /// The flag of a name.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, flag)| *flag)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Flags of a script, and its text from the end of the first line.
pub(crate) fn script(text: &[u8]) -> Result<(Flags, &[u8]), String> {
    if !text.starts_with(b"#!") {
        return Ok((Flags::UNDECLARED, text));
    }
    let (words, body) = first_line(text).ok_or("ERR Invalid script shebang")?;
    let (engine, options) = words.split_first().ok_or("ERR Invalid engine in script shebang")?;
    if *engine != b"#!lua" {
        let engine = engine.escape_ascii();
        return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
    }
    let mut flags = Flags::default();
    for option in options {
        let Some(names) = option.strip_prefix(b"flags=") else {
            let option = option.escape_ascii();
            return Err(format!("ERR Unknown lua shebang option: {option}"));
        };
        if names.is_empty() {
            continue;
        }
        for name in names.split(|&byte| byte == b',') {
            flags |= Flags::named(name).ok_or_else(|| {
                format!("ERR Unexpected flag in script shebang: {}", name.escape_ascii())
            })?;
        }
    }
    Ok((flags, body))
}

/// Name of a library, and its text from the end of the first line.
pub(crate) fn library(text: &[u8]) -> Result<(String, &[u8]), String> {
    if !text.starts_with(b"#!") {
        return Err("ERR Missing library metadata".into());
    }
    let (words, body) = first_line(text).ok_or("ERR Invalid library metadata")?;
    let (engine, options) = words.split_first().ok_or("ERR Invalid library metadata")?;
    let mut name: Option<&[u8]> = None;
    for option in options {
        let Some(value) = strip_prefix_ignoring_case(option, b"name=") else {
            let option = option.escape_ascii();
            return Err(format!("ERR Invalid metadata value given: {option}"));
        };
        if name.replace(value).is_some() {
            return Err("ERR Invalid metadata value, name argument was given multiple times".into());
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if !is_name(name) {
        return Err(format!("ERR {BAD_NAME}"));
    }
    if !engine[2..].eq_ignore_ascii_case(b"lua") {
        return Err(format!("ERR Engine '{}' not found", engine[2..].escape_ascii()));
    }
    Ok((name.escape_ascii().to_string(), body))
}

/// Error of a name that is not [one](is_name).
pub(crate) const BAD_NAME: &str = "Library names can only contain letters, numbers, or \
                                   underscores(_) and must be at least one character long";

/// Whether a library or function may have this name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(is_allowed)
}

/// Words of the first line, and the text from its end, so that lines keep their numbers.
fn first_line(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let end = text.iter().position(|&byte| byte == b'\n')?;
    let (line, body) = text.split_at(end);
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    Some((words.collect(), body))
}

fn strip_prefix_ignoring_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = text.split_at_checked(prefix.len())?;
    begin.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_listed() {
        let (flags, body) = script(b"#!lua flags=allow-stale,no-writes\nreturn 1").expect("valid");
        assert_eq!(flags.names().collect::<Vec<_>>(), ["no-writes", "allow-stale"]);
        assert_eq!(body, b"\nreturn 1");
        assert_eq!(script(b"return 1"), Ok((Flags::UNDECLARED, &b"return 1"[..])));
        assert_eq!(script(b"#!lua\n").map(|(flags, _)| flags), Ok(Flags::default()));
        assert_eq!(script(b"#!lua"), Err("ERR Invalid script shebang".into()));
        let error = script(b"#!lua flags=x\n").expect_err("there is no such flag");
        assert_eq!(error, "ERR Unexpected flag in script shebang: x");
    }

    #[test]
    fn a_library_has_a_name() {
        assert_eq!(library(b"#!lua name=a_1\nx"), Ok(("a_1".into(), &b"\nx"[..])));
        assert_eq!(library(b"#!lua name=a-\n"), Err(format!("ERR {BAD_NAME}")));
        assert_eq!(library(b"#!js name=a\n"), Err("ERR Engine 'js' not found".into()));
        assert_eq!(library(b"x"), Err("ERR Missing library metadata".into()));
    }
}
