// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of keys, as a redis-server publishes them.

use std::io::{Read, Write};
use std::net::TcpStream;

use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader};

use super::Redis;

/// A connection that hears the events of database 0.
pub struct Listener {
    connection: TcpStream,
    reader: ValueReader,
    /// What was received behind the values that were read.
    received: Vec<u8>,
}

/// Name of an event, and the key.
pub type Heard = (String, Vec<u8>);

impl Listener {
    /// Hears the events from now on.
    pub fn new(redis: &mut Redis) -> Self {
        redis.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"EA"]);
        let connection = TcpStream::connect(redis.address()).expect("the server accepts");
        let reader = ValueReader::new(ValueLimits::default());
        let mut listener = Self { connection, reader, received: vec![] };
        listener.send(b"PSUBSCRIBE __keyevent@0__:*\r\n");
        listener.next();
        listener
    }

    /// The events since the last call. Those of a command come before its reply.
    pub fn take(&mut self) -> Vec<Heard> {
        self.send(b"PING\r\n");
        let mut heard = vec![];
        loop {
            let Value::Array(parts) = self.next() else { panic!("the server sends arrays") };
            // The reply to `PING` is an array of two here.
            let [_, _, Value::Bulk(channel), Value::Bulk(key)] = &parts[..] else { return heard };
            let channel = String::from_utf8_lossy(channel);
            let name = channel.rsplit(':').next().expect("there is at least one part");
            heard.push((name.to_owned(), key.clone()));
        }
    }

    fn send(&mut self, line: &[u8]) {
        self.connection.write_all(line).expect("the server reads");
    }

    fn next(&mut self) -> Value {
        let mut part = [0; 4096];
        loop {
            if !self.received.is_empty() {
                let progress = self.reader.read(&self.received).expect("the server speaks RESP");
                match progress {
                    ValueProgress::Complete { value, bytes } => {
                        self.received.drain(..bytes);
                        return value;
                    }
                    ValueProgress::Incomplete { .. } => self.received.clear(),
                }
            }
            let length = self.connection.read(&mut part).expect("the server sends");
            assert_ne!(length, 0, "the server closed the connection");
            self.received.extend_from_slice(&part[..length]);
        }
    }
}
