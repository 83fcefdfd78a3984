// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Concurrent calls take effect one after the other, and as a whole: the originals that they reply
//! with form one chain, and nobody sees a part of a vector or of a transaction.
//!
//! The function of these calls has another result in another order, so a chain is the proof of one
//! order. `history` has calls among other commands.

use std::collections::HashMap;
use std::thread;

use freeport_kv_protocol::resp::Value;
use freeport_kv_server::Server;

use super::{server, set, step};
use crate::client::Client;

/// Clients that update at the same time.
const CLIENTS: u64 = 4;
/// Updates of each.
const UPDATES: u64 = 60;
/// Elements of a vector.
const ELEMENTS: usize = 3000;

/// Updates of one client: originals with operands.
type Updates = Vec<(u64, u64)>;

/// Has several clients update at the same time. An operand belongs to one update alone.
fn update(server: &Server, call: fn(&mut Client, u64) -> u64) -> Updates {
    let client = |number: u64| {
        let mut client = Client::new(server);
        move || -> Updates {
            let operands = (0..UPDATES).map(|at| at * CLIENTS + number);
            operands.map(|operand| (call(&mut client, operand), operand)).collect()
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(client(number))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("no client panics")).collect()
    })
}

/// Follows the updates from the first value to the last, which it returns.
fn follow(first: u64, updates: &Updates) -> u64 {
    let next: HashMap<u64, u64> = updates.iter().copied().collect();
    assert_eq!(next.len(), updates.len(), "no two updates have seen the same value");
    updates.iter().fold(first, |value, _| {
        let operand = next.get(&value);
        step(value, *operand.unwrap_or_else(|| panic!("no update has seen {value}")))
    })
}

/// The number in a reply.
fn number(reply: &Value) -> u64 {
    let Value::Bulk(digits) = reply else { panic!("{reply} is no number") };
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).expect("a number")
}

/// The elements of a vector, which are all equal.
fn equal(reply: &Value) -> u64 {
    let Value::Bulk(bytes) = reply else { panic!("{reply} is no vector") };
    assert_eq!(bytes.len(), 8 * ELEMENTS);
    assert!(bytes.chunks(8).all(|one| one == &bytes[..8]), "a vector is updated in part");
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

#[test]
fn updates_of_a_number_form_a_chain() {
    for workers in [1, 3] {
        let server = server(workers);
        let mut client = Client::new(&server);
        set(&mut client, "v", &[1]);
        let updates = update(&server, |client, operand| {
            client.send(&format!("KV.UPDATE v step u64 {operand}"));
            number(&client.reply())
        });
        client.send("KV.UPDATE v or u64 0");
        assert_eq!(number(&client.reply()), follow(1, &updates));
    }
}

#[test]
fn vectors_are_updated_as_a_whole() {
    for workers in [1, 3] {
        let server = server(workers);
        let mut client = Client::new(&server);
        set(&mut client, "v", &[1; ELEMENTS]);
        let updates = update(&server, |client, operand| {
            client.send("GET v");
            let vector = format!("KV.UPDATEV v step u64 DELTA {operand} RETURN");
            client.send(&vector);
            equal(&client.reply());
            equal(&client.reply())
        });
        client.send("GET v");
        assert_eq!(equal(&client.reply()), follow(1, &updates));
    }
}

/// Two keys, of different workers if there are several, have the same value for everyone.
fn check_pairs(call: fn(&mut Client, u64) -> u64) {
    for workers in [1, 3] {
        let server = server(workers);
        let mut client = Client::new(&server);
        set(&mut client, "a", &[1]);
        set(&mut client, "b", &[1]);
        let updates = update(&server, call);
        for key in ["a", "b"] {
            client.send(&format!("KV.UPDATE {key} or u64 0"));
            assert_eq!(number(&client.reply()), follow(1, &updates));
        }
    }
}

/// Both results are the same number, which is returned.
fn both(reply: &Value) -> u64 {
    let Value::Array(both) = reply else { panic!("{reply} is no pair") };
    assert_eq!(both[0], both[1], "a pair is updated in part");
    number(&both[0])
}

#[test]
fn transactions_update_as_a_whole() {
    check_pairs(|client, operand| {
        client.send("MGET a b");
        let Value::Array(pair) = client.reply() else { panic!("it replies with a pair") };
        assert_eq!(pair[0], pair[1], "a pair is updated in part");
        client.send("MULTI");
        client.send(&format!("KV.UPDATE a step u64 {operand}"));
        client.send(&format!("KV.UPDATE b step u64 {operand}"));
        client.send("EXEC");
        (0..3).for_each(|_| drop(client.reply()));
        both(&client.reply())
    });
}

#[test]
fn scripts_update_as_a_whole() {
    check_pairs(|client, operand| {
        let script = "local function update(key) \
                      return redis.call('KV.UPDATE', key, 'step', 'u64', ARGV[1]) end \
                      return {update(KEYS[1]), update(KEYS[2])}";
        let operand = operand.to_string();
        client.send_arguments(&[b"EVAL", script.as_bytes(), b"2", b"a", b"b", operand.as_bytes()]);
        both(&client.reply())
    });
}
