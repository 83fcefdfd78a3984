// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of sorted sets and places beside those that redis-server reports.

use freeport_kv_commands::{Command, Keys, Run, Table};
use freeport_kv_protocol::resp::Value;

use crate::harness::{Redis, parsed};

/// Arity, flags and positions of keys of a command are those of Redis.
pub fn check(redis: &mut Redis, command: &Command) {
    let spec = command.spec;
    let reply = parsed(&redis.call(&[b"COMMAND", b"INFO", spec.name.as_bytes()]));
    let Value::Array(commands) = reply else { panic!("{reply}") };
    let [Value::Array(parts)] = &commands[..] else { panic!("{} is unknown", spec.name) };
    // Redis 7.2 has WITHSCORE.
    let arity = if spec.name.ends_with("rank") && spec.arity == -3 { 3 } else { spec.arity };
    assert_eq!(parts[1], Value::Integer(i64::from(arity)), "{}", spec.name);
    let Value::Array(flags) = &parts[2] else { panic!("{}", parts[2]) };
    let mut theirs: Vec<String> = flags.iter().map(ToString::to_string).collect();
    // Redis 7.2 allows commands that wait in scripts.
    theirs.retain(|flag| flag != "noscript");
    theirs.sort();
    let mut ours: Vec<String> = spec.flags.names().map(str::to_owned).collect();
    ours.sort();
    assert_eq!(ours, theirs, "{}", spec.name);
    let (first, last, step) = match spec.keys {
        Keys::Range { first, last, step } => (first as i64, last as i64, step as i64),
        Keys::Counted { target, .. } => (target as i64, target as i64, i64::from(target != 0)),
        Keys::Found(_) => (1, 1, 1),
        Keys::None | Keys::All => (0, 0, 0),
    };
    let numbers = [first, last, step].map(Value::Integer);
    assert_eq!(parts[3..6], numbers, "{}", spec.name);
}

/// The keys of each line are those that Redis finds, if it finds any.
pub fn check_keys(redis: &mut Redis, table: &Table<Run>, lines: &str) {
    let mut found_lines = 0;
    for line in lines.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut request = vec![&b"COMMAND"[..], b"GETKEYS"];
        request.extend_from_slice(&words);
        let Value::Array(theirs) = parsed(&redis.call(&request)) else { continue };
        let command = table.get(words[0]).expect("lines have commands of the family");
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
