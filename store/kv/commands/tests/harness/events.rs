// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyspace events of a redis-server.

use freeport_kv_protocol::resp::Value;

use super::parsed;
use super::redis::{Connection, Redis};

/// A client that is notified of all events but expiries, which happen at any time.
pub struct Listener(Connection);

impl Listener {
    /// Begins to listen.
    pub fn new(redis: &mut Redis) -> Self {
        redis.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"Eg$lshzt"]);
        let mut connection = redis.connect();
        connection.send(&[b"PSUBSCRIBE", b"__keyevent@*__:*"]);
        connection.receive();
        Self(connection)
    }

    /// Names and keys of the events since the last call. They were sent before the replies to the
    /// commands that caused them, and a `PING` comes after them.
    pub fn take(&mut self) -> Vec<(String, Vec<u8>)> {
        self.0.send(&[b"PING"]);
        let mut events = vec![];
        loop {
            let Value::Array(mut parts) = parsed(&self.0.receive()) else {
                panic!("a client that listens gets arrays");
            };
            let parts: Vec<Vec<u8>> = parts.drain(..).map(bytes).collect();
            let [_, _, channel, key] = &parts[..] else { return events };
            let channel = String::from_utf8_lossy(channel);
            let (_, name) = channel.split_once(':').expect("channels end with the event");
            events.push((name.to_owned(), key.clone()));
        }
    }
}

fn bytes(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes.to_vec(),
        other => panic!("{other:?} is no string"),
    }
}
