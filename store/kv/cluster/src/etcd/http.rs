// SPDX-License-Identifier: Apache-2.0 OR MIT
//! As much of HTTP/1.1 as the JSON gateway of etcd needs: requests with a body, and answers with a
//! length or in chunks.
//!
//! A client of our own and not a crate, because callers depend on three things: every wait ends at
//! a moment that the caller chooses, a caller knows if a request that failed may have been
//! executed, and an answer that does not end (a watch) can be read in parts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest head of an answer, in bytes, and longest line of a chunk's length.
const MAXIMUM_HEAD_BYTES: usize = 16 << 10;
/// Longest body of an answer, and longest chunk.
pub(super) const MAXIMUM_BODY_BYTES: usize = 16 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// A connection whose reads and writes fail at a deadline.
pub(super) struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    /// Connects to an address.
    pub(super) fn connect(address: &SocketAddr, deadline: Instant) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(address, left(deadline)?)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, deadline })
    }

    /// Sets the moment at which reads and writes fail from now on.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Sends a request.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        let mut rest = request;
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(left(self.deadline)?))?;
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(in_time(error)),
            }
        }
        Ok(())
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(bytes).map_err(in_time)
    }
}

/// The time until a deadline, or the error that it has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The system calls a time-out of a socket `WouldBlock`.
fn in_time(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}

/// The text of a request that posts JSON.
pub(super) fn request(host: &str, path: &str, token: Option<&str>, body: &[u8]) -> Vec<u8> {
    let authorization = token.map(|token| format!("Authorization: {token}\r\n"));
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         {}Content-Length: {}\r\n\r\n",
        authorization.unwrap_or_default(),
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Begin of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    framing: Framing,
    /// The connection can take another request after this answer.
    pub(super) is_kept: bool,
}

/// How the end of an answer is recognised.
#[derive(Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunks,
    Close,
}

/// Reads answers. If a read fails because of the time, it can be repeated, and continues.
pub(super) struct Incoming<R> {
    pub(super) source: R,
    /// Bytes that were read but not used.
    bytes: Vec<u8>,
}

