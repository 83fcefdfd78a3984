// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients, read as Redis 7.2 reads them: arrays of bulk strings, such as
//! `*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n`, or inline requests, such as `GET key\n`.
//!
//! The life of a request:
//! 1. [`RequestReader::read`] is given all bytes received since the end of the last request.
//! 2. If they are not a complete request, it remembers how far it came. The next call is given the
//!    same bytes and those that arrived since, and continues there. A bulk string is not looked at.
//! 3. Arguments of a complete request are slices of the given bytes, and a batch may have those of
//!    several requests. Quotes of inline requests are resolved in a buffer of the reader.
//! 4. The caller drops [`Request::bytes`] bytes from its buffer. The next call begins a request.
//!
//! Redis is lenient in ways that clients may depend on, and this reader is too: a line ends with a
//! carriage return and any other byte, any two bytes end a bulk string, and a line that contains a
//! zero byte is never complete.

use super::error::ProtocolError;
use super::inline;
use super::number::parse_integer;
use std::ops::Index;

/// Bytes that a line may have before its end.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Arguments that a client may send before it has authenticated.
const UNAUTHENTICATED_ARGUMENTS: usize = 10;
/// Bytes of an argument that a client may send before it has authenticated.
const UNAUTHENTICATED_BYTES: usize = 16 * 1024;
/// Arguments for which the reader keeps memory between requests.
const KEPT_ARGUMENTS: usize = 1024;
/// Bytes of inline requests for which the reader keeps memory between requests.
const KEPT_BYTES: usize = 4 * 1024;

/// Limits of requests, checked before anything is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestLimits {
    /// Whether the client has authenticated, or need not. Otherwise a request has at most 10
    /// arguments of at most 16 KiB.
    pub is_authenticated: bool,
    /// Maximum number of arguments.
    pub arguments: usize,
    /// Maximum bytes of an argument: `proto-max-bulk-len` of Redis.
    pub argument_bytes: usize,
    /// Maximum bytes of a request: `client-query-buffer-limit` of Redis.
    pub request_bytes: usize,
}

impl Default for RequestLimits {
    /// 1024 * 1024 arguments, 512 MiB for one of them, 1 GiB for all.
    fn default() -> Self {
        Self {
            is_authenticated: true,
            arguments: 1024 * 1024,
            argument_bytes: 512 << 20,
            request_bytes: 1 << 30,
        }
    }
}

/// Result of [`RequestReader::read`].
#[derive(Debug)]
pub enum Read<'reader, 'received> {
    /// A complete request.
    Complete(Request<'reader, 'received>),
    /// More bytes are needed.
    Incomplete {
        /// At least this number of further bytes is needed. A peer claims it: take memory as bytes
        /// arrive, not for all of it.
        missing: usize,
    },
}

/// The arguments of a request; the first is the name of a command. A request without arguments (an
/// empty line, or `*0`) has no reply.
#[derive(Clone, Copy, Debug)]
pub struct Request<'reader, 'received> {
    source: &'reader [u8],
    /// The source, if it is not the buffer of the reader.
    received: Option<&'received [u8]>,
    ranges: &'reader [(usize, usize)],
    bytes: usize,
}

impl<'reader, 'received> Request<'reader, 'received> {
    /// Number of bytes of the request, which the caller drops from its buffer.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// There are no arguments.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// An argument, counted from 0.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&'reader [u8]> {
        self.ranges.get(at).map(|&(start, end)| &self.source[start..end])
    }

    /// An argument as a part of the received bytes, which remains when the reader reads the next
    /// request, so that a batch can have the arguments of several. `None` also for inline requests.
    #[inline]
    pub fn get_received(&self, at: usize) -> Option<&'received [u8]> {
        let (received, &(start, end)) = (self.received?, self.ranges.get(at)?);
        Some(&received[start..end])
    }

    /// All arguments in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'reader [u8]> + use<'reader> {
        let source = self.source;
        self.ranges.iter().map(move |&(start, end)| &source[start..end])
    }
}

impl Index<usize> for Request<'_, '_> {
    type Output = [u8];

    /// # Panics
    /// If there is no such argument.
    #[inline]
    fn index(&self, at: usize) -> &[u8] {
        let (start, end) = self.ranges[at];
        &self.source[start..end]
    }
}

