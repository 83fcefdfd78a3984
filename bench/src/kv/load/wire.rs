// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of each protocol, and the replies that they have to get. All keys of a load are of one
//! length, and so are all values. So every reply of a kind has the same length, begin and end, and
//! is told from others without being parsed.

use anyhow::{Result, bail};

/// The work of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Returns the value.
    Read,
    /// Stores a value.
    Write,
    /// Adds one to the value, a number.
    Add,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Add];
}

/// A protocol of key-value servers whose requests stand by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Wire {
    /// RESP, as arrays of strings
    Resp,
    /// The same, with `WAIT 1` behind each change
    RespWait,
    /// memcached's text protocol
    Text,
    /// memcached's meta commands
    Meta,
}

impl Wire {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [Self; 4] = [Self::Resp, Self::RespWait, Self::Text, Self::Meta];

    /// Bytes of the longest key.
    pub fn key_bytes_max(self) -> usize {
        match self {
            Self::Resp | Self::RespWait => 512 << 20,
            Self::Text | Self::Meta => 250,
        }
    }

    /// Appends a request for the value of `key`.
    pub fn read(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Resp | Self::RespWait => {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                bulk(key, out);
            }
            Self::Text => append(&[b"get ", key, b"\r\n"], out),
            Self::Meta => append(&[b"mg ", key, b" v\r\n"], out),
        }
    }

    /// Appends a request that stores `value`.
    pub fn write(self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let length = value.len().to_string();
        let length = length.as_bytes();
        match self {
            Self::Resp => {
                out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                bulk(key, out);
                bulk(value, out);
            }
            Self::RespWait => {
                Self::Resp.write(key, value, out);
                out.extend_from_slice(WAIT);
            }
            Self::Text => append(&[b"set ", key, b" 0 0 ", length, b"\r\n", value, b"\r\n"], out),
            Self::Meta => append(&[b"ms ", key, b" ", length, b"\r\n", value, b"\r\n"], out),
        }
    }

    /// Appends a request that adds one to the number under `key`, and returns the sum.
    pub fn add(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Resp => {
                out.extend_from_slice(b"*3\r\n$6\r\nINCRBY\r\n");
                bulk(key, out);
                bulk(b"1", out);
            }
            Self::RespWait => {
                Self::Resp.add(key, out);
                out.extend_from_slice(WAIT);
            }
            Self::Text => append(&[b"incr ", key, b" 1\r\n"], out),
            Self::Meta => append(&[b"ma ", key, b" v\r\n"], out),
        }
    }

    /// Appends the reply to a request for a value that is there.
    pub fn value(self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let length = value.len().to_string();
        let length = length.as_bytes();
        match self {
            Self::Resp | Self::RespWait => bulk(value, out),
            Self::Text => {
                append(&[b"VALUE ", key, b" 0 ", length, b"\r\n", value, b"\r\nEND\r\n"], out);
            }
            Self::Meta => append(&[b"VA ", length, b"\r\n", value, b"\r\n"], out),
        }
    }

    /// The reply to a request that stored a value.
    pub fn stored(self) -> &'static [u8] {
        match self {
            Self::Resp => b"+OK\r\n",
            Self::RespWait => b"+OK\r\n:1\r\n",
            Self::Text => b"STORED\r\n",
            Self::Meta => b"HD\r\n",
        }
    }

    /// Appends the reply to a request that has added one; `sum` is in decimal digits.
    pub fn sum(self, sum: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Resp => append(&[b":", sum, b"\r\n"], out),
            Self::RespWait => append(&[b":", sum, b"\r\n:1\r\n"], out),
            Self::Text => append(&[sum, b"\r\n"], out),
            Self::Meta => self.value(&[], sum, out),
        }
    }

    /// The place of a byte in which requests of each kind differ from the others.
    pub fn mark(self) -> usize {
        match self {
            Self::Resp | Self::RespWait => 8,
            Self::Text => 0,
            Self::Meta => 1,
        }
    }
}

/// Waits for one replica. The reply is another number if that takes ten seconds.
const WAIT: &[u8] = b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$5\r\n10000\r\n";

fn append(parts: &[&[u8]], out: &mut Vec<u8>) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends a string of RESP.
fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    append(&[b"$", bytes.len().to_string().as_bytes(), b"\r\n", bytes, b"\r\n"], out);
}

/// The common part of all replies to requests of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    bytes: usize,
    head: Box<[u8]>,
    tail: Box<[u8]>,
}

/// Bytes of a reply that an error shows.
const SHOWN: usize = 80;