impl<R: Read> Incoming<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, bytes: vec![] }
    }

    /// Reads the head of an answer.
    pub(super) fn head(&mut self) -> io::Result<Head> {
        let end = self.find(b"\r\n\r\n")?;
        let head = parse_head(&self.bytes[..end])?;
        self.bytes.drain(..end + 4);
        Ok(head)
    }

    /// Reads the whole body of an answer.
    pub(super) fn body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        match head.framing {
            Framing::Length(bytes) => {
                self.fill(bytes)?;
                Ok(self.bytes.drain(..bytes).collect())
            }
            Framing::Chunks => {
                let mut body = vec![];
                while let Some(chunk) = self.chunk()? {
                    if body.len() + chunk.len() > MAXIMUM_BODY_BYTES {
                        return Err(malformed("a body is too long"));
                    }
                    body.extend_from_slice(&chunk);
                }
                Ok(body)
            }
            Framing::Close => self.rest(),
        }
    }

    /// Reads a chunk of a body in chunks; none at its end.
    pub(super) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.find(b"\r\n")?;
        let bytes = parse_chunk_length(&self.bytes[..line])?;
        if bytes == 0 {
            // Fields may follow, and an empty line.
            let end = self.find(b"\r\n\r\n")?;
            self.bytes.drain(..end + 4);
            return Ok(None);
        }
        let begin = line + 2;
        self.fill(begin + bytes + 2)?;
        if self.bytes[begin + bytes..][..2] != *b"\r\n" {
            return Err(malformed("a chunk does not end with its length"));
        }
        let chunk = self.bytes[begin..begin + bytes].to_vec();
        self.bytes.drain(..begin + bytes + 2);
        Ok(Some(chunk))
    }

    /// Reads until the connection is closed.
    fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.bytes.len() <= MAXIMUM_BODY_BYTES {
            match self.read_more() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(std::mem::take(&mut self.bytes));
                }
                Err(error) => return Err(error),
            }
        }
        Err(malformed("a body is too long"))
    }

    /// The place of the first `mark`, after reading so far.
    fn find(&mut self, mark: &[u8]) -> io::Result<usize> {
        loop {
            let found = self.bytes.windows(mark.len()).position(|window| window == mark);
            match found {
                Some(place) if place <= MAXIMUM_HEAD_BYTES => return Ok(place),
                None if self.bytes.len() <= MAXIMUM_HEAD_BYTES => self.read_more()?,
                _ => return Err(malformed("a head is too long")),
            }
        }
    }

    /// Reads until there are as many bytes. The caller has limited their number.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        while self.bytes.len() < bytes {
            self.read_more()?;
        }
        Ok(())
    }

    fn read_more(&mut self) -> io::Result<()> {
        let before = self.bytes.len();
        self.bytes.resize(before + READ_BYTES, 0);
        let read = loop {
            match self.source.read(&mut self.bytes[before..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.bytes.truncate(before + read.as_ref().map_or(0, |read| *read));
        match read? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn parse_head(head: &[u8]) -> io::Result<Head> {
    let text = std::str::from_utf8(head).map_err(|_| malformed("a head is no text"))?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (version, status) = (words.next(), words.next().and_then(|word| word.parse().ok()));
    let (Some("HTTP/1.1"), Some(status)) = (version, status) else {
        return Err(malformed("no answer of HTTP/1.1"));
    };
    let mut head = Head { status, framing: Framing::Close, is_kept: true };
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a field has no name"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" if head.framing != Framing::Chunks => {
                let bytes = value.parse().ok().filter(|bytes| *bytes <= MAXIMUM_BODY_BYTES);
                head.framing = Framing::Length(bytes.ok_or_else(|| malformed("a wrong length"))?);
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
                head.framing = Framing::Chunks;
            }
            "transfer-encoding" => return Err(malformed("an unknown encoding of a body")),
            "connection" if value.eq_ignore_ascii_case("close") => head.is_kept = false,
            _ => {}
        }
    }
    head.is_kept &= head.framing != Framing::Close;
    Ok(head)
}

fn parse_chunk_length(line: &[u8]) -> io::Result<usize> {
    // An extension may follow.
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    let bytes = text.and_then(|text| usize::from_str_radix(text, 16).ok());
    bytes.filter(|bytes| *bytes <= MAXIMUM_BODY_BYTES).ok_or_else(|| malformed("a wrong chunk"))
}

fn malformed(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the answer is malformed: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> io::Result<(u16, Vec<u8>, bool)> {
        let mut incoming = Incoming::new(Slow(text.as_bytes()));
        let head = incoming.head()?;
        let body = incoming.body(&head)?;
        Ok((head.status, body, head.is_kept))
    }

    /// Gives a byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut bytes[..1])
        }
    }

    #[test]
    fn answers_are_read() {
        for (text, status, body, is_kept) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", true),
            ("HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", 200, "", true),
            ("HTTP/1.1 503 No\r\n\r\nall the rest", 503, "all the rest", false),
            (
                "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
                 Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
                 0a;x=y\r\n0123456789\r\n0\r\nField: value\r\n\r\n",
                400,
                "abc0123456789",
                false,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", true),
        ] {
            let read = answer(text).expect(text);
            assert_eq!(read, (status, body.as_bytes().to_vec(), is_kept));
        }
    }

    #[test]
    fn malformed_answers_are_refused() {
        let long = format!("HTTP/1.1 200 OK\r\nField: {}", "x".repeat(2 * MAXIMUM_HEAD_BYTES));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 2000000 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            &format!("{chunked}3\r\nabcd\r\n0\r\n\r\n"),
            &format!("{chunked}x\r\n"),
            &format!("{chunked}+1\r\na\r\n0\r\n\r\n"),
            &format!("{chunked}ffffffff\r\n"),
            &format!("{chunked}3\r\nabc\r\n"),
            &long,
        ] {
            assert!(answer(text).is_err(), "{text:.80}");
        }
    }

    #[test]
    fn a_read_that_took_too_long_is_continued() {
        /// Fails before every byte.
        struct Interrupted<'a>(&'a [u8], bool);
        impl Read for Interrupted<'_> {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                self.1 = !self.1;
                if self.1 { Err(ErrorKind::TimedOut.into()) } else { self.0.read(&mut bytes[..1]) }
            }
        }
        let mut incoming = Incoming::new(Interrupted(b"3\r\nabc\r\n0\r\n\r\n", false));
        let mut chunk = || loop {
            match incoming.chunk() {
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                result => break result.expect("it is well formed"),
            }
        };
        assert_eq!(chunk(), Some(b"abc".to_vec()));
        assert_eq!(chunk(), None);
    }
}
