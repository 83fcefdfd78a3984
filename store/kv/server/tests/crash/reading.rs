// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads all keys of a server.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use freeport_kv_protocol::resp::Value;

use super::model::{Content, Entry, Times, text};
use super::step::DATABASES;
use crate::client::{Client, request};

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
        entries.extend(read_keys(&mut client, "*").expect("the server replies"));
    }
    Reading { entries, times: Times { earliest_ms, latest_ms: now_ms() } }
}

/// Reads all keys of a database whose names have a pattern.
///
/// # Errors
/// The server ends meanwhile, or refuses a command.
pub fn read_keys(client: &mut Client, pattern: &str) -> io::Result<BTreeMap<String, Entry>> {
    let mut entries = BTreeMap::new();
    let mut cursor = "0".to_owned();
    loop {
        let words = ["SCAN", &cursor, "MATCH", pattern, "COUNT", "1000"];
        let [next, keys] = take(array(try_ask(client, &words)?));
        for key in strings(keys) {
            if let Some(entry) = entry(client, &key)? {
                entries.insert(key, entry);
            }
        }
        cursor = string(next);
        if cursor == "0" {
            return Ok(entries);
        }
    }
}

/// The value of a key, unless it expires just now.
fn entry(client: &mut Client, key: &str) -> io::Result<Option<Entry>> {
    let expires = match try_ask(client, &["PEXPIRETIME", key])? {
        Value::Integer(-2) => return Ok(None),
        Value::Integer(-1) => None,
        Value::Integer(ms) => {
            let ms = u64::try_from(ms).expect("a time");
            Some(Times { earliest_ms: ms, latest_ms: ms })
        }
        other => panic!("PEXPIRETIME {key}: {other:?}"),
    };
    let kind = match try_ask(client, &["TYPE", key])? {
        Value::Status(kind) => text(&kind),
        other => panic!("TYPE {key}: {other:?}"),
    };
    let content = match kind.as_str() {
        "string" => match try_ask(client, &["GET", key])? {
            Value::Null => return Ok(None),
            value => Content::Text(string(value)),
        },
        "list" => Content::List(strings(try_ask(client, &["LRANGE", key, "0", "-1"])?).collect()),
        "hash" => Content::Hash(pairs(try_ask(client, &["HGETALL", key])?).collect()),
        "set" => {
            let members = strings(try_ask(client, &["SMEMBERS", key])?).collect();
            Content::Set { members, taken: 0 }
        }
        "zset" => {
            let scores = pairs(try_ask(client, &["ZRANGE", key, "0", "-1", "WITHSCORES"])?);
            let number = |(member, score): (_, String)| (member, score.parse().expect("a number"));
            Content::Sorted(scores.map(number).collect())
        }
        "stream" => {
            let entries = array(try_ask(client, &["XRANGE", key, "-", "+"])?).into_iter();
            let entry = |entry| {
                let [identifier, fields] = take(array(entry));
                (Some(string(identifier)), strings(fields).nth(1).expect("a field and its value"))
            };
            Content::Stream(entries.map(entry).collect())
        }
        "none" => return Ok(None),
        other => panic!("{key}: {other}"),
    };
    Ok(Some(Entry { content, expires }))
}

/// The reply to a command of a server that may end.
///
/// # Errors
/// It ends, or the reply is an error.
pub fn try_ask(client: &mut Client, words: &[&str]) -> io::Result<Value> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    client.stream.write_all(&request(&words))?;
    match client.try_reply()? {
        Value::Error(error) => Err(io::Error::other(text(&error))),
        reply => Ok(reply),
    }
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
