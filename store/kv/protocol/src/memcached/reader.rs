// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reader of a connection.
//!
//! 1. It looks for the end of a line. The search continues where the last one ended.
//! 2. It reads the line. If a value follows, it waits until the value is complete.
//! 3. It checks the end of the value, and returns the request.
//!
//! A value that is too large is refused at its line, and its bytes are taken as they arrive. So the
//! caller never has to keep more than `max(line_bytes_max, item_bytes_max)` bytes and a line.

use super::scan::{LineEnd, line_end};
use super::text::parse;
use super::{Error, Refusal, Request};

/// Maximum number of bytes of a line, except of `get`, `gets`, `gat` and `gats`.
pub const LINE_BYTES: usize = 2_048;
/// Spaces that may come before the command of a longer line.
const SPACES_MAX: usize = 100;
/// First byte of a request of the binary protocol.
const BINARY_MAGIC: u8 = 0x80;

/// Limits for requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of an item in bytes, which the original has as `-I`. As there, an item is its
    /// key, its value, and 59 or 63 bytes more.
    pub item_bytes_max: usize,
    /// Maximum number of bytes of a line with many keys. The original has no limit.
    pub line_bytes_max: usize,
}

impl Default for Limits {
    /// Both are 1 MiB.
    fn default() -> Self {
        Self { item_bytes_max: 1 << 20, line_bytes_max: 1 << 20 }
    }
}

impl Limits {
    /// Returns whether an item can be stored. The original counts a header of 48 bytes, a CAS
    /// number, a zero byte after the key, client flags other than 0, and the end of a line.
    #[inline]
    pub(super) fn has_room(&self, key_bytes: usize, client_flags: u32, value_bytes: usize) -> bool {
        let client_flags_bytes = if client_flags == 0 { 0 } else { 4 };
        48 + 8 + key_bytes + 1 + client_flags_bytes + value_bytes + 2 <= self.item_bytes_max
    }
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// Number of bytes that the caller has to drop from the begin of its buffer.
    pub taken: usize,
    /// The next step.
    pub step: Step<'a>,
}

