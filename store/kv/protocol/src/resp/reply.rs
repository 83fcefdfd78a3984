// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of a server, written into a buffer in the version of RESP that the client has chosen
//! with `HELLO`. Version 2 has no maps, sets, doubles and so on; each is written as Redis writes it
//! in that version.
//!
//! An aggregate is written as its header, followed by its elements: `array(2)`, then two values. A
//! request is an array of bulk strings, so that a client writes its requests with the same calls.

use super::number;

/// Version of RESP of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Version {
    /// RESP2, with which each connection begins.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// Replies that are always the same, for [`Writer::raw`].
pub mod shared {
    /// The usual status.
    pub const OK: &[u8] = b"+OK\r\n";
    /// Status of `PING`.
    pub const PONG: &[u8] = b"+PONG\r\n";
    /// Status of a request inside a transaction.
    pub const QUEUED: &[u8] = b"+QUEUED\r\n";
    /// The integer 0.
    pub const ZERO: &[u8] = b":0\r\n";
    /// The integer 1.
    pub const ONE: &[u8] = b":1\r\n";
    /// The integer -1.
    pub const MINUS_ONE: &[u8] = b":-1\r\n";
    /// The integer -2.
    pub const MINUS_TWO: &[u8] = b":-2\r\n";
    /// A string without bytes.
    pub const EMPTY_STRING: &[u8] = b"$0\r\n\r\n";
    /// An array without elements.
    pub const EMPTY_ARRAY: &[u8] = b"*0\r\n";
    /// The command does not work on a value of this type.
    pub const WRONG_TYPE: &[u8] =
        b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
}

/// Appends replies to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    output: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Writer<'a> {
    /// A writer that appends to `output`.
    pub fn new(output: &'a mut Vec<u8>, version: Version) -> Self {
        Self { output, version }
    }

    /// Number of bytes in the buffer.
    #[inline]
    pub fn len(&self) -> usize {
        self.output.len()
    }

    /// The buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    /// Takes back everything behind the first `bytes` bytes of the buffer: an error replaces a
    /// reply that had begun.
    pub fn truncate(&mut self, bytes: usize) {
        self.output.truncate(bytes);
    }

    /// Writes `header` in front of everything behind the first `bytes` bytes of the buffer: of an
    /// array whose elements are counted while they are written. They move once.
    pub fn before(&mut self, bytes: usize, header: impl FnOnce(&mut Self)) {
        let end = self.output.len();
        header(self);
        let header_bytes = self.output.len() - end;
        self.output[bytes..].rotate_right(header_bytes);
    }

    /// The version in which replies are written.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Complete replies, for example of [`shared`].
    #[inline]
    pub fn raw(&mut self, replies: &[u8]) {
        self.output.extend_from_slice(replies);
    }

    /// A status, such as `+OK`. Line ends inside are written as spaces.
    pub fn status(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error, whose first word is its code, such as `ERR syntax error`. Line ends inside are
    /// written as spaces.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// A string of any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.output.reserve(bytes.len() + HEADER_BYTES + 2);
        self.length(b'$', bytes.len());
        self.output.extend_from_slice(bytes);
        self.end();
    }

    /// The absence of a value: `$-1` or `_`.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.is_three() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The absence of an array: `*-1` or `_`.
    #[inline]
    pub fn null_array(&mut self) {
        self.raw(if self.is_three() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// Header of an array, which `elements` values follow.
    #[inline]
    pub fn array(&mut self, elements: usize) {
        self.length(b'*', elements);
    }

    /// Header of a map, which `entries` keys follow, each with its value. An array of both in
    /// version 2.
    #[inline]
    pub fn map(&mut self, entries: usize) {
        if self.is_three() {
            self.length(b'%', entries);
        } else {
            self.length(b'*', 2 * entries);
        }
    }

    /// Header of a set, which `elements` values follow. An array in version 2.
    #[inline]
    pub fn set(&mut self, elements: usize) {
        self.length(if self.is_three() { b'~' } else { b'*' }, elements);
    }

    /// Header of data that is no reply to a request, such as a published message. An array in
    /// version 2.
    #[inline]
    pub fn push(&mut self, elements: usize) {
        self.length(if self.is_three() { b'>' } else { b'*' }, elements);
    }

    /// Header of attributes of the next value, which `entries` keys follow, each with its value.
    /// Version 2 has no attributes: if the result is false, nothing was written, and the caller
    /// leaves out the entries.
    #[must_use = "entries are written only if the version has attributes"]
    pub fn attribute(&mut self, entries: usize) -> bool {
        if self.is_three() {
            self.length(b'|', entries);
        }
        self.is_three()
    }

    /// A boolean: the integer 1 or 0 in version 2.
    pub fn boolean(&mut self, value: bool) {
        self.raw(match (self.version, value) {
            (Version::Two, false) => b":0\r\n",
            (Version::Two, true) => b":1\r\n",
            (Version::Three, false) => b"#f\r\n",
            (Version::Three, true) => b"#t\r\n",
        });
    }

    /// A double, with the digits that Redis 7.2 prints: the shortest that give it again. A string
    /// in version 2.
    pub fn double(&mut self, value: f64) {
        self.double_text(number::double(value).as_bytes());
    }

    /// A double whose digits the caller has chosen. A string in version 2.
    pub fn double_text(&mut self, digits: &[u8]) {
        if self.is_three() {
            self.output.push(b',');
            self.output.extend_from_slice(digits);
            self.end();
        } else {
            self.bulk(digits);
        }
    }

    /// An integer of any size, in decimal with an optional sign. A string in version 2.
    pub fn big_number(&mut self, digits: &str) {
        if self.is_three() {
            self.line(b'(', digits);
        } else {
            self.bulk(digits.as_bytes());
        }
    }

    /// Text in a format, such as `txt` or `mkd`. A string without the format in version 2.
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        if !self.is_three() {
            return self.bulk(text);
        }
        self.output.reserve(text.len() + HEADER_BYTES + 6);
        self.length(b'=', text.len() + 4);
        self.output.extend_from_slice(&format);
        self.output.push(b':');
        self.output.extend_from_slice(text);
        self.end();
    }

    #[inline]
    fn is_three(&self) -> bool {
        self.version == Version::Three
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.output.reserve(text.len() + 3);
        self.output.push(kind);
        let is_end = |byte| matches!(byte, b'\r' | b'\n');
        self.output.extend(text.bytes().map(|byte| if is_end(byte) { b' ' } else { byte }));
        self.end();
    }

    #[inline]
    fn length(&mut self, kind: u8, length: usize) {
        // Most lengths and counts have few digits, and are written at once.
        match length {
            0..=9 => {
                let digit = b'0' + length as u8;
                self.output.extend_from_slice(&[kind, digit, b'\r', b'\n']);
            }
            10..=99 => {
                let digits = [length / 10, length % 10].map(|digit| b'0' + digit as u8);
                self.output.extend_from_slice(&[kind, digits[0], digits[1], b'\r', b'\n']);
            }
            // No length of memory is above the range.
            _ => self.number(kind, i64::try_from(length).unwrap_or(i64::MAX)),
        }
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        self.output.extend_from_slice(number::line(kind, value).as_bytes());
    }

    #[inline]
    fn end(&mut self) {
        self.output.extend_from_slice(b"\r\n");
    }
}

