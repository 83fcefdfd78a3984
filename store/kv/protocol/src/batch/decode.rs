// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decoding the operations of a request.
//!
//! A packet is decoded to its end before anything is executed, because a packet that breaks a rule
//! must change nothing. Decoded operations are places in the payload, not slices of it, so the
//! vector of them outlives the payload and is used again for the next one.

use super::operation::{Lengths, NO_RETURN, Opcode, Operation, SHAPES};
use std::fmt;
use thiserror::Error;

/// The operations of a packet, decoded.
///
/// ```
/// use freeport_kv_protocol::batch::{Operation, Operations, PacketLimits, PacketWriter};
///
/// let mut packet = Vec::new();
/// let mut writer = PacketWriter::begin(&mut packet, PacketLimits::default(), 7, None);
/// writer.push(&mut packet, &Operation::put(b"key", b"value")).expect("it fits");
/// let header = writer.finish(&mut packet);
///
/// let mut operations = Operations::default();
/// let payload = &packet[header.bytes()..];
/// operations.decode(payload, header.count).expect("it is well formed");
/// assert_eq!(operations.get(payload, 0), Operation::put(b"key", b"value"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Operations {
    records: Vec<Record>,
}

/// Where an operation is in its payload.
#[derive(Clone, Copy, Debug)]
struct Record {
    opcode: Opcode,
    no_return: bool,
    function: u8,
    element: u8,
    key: Span,
    value: Span,
}

/// Bytes of a payload.
#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    bytes: u32,
}

/// Length of a key or value before the first one: longer than any payload.
const NONE_YET: usize = usize::MAX;

/// Reason for which a packet is refused: an operation breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("operation {operation}, at byte {offset} of the payload: {reason}")]
pub struct Malformed {
    /// Number of the operation, from 0; the number of operations for bytes behind the last one.
    pub operation: u16,
    /// Place in the payload, in bytes.
    pub offset: u32,
    /// The broken rule.
    pub reason: Reason,
}

/// A rule that an operation breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no such code, or the operation cannot have these flags.
    FirstByte(u8),
    /// The payload ends inside the operation.
    Truncated,
    /// `SAME_SIZE` without an earlier key.
    NoKeyBefore,
    /// `SAME_SIZE` or `SAME_VALUE` without an earlier value.
    NoValueBefore,
    /// Bytes follow the last operation.
    Trailing,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstByte(byte) => {
                write!(f, "no operation has the code and flags {byte:#04x}")
            }
            Self::Truncated => f.write_str("the payload ends inside the operation"),
            Self::NoKeyBefore => f.write_str("SAME_SIZE needs an earlier key in the packet"),
            Self::NoValueBefore => {
                f.write_str("SAME_SIZE and SAME_VALUE need an earlier value in the packet")
            }
            Self::Trailing => f.write_str("bytes follow the last operation"),
        }
    }
}

impl Operations {
    /// Decodes the payload of a request with `count` operations, in place of what was decoded
    /// before. It takes 20 bytes of memory for each operation.
    ///
    /// # Errors
    /// An operation breaks a rule. No operation is kept then.
    #[inline]
    pub fn decode(&mut self, payload: &[u8], count: u16) -> Result<(), Malformed> {
        self.records.clear();
        let (mut decoder, mut error) = (Decoder::new(payload), None);
        // Each operation has a byte, so a short payload takes little memory.
        self.records.reserve(usize::from(count).min(payload.len()));
        self.records.extend((0..count).map_while(|_| match decoder.next() {
            Ok(record) => Some(record),
            Err(reason) => {
                error = Some(reason);
                None
            }
        }));
        if error.is_none() && !decoder.rest.is_empty() {
            error = Some(Reason::Trailing);
        }
        let Some(reason) = error else { return Ok(()) };
        let operation = u16::try_from(self.records.len()).expect("no more than the count");
        self.records.clear();
        Err(Malformed { operation, offset: decoder.at(decoder.rest), reason })
    }

    /// Appends an operation of the same payload that was decoded elsewhere.
    ///
    /// # Panics
    /// There is no operation with this number.
    pub fn push_from(&mut self, other: &Self, number: usize) {
        self.records.push(other.records[number]);
    }

    /// Number of operations.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// There are no operations.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The operation with a number, of the payload that was decoded.
    ///
    /// # Panics
    /// There is no such operation, or the payload is shorter than the one that was decoded.
    #[inline(always)]
    pub fn get<'a>(&self, payload: &'a [u8], number: usize) -> Operation<'a> {
        self.records[number].of(payload)
    }

    /// Code of the operation with a number, and whether its reply has no value.
    ///
    /// # Panics
    /// There is no such operation.
    #[inline(always)]
    pub fn kind(&self, number: usize) -> (Opcode, bool) {
        let record = &self.records[number];
        (record.opcode, record.no_return)
    }

    /// The key of the operation with a number, as [`get`](Self::get) returns it.
    ///
    /// # Panics
    /// There is no such operation, or the payload is shorter than the one that was decoded.
    #[inline(always)]
    pub fn key<'a>(&self, payload: &'a [u8], number: usize) -> &'a [u8] {
        self.records[number].key.of(payload)
    }

    /// All operations in their order, of the payload that was decoded.
    ///
    /// # Panics
    /// The iterator panics if the payload is shorter than the one that was decoded.
    #[inline]
    pub fn iter<'a>(
        &'a self,
        payload: &'a [u8],
    ) -> impl DoubleEndedIterator<Item = Operation<'a>> + ExactSizeIterator {
        self.records.iter().map(|record| record.of(payload))
    }
}

