// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Redis server on a free port, whose replies are bytes.

use freeport_kv_protocol::resp::{ValueLimits, ValueProgress, ValueReader, Version, Writer};
use freeport_testbed::redis::RedisServer;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A running server, which ends with this value.
pub struct Server(RedisServer);

/// A connection in a version of the protocol.
pub struct Connection(TcpStream);

impl Server {
    /// Starts a server; `None` if none is installed.
    pub fn start() -> Option<Self> {
        RedisServer::start(&[]).map(Self)
    }

    /// Opens a connection.
    pub fn connect(&self, version: Version) -> Connection {
        let mut connection = Connection(self.0.connect());
        if version == Version::Three {
            connection.call(&[b"HELLO", b"3"]);
        }
        connection
    }
}

impl Connection {
    /// Returns the bytes of the reply to a command.
    pub fn call(&mut self, command: &[&[u8]]) -> Vec<u8> {
        let mut request = vec![];
        let mut writer = Writer::new(&mut request, Version::Two);
        writer.array(command.len());
        command.iter().for_each(|part| writer.bulk(part));
        self.0.write_all(&request).expect("the server reads");
        self.reply()
    }

    fn reply(&mut self) -> Vec<u8> {
        let limits = ValueLimits { depth: 10_000, ..ValueLimits::default() };
        let (mut reader, mut reply) = (ValueReader::new(limits), vec![]);
        let mut buffer = [0; 16 << 10];
        loop {
            let count = self.0.read(&mut buffer).expect("the server replies");
            assert_ne!(count, 0, "the server has ended");
            reply.extend_from_slice(&buffer[..count]);
            let progress = reader.read(&buffer[..count]).expect("the reply is valid");
            if let ValueProgress::Complete { .. } = progress {
                return reply;
            }
        }
    }
}
