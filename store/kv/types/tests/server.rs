// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Redis server as an oracle: its process, and a client of its protocol.

use freeport_testbed::port::free_port;
use freeport_testbed::{skip, wait_until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A reply of the server, or of the commands of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Nil,
    Number(i64),
    Text(String),
    Error(String),
    Array(Vec<Reply>),
}

pub struct Server {
    process: Child,
    connection: BufReader<TcpStream>,
}

impl Server {
    /// Starts a server. Skips the test if none is installed.
    pub fn start() -> Option<Server> {
        let port = free_port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let Ok(process) = command.spawn() else {
            skip("redis-server is not installed");
            return None;
        };
        let mut connection = None;
        wait_until("the server accepts connections", || {
            connection = TcpStream::connect(format!("127.0.0.1:{port}")).ok();
            connection.is_some()
        });
        let connection = BufReader::new(connection.expect("the wait ends with a connection"));
        Some(Server { process, connection })
    }

    pub fn run(&mut self, command: &[String]) -> Reply {
        let mut out = format!("*{}\r\n", command.len());
        for part in command {
            out += &format!("${}\r\n{part}\r\n", part.len());
        }
        self.connection.get_mut().write_all(out.as_bytes()).expect("the server reads");
        self.read()
    }

    fn read(&mut self) -> Reply {
        let mut line = String::new();
        self.connection.read_line(&mut line).expect("the server replies");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" => Reply::Text(rest.to_string()),
            "-" => Reply::Error(rest.to_string()),
            ":" => Reply::Number(rest.parse().expect("a number")),
            "$" | "*" if rest == "-1" => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().expect("a length") + 2];
                self.connection.read_exact(&mut bytes).expect("the server replies");
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8(bytes).expect("tests use texts"))
            }
            "*" => {
                Reply::Array((0..rest.parse().expect("a length")).map(|_| self.read()).collect())
            }
            _ => panic!("unknown reply {line:?}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
