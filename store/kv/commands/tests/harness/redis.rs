// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A redis-server on a free port, which ends with its value.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};

use freeport_kv_protocol::resp::{ValueLimits, ValueProgress, ValueReader, Version, Writer};
use freeport_testbed::port::free_port;
use freeport_testbed::wait_until;

/// A server and a connection to it.
pub struct Redis {
    process: Child,
    port: u16,
    connection: Connection,
}

/// A connection to a server.
pub struct Connection(TcpStream);

impl Redis {
    /// Starts a server; `None` if none is installed.
    pub fn start() -> Option<Self> {
        let port = free_port();
        let process = Command::new("redis-server")
            .args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
            .args(["--enable-debug-command", "yes", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let mut connection = None;
        wait_until("the server accepts connections", || {
            connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
            connection.is_some()
        });
        Some(Self { process, port, connection: Connection(connection?) })
    }

    /// One more connection.
    pub fn connect(&self) -> Connection {
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        Connection(connection.expect("the server accepts connections"))
    }

    /// The reply to a command, as bytes.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.connection.call(arguments)
    }
}

impl Connection {
    /// The reply to a command, as bytes.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        let mut request = vec![];
        let mut writer = Writer::new(&mut request, Version::Two);
        writer.array(arguments.len());
        arguments.iter().for_each(|argument| writer.bulk(argument));
        self.0.write_all(&request).expect("the server reads");
        let mut reader = ValueReader::new(ValueLimits::default());
        let mut reply = vec![];
        loop {
            let start = reply.len();
            self.read(&mut reply);
            match reader.read(&reply[start..]).expect("the server speaks RESP") {
                ValueProgress::Complete { .. } => return reply,
                ValueProgress::Incomplete { .. } => {}
            }
        }
    }

    /// Everything that the server sends up to `end`.
    pub fn read_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut received = vec![];
        while !received.ends_with(end) {
            self.read(&mut received);
        }
        received
    }

    fn read(&mut self, received: &mut Vec<u8>) {
        let mut part = [0; 4096];
        let length = self.0.read(&mut part).expect("the server replies");
        assert_ne!(length, 0, "the server closed the connection");
        received.extend_from_slice(&part[..length]);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
