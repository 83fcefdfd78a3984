// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions on values: the examples of their page, functions of a user, and refused commands.

use std::sync::Arc;

use freeport_kv_functions::{Element, Kind, Registry, User};
use freeport_kv_protocol::resp::request::{Read, RequestLimits, RequestReader};

use crate::harness::{Local, parsed};

const PAGE: &str = include_str!("../../../../docs/protocols/kv-commands.md");

/// The reply to a line with quoted words, for people.
fn shown(local: &mut Local, line: &str) -> String {
    let line = format!("{line}\n");
    let mut reader = RequestReader::new(RequestLimits::default());
    let Ok(Read::Complete(request)) = reader.read(line.as_bytes()) else {
        panic!("{line:?} is no request");
    };
    let arguments: Vec<&[u8]> = request.iter().collect();
    parsed(&local.call(&arguments)).to_string()
}

#[test]
fn the_page_has_what_commands_reply() {
    let mut local = Local::with_shards(3);
    let mut lines = PAGE.lines().filter_map(|line| line.strip_prefix("    ")).peekable();
    let mut examples = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("> ") else { continue };
        let reply = lines.next().expect("a command has a reply");
        assert_eq!(shown(&mut local, command), reply, "{command}");
        examples += 1;
    }
    assert!(examples > 20, "{examples} examples were found");
}

#[test]
fn the_page_and_the_server_have_the_same_functions() {
    for signature in Registry::built_in().signatures() {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| {} |", signature.kind)));
        let row = row.expect("each kind has a row");
        assert!(row.contains(&format!("`{}`", signature.name)), "{}", signature.name);
    }
    let list = shown(&mut Local::new(), "KV.FUNCTIONS");
    assert!(list.contains("2) \"clamp\""), "{list}");
    assert!(list.contains("4) 1) \"low\""), "{list}");
}

#[test]
fn events_tell_of_updates_only() {
    let mut local = Local::with_shards(3);
    local.call(&[b"SET", b"v", &[0; 16], b"PXAT", b"9999999999999"]);
    local.events();
    local.line("KV.UPDATEV v add u64 DELTA 3");
    local.line("KV.UPDATEV v add u64 DELTA 3 RETURN");
    local.line("KV.UPDATE v add u64 3");
    local.line("KV.REDUCE v sum u64 0");
    local.line("KV.FILTER v nonzero u64");
    local.line("KV.UPDATEV none add u64 DELTA 3");
    let names = local.event_names();
    assert_eq!(names, ["kv.updatev", "kv.updatev"]);
    assert_eq!(local.line("KV.REDUCE v sum u64 1"), b"$2\r\n13\r\n");
    assert_eq!(local.expires_ms(b"v"), Some(Some(9_999_999_999_999)));
}

#[test]
fn a_missing_key_is_not_made() {
    let mut local = Local::with_shards(3);
    for line in [
        "KV.UPDATE none add u64 1",
        "KV.UPDATEV none add u64 DELTA 1 RETURN",
        "KV.REDUCE none sum u64 1",
        "KV.FILTER none nonzero u64",
    ] {
        assert_eq!(local.line(line), b"$-1\r\n", "{line}");
    }
    assert!(local.store.shards().all(|shard| shard.memory_bytes() == 0));
}

#[test]
fn other_values_and_words_are_refused() {
    let mut local = Local::with_shards(3);
    local.line("RPUSH list x");
    local.call(&[b"SET", b"v", &[0; 8]]);
    for line in ["KV.UPDATE list add u8 1", "KV.REDUCE list sum u8 1", "KV.FILTER list nonzero u8"]
    {
        assert!(local.line(line).starts_with(b"-WRONGTYPE Operation"), "{line}");
    }
    for (line, error) in [
        ("KV.UPDATEV v add u8 DELTA RETURN", "ERR amount: `RETURN` is no number (u8)"),
        ("KV.UPDATEV v add u8 DELTAS x y", "ERR syntax error"),
        ("KV.UPDATEV v add u8 FOO 1", "ERR syntax error"),
        (
            "KV.UPDATEV v add u8 DELTAS x",
            "ERR the operand of `add` (amount) has 1 bytes; 8 are needed",
        ),
        ("KV.UPDATE v sum u64 1", "ERR no update is named 'sum'; KV.FUNCTIONS lists all"),
        ("KV.UPDATE v 32 u64 1", "ERR function 32 is the reduction `sum`, not of kind update"),
        ("KV.UPDATE v 200 u64 1", "ERR no function has id 200"),
        ("KV.REDUCE v sum u64 x", "ERR sigma: `x` is no number (u64)"),
        ("KV.FILTER v nonzero u64 1", "ERR nonzero takes the operands (none), but 1 were given"),
    ] {
        assert_eq!(local.line(line), format!("-{error}\r\n").as_bytes());
    }
    assert!(local.line("KV.UPDATE v add u9 1").starts_with(b"-ERR no such element"));
    assert_eq!(local.line("KV.UPDATE v add u64 0"), b"$1\r\n0\r\n");
}

#[test]
fn functions_of_a_user_are_found() {
    let mut local = Local::with_shards(3);
    let mut builder = Registry::builder();
    let twice = |value: u64, operands: &[u64]| 2 * value + operands[0];
    let user = User::new(Kind::Update, "twice_and_add", [Element::U64], Arc::new(twice));
    builder.register(128, user).expect("id and name are free");
    local.store.set_functions(builder.freeze());
    local.call(&[b"SET", b"v", &5_u64.to_le_bytes()]);
    assert_eq!(local.line("KV.UPDATE v twice_and_add u64 1"), b"$1\r\n5\r\n");
    assert_eq!(local.line("KV.UPDATE v 128 u64 1"), b"$2\r\n11\r\n");
    assert_eq!(local.line("KV.UPDATE v add u64 0"), b"$2\r\n23\r\n");
    let unsupported = b"-ERR function `twice_and_add` is not registered for f64\r\n";
    assert_eq!(local.line("KV.UPDATE v 128 f64 1"), unsupported);
}