/// State of a request.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing of the request was read.
    Start,
    /// Arguments are missing.
    Arguments { missing: usize },
    /// Bytes of the argument that begins at the position are missing.
    Argument { missing: usize, bytes: usize },
    /// The connection has to be closed.
    Failed(ProtocolError),
}

/// Reads the requests of a connection.
#[derive(Debug)]
pub struct RequestReader {
    limits: RequestLimits,
    state: State,
    /// Bytes of the current request that were read.
    position: usize,
    /// Bytes at the position that contain no line end.
    searched: usize,
    /// Ranges of the arguments, in the received bytes or in `words`.
    ranges: Vec<(usize, usize)>,
    /// Bytes of the arguments of an inline request.
    words: Vec<u8>,
}

impl RequestReader {
    /// A reader at the begin of a connection.
    pub fn new(limits: RequestLimits) -> Self {
        let (ranges, words) = (vec![], vec![]);
        Self { limits, state: State::Start, position: 0, searched: 0, ranges, words }
    }

    /// Changes the limits for lengths that were not yet read, for example when a client has
    /// authenticated.
    pub fn set_limits(&mut self, limits: RequestLimits) {
        self.limits = limits;
    }

    /// Forgets the begin of a request that was incomplete: the next call of [`RequestReader::read`]
    /// is given other bytes, for example those of requests that were read and not executed.
    pub fn restart(&mut self) {
        (self.state, self.position, self.searched) = (State::Start, 0, 0);
    }

