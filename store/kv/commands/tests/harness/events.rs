// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyspace events of a redis-server, heard on a connection of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use freeport_kv_commands::{Class, Event};
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader};

use super::Local;

/// An event: the number of its database, its name, and the key.
pub type Heard = (u16, String, Vec<u8>);

/// A connection that has subscribed to all keyspace events.
pub struct Listener {
    connection: TcpStream,
    received: Vec<u8>,
}

impl Listener {
    /// Subscribes to the events of a server, which has to be configured to send them.
    pub fn new(server: SocketAddr) -> Self {
        let mut connection = TcpStream::connect(server).expect("the server accepts connections");
        connection.write_all(b"PSUBSCRIBE __keyevent@*\r\n").expect("the server reads");
        let mut listener = Self { connection, received: vec![] };
        let subscribed = listener.next();
        assert!(matches!(&subscribed[..], [kind, ..] if kind == b"psubscribe"));
        listener
    }

    /// The events since the last call.
    pub fn events(&mut self) -> Vec<Heard> {
        // The reply to a ping comes after all events of commands that were replied to before.
        self.connection.write_all(b"PING\r\n").expect("the server reads");
        let mut events = vec![];
        loop {
            match &self.next()[..] {
                [kind, ..] if kind == b"pong" => return events,
                [_, _, channel, key] => events.push(event(channel, key)),
                other => panic!("no event: {other:?}"),
            }
        }
    }

    fn next(&mut self) -> Vec<Vec<u8>> {
        loop {
            let mut reader = ValueReader::new(ValueLimits::default());
            if !self.received.is_empty()
                && let Ok(ValueProgress::Complete { value, bytes }) = reader.read(&self.received)
            {
                self.received.drain(..bytes);
                let Value::Array(words) = value else { panic!("no message: {value:?}") };
                return words.into_iter().map(text).collect();
            }
            let mut part = [0; 4096];
            let length = self.connection.read(&mut part).expect("the server sends");
            assert_ne!(length, 0, "the server closed the connection");
            self.received.extend_from_slice(&part[..length]);
        }
    }
}

fn text(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(text) => text,
        other => format!("{other:?}").into_bytes(),
    }
}

fn event(channel: &[u8], key: &[u8]) -> Heard {
    let channel = str::from_utf8(channel).expect("channels of events are text");
    let (number, name) = channel
        .strip_prefix("__keyevent@")
        .and_then(|rest| rest.split_once("__:"))
        .expect("only such channels were subscribed to");
    (number.parse().expect("databases have numbers"), name.to_owned(), key.to_vec())
}

/// Takes the events of commands that were executed here, apart from those of keys not found.
pub fn own_events(local: &mut Local) -> Vec<Heard> {
    let is_heard = |event: &Event| event.class != Class::Miss;
    let events = std::mem::take(&mut local.effects.events);
    let heard = events.into_iter().filter(is_heard);
    heard.map(|event| (event.database, event.name.to_owned(), event.key)).collect()
}
