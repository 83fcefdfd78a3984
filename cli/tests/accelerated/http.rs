// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of HTTP that the tests need, over accelerated connections.

use crate::roles;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Limit against hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// A connection to a server.
pub struct Connection {
    reader: BufReader<TcpStream>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether the connection stays open for another request.
    pub continues: bool,
}

impl Connection {
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    pub fn is_accelerated(&self) -> bool {
        roles::is_accelerated(self.reader.get_ref())
    }

    /// Requests a file.
    pub fn get(&mut self, path: &str, continues: bool) -> io::Result<Answer> {
        self.ask("GET", path, &[], continues)
    }

    /// Sends a request with a body.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        continues: bool,
    ) -> io::Result<Answer> {
        let length = body.len();
        let how = if continues { "keep-alive" } else { "close" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {how}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        self.reader.get_mut().write_all(head.as_bytes())?;
        self.reader.get_mut().write_all(body)?;
        let (first, length, continues) = read_head(&mut self.reader)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(first))?;
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        if !continues {
            let mut behind = vec![];
            self.reader.read_to_end(&mut behind)?;
            assert_eq!(behind, b"", "behind the body is the end");
        }
        Ok(Answer { status, body, continues })
    }
}

/// Reads a head: its first line, the length of the body, and whether the connection stays open.
pub fn read_head(reader: &mut impl BufRead) -> io::Result<(String, usize, bool)> {
    let (mut first, mut length, mut continues) = (None, 0, true);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            _ if first.is_none() => first = Some(line.to_owned()),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().map_err(io::Error::other)?;
            }
            Some((name, value)) if name.eq_ignore_ascii_case("connection") => {
                continues = !value.eq_ignore_ascii_case("close");
            }
            _ => {}
        }
    }
    Ok((first.unwrap_or_default(), length, continues))
}
