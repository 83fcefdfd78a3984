// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of stream commands, beside redis-server.

use freeport_kv_commands::{Keys, Spec, streams};
use freeport_kv_protocol::resp::Value;

use crate::harness::{Compared, parsed};

/// Commands whose second word says what they do. Redis has properties of each such word; here they
/// belong to the command: those that any of the words has, except that a full store takes most.
const PARTS: [(&str, &[&str]); 2] = [
    ("xgroup", &["create", "setid", "destroy", "createconsumer", "delconsumer"]),
    ("xinfo", &["stream", "groups", "consumers"]),
];

/// Arity, flags and positions of keys, as text.
type Properties = (i64, Vec<String>, [i64; 3]);

fn own(spec: &Spec) -> Properties {
    let keys = match spec.keys {
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
        for command in streams::COMMANDS {
            let name = command.spec.name;
            let (arity, flags, keys) = own(&command.spec);
            let Some((_, parts)) = PARTS.iter().find(|(parent, _)| *parent == name) else {
                assert_eq!((arity, flags, keys), properties_in_redis(compared, name), "{name}");
                continue;
            };
            assert_eq!(arity, properties_in_redis(compared, name).0, "{name}");
            for part in *parts {
                let theirs = properties_in_redis(compared, &format!("{name}|{part}"));
                assert_eq!(keys, theirs.2, "{name} {part}");
                let usual: Vec<_> = theirs.1.into_iter().filter(|it| it != "denyoom").collect();
                assert_eq!(flags, usual, "{name} {part}");
            }
        }
    });
}
