// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of Redis: its protocol, over accelerated connections.

use crate::harness::wait_until;
use crate::roles;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Limit against hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Simple(String),
    Failure(String),
    Number(i64),
    /// The value of a key; `None`: no such key.
    Bytes(Option<Vec<u8>>),
    List(Option<Vec<Answer>>),
}

impl Answer {
    /// Something that is there.
    pub fn of(bytes: &[u8]) -> Self {
        Self::Bytes(Some(bytes.to_vec()))
    }

    /// `OK`.
    pub fn ok() -> Self {
        Self::Simple("OK".to_owned())
    }
}

/// A connection.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    /// Connects.
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Connects, and waits for the upgrade if the library is loaded.
    pub fn settled(port: u16) -> Self {
        let mut client = Self::connect(port).expect("it can be connected");
        client.settle();
        client
    }

    /// Waits until the connection is accelerated, if the library is loaded.
    pub fn settle(&mut self) {
        wait_until("the connection leaves the kernel", || {
            assert_eq!(self.call(&["PING"]), Answer::Simple("PONG".to_owned()));
            !roles::is_preloaded() || roles::is_accelerated(self.reader.get_ref())
        });
    }

    /// The underlying stream.
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Sends a command and waits for the answer.
    pub fn call<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Answer {
        self.send(words).expect("it can be sent");
        self.answer().expect("it is answered")
    }

    /// Sends a command.
    pub fn send<T: AsRef<[u8]>>(&mut self, words: &[T]) -> io::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        self.reader.get_mut().write_all(&bytes)
    }

    /// The next answer.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        let count = || rest.parse::<i64>().map_err(|_| io::Error::other(format!("{line:?}")));
        Ok(match kind {
            "+" => Answer::Simple(rest.to_owned()),
            "-" => Answer::Failure(rest.to_owned()),
            ":" => Answer::Number(count()?),
            "$" => Answer::Bytes(match usize::try_from(count()?) {
                Ok(length) => Some(self.bytes(length)?),
                Err(_) => None,
            }),
            "*" => Answer::List(match usize::try_from(count()?) {
                Ok(length) => Some((0..length).map(|_| self.answer()).collect::<Result<_, _>>()?),
                Err(_) => None,
            }),
            _ => return Err(io::Error::other(format!("{line:?}"))),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes)?;
        assert_eq!(bytes.split_off(length), b"\r\n");
        Ok(bytes)
    }
}
