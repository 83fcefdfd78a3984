// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A redis-server beside ours, and what tests read of reports.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use freeport_testbed::port::free_port;
use freeport_testbed::wait_until;

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

/// The value of a name in a text of lines such as `name:value`.
pub fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_once(':').map(|(_, value)| value.trim_end().to_owned())
}
