// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Redis server on a free port, and the little of its protocol that replies need.

use freeport_testbed::redis::RedisServer;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A running server, which ends with this value.
pub struct Server {
    /// It ends with this value.
    _server: RedisServer,
    connection: BufReader<TcpStream>,
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A byte string.
    Text(Vec<u8>),
    /// An error's text.
    Error(String),
    /// An integer.
    Integer(i64),
    /// Nothing.
    Nil,
    /// Several replies.
    Array(Vec<Reply>),
}

impl Server {
    /// Starts a server; `None` if none is installed.
    pub fn start() -> Option<Self> {
        let server = RedisServer::start(&[])?;
        let connection = BufReader::new(server.connect());
        Some(Self { _server: server, connection })
    }

    /// Returns the reply to a command.
    pub fn call(&mut self, command: &[&dyn AsRef<[u8]>]) -> Reply {
        let mut request = format!("*{}\r\n", command.len()).into_bytes();
        for part in command {
            let part = part.as_ref();
            request.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            request.extend_from_slice(part);
            request.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&request).expect("the server reads");
        self.reply()
    }

    /// Returns the reply to a command whose parts have no spaces.
    pub fn line(&mut self, command: &str) -> Reply {
        let parts: Vec<_> = command.split(' ').collect();
        self.call(&parts.iter().map(|part| part as &dyn AsRef<[u8]>).collect::<Vec<_>>())
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.connection.read_line(&mut line).expect("the server replies");
        let (kind, rest) = line.trim_end().split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        match kind {
            "+" => Reply::Text(rest.as_bytes().to_vec()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Integer(number()),
            _ if number() < 0 => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; number() as usize + 2];
                self.connection.read_exact(&mut bytes).expect("the whole text");
                bytes.truncate(bytes.len() - 2);
                Reply::Text(bytes)
            }
            "*" => Reply::Array((0..number()).map(|_| self.reply()).collect()),
            _ => panic!("no reply: {line}"),
        }
    }
}

impl Reply {
    /// Returns the byte strings of an array.
    pub fn texts(self) -> Vec<Vec<u8>> {
        let text = |reply| match reply {
            Reply::Text(text) => text,
            other => panic!("{other:?} is no text"),
        };
        self.array().into_iter().map(text).collect()
    }

    /// Returns the replies of an array.
    pub fn array(self) -> Vec<Reply> {
        match self {
            Reply::Array(replies) => replies,
            other => panic!("{other:?} is no array"),
        }
    }

    /// Returns the score that the text is. Versions of Redis print different numbers of digits.
    pub fn score(&self) -> f64 {
        match self {
            Reply::Text(text) => String::from_utf8_lossy(text).parse().expect("a number"),
            other => panic!("{other:?} is no score"),
        }
    }
}

impl From<bool> for Reply {
    fn from(value: bool) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<usize> for Reply {
    fn from(value: usize) -> Self {
        Self::Integer(value as i64)
    }
}

impl From<u64> for Reply {
    fn from(value: u64) -> Self {
        Self::Integer(value as i64)
    }
}

impl From<i64> for Reply {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<String> for Reply {
    fn from(value: String) -> Self {
        Self::Text(value.into_bytes())
    }
}

impl From<Vec<u8>> for Reply {
    fn from(value: Vec<u8>) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Reply>> From<Option<T>> for Reply {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nil, T::into)
    }
}

impl<T: Into<Reply>> From<Vec<T>> for Reply {
    fn from(values: Vec<T>) -> Self {
        Self::Array(values.into_iter().map(T::into).collect())
    }
}

/// Errors whose text has no code of its own begin with `ERR`.
impl<T: Into<Reply>, E: std::fmt::Display> From<Result<T, E>> for Reply {
    fn from(value: Result<T, E>) -> Self {
        let error = |error: E| match error.to_string() {
            text if text.starts_with(|letter: char| letter.is_ascii_uppercase())
                && text.split(' ').next().is_some_and(|word| word == word.to_uppercase()) =>
            {
                Self::Error(text)
            }
            text => Self::Error(format!("ERR {text}")),
        };
        value.map_or_else(error, T::into)
    }
}
