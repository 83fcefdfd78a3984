// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An installed memcached 1.6.18. The tests of the items use it as well.

use freeport_testbed::wait::PATIENCE;
use freeport_testbed::{port, skip, wait_until};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

/// The version whose replies the crate gives.
const VERSION: &str = "memcached 1.6.18";

/// A running server, which ends with this value.
pub struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts the installed server, if it has the right version.
    pub fn start() -> Option<Self> {
        let version = Command::new("memcached").arg("-V").output();
        let text = version.map_or(String::new(), |it| String::from_utf8_lossy(&it.stdout).into());
        if text.trim() != VERSION {
            skip(format_args!("{VERSION} is not installed"));
            return None;
        }
        let port = port::free_port();
        let mut command = Command::new("memcached");
        // Text only: what a first byte of 0x80 starts is not compared.
        command.args(["-l", "127.0.0.1", "-U", "0", "-B", "ascii", "-t", "1", "-u", "nobody"]);
        command.args(["-p", &port.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("it is installed");
        let server = Self { process, port };
        wait_until("memcached listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        // Uses up the CAS numbers that random pipelines have.
        (0..20).for_each(|_| _ = server.connect());
        Some(server)
    }

    /// Connects, and removes all keys.
    pub fn connect(&self) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a valid time");
        stream.write_all(b"flush_all\r\n").expect("it is open");
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).expect("it replies");
        assert_eq!(&reply, b"OK\r\n");
        stream
    }

    /// Returns the replies to a pipeline. If the server is not expected to close the connection, it
    /// is told that nothing follows.
    pub fn ask(&self, pipeline: &[u8], closes: bool) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(pipeline).expect("it is open");
        if !closes {
            // The server may have closed the connection, which the replies will show.
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut replies = vec![];
        match stream.read_to_end(&mut replies) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => replies,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it was started");
        self.process.wait().expect("it was started");
    }
}
