// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules of users, what they allow, and properties of commands, beside those of redis-server.

use std::collections::BTreeSet;

use freeport_kv_protocol::resp::Value;
use freeport_testbed::redis::RedisServer;

use super::client::{Client, server};

/// Rules of one user; the user is new for each line.
const RULES: &str = include_str!("users_rules.txt");
/// Calls that a user may send or not.
const CALLS: &str = include_str!("users_calls.txt");
/// Commands that Redis 7.0 does not have.
const NEWER: [&str; 9] = [
    "client|no-touch",
    "client|setinfo",
    "cluster|myshardid",
    "kv.filter",
    "kv.functions",
    "kv.reduce",
    "kv.update",
    "kv.updatev",
    "waitaof",
];
/// Commands of Redis that a server without replicas and debugger does not need.
const MISSING: [&str; 3] = ["migrate", "restore-asking", "script|debug"];

/// Clients of this server and of a redis-server.
fn both(redis: &RedisServer) -> (freeport_kv_server::Server, [Client; 2]) {
    let server = server(2);
    let clients = [Client::connect(server.addresses()[0]), Client::connect(redis.address())];
    (server, clients)
}

fn redis() -> Option<RedisServer> {
    let redis = RedisServer::start(&[]);
    if redis.is_none() {
        freeport_testbed::skip("redis-server is not installed");
    }
    redis
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> + Clone {
    text.lines().filter(|line| !line.starts_with("# "))
}

/// The part of a call that a reply of `ACL DRYRUN` refuses. Redis 7.0 has other words for it.
fn kind(reply: &str) -> &str {
    ["command", "key", "channel"]
        .into_iter()
        .find(|word| reply.contains("has no permissions") && reply.contains(word))
        .unwrap_or(reply)
}

/// Parts of `ACL GETUSER` that Redis 7.0 shows in the same form.
fn shown(reply: Value) -> Vec<Value> {
    let Value::Array(parts) = reply else { return vec![reply] };
    let mut kept = vec![];
    for pair in parts.chunks(2) {
        match pair {
            [Value::Bulk(name), value] if name == b"selectors" => {
                let Value::Array(selectors) = value else { panic!("{value:?} is no list") };
                kept.extend(selectors.iter().cloned().flat_map(shown));
            }
            [Value::Bulk(name), value] if !matches!(&name[..], b"flags" | b"commands") => {
                kept.push(value.clone());
            }
            _ => {}
        }
    }
    kept
}

#[test]
#[ignore = "long: needs redis-server"]
fn rules_allow_what_they_allow_in_redis() {
    let Some(redis) = redis() else { return };
    let (_server, mut clients) = both(&redis);
    let (mut differing, mut compared) = (vec![], 0);
    for rules in lines(RULES) {
        let set = format!("ACL SETUSER user {rules}");
        let [ours, theirs] = clients.each_mut().map(|client| {
            client.ask("ACL DELUSER user");
            let reply = client.ask(&set);
            client.send("ACL GETUSER user");
            (reply, shown(client.reply()))
        });
        if ours != theirs {
            differing.push(format!("{set}\n ours:  {ours:?}\n redis: {theirs:?}"));
        }
        for call in lines(CALLS) {
            let line = format!("ACL DRYRUN user {call}");
            let [ours, theirs] = clients.each_mut().map(|client| client.ask(&line));
            compared += 1;
            if kind(&ours) != kind(&theirs) {
                differing.push(format!("{rules}: {call}\n ours:  {ours}\n redis: {theirs}"));
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
#[ignore = "long: needs redis-server"]
fn keys_are_used_as_in_redis() {
    let Some(redis) = redis() else { return };
    let (_server, mut clients) = both(&redis);
    for call in lines(CALLS) {
        let line = format!("COMMAND GETKEYSANDFLAGS {call}");
        let [ours, theirs] = clients.each_mut().map(|client| client.ask(&line));
        // Redis reports another error for a call that is too short for its own command.
        if call.contains(' ') {
            assert_eq!(ours, theirs, "{line}");
        }
    }
}

/// Names and categories of all commands and subcommands.
fn categories(commands: &Value, found: &mut Vec<(String, BTreeSet<String>)>) {
    let Value::Array(commands) = commands else { panic!("{commands:?} is no list") };
    for command in commands {
        let Value::Array(parts) = command else { panic!("{command:?} is no list") };
        let Value::Array(names) = &parts[6] else { panic!("{:?} is no list", parts[6]) };
        found.push((parts[0].to_string(), names.iter().map(Value::to_string).collect()));
        categories(&parts[9], found);
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn categories_are_those_of_redis() {
    let Some(redis) = redis() else { return };
    let (_server, mut clients) = both(&redis);
    let [ours, theirs] = clients.each_mut().map(|client| {
        client.send("COMMAND");
        let (reply, mut found) = (client.reply(), vec![]);
        categories(&reply, &mut found);
        found.retain(|(name, _)| {
            let name = name.trim_matches('"');
            !NEWER.contains(&name) && !MISSING.contains(&name)
        });
        found.sort();
        found
    });
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
