// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads all keys of a server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use freeport_kv_protocol::resp::Value;

use super::model::{Content, Entry, Times, text};
use super::step::DATABASES;
use crate::client::Client;

/// All keys of a server.
#[derive(Debug)]
pub struct Reading {
    pub entries: BTreeMap<String, Entry>,
    /// When they were read.
    pub times: Times,
}

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is later");
    u64::try_from(elapsed.as_millis()).expect("it is small")
}

/// Reads all keys of a server that nobody else uses.
pub fn read(address: SocketAddr) -> Reading {
    let mut client = Client::connect(address);
    let earliest_ms = now_ms();
    let mut entries = BTreeMap::new();
    for database in 0..DATABASES {
        ask(&mut client, &["SELECT", &database.to_string()]);
        read_database(&mut client, &mut entries);
    }
    Reading { entries, times: Times { earliest_ms, latest_ms: now_ms() } }
}

fn read_database(client: &mut Client, entries: &mut BTreeMap<String, Entry>) {
    let mut cursor = "0".to_owned();
    loop {
        let [next, keys] = take(array(ask(client, &["SCAN", &cursor, "COUNT", "1000"])));
        for key in strings(keys) {
            if let Some(entry) = entry(client, &key) {
                entries.insert(key, entry);
            }
        }
        cursor = string(next);
        if cursor == "0" {
            break;
        }
    }
}

/// The value of a key, unless it expires just now.
fn entry(client: &mut Client, key: &str) -> Option<Entry> {
    let expires = match ask(client, &["PEXPIRETIME", key]) {
        Value::Integer(-2) => return None,
        Value::Integer(-1) => None,
        Value::Integer(ms) => {
            let ms = u64::try_from(ms).expect("a time");
            Some(Times { earliest_ms: ms, latest_ms: ms })
        }
        other => panic!("PEXPIRETIME {key}: {other:?}"),
    };
    let kind = match ask(client, &["TYPE", key]) {
        Value::Status(kind) => text(&kind),
        other => panic!("TYPE {key}: {other:?}"),
    };
    let content = match kind.as_str() {
        "string" => match ask(client, &["GET", key]) {
            Value::Null => return None,
            value => Content::Text(string(value)),
        },
        "list" => Content::List(strings(ask(client, &["LRANGE", key, "0", "-1"])).collect()),
        "hash" => Content::Hash(pairs(ask(client, &["HGETALL", key])).collect()),
        "set" => {
            Content::Set { members: strings(ask(client, &["SMEMBERS", key])).collect(), taken: 0 }
        }
        "zset" => {
            let scores = pairs(ask(client, &["ZRANGE", key, "0", "-1", "WITHSCORES"]));
            let number = |(member, score): (_, String)| (member, score.parse().expect("a number"));
            Content::Sorted(scores.map(number).collect())
        }
        "stream" => {
            let entries = array(ask(client, &["XRANGE", key, "-", "+"])).into_iter();
            let entry = |entry| {
                let [identifier, fields] = take(array(entry));
                (Some(string(identifier)), strings(fields).nth(1).expect("a field and its value"))
            };
            Content::Stream(entries.map(entry).collect())
        }
        "none" => return None,
        other => panic!("{key}: {other}"),
    };
    Some(Entry { content, expires })
}

pub fn ask(client: &mut Client, words: &[&str]) -> Value {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    client.send_arguments(&words);
    client.reply()
}

pub fn array(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        other => panic!("{other:?} is no array"),
    }
}

fn take<const N: usize>(values: Vec<Value>) -> [Value; N] {
    values.try_into().expect("the number of values is that of the command")
}

fn string(value: Value) -> String {
    match value {
        Value::Bulk(bytes) => text(&bytes),
        other => panic!("{other:?} is no string"),
    }
}

fn strings(value: Value) -> impl Iterator<Item = String> {
    array(value).into_iter().map(string)
}

fn pairs(value: Value) -> impl Iterator<Item = (String, String)> {
    let mut strings = strings(value);
    std::iter::from_fn(move || Some((strings.next()?, strings.next()?)))
}
