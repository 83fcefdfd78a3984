// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A redis-server beside the code under test: a reference for replies.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::port::free_port;
use crate::wait::wait_until;

/// A redis-server on a free port of the loopback, without files. It ends with this value.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    address: SocketAddr,
}

impl RedisServer {
    /// Starts a server with further options, and waits until it accepts connections. `None` if none
    /// is installed.
    pub fn start(options: &[&str]) -> Option<Self> {
        let port = free_port();
        let process = Command::new("redis-server")
            .args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
            .args(["--enable-debug-command", "yes", "--port", &port.to_string()])
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let server = Self { process, address: (Ipv4Addr::LOCALHOST, port).into() };
        wait_until("redis-server accepts connections", || {
            TcpStream::connect(server.address).is_ok()
        });
        Some(server)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection, on which small requests leave at once.
    ///
    /// # Panics
    /// The server does not accept it.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("redis-server accepts connections");
        stream.set_nodelay(true).expect("it is TCP");
        stream
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
