// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A redis-server, and connections whose replies are bytes.

use std::io::{Read, Write};
use std::net::TcpStream;

use freeport_kv_protocol::resp::{ValueLimits, ValueProgress, ValueReader, Version, Writer};
use freeport_testbed::redis::RedisServer;

/// A server and a connection to it.
pub struct Redis {
    server: RedisServer,
    connection: Connection,
}

impl Redis {
    /// Starts a server; `None` if none is installed.
    pub fn start() -> Option<Self> {
        let server = RedisServer::start(&[])?;
        let connection = Connection::new(server.connect());
        Some(Self { server, connection })
    }

    /// The reply to a command, as bytes.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.connection.call(arguments)
    }

    /// Another connection.
    pub fn connect(&self) -> Connection {
        Connection::new(self.server.connect())
    }
}

/// A connection to a server.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, received: vec![] }
    }

    /// The reply to a command, as bytes, with what is pushed before it.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.send(arguments);
        let mut reply = self.receive();
        if reply.starts_with(b">") {
            reply.extend(self.receive());
        }
        reply
    }

    /// Sends a command.
    pub fn send(&mut self, arguments: &[&[u8]]) {
        let mut request = vec![];
        let mut writer = Writer::new(&mut request, Version::Two);
        writer.array(arguments.len());
        arguments.iter().for_each(|argument| writer.bulk(argument));
        self.stream.write_all(&request).expect("the server reads");
    }

    /// The next reply, as bytes.
    pub fn receive(&mut self) -> Vec<u8> {
        let mut reader = ValueReader::new(ValueLimits::default());
        let (mut start, mut part) = (0, [0; 4096]);
        loop {
            match reader.read(&self.received[start..]).expect("the server speaks RESP") {
                ValueProgress::Complete { bytes, .. } => {
                    return self.received.drain(..start + bytes).collect();
                }
                ValueProgress::Incomplete { .. } => start = self.received.len(),
            }
            let length = self.stream.read(&mut part).expect("the server replies");
            assert_ne!(length, 0, "the server closed the connection");
            self.received.extend_from_slice(&part[..length]);
        }
    }
}
