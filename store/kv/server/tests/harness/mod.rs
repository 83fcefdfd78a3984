// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server of our own, a redis-server, and clients of both.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use freeport_kv_protocol::resp::{ValueLimits, ValueProgress, ValueReader};
use freeport_kv_server::{Bind, Options, Server};
use freeport_testbed::port::free_port;
use freeport_testbed::wait_until;

/// A server with a number of workers.
pub fn server(workers: usize) -> Server {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let options = Options {
        resp: vec![Bind::Tcp(address)],
        workers,
        metrics: Some(address),
        memory_bytes: 64 << 20,
        ..Options::default()
    };
    Server::start(options).expect("a free port is listened on")
}

/// A redis-server, which ends with its value.
pub struct Redis {
    process: Child,
    /// Its address.
    pub address: SocketAddr,
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
        let redis = Self { process, address: (Ipv4Addr::LOCALHOST, port).into() };
        wait_until("redis-server accepts connections", || {
            TcpStream::connect(redis.address).is_ok()
        });
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client, which reads whole replies.
pub struct Client {
    pub stream: TcpStream,
    /// Whole replies that were received and not yet asked for.
    replies: VecDeque<Vec<u8>>,
    /// Bytes of a reply that is not complete.
    partial: Vec<u8>,
}

impl Client {
    /// A client of a server.
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(freeport_testbed::wait::PATIENCE)).expect("it is not 0");
        Self { stream, replies: VecDeque::new(), partial: vec![] }
    }

    /// Sends a command, whose arguments are separated by single spaces. `_` is an empty argument.
    pub fn send(&mut self, line: &str) {
        let words: Vec<&str> =
            line.split(' ').map(|word| if word == "_" { "" } else { word }).collect();
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.write_all(request.as_bytes()).expect("the server reads");
    }

    /// The next reply, as text.
    pub fn next(&mut self) -> String {
        let mut buffer = [0; 65536];
        while self.replies.is_empty() {
            let bytes = self.stream.read(&mut buffer).expect("the server replies");
            assert_ne!(bytes, 0, "the server closed the connection");
            self.partial.extend_from_slice(&buffer[..bytes]);
            self.split();
        }
        let reply = self.replies.pop_front().expect("there is one");
        String::from_utf8_lossy(&reply).into_owned()
    }

    /// Moves whole replies out of the received bytes.
    fn split(&mut self) {
        let mut start = 0;
        loop {
            let mut reader = ValueReader::new(ValueLimits::default());
            match reader.read(&self.partial[start..]).expect("the server speaks RESP") {
                ValueProgress::Complete { bytes, .. } => {
                    self.replies.push_back(self.partial[start..start + bytes].to_vec());
                    start += bytes;
                }
                ValueProgress::Incomplete { .. } => break,
            }
        }
        self.partial.drain(..start);
    }

    /// The reply to a command.
    pub fn call(&mut self, line: &str) -> String {
        self.send(line);
        self.next()
    }

    /// The reply to a command is this.
    #[track_caller]
    pub fn check(&mut self, line: &str, expected: &str) {
        let reply = self.call(line);
        assert_eq!(reply, expected, "{line}");
    }

    /// The server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

/// The value of a name in a text of lines such as `name:value`.
pub fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_once(':').map(|(_, value)| value.trim_end().to_owned())
}
