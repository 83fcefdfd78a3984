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
    connection: TcpStream,
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
            connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
            connection.is_some()
        });
        Some(Self { process, port, connection: connection? })
    }

    /// Another connection.
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the server runs")
    }

    /// The reply to a command, as bytes.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.connection.write_all(&request(arguments)).expect("the server reads");
        let mut reader = ValueReader::new(ValueLimits::default());
        let (mut reply, mut part) = (vec![], [0; 4096]);
        loop {
            let length = self.connection.read(&mut part).expect("the server replies");
            assert_ne!(length, 0, "the server closed the connection");
            reply.extend_from_slice(&part[..length]);
            match reader.read(&part[..length]).expect("the server speaks RESP") {
                ValueProgress::Complete { .. } => return reply,
                ValueProgress::Incomplete { .. } => {}
            }
        }
    }
}

/// The bytes of a command.
pub fn request(arguments: &[&[u8]]) -> Vec<u8> {
    let mut request = vec![];
    let mut writer = Writer::new(&mut request, Version::Two);
    writer.array(arguments.len());
    arguments.iter().for_each(|argument| writer.bulk(argument));
    request
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
