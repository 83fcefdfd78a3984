// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyspace events of a redis-server, heard on a connection of its own.

use freeport_kv_protocol::resp::Value;

use super::parsed;
use super::redis::{Connection, Redis};

/// A connection that has subscribed to all keyspace events but those of keys not found.
pub struct Listener(Connection);

impl Listener {
    /// Listens from now on.
    pub fn new(redis: &mut Redis) -> Self {
        redis.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"EAn"]);
        let mut connection = redis.connect();
        connection.call(&[b"PSUBSCRIBE", b"__keyevent@*__:*"]);
        Self(connection)
    }

    /// The events since the last call, as [`event_text`] has them.
    pub fn events(&mut self) -> Vec<String> {
        // The reply to a ping comes after all events of commands that were replied to before.
        self.0.send(&[b"PING"]);
        let mut events = vec![];
        loop {
            let Value::Array(parts) = parsed(&self.0.receive()) else { panic!("no message") };
            match &parts[..] {
                [_, _, Value::Bulk(channel), Value::Bulk(key)] => events.push(event(channel, key)),
                [Value::Bulk(kind), ..] if kind == b"pong" => return events,
                other => panic!("no event: {other:?}"),
            }
        }
    }
}

/// Name and key of an event, such as `hset key`; behind the number of its database unless that is
/// 0.
pub fn event_text(database: u16, name: &str, key: &[u8]) -> String {
    let text = format!("{name} {}", key.escape_ascii());
    if database == 0 { text } else { format!("{database} {text}") }
}

/// Events without those of keys whose time has passed: Redis also removes such keys when they are
/// read, at a time of its own.
pub fn but_expiries(mut events: Vec<String>) -> Vec<String> {
    events.retain(|event| !event.starts_with("expired "));
    events
}

fn event(channel: &[u8], key: &[u8]) -> String {
    let channel = str::from_utf8(channel).expect("channels of events are text");
    let (number, name) = channel
        .strip_prefix("__keyevent@")
        .and_then(|rest| rest.split_once("__:"))
        .expect("only such channels were subscribed to");
    event_text(number.parse().expect("databases have numbers"), name, key)
}