impl Shape {
    /// Replies of one kind, for keys and values of these lengths.
    pub fn new(wire: Wire, kind: Kind, key_bytes: usize, value_bytes: usize) -> Self {
        let reply = |byte: u8| {
            let (key, value) = (vec![byte; key_bytes], vec![byte; value_bytes]);
            let mut reply = vec![];
            match kind {
                Kind::Read => wire.value(&key, &value, &mut reply),
                Kind::Write => reply.extend_from_slice(wire.stored()),
                Kind::Add => wire.sum(&value, &mut reply),
            }
            reply
        };
        // Keys and values differ in every byte, so what is equal is in all replies.
        let (one, other) = (reply(0), reply(1));
        let is_same = |(a, b): &(&u8, &u8)| a == b;
        let head = one.iter().zip(&other).take_while(is_same).count();
        let rest = one[head..].iter().rev().zip(other[head..].iter().rev());
        let tail = rest.take_while(is_same).count();
        Self { bytes: one.len(), head: one[..head].into(), tail: one[one.len() - tail..].into() }
    }

    /// Bytes of a reply.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether `received` begins with a complete reply.
    ///
    /// # Errors
    /// It begins with something else.
    #[inline]
    pub fn is_complete(&self, received: &[u8]) -> Result<bool> {
        let has_head = match received.get(..self.head.len()) {
            Some(head) => *head == *self.head,
            None => self.head.starts_with(received),
        };
        let whole = received.get(..self.bytes);
        if has_head && whole.is_none_or(|reply| reply.ends_with(&self.tail)) {
            return Ok(whole.is_some());
        }
        let shown = &received[..received.len().min(SHOWN)];
        bail!("an unexpected reply: {:?}", String::from_utf8_lossy(shown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(wire: Wire) -> Vec<u8> {
        let mut reply = vec![];
        wire.value(b"key", b"value", &mut reply);
        reply
    }

    #[test]
    fn replies_are_known_by_begin_length_and_end() {
        for wire in Wire::ALL {
            let shape = Shape::new(wire, Kind::Read, 3, 5);
            let reply = value(wire);
            assert_eq!(shape.bytes(), reply.len());
            for end in 0..reply.len() {
                assert!(!shape.is_complete(&reply[..end]).expect("the beginning of a reply"));
            }
            let more = [&reply[..], b"$"].concat();
            assert!(shape.is_complete(&more).expect("a reply"));
            let mut longer = vec![];
            wire.value(b"key", b"values", &mut longer);
            assert!(shape.is_complete(&longer).is_err(), "{wire:?}");
            let stored = Shape::new(wire, Kind::Write, 3, 5);
            assert!(stored.is_complete(wire.stored()).expect("a reply"));
            assert!(stored.is_complete(&reply).is_err());
        }
    }

    #[test]
    fn errors_and_misses_are_noticed_before_they_are_complete() {
        for (wire, reply) in [
            (Wire::Resp, "$-1\r\n"),
            (Wire::Resp, "-ERR"),
            (Wire::Text, "END\r\n"),
            (Wire::Text, "SERVER_ERROR out of memory"),
            (Wire::Meta, "EN\r\n"),
        ] {
            let error = Shape::new(wire, Kind::Read, 3, 5).is_complete(reply.as_bytes());
            let error = error.expect_err("not a value").to_string();
            assert!(error.contains(reply.trim_end()), "{error}");
        }
    }

    #[test]
    fn requests_are_those_of_the_protocols_and_are_told_apart() {
        let of = |wire: Wire| {
            let mut requests = [vec![], vec![], vec![]];
            let [read, write, add] = &mut requests;
            wire.read(b"key", read);
            wire.write(b"key", b"value", write);
            wire.add(b"key", add);
            let [read, write, add] = [read, write, add].map(|request| request[wire.mark()]);
            assert!(read != write && write != add && add != read, "{wire:?}");
            requests.map(|request| String::from_utf8(request).expect("ASCII"))
        };
        let resp = of(Wire::Resp);
        assert_eq!(resp[0], "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
        assert_eq!(resp[1], "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n");
        assert_eq!(resp[2], "*3\r\n$6\r\nINCRBY\r\n$3\r\nkey\r\n$1\r\n1\r\n");
        let waiting = of(Wire::RespWait);
        assert_eq!(waiting[0], resp[0]);
        let wait = "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$5\r\n10000\r\n";
        assert_eq!(waiting[1], resp[1].clone() + wait);
        let expected = ["get key\r\n", "set key 0 0 5\r\nvalue\r\n", "incr key 1\r\n"];
        assert_eq!(of(Wire::Text), expected);
        assert_eq!(of(Wire::Meta), ["mg key v\r\n", "ms key 5\r\nvalue\r\n", "ma key v\r\n"]);
    }
}