/// Next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A request has to be carried out.
    Request(Request<'a>),
    /// A request is refused with a reply.
    Refused(Refusal<'a>),
    /// The next step needs at least that many bytes, those not taken included.
    Wait {
        /// Number of bytes.
        needs: usize,
    },
    /// The connection has to be closed without a reply to what it received last.
    Close,
}

/// Reads the requests of one connection.
#[derive(Clone, Debug)]
pub struct Reader {
    limits: Limits,
    /// Bytes of the buffer in which there is no newline.
    searched: usize,
    /// Bytes of the buffer without which there is no next step.
    needs: usize,
    /// Bytes of a refused value that have not been received.
    swallow: usize,
    has_begun: bool,
    is_closed: bool,
}

impl Reader {
    /// Makes the reader of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, searched: 0, needs: 1, swallow: 0, has_begun: false, is_closed: false }
    }

    /// Reads the next request from the received bytes: those that earlier calls did not take, and
    /// any number of new ones.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Read<'a> {
        let swallowed = self.swallow.min(bytes.len());
        self.swallow -= swallowed;
        let bytes = &bytes[swallowed..];
        if bytes.len() < self.needs || self.is_closed {
            let needs = self.needs;
            let step = if self.is_closed { Step::Close } else { Step::Wait { needs } };
            return Read { taken: swallowed, step };
        }
        if !self.has_begun {
            self.has_begun = true;
            // A client of the binary protocol would wait forever for replies.
            self.is_closed = bytes[0] == BINARY_MAGIC;
        }
        let mut read = match line_end(bytes, self.searched) {
            _ if self.is_closed => self.close(),
            Some(end) if end.newline <= LINE_BYTES || self.may_be_long(bytes, end.newline) => {
                self.line(bytes, end)
            }
            None if bytes.len() <= LINE_BYTES || self.may_be_long(bytes, bytes.len()) => {
                self.wait(bytes.len(), bytes.len() + 1)
            }
            _ => self.close(),
        };
        read.taken += swallowed;
        read
    }

    /// Reads a complete line.
    fn line<'a>(&mut self, bytes: &'a [u8], end: LineEnd) -> Read<'a> {
        let LineEnd { newline, has_zero } = end;
        // In a line of one byte, the original takes a carriage return for a command.
        let has_return = newline > 1 && bytes[newline - 1] == b'\r';
        let mut line = &bytes[..newline - usize::from(has_return)];
        // A search that was continued knows only a part of the line.
        if has_zero || self.searched > 0 {
            line = line.split(|byte| *byte == 0).next().unwrap_or(line);
        }
        let mut follows = 0;
        let mut read = Read { taken: newline + 1, step: Step::Close };
        parse(line, &self.limits, &mut read.step, &mut follows);
        (self.searched, self.needs) = (0, 1);
        if follows > 0 {
            self.follow(&mut read, bytes, follows);
        } else if matches!(read.step, Step::Close) {
            return self.close();
        }
        read
    }

    /// Adds its value to a request, or takes the value of a refused one.
    #[inline]
    fn follow<'a>(&mut self, read: &mut Read<'a>, bytes: &'a [u8], follows: usize) {
        let (begin, end) = (read.taken, read.taken + follows);
        let (value, is_quiet) = match &mut read.step {
            Step::Request(Request::Store(store)) => (&mut store.value, store.is_quiet),
            Step::Request(Request::MetaSet { value, .. }) => (value, false),
            _ => {
                read.taken = end.min(bytes.len());
                self.swallow = end - read.taken;
                return;
            }
        };
        let Some(received) = bytes.get(begin..end) else {
            *read = self.wait(begin - 1, end);
            return;
        };
        read.taken = end;
        match received.split_last_chunk() {
            Some((bytes, b"\r\n")) => *value = bytes,
            _ => read.step = Step::Refused(Refusal { is_quiet, ..Error::DataChunk.into() }),
        }
    }

    /// Waits for more bytes, after a search for a newline in those that are there.
    fn wait<'a>(&mut self, searched: usize, needs: usize) -> Read<'a> {
        (self.searched, self.needs) = (searched, needs);
        Read { taken: 0, step: Step::Wait { needs } }
    }

    #[cold]
    fn close<'a>(&mut self) -> Read<'a> {
        self.is_closed = true;
        Read { taken: 0, step: Step::Close }
    }

    /// Returns whether a line may have that many bytes. Only a retrieval has many keys.
    #[cold]
    fn may_be_long(&self, bytes: &[u8], line_bytes: usize) -> bool {
        let spaces = bytes.iter().take(SPACES_MAX + 1).take_while(|byte| **byte == b' ').count();
        let begins = |command: &&[u8]| bytes[spaces..].starts_with(command);
        line_bytes <= self.limits.line_bytes_max
            && spaces <= SPACES_MAX
            && [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_says_how_many_bytes_it_needs() {
        let mut reader = Reader::new(Limits::default());
        let bytes = b"set k 0 0 3\r\nabc\r\nmn\r\n";
        for (received, needs) in [(0, 1), (5, 6), (12, 13), (13, 18), (17, 18)] {
            let read = Read { taken: 0, step: Step::Wait { needs } };
            assert_eq!(reader.read(&bytes[..received]), read, "{received}");
        }
        let Read { taken, step } = reader.read(bytes);
        let Step::Request(Request::Store(store)) = step else { panic!("{step:?}") };
        assert_eq!((taken, store.value), (18, &b"abc"[..]));
        assert_eq!(reader.read(&bytes[18..]).step, Step::Request(Request::MetaNoop));
        assert_eq!(reader.read(b"").step, Step::Wait { needs: 1 });
    }

    #[test]
    fn a_binary_client_is_closed_at_its_first_byte() {
        let mut reader = Reader::new(Limits::default());
        assert_eq!(reader.read(b"\x80"), Read { taken: 0, step: Step::Close });
        assert_eq!(reader.read(b"mn\r\n").step, Step::Close, "it stays closed");
        // Later, such a byte is one of an unknown command.
        let mut reader = Reader::new(Limits::default());
        assert_eq!(reader.read(b"mn\r\n\x80\r\n").taken, 4);
        assert!(matches!(reader.read(b"\x80\r\n").step, Step::Refused(_)));
    }

    #[test]
    fn a_refused_value_is_taken_as_it_arrives() {
        let limits = Limits { item_bytes_max: 100, ..Limits::default() };
        let mut reader = Reader::new(limits);
        let read = reader.read(b"set k 0 0 50\r\n12345");
        assert!(matches!(read.step, Step::Refused(_)));
        assert_eq!((read.taken, reader.swallow), (19, 47));
        assert_eq!(reader.read(&[b'v'; 40]), Read { taken: 40, step: Step::Wait { needs: 1 } });
        let read = Read { taken: 11, step: Step::Request(Request::MetaNoop) };
        assert_eq!(reader.read(b"vvvvv\r\nmn\r\nrest"), read);
    }

    #[test]
    fn sizes_of_items_are_those_of_the_original() {
        let limits = Limits { item_bytes_max: 100, ..Limits::default() };
        for (key_bytes, client_flags, value_bytes) in [(1, 0, 40), (1, 7, 36), (31, 0, 10)] {
            assert!(limits.has_room(key_bytes, client_flags, value_bytes));
            assert!(!limits.has_room(key_bytes, client_flags, value_bytes + 1));
        }
    }

    #[test]
    fn a_result_is_moved_without_a_call() {
        // Up to this size, moves are a few instructions.
        assert!(size_of::<Read>() <= 128);
    }
}
