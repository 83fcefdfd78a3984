// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of commands and their subcommands, beside redis-server.

use freeport_kv_commands::{Keys, Spec, sort, streams};
use freeport_kv_protocol::resp::Value;

use crate::harness::{Compared, parsed};

/// Arity, flags and positions of keys, as text.
type Properties = (i64, Vec<String>, [i64; 3]);

fn own(spec: &Spec) -> Properties {
    let keys = match spec.keys {
        Keys::Made { .. } => [1; 3],
        Keys::Range { first, last, step } => [first as i64, last as i64, step as i64],
        _ => [0; 3],
    };
    let mut flags: Vec<String> = spec.flags.names().map(str::to_owned).collect();
    flags.sort();
    (spec.arity.into(), flags, keys)
}

fn properties_in_redis(compared: &mut Compared, name: &str) -> Properties {
    let reply = parsed(&compared.redis.call(&[b"COMMAND", b"INFO", name.as_bytes()]));
    let Value::Array(commands) = reply else { panic!("{reply:?} is no array") };
    let [Value::Array(parts)] = commands.as_slice() else { panic!("no properties of {name}") };
    let integer = |at: usize| match &parts[at] {
        Value::Integer(value) => *value,
        other => panic!("{other:?} is no integer"),
    };
    let Value::Array(flags) = &parts[2] else { panic!("flags are an array") };
    let text = |flag: &Value| match flag {
        Value::Status(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?} is no flag"),
    };
    let mut flags: Vec<String> = flags.iter().map(text).collect();
    flags.sort();
    (integer(1), flags, [3, 4, 5].map(integer))
}

#[test]
#[ignore = "long: needs redis-server"]
fn properties_are_those_of_redis() {
    Compared::once(|compared| {
        for command in streams::COMMANDS.iter().chain(sort::COMMANDS) {
            let spec = &command.spec;
            let name = spec.name;
            assert_eq!(own(spec), properties_in_redis(compared, name), "{name}");
            for part in spec.subcommands {
                let theirs = properties_in_redis(compared, &format!("{name}|{}", part.name));
                let (arity, flags, keys) = own(part);
                // Redis has no position of a key for `HELP`, which has no place for one.
                let keys = if part.name == "help" { [0; 3] } else { keys };
                assert_eq!((arity, flags, keys), theirs, "{name} {}", part.name);
            }
        }
    });
}
