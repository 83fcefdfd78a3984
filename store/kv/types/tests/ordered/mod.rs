// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types against a redis-server of this machine, with the same commands.

mod geo;
mod list;
mod zset;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};

use freeport_testbed::port::free_port;
use freeport_testbed::{skip, wait_until};

/// A reply of the server. Scores are compared as numbers, because Redis 7.0 prints more digits.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Null,
    Integer(i64),
    Text(Vec<u8>),
    Array(Vec<Reply>),
    Error(String),
}

impl Reply {
    /// The reply `text`.
    pub fn text(text: &[u8]) -> Self {
        Self::Text(text.to_vec())
    }

    /// The number of elements as an integer reply.
    pub fn count(count: usize) -> Self {
        Self::Integer(count as i64)
    }

    /// The score that the text is.
    pub fn score(&self) -> f64 {
        match self {
            Self::Text(text) => String::from_utf8_lossy(text).parse().unwrap(),
            other => panic!("{other:?} is no score"),
        }
    }

    /// The replies of an array.
    pub fn array(self) -> Vec<Reply> {
        match self {
            Self::Array(replies) => replies,
            other => panic!("{other:?} is no array"),
        }
    }
}

/// A server that ends with the test, and a connection to it.
pub struct Server {
    child: Child,
    stream: BufReader<TcpStream>,
}

impl Server {
    /// Starts a server; skips the test if none is installed.
    pub fn start() -> Option<Self> {
        let port = free_port();
        let started = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"])
            .stdout(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            skip("redis-server is not installed");
            return None;
        };
        let mut stream = None;
        wait_until("the server listens", || {
            stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
            stream.is_some()
        });
        let stream = BufReader::new(stream.expect("it was connected"));
        Some(Self { child, stream })
    }

    /// Sends a command, and returns the reply.
    pub fn call(&mut self, words: &[&[u8]]) -> Reply {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).bytes());
            request.extend_from_slice(word);
            request.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).unwrap();
        self.read()
    }

    /// Sends a command whose words have no spaces.
    pub fn line(&mut self, command: &str) -> Reply {
        let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
        self.call(&words)
    }

    fn read(&mut self) -> Reply {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" => Reply::text(rest.as_bytes()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(rest.parse().unwrap()),
            "$" | "*" if rest == "-1" => Reply::Null,
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                Reply::Text(text)
            }
            "*" => Reply::Array((0..rest.parse().unwrap()).map(|_| self.read()).collect()),
            _ => panic!("{line:?} is no reply"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
