// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyspace events of a redis-server.

use std::io::{Read, Write};
use std::net::TcpStream;

use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader};

use super::redis::{Redis, request};

/// A client that is told of all events.
pub struct Listener {
    connection: TcpStream,
    received: Vec<u8>,
}

/// Channel of the message that ends the events so far.
const END: &[u8] = b"end of events";

impl Listener {
    /// Listens from now on.
    pub fn new(redis: &mut Redis) -> Self {
        redis.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"EA"]);
        let mut listener = Self { connection: redis.connect(), received: vec![] };
        let subscribe = request(&[b"PSUBSCRIBE", b"__keyevent@0__:*", END]);
        listener.connection.write_all(&subscribe).expect("the server reads");
        // Both patterns are acknowledged.
        listener.message();
        listener.message();
        listener
    }

    /// Names and keys of the events since the last call, such as `hset key`.
    pub fn events(&mut self, redis: &mut Redis) -> Vec<String> {
        redis.call(&[b"PUBLISH", END, b""]);
        let mut events = vec![];
        loop {
            let message = self.message();
            let [.., Value::Bulk(channel), Value::Bulk(key)] = &message[..] else {
                panic!("{message:?} is no message")
            };
            if channel == END {
                return events;
            }
            let name = channel.rsplit(|byte| *byte == b':').next().expect("it has one part");
            events.push(format!("{} {}", name.escape_ascii(), key.escape_ascii()));
        }
    }

    fn message(&mut self) -> Vec<Value> {
        let mut part = [0; 4096];
        loop {
            let mut reader = ValueReader::new(ValueLimits::default());
            match reader.read(&self.received).expect("the server speaks RESP") {
                ValueProgress::Complete { value: Value::Array(message), bytes } => {
                    self.received.drain(..bytes);
                    return message;
                }
                ValueProgress::Complete { value, .. } => panic!("{value} is no message"),
                ValueProgress::Incomplete { .. } => {
                    let length = self.connection.read(&mut part).expect("the server sends");
                    assert_ne!(length, 0, "the server closed the connection");
                    self.received.extend_from_slice(&part[..length]);
                }
            }
        }
    }
}
