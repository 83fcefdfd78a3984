// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of all commands beside those that `COMMAND INFO` reports.

use std::collections::BTreeSet;

use freeport_kv_commands::{FAMILIES, Flags, Keys, Spec, Table};
use freeport_kv_protocol::resp::Value;

use crate::harness::{Compared, parsed};

/// Commands that Redis 7.0 does not have.
const UNKNOWN: &[&str] = &["kv.update", "kv.updatev", "kv.reduce", "kv.filter", "kv.functions"];

/// Commands that have one more word since Redis 7.2.
const WITH_SCORE: &[&str] = &["zrank", "zrevrank"];

/// Flags of Redis that have no counterpart here.
const OTHER_FLAGS: &[&str] =
    &["asking", "may_replicate", "module", "no_async_loading", "no_mandatory_keys", "skip_slowlog"];

/// Properties of a command as `COMMAND INFO` reports them.
#[derive(Debug, PartialEq, Eq)]
struct Described {
    name: String,
    arity: i64,
    flags: BTreeSet<String>,
    /// First and last key, and the step.
    keys: Option<[i64; 3]>,
}

impl Described {
    fn ours(spec: &Spec) -> Self {
        let keys = match spec.keys {
            Keys::None | Keys::All | Keys::AllFor(_) | Keys::Counted { target: 0, .. } => {
                Some([0; 3])
            }
            Keys::Range { first, last, step } => Some([first as i64, last as i64, step as i64]),
            Keys::Counted { target, .. } => Some([target as i64, target as i64, 1]),
            Keys::Made { .. } => Some([1; 3]),
            Keys::Found(_) => None,
        };
        Self {
            name: spec.name.into(),
            arity: spec.arity.into(),
            flags: spec.flags.names().map(String::from).collect(),
            keys,
        }
    }

    fn theirs(compared: &mut Compared, name: &str) -> Option<Self> {
        let reply = parsed(&compared.redis.call(&[b"COMMAND", b"INFO", name.as_bytes()]));
        let Value::Array(commands) = reply else { panic!("{reply:?} is no list of commands") };
        let [Value::Array(parts)] = &commands[..] else { return None };
        let [name, Value::Integer(arity), Value::Array(flags), keys @ ..] = &parts[..] else {
            return None;
        };
        let flags = flags.iter().map(text).filter(|flag| !OTHER_FLAGS.contains(&&flag[..]));
        let keys = [0, 1, 2].map(|at| match keys[at] {
            Value::Integer(position) => position,
            ref other => panic!("{other:?} is no position"),
        });
        Some(Self { name: text(name), arity: *arity, flags: flags.collect(), keys: Some(keys) })
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Status(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?} is no text"),
    }
}

#[test]
fn names_are_those_of_one_command() {
    let commands = || FAMILIES.iter().copied().flatten().copied();
    assert_eq!(Table::new(commands()).len(), commands().count());
}

#[test]
fn commands_that_grow_values_are_writes() {
    for command in FAMILIES.iter().copied().flatten() {
        let flags = command.spec.flags;
        assert!(!flags.has(Flags::GROWS) || flags.has(Flags::WRITE), "{}", command.spec.name);
        assert!(!flags.has(Flags::READ | Flags::WRITE), "{}", command.spec.name);
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn properties_are_those_of_redis() {
    Compared::once(|compared| {
        for command in FAMILIES.iter().copied().flatten() {
            let spec = &command.spec;
            let Some(theirs) = Described::theirs(compared, spec.name) else {
                assert!(UNKNOWN.contains(&spec.name), "{} is unknown to Redis", spec.name);
                continue;
            };
            same(spec, theirs);
            for part in spec.subcommands {
                let name = format!("{}|{}", spec.name, part.name);
                let theirs = Described::theirs(compared, &name).expect("Redis has the subcommand");
                same(part, Described { name: part.name.into(), ..theirs });
            }
        }
    });
}

/// Properties are the same, but for those that Redis 7.2 has changed.
#[track_caller]
fn same(spec: &Spec, mut theirs: Described) {
    let mut ours = Described::ours(spec);
    // Redis 7.2 allows commands that wait in scripts.
    if spec.flags.has(Flags::BLOCKING) {
        theirs.flags.remove("noscript");
    }
    if WITH_SCORE.contains(&spec.name) {
        theirs.arity = -theirs.arity;
    }
    // The positions that a function finds are not in the table of Redis either.
    ours.keys = ours.keys.or(theirs.keys);
    // Redis has no position of a key for `HELP`, which has no place for one.
    if spec.name == "help" {
        ours.keys = Some([0; 3]);
    }
    assert_eq!(ours, theirs);
}

/// The keys of each line are those that Redis finds, if it finds any.
pub fn check_keys(compared: &mut Compared, lines: &str) {
    let mut found_lines = 0;
    for line in lines.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let request = [&[&b"COMMAND"[..], b"GETKEYS"], &words[..]].concat();
        let Value::Array(theirs) = parsed(&compared.redis.call(&request)) else { continue };
        let command = compared.ours.table.get(words[0]).expect("lines have commands");
        let mut ours = vec![];
        let visited = command.spec.keys.visit(&words, |at| ours.push(words[at].to_vec()));
        assert!(visited.is_ok(), "{line}");
        let mut theirs: Vec<Vec<u8>> = theirs
            .into_iter()
            .map(|key| match key {
                Value::Bulk(key) => key,
                other => panic!("{other} is no key"),
            })
            .collect();
        // Redis has the target behind the sources.
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{line}");
        found_lines += 1;
    }
    assert!(found_lines > 100, "{found_lines}");
}