impl Record {
    #[inline(always)]
    fn of(self, payload: &[u8]) -> Operation<'_> {
        let Self { opcode, no_return, function, element, key, value } = self;
        let (key, value) = (key.of(payload), value.of(payload));
        Operation { opcode, no_return, function, element, key, value }
    }
}

impl Span {
    #[inline(always)]
    fn of(self, payload: &[u8]) -> &[u8] {
        &payload[self.at as usize..][..self.bytes as usize]
    }
}

struct Decoder<'a> {
    payload: &'a [u8],
    /// The bytes that are not decoded yet.
    rest: &'a [u8],
    /// Length of the last key.
    key_bytes: usize,
    /// Length of the last value.
    value_bytes: usize,
    last_value: Span,
}

impl<'a> Decoder<'a> {
    #[inline]
    fn new(payload: &'a [u8]) -> Self {
        // A header announces no more.
        debug_assert!(u32::try_from(payload.len()).is_ok(), "the payload of a packet");
        let last_value = Span { at: 0, bytes: 0 };
        Self { payload, rest: payload, key_bytes: NONE_YET, value_bytes: NONE_YET, last_value }
    }

    /// Place of a rest of the payload.
    #[inline]
    fn at(&self, rest: &[u8]) -> u32 {
        (self.payload.len() - rest.len()) as u32
    }

    #[inline]
    fn next(&mut self) -> Result<Record, Reason> {
        let (&first, mut rest) = self.rest.split_first().ok_or(Reason::Truncated)?;
        let shape = &SHAPES[usize::from(first)];
        let opcode = shape.opcode.ok_or(Reason::FirstByte(first))?;
        let (mut function, mut element) = (0, 0);
        if shape.has_function {
            [function, element] = *take(&mut rest)?;
        }
        match shape.lengths {
            Lengths::Same => {}
            Lengths::Key => {
                let [key] = *take(&mut rest)?;
                self.key_bytes = usize::from(key);
            }
            Lengths::WideKey => self.key_bytes = wide(take(&mut rest)?),
            Lengths::Both => {
                let [key, v0, v1] = *take(&mut rest)?;
                self.key_bytes = usize::from(key);
                self.value_bytes = usize::from(u16::from_le_bytes([v0, v1]));
            }
            Lengths::WideBoth => {
                self.key_bytes = wide(take(&mut rest)?);
                self.value_bytes = wide(take(&mut rest)?);
            }
            Lengths::Nothing => {
                self.rest = rest;
                let nothing = Span { at: self.at(rest), bytes: 0 };
                let (key, value) = (nothing, nothing);
                return Ok(Record { opcode, no_return: false, function, element, key, value });
            }
        }
        let key = self.span(&mut rest, self.key_bytes).ok_or_else(|| self.missing_key())?;
        let mut value = Span { at: key.at, bytes: 0 };
        if shape.has_value {
            if !shape.is_same_value {
                let value = self.span(&mut rest, self.value_bytes);
                self.last_value = value.ok_or_else(|| self.missing_value())?;
            } else if self.value_bytes == NONE_YET {
                return Err(Reason::NoValueBefore);
            }
            value = self.last_value;
        }
        self.rest = rest;
        Ok(Record { opcode, no_return: first & NO_RETURN != 0, function, element, key, value })
    }

    #[inline]
    fn span(&self, rest: &mut &'a [u8], bytes: usize) -> Option<Span> {
        let at = self.at(rest);
        *rest = rest.get(bytes..)?;
        Some(Span { at, bytes: bytes as u32 })
    }

    #[cold]
    fn missing_key(&self) -> Reason {
        if self.key_bytes == NONE_YET { Reason::NoKeyBefore } else { Reason::Truncated }
    }

    #[cold]
    fn missing_value(&self) -> Reason {
        if self.value_bytes == NONE_YET { Reason::NoValueBefore } else { Reason::Truncated }
    }
}

/// Takes a fixed number of bytes.
#[inline]
fn take<'a, const BYTES: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; BYTES], Reason> {
    let (taken, behind) = rest.split_first_chunk().ok_or(Reason::Truncated)?;
    *rest = behind;
    Ok(taken)
}

#[inline]
fn wide(bytes: &[u8; 4]) -> usize {
    u32::from_le_bytes(*bytes) as usize
}