    /// Reads one request from all bytes received since the end of the last complete one.
    ///
    /// # Errors
    /// The bytes are no request. The connection has to be closed after
    /// [the reply](ProtocolError::write_reply); each further call returns the same error.
    ///
    /// # Panics
    /// May panic if bytes that were given before are missing.
    #[inline]
    pub fn read<'reader, 'received: 'reader>(
        &'reader mut self,
        received: &'received [u8],
    ) -> Result<Read<'reader, 'received>, ProtocolError> {
        match self.advance(received) {
            Ok(None) => {
                let bytes = self.position;
                (self.state, self.position) = (State::Start, 0);
                let received = Some(received).filter(|received| received[0] == b'*');
                let source = received.unwrap_or(&self.words);
                let ranges = &self.ranges;
                Ok(Read::Complete(Request { source, received, ranges, bytes }))
            }
            Ok(Some(missing)) => Ok(Read::Incomplete { missing }),
            Err(error) => {
                self.state = State::Failed(error);
                Err(error)
            }
        }
    }

    /// Reads as much as possible, and returns the number of bytes that are missing at least.
    #[inline]
    fn advance(&mut self, received: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let missing = match self.state {
            State::Start => {
                match received.first() {
                    None => return Ok(Some(1)),
                    Some(b'*') => {}
                    Some(_) => return self.inline(received),
                }
                let Some(count) = self.count(received)? else { return Ok(Some(1)) };
                self.forget();
                count
            }
            State::Arguments { missing } => missing,
            State::Argument { missing, bytes } => {
                if let Some(more) = self.argument(received, bytes) {
                    return Ok(Some(more));
                }
                missing - 1
            }
            State::Failed(error) => return Err(error),
        };
        self.arguments(received, missing)
    }

    /// Reads the arguments from the length of one.
    #[inline]
    fn arguments(
        &mut self,
        received: &[u8],
        mut missing: usize,
    ) -> Result<Option<usize>, ProtocolError> {
        while missing > 0 {
            let Some(bytes) = self.length(received)? else {
                self.state = State::Arguments { missing };
                return Ok(Some(1));
            };
            if let Some(more) = self.argument(received, bytes) {
                self.state = State::Argument { missing, bytes };
                return Ok(Some(more));
            }
            missing -= 1;
        }
        Ok(None)
    }

    /// Reads the argument at the position, or returns the number of bytes that it lacks.
    #[inline]
    fn argument(&mut self, received: &[u8], bytes: usize) -> Option<usize> {
        let end = self.position + bytes;
        if received.len() < end + 2 {
            return Some(end + 2 - received.len());
        }
        self.ranges.push((self.position, end));
        self.position = end + 2;
        None
    }

    /// Reads the number of arguments.
    #[inline]
    fn count(&mut self, received: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let count = match short_length(received) {
            Some((count, length)) => {
                self.pass(length);
                count
            }
            None => {
                let Some(line) = self.line(received, b'\r', ProtocolError::CountTooBig)? else {
                    return Ok(None);
                };
                let count = parse_integer(&line[1..]).ok_or(ProtocolError::InvalidCount)?;
                self.pass(line.len() + 2);
                // Redis ignores requests with a negative number of arguments.
                usize::try_from(count.max(0)).unwrap_or(usize::MAX)
            }
        };
        if count > self.limits.arguments {
            return Err(ProtocolError::InvalidCount);
        }
        if count > UNAUTHENTICATED_ARGUMENTS && !self.limits.is_authenticated {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        Ok(Some(count))
    }

    /// Reads the length of an argument.
    #[inline]
    fn length(&mut self, received: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let rest = &received[self.position..];
        let bytes = match short_length(rest) {
            Some((bytes, length)) if rest[0] == b'$' => {
                self.pass(length);
                bytes
            }
            _ => {
                let Some(line) = self.line(received, b'\r', ProtocolError::LengthTooBig)? else {
                    return Ok(None);
                };
                // An empty line: its end is the first byte.
                let first = received[self.position];
                if first != b'$' {
                    return Err(ProtocolError::ExpectedBulk { got: first });
                }
                let bytes = parse_integer(&line[1..]).ok_or(ProtocolError::InvalidLength)?;
                self.pass(line.len() + 2);
                usize::try_from(bytes).map_err(|_| ProtocolError::InvalidLength)?
            }
        };
        if bytes > self.limits.argument_bytes {
            return Err(ProtocolError::InvalidLength);
        }
        if bytes > UNAUTHENTICATED_BYTES && !self.limits.is_authenticated {
            return Err(ProtocolError::UnauthenticatedLength);
        }
        // Both are at most `isize::MAX`, the position because it is a place in memory.
        if bytes.saturating_add(self.position + 2) > self.limits.request_bytes {
            return Err(ProtocolError::RequestTooLarge);
        }
        Ok(Some(bytes))
    }

    /// Reads an inline request.
    #[cold]
    fn inline(&mut self, received: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(received, b'\n', ProtocolError::InlineTooBig)? else {
            return Ok(Some(1));
        };
        self.forget();
        self.pass(line.len() + 1);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        inline::split(line, &mut self.words, &mut self.ranges)?;
        Ok(None)
    }

    /// The line at the position, if its end and, after a carriage return, one more byte have
    /// arrived. As in Redis, the search ends at a zero byte.
    #[cold]
    fn line<'a>(
        &mut self,
        received: &'a [u8],
        end: u8,
        too_big: ProtocolError,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let rest = &received[self.position..];
        let limit = rest.len().min(LINE_BYTES_MAX + 1);
        let found = rest[self.searched..limit].iter().position(|&it| it == end || it == 0);
        self.searched = found.map_or(limit, |at| self.searched + at);
        if found.is_some() && rest[self.searched] == end {
            let is_complete = end == b'\n' || self.searched + 1 < rest.len();
            return Ok(is_complete.then(|| &rest[..self.searched]));
        }
        if rest.len() > LINE_BYTES_MAX { Err(too_big) } else { Ok(None) }
    }

    /// Moves the position.
    #[inline]
    fn pass(&mut self, bytes: usize) {
        self.position += bytes;
        self.searched = 0;
    }

    /// Forgets the arguments of the last request, and memory that few requests need.
    #[inline]
    fn forget(&mut self) {
        self.ranges.clear();
        self.words.clear();
        if self.ranges.capacity() > KEPT_ARGUMENTS {
            self.ranges.shrink_to(KEPT_ARGUMENTS);
        }
        if self.words.capacity() > KEPT_BYTES {
            self.words.shrink_to(KEPT_BYTES);
        }
    }
}

