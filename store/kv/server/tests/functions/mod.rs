// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of a user in a server: found, refused, atomic, and kept by their results.

mod atomic;
mod kept;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;

use freeport_kv_functions::{Element, Kind, Registry, User};
use freeport_kv_protocol::resp::Value;
use freeport_kv_server::{Options, Server};

use crate::client::{Client, server_with};

/// A letter that depends on another one and a number: in another order, two of these have another
/// result.
pub fn mix(value: u8, by: u8) -> u8 {
    b'A' + ((3 * u32::from(value) + u32::from(by)) % 58) as u8
}

/// As [`mix`], for numbers.
pub fn step(value: u64, by: u64) -> u64 {
    value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(by)
}

/// Folds a letter into a number, so that the result depends on the order.
pub fn polynomial(value: u8, sigma: u64) -> u64 {
    sigma.wrapping_mul(31).wrapping_add(value.into())
}

/// The built-in functions, and a few of a user.
pub fn registry() -> Registry {
    let update = |name: &str, element, run: fn(u64, &[u64]) -> u64| {
        User::new(Kind::Update, name, [element], Arc::new(run))
    };
    let fold = |value: u64, sigma: &[u64]| polynomial(value as u8, sigma[0]);
    let multiple = |value: u64, of: &[u64]| u64::from(value.checked_rem(of[0]) == Some(0));
    let users = [
        update("mix", Element::U8, |value, by| mix(value as u8, by[0] as u8).into()),
        update("step", Element::U64, |value, by| step(value, by[0])),
        update("scale", Element::U64, |value, by| value.wrapping_mul(by[0]).wrapping_add(by[1]))
            .with_operands(["factor", "offset"]),
        update("next", Element::U64, |value, _| step(value, 1)).with_operands([""; 0]),
        User::new(Kind::Reduce, "polynomial", [Element::U8], Arc::new(fold)),
        User::new(Kind::Filter, "multiple", [Element::U64], Arc::new(multiple)),
    ];
    let mut builder = Registry::builder();
    for (id, user) in (Registry::FIRST_USER_ID..).zip(users) {
        builder.register(id, user).expect("ids and names are free");
    }
    builder.freeze()
}

/// A server with these functions.
fn server(workers: usize) -> Server {
    server_with(Options { workers, functions: registry(), ..Options::default() })
}

/// Sets a key to an array of numbers.
fn set(client: &mut Client, key: &str, numbers: &[u64]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    client.send_arguments(&[b"SET", key.as_bytes(), &bytes]);
    assert_eq!(client.text(), "OK");
}

#[test]
fn functions_are_found_by_name_and_by_id() {
    for workers in [1, 3] {
        let server = server(workers);
        let mut client = Client::new(&server);
        set(&mut client, "v", &[5]);
        assert_eq!(client.call("KV.UPDATE v scale u64 10 1"), "\"5\"");
        assert_eq!(client.call("KV.UPDATE v 130 u64 2 0"), "\"51\"");
        assert_eq!(client.call("KV.UPDATE v next u64"), "\"102\"");
        assert_eq!(client.call("KV.UPDATEV v next u64 DELTA"), "OK");
        let next = step(step(102, 1), 1);
        assert_eq!(client.call("KV.UPDATE v exchange u64 0"), format!("\"{next}\""));
        client.send("KV.UPDATEV v next u64 DELTA RETURN");
        assert_eq!(client.reply().to_string(), r#""\x00\x00\x00\x00\x00\x00\x00\x00""#);
        assert_eq!(client.call("KV.UPDATEV v scale u64 DELTA 0 7"), "OK");

        client.call("SET text abc");
        let polynomial = (97 * 31 + 98) * 31 + 99;
        assert_eq!(client.call("KV.REDUCE text polynomial u8 0"), format!("\"{polynomial}\""));
        set(&mut client, "v", &[3, 4, 6]);
        client.send("KV.FILTER v multiple u64 3");
        let kept = [3_u64, 6].map(u64::to_le_bytes).concat();
        assert_eq!(client.reply(), Value::Bulk(kept));
    }
}

#[test]
fn functions_are_listed_with_their_types() {
    let server = server(2);
    let mut client = Client::new(&server);
    let list = client.call("KV.FUNCTIONS");
    let scale = "1) (integer) 130   2) \"scale\"   3) \"update\"   4) 1) \"factor\"      2) \
                 \"offset\"   5) 1) \"u64\"";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&list).contains(&words(scale)), "{list}");
    assert!(client.ask("INFO server").contains("\r\nuser_functions:6\r\n"));
}

#[test]
fn requests_are_refused_with_the_reason() {
    let server = server(3);
    let mut client = Client::new(&server);
    set(&mut client, "v", &[5, 6]);
    client.call("RPUSH list x");
    for (line, reason) in [
        ("KV.UPDATE v 200 u64 1", "ERR no function has id 200"),
        ("KV.UPDATE v stepp u64 1", "ERR no update is named 'stepp'; KV.FUNCTIONS lists all"),
        (
            "KV.UPDATE v 132 u64 1",
            "ERR function 132 is the reduction `polynomial`, not of kind update",
        ),
        ("KV.UPDATEV v step u32 DELTA 1", "ERR function `step` is not registered for u32"),
        ("KV.UPDATE v step u64 1", "ERR the value has 16 bytes, not 8 (one u64)"),
        (
            "KV.UPDATEV v scale u64 DELTA 1",
            "ERR scale takes the operands (factor, offset), but 1 were given",
        ),
        ("KV.UPDATEV v next u64 DELTA 1", "ERR next takes the operands (none), but 1 were given"),
        (
            "KV.UPDATEV v scale u64 DELTA 1 -1",
            "ERR offset: -1 is out of range for u64, 0 to 18446744073709551615",
        ),
        (
            "KV.UPDATEV v scale u64 DELTAS x",
            "ERR the operand of `scale` (factor, offset) has 1 bytes; 32 are needed",
        ),
        (
            "KV.UPDATEV list step u64 DELTA 1",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ] {
        client.check(line, &format!("-{reason}\r\n"));
    }
    client.send("GET v");
    let unchanged = [5_u64, 6].map(u64::to_le_bytes).concat();
    assert_eq!(client.reply(), Value::Bulk(unchanged));
}

/// As those of built-in functions.
#[test]
fn rights_and_events_are_those_of_commands() {
    let server = server(2);
    let mut client = Client::new(&server);
    set(&mut client, "v", &[5]);
    client.check("CONFIG SET notify-keyspace-events E$", "+OK\r\n");
    let mut listener = Client::new(&server);
    listener.call("SUBSCRIBE __keyevent@0__:kv.update");
    client.call("KV.UPDATE v step u64 1");
    assert!(listener.text().ends_with("\"__keyevent@0__:kv.update\" 3) \"v\""));

    client.check("ACL SETUSER reader on nopass ~* -@all +@read +auth", "+OK\r\n");
    client.check("AUTH reader x", "+OK\r\n");
    client.call("KV.REDUCE v sum u64 0");
    assert!(client.ask("KV.UPDATE v step u64 1").starts_with("-NOPERM "));
}

#[test]
fn their_number_is_served_to_prometheus() {
    let metrics = Some((Ipv4Addr::LOCALHOST, 0).into());
    let server = server_with(Options { metrics, functions: registry(), ..Options::default() });
    let address = server.metrics_address().expect("it serves counts");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it replies and closes");
    assert!(reply.lines().any(|line| line == "freeport_kv_user_functions 6"), "{reply}");
}
