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
            connection = Connection::open(port);
            connection.is_some()
        });
        Some(Self { process, port, connection: connection? })
    }

    /// The reply to a command, as bytes.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.connection.call(arguments)
    }

    /// Another connection.
    pub fn connect(&self) -> Connection {
        Connection::open(self.port).expect("the server accepts connections")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection to a server.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    fn open(port: u16) -> Option<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some(Self { stream, received: vec![] })
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