/// Reads a usual line with a length, such as `$12\r\n`: one byte, up to nine digits without leading
/// zeros, a carriage return and any byte. Returns the number and the bytes of the line. For any
/// other line, also an incomplete one, the answer is `None`, and the careful reader looks at it.
#[inline]
fn short_length(line: &[u8]) -> Option<(usize, usize)> {
    /// Digits of numbers that need no check for an overflow.
    const DIGITS_MAX: usize = 9;

    let digit = |at: usize| line.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|it| *it < 10);
    let mut number = usize::from(digit(1)?);
    let mut at = 2;
    if number != 0 {
        while let Some(digit) = digit(at) {
            if at > DIGITS_MAX {
                return None;
            }
            number = 10 * number + usize::from(digit);
            at += 1;
        }
    }
    (line.get(at) == Some(&b'\r') && line.len() > at + 1).then_some((number, at + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> RequestReader {
        RequestReader::new(RequestLimits::default())
    }

    #[track_caller]
    fn missing(reader: &mut RequestReader, received: &[u8]) -> usize {
        match reader.read(received) {
            Ok(Read::Incomplete { missing }) => missing,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn complete(reader: &mut RequestReader, received: &[u8]) -> (usize, Vec<Vec<u8>>) {
        match reader.read(received) {
            Ok(Read::Complete(request)) => {
                (request.bytes(), request.iter().map(<[u8]>::to_vec).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arguments_are_slices_of_the_received_bytes() {
        let received = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nrest";
        let mut reader = reader();
        let Ok(Read::Complete(request)) = reader.read(received) else { panic!("it is complete") };
        assert_eq!((request.bytes(), request.len(), request.is_empty()), (22, 2, false));
        assert_eq!((&request[0], request.get(1)), (&b"GET"[..], Some(&b"key"[..])));
        assert_eq!(request.get(2), None);
        assert!(received.as_ptr_range().contains(&request[1].as_ptr()));
        assert!(request.iter().eq([&b"GET"[..], b"key"]));
    }

    #[test]
    fn arguments_of_several_requests_are_used_together() {
        let received = b"*1\r\n$1\r\na\r\nb c\r\n*2\r\n$1\r\nd\r\n$2\r\nef\r\n";
        let (mut reader, mut start, mut batch) = (reader(), 0, vec![]);
        while let Ok(Read::Complete(request)) = reader.read(&received[start..]) {
            batch.extend((0..2).filter_map(|at| request.get_received(at)));
            start += request.bytes();
        }
        assert_eq!((start, batch), (received.len(), vec![&b"a"[..], b"d", b"ef"]));
    }

    #[test]
    fn a_large_argument_is_not_looked_at_again() {
        let mut reader = reader();
        let mut received = b"*1\r\n$100000\r\n".to_vec();
        assert_eq!(missing(&mut reader, &received), 100_002);
        received.extend(vec![b'\r'; 70_000]);
        assert_eq!(missing(&mut reader, &received), 30_002);
        assert_eq!(reader.position, 13);
        received.extend(vec![b'\n'; 30_002]);
        assert_eq!(complete(&mut reader, &received).0, received.len());
    }

    #[test]
    fn the_search_for_a_line_end_continues_where_it_was() {
        let mut reader = reader();
        let received = [b'a'; LINE_BYTES_MAX + 1];
        for length in [1, 2, 1_000, LINE_BYTES_MAX] {
            assert_eq!(missing(&mut reader, &received[..length]), 1);
            assert_eq!(reader.searched, length);
        }
        assert_eq!(reader.read(&received).err(), Some(ProtocolError::InlineTooBig));
        assert_eq!(reader.read(b"PING\r\n").err(), Some(ProtocolError::InlineTooBig));
    }

    #[test]
    fn memory_of_a_large_request_is_not_kept() {
        let mut reader = reader();
        let mut received = b"*2000\r\n".to_vec();
        received.extend(b"$0\r\n\r\n".repeat(2_000));
        assert_eq!(complete(&mut reader, &received).1.len(), 2_000);
        assert!(reader.ranges.capacity() >= 2_000);
        let line = [&[b'a'; 60_000][..], b"\n"].concat();
        assert_eq!(complete(&mut reader, &line).1.len(), 1);
        assert!(reader.ranges.capacity() < 2_000 && reader.words.capacity() >= 60_000);
        complete(&mut reader, b"\n");
        assert!(reader.words.capacity() < 60_000);
    }

    #[test]
    fn the_quick_reader_of_lengths_leaves_the_rest_to_the_careful_one() {
        assert_eq!(short_length(b"$0\r\n"), Some((0, 4)));
        assert_eq!(short_length(b"$123\rx"), Some((123, 6)));
        assert_eq!(short_length(b"$123456789\r\n"), Some((123_456_789, 12)));
        for line in ["", "$", "$\r\n", "$1", "$1\r", "$01\r\n", "$-1\r\n", "$1234567890\r\n", "$1x"]
        {
            assert_eq!(short_length(line.as_bytes()), None, "{line:?}");
        }
    }
}