/// Bytes of the longest line with an integer: its type, a sign, 19 digits and the line end.
const HEADER_BYTES: usize = 23;

#[cfg(test)]
mod tests {
    use super::*;

    /// Both versions of what `write` writes.
    fn written(write: impl Fn(&mut Writer)) -> [String; 2] {
        [Version::Two, Version::Three].map(|version| {
            let mut output = vec![];
            write(&mut Writer::new(&mut output, version));
            String::from_utf8(output).expect("samples are UTF-8").replace("\r\n", " ")
        })
    }

    #[track_caller]
    fn check(write: impl Fn(&mut Writer), two: &str, three: &str) {
        assert_eq!(written(write), [two, three]);
    }

    #[test]
    fn what_both_versions_have_is_the_same() {
        check(|it| it.status("OK"), "+OK ", "+OK ");
        check(|it| it.error("ERR no\r\nsuch key\n"), "-ERR no  such key  ", "-ERR no  such key  ");
        check(|it| it.integer(i64::MIN), ":-9223372036854775808 ", ":-9223372036854775808 ");
        check(|it| it.integer(7), ":7 ", ":7 ");
        check(|it| it.bulk(b""), "$0  ", "$0  ");
        check(|it| it.bulk(b"0123456789ab"), "$12 0123456789ab ", "$12 0123456789ab ");
        check(|it| it.array(1_234_567), "*1234567 ", "*1234567 ");
        check(|it| it.raw(shared::EMPTY_STRING), "$0  ", "$0  ");
    }

    #[test]
    fn version_2_has_replacements() {
        check(|it| it.null(), "$-1 ", "_ ");
        check(|it| it.null_array(), "*-1 ", "_ ");
        check(|it| it.map(3), "*6 ", "%3 ");
        check(|it| it.set(100), "*100 ", "~100 ");
        check(|it| it.push(10), "*10 ", ">10 ");
        check(|it| it.boolean(true), ":1 ", "#t ");
        check(|it| it.boolean(false), ":0 ", "#f ");
        check(|it| it.double(0.1), "$3 0.1 ", ",0.1 ");
        check(|it| it.double(f64::NEG_INFINITY), "$4 -inf ", ",-inf ");
        check(|it| it.double_text(b"0.10"), "$4 0.10 ", ",0.10 ");
        check(
            |it| it.big_number("-12345678901234567890"),
            "$21 -12345678901234567890 ",
            "(-12345678901234567890 ",
        );
        check(|it| it.verbatim(*b"txt", b"Some"), "$4 Some ", "=8 txt:Some ");
    }

    #[test]
    fn a_header_can_follow_its_elements() {
        let write = |it: &mut Writer| {
            it.integer(1);
            let start = it.len();
            it.integer(2);
            it.bulk(b"three");
            it.before(start, |it| it.map(1));
            it.before(start, |it| it.array(1));
        };
        check(write, ":1 *1 *2 :2 $5 three ", ":1 *1 %1 :2 $5 three ");
    }

    #[test]
    fn attributes_are_left_out_of_version_2() {
        let write = |it: &mut Writer| {
            if it.attribute(1) {
                it.status("ttl");
                it.integer(3_600);
            }
            it.array(0);
        };
        check(write, "*0 ", "|1 +ttl :3600 *0 ");
    }

    #[test]
    fn lengths_of_all_sizes_are_decimal() {
        for length in [0, 9, 10, 99, 100, 101, 65_536, usize::MAX >> 1] {
            let expected = format!("*{length} ");
            check(|it| it.array(length), &expected, &expected);
        }
    }
}
