// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of a server, read into [`Value`]s: all types of RESP2 and RESP3, also streamed strings
//! (`$?`, chunks of type `;`) and streamed aggregates (`*?`, ended by `.`).
//!
//! The reader takes every byte that it is given until a value is complete, so that a caller can use
//! its buffer again after each call. Open aggregates are on a stack, whose depth is limited; a
//! reader of any depth therefore never recurses. Memory grows with the bytes that have arrived, not
//! with the lengths that a peer claims: a value takes at most about 40 times the bytes it had.

use super::error::ValueError;
use super::number::parse_integer;
use super::value::Value;
use std::mem;

/// Bytes and elements for which memory is taken before they have arrived.
const TRUSTED_BYTES: usize = 4 * 1024;
/// Elements for which memory is taken before they have arrived.
const TRUSTED_ELEMENTS: usize = 8;

/// Limits of replies, checked before anything is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ValueLimits {
    /// Maximum bytes of a line: a status, an error, a number, a length.
    pub line_bytes: usize,
    /// Maximum bytes of a string.
    pub string_bytes: usize,
    /// Maximum number of elements of an aggregate. An entry of a map is two.
    pub elements: usize,
    /// Maximum number of aggregates and attributes inside each other.
    pub depth: usize,
    /// Maximum bytes of a whole reply.
    pub reply_bytes: usize,
}

impl Default for ValueLimits {
    /// 64 KiB for a line, 512 MiB for a string, 2^32 - 1 elements, 128 levels, 1 GiB for all.
    fn default() -> Self {
        Self {
            line_bytes: 64 * 1024,
            string_bytes: 512 << 20,
            elements: u32::MAX as usize,
            depth: 128,
            reply_bytes: 1 << 30,
        }
    }
}

/// Result of [`ValueReader::read`].
#[derive(Clone, Debug, PartialEq)]
pub enum ValueProgress {
    /// A complete value.
    Complete {
        /// The value.
        value: Value,
        /// Number of the given bytes that were taken. The next value begins there.
        bytes: usize,
    },
    /// All given bytes were taken, and more are needed.
    Incomplete {
        /// At least this number of further bytes is needed. A peer claims it: take memory as bytes
        /// arrive, not for all of it.
        missing: usize,
    },
}

/// Reads the replies of a connection.
#[derive(Debug)]
pub struct ValueReader {
    limits: ValueLimits,
    /// Bytes of the current reply, including those that the begun string lacks.
    taken: usize,
    /// The begin of a line whose end has not arrived.
    line: Vec<u8>,
    /// The string whose end has not arrived.
    string: Option<Text>,
    /// Open aggregates, the innermost last.
    open: Vec<Open>,
    failed: Option<ValueError>,
}

/// A string of which bytes are missing.
#[derive(Debug)]
struct Text {
    kind: u8,
    bytes: Vec<u8>,
    /// Length at which it is complete, without the line end.
    length: usize,
    /// Bytes of the line end that have arrived: 0 or 1.
    ends: usize,
}

/// An aggregate of which elements are missing, or the like.
#[derive(Debug)]
enum Open {
    /// An aggregate. A streamed one has no known number of missing elements.
    Aggregate { kind: u8, missing: Option<usize>, values: Vec<Value> },
    /// Attributes that wait for their value.
    Attributes(Vec<(Value, Value)>),
    /// A streamed string that waits for a chunk.
    Chunks(Vec<u8>),
}

impl ValueReader {
    /// A reader at the begin of a connection.
    pub fn new(limits: ValueLimits) -> Self {
        Self { limits, taken: 0, line: vec![], string: None, open: vec![], failed: None }
    }

    /// Reads from bytes that follow those taken by the last call, until a value is complete.
    ///
    /// # Errors
    /// The bytes are no reply, or exceed a limit. The connection has to be closed; each further
    /// call returns the same error.
    pub fn read(&mut self, received: &[u8]) -> Result<ValueProgress, ValueError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(received);
        match result {
            Ok(ValueProgress::Complete { .. }) => self.taken = 0,
            Ok(ValueProgress::Incomplete { .. }) => {}
            Err(error) => self.failed = Some(error),
        }
        result
    }

    /// The connection is between two replies.
    pub fn is_at_start(&self) -> bool {
        self.taken == 0
    }

    fn advance(&mut self, received: &[u8]) -> Result<ValueProgress, ValueError> {
        // Values are passed by reference, because moving them costs more than reading them.
        let (mut rest, mut value) = (received, Value::Null);
        while !rest.is_empty() {
            let has_value = match self.string {
                Some(_) => self.string(&mut rest, &mut value)?,
                None => self.line(&mut rest, &mut value)?,
            };
            if has_value && self.close(&mut value)? {
                return Ok(ValueProgress::Complete { value, bytes: received.len() - rest.len() });
            }
        }
        Ok(ValueProgress::Incomplete { missing: self.missing() })
    }

    /// Lower bound of the bytes that complete the current reply.
    fn missing(&self) -> usize {
        match &self.string {
            Some(text) => text.length - text.bytes.len() + 2 - text.ends,
            None => 1,
        }
    }

    /// Takes bytes of a string. Returns whether `value` is a complete one.
    fn string(&mut self, rest: &mut &[u8], value: &mut Value) -> Result<bool, ValueError> {
        let Some(text) = &mut self.string else { return Ok(false) };
        let bytes = rest.split_off(..rest.len().min(text.length - text.bytes.len()));
        text.bytes.extend_from_slice(bytes.unwrap_or_default());
        if text.bytes.len() < text.length {
            return Ok(false);
        }
        while text.ends < 2 {
            let Some(&byte) = rest.split_off_first() else { return Ok(false) };
            if byte != b"\r\n"[text.ends] {
                return Err(ValueError::LineEnd);
            }
            text.ends += 1;
        }
        let (kind, bytes) = (text.kind, mem::take(&mut text.bytes));
        self.string = None;
        *value = match kind {
            b'!' => Value::Error(bytes),
            b'=' => verbatim(bytes)?,
            b';' => {
                self.open.push(Open::Chunks(bytes));
                return Ok(false);
            }
            _ => Value::Bulk(bytes),
        };
        Ok(true)
    }

    /// Takes bytes of a line. Returns whether it is complete and `value` is its value.
    fn line(&mut self, rest: &mut &[u8], value: &mut Value) -> Result<bool, ValueError> {
        let end = rest.iter().position(|&byte| byte == b'\n');
        let part = rest.split_off(..end.map_or(rest.len(), |end| end + 1)).unwrap_or_default();
        // The error is that of the first byte too many, in whatever portions the line arrives.
        let line_room = self.limits.line_bytes.saturating_add(2) - self.line.len();
        let reply_room = self.limits.reply_bytes - self.taken;
        if part.len() > line_room.min(reply_room) {
            return Err(match line_room <= reply_room {
                true => ValueError::LineTooLong(self.limits.line_bytes),
                false => ValueError::TooLarge(self.limits.reply_bytes),
            });
        }
        self.taken += part.len();
        if end.is_some() && self.line.is_empty() {
            return self.element(part, value);
        }
        self.line.extend_from_slice(part);
        if end.is_none() {
            return Ok(false);
        }
        let mut line = mem::take(&mut self.line);
        let result = self.element(&line, value);
        line.clear();
        // Long lines are rare.
        line.shrink_to(TRUSTED_BYTES);
        self.line = line;
        result
    }

    /// Reads a complete line: a value, or the begin or end of one.
    fn element(&mut self, line: &[u8], value: &mut Value) -> Result<bool, ValueError> {
        let line = line.strip_suffix(b"\r\n").ok_or(ValueError::LineEnd)?;
        if line.contains(&b'\r') {
            return Err(ValueError::LineEnd);
        }
        let (&kind, content) = line.split_first().ok_or(ValueError::UnknownType(b'\r'))?;
        if matches!(self.open.last(), Some(Open::Chunks(_))) && kind != b';' {
            return Err(ValueError::Misplaced(kind));
        }
        let invalid = ValueError::InvalidContent(kind);
        *value = match kind {
            b'+' => Value::Status(content.to_vec()),
            b'-' => Value::Error(content.to_vec()),
            b':' => Value::Integer(integer(content).ok_or(invalid)?),
            b'_' if content.is_empty() => Value::Null,
            b'#' if content == b"t" => Value::Boolean(true),
            b'#' if content == b"f" => Value::Boolean(false),
            b'_' | b'#' => return Err(invalid),
            b',' => Value::Double(double(content).ok_or(invalid)?),
            b'(' => Value::BigNumber(big_number(content).ok_or(invalid)?),
            b'$' | b'!' | b'=' | b';' => return self.begin_string(kind, content, value),
            b'*' | b'%' | b'~' | b'>' | b'|' => return self.begin_aggregate(kind, content, value),
            b'.' if content.is_empty() => self.end_stream()?,
            b'.' => return Err(invalid),
            other => return Err(ValueError::UnknownType(other)),
        };
        Ok(true)
    }

    fn begin_string(
        &mut self,
        kind: u8,
        content: &[u8],
        value: &mut Value,
    ) -> Result<bool, ValueError> {
        if kind == b'$' && content == b"?" {
            self.open(Open::Chunks(vec![]))?;
            return Ok(false);
        }
        if kind == b'$' && content == b"-1" {
            *value = Value::Null;
            return Ok(true);
        }
        let length = length(content)?;
        let mut bytes = vec![];
        if kind == b';' {
            // The stack then has what is around the string.
            let Some(Open::Chunks(before)) = self.open.pop() else {
                return Err(ValueError::Misplaced(kind));
            };
            if length == 0 {
                *value = Value::Bulk(before);
                return Ok(true);
            }
            bytes = before;
        }
        let limit = self.limits.string_bytes;
        if length > limit.saturating_sub(bytes.len()) {
            return Err(ValueError::StringTooLong(limit));
        }
        if length.saturating_add(2) > self.limits.reply_bytes - self.taken {
            return Err(ValueError::TooLarge(self.limits.reply_bytes));
        }
        bytes.reserve(length.min(TRUSTED_BYTES));
        let length = bytes.len() + length;
        self.taken += length - bytes.len() + 2;
        self.string = Some(Text { kind, bytes, length, ends: 0 });
        Ok(false)
    }

    fn begin_aggregate(
        &mut self,
        kind: u8,
        content: &[u8],
        value: &mut Value,
    ) -> Result<bool, ValueError> {
        if kind == b'>' && !self.open.iter().all(|it| matches!(it, Open::Attributes(_))) {
            return Err(ValueError::Misplaced(kind));
        }
        let missing = match content {
            b"?" if matches!(kind, b'*' | b'%' | b'~') => None,
            b"-1" if kind == b'*' => {
                *value = Value::Null;
                return Ok(true);
            }
            _ => {
                let count = length(content)?;
                let factor = if matches!(kind, b'%' | b'|') { 2 } else { 1 };
                if count > self.limits.elements / factor {
                    return Err(ValueError::TooManyElements(self.limits.elements));
                }
                Some(factor * count)
            }
        };
        if missing == Some(0) && kind != b'|' {
            *value = aggregate(kind, vec![]);
            return Ok(true);
        }
        let values = Vec::with_capacity(missing.unwrap_or(0).min(TRUSTED_ELEMENTS));
        self.open(match missing {
            Some(0) => Open::Attributes(vec![]),
            _ => Open::Aggregate { kind, missing, values },
        })?;
        Ok(false)
    }

    fn open(&mut self, open: Open) -> Result<(), ValueError> {
        if self.open.len() >= self.limits.depth {
            return Err(ValueError::TooDeep(self.limits.depth));
        }
        self.open.push(open);
        Ok(())
    }

    /// The end of a streamed aggregate.
    fn end_stream(&mut self) -> Result<Value, ValueError> {
        match self.open.pop() {
            Some(Open::Aggregate { kind, missing: None, values })
                if kind != b'%' || values.len() % 2 == 0 =>
            {
                Ok(aggregate(kind, values))
            }
            _ => Err(ValueError::Misplaced(b'.')),
        }
    }

    /// Gives a complete value to what is open. Returns whether `value` is then the whole reply.
    fn close(&mut self, value: &mut Value) -> Result<bool, ValueError> {
        while let Some(innermost) = self.open.last_mut() {
            match innermost {
                Open::Aggregate { kind, missing, values } => {
                    if values.len() >= self.limits.elements {
                        return Err(ValueError::TooManyElements(self.limits.elements));
                    }
                    values.push(mem::replace(value, Value::Null));
                    let Some(missing) = missing else { return Ok(false) };
                    *missing -= 1;
                    if *missing > 0 {
                        return Ok(false);
                    }
                    let values = mem::take(values);
                    if *kind == b'|' {
                        *innermost = Open::Attributes(pairs(values));
                        return Ok(false);
                    }
                    *value = aggregate(*kind, values);
                }
                Open::Attributes(attributes) => {
                    let inner = Box::new(mem::replace(value, Value::Null));
                    let attributes = mem::take(attributes);
                    *value = Value::Attributed { attributes, value: inner };
                }
                // Only chunks are read there.
                Open::Chunks(_) => return Err(ValueError::Misplaced(b'$')),
            }
            self.open.pop();
        }
        Ok(true)
    }
}

fn aggregate(kind: u8, values: Vec<Value>) -> Value {
    match kind {
        b'%' => Value::Map(pairs(values)),
        b'~' => Value::Set(values),
        b'>' => Value::Push(values),
        _ => Value::Array(values),
    }
}

fn pairs(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(values.len() / 2);
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn length(content: &[u8]) -> Result<usize, ValueError> {
    let length = parse_integer(content).and_then(|length| usize::try_from(length).ok());
    length.ok_or(ValueError::InvalidLength)
}

/// An integer, which may have a plus sign here.
fn integer(content: &[u8]) -> Option<i64> {
    match content {
        [b'+', digits @ ..] if digits.first() != Some(&b'-') => parse_integer(digits),
        _ => parse_integer(content),
    }
}

fn double(content: &[u8]) -> Option<f64> {
    match content {
        b"inf" | b"+inf" => return Some(f64::INFINITY),
        b"-inf" => return Some(f64::NEG_INFINITY),
        b"nan" | b"-nan" => return Some(f64::NAN),
        _ => {}
    }
    let is_number =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    let text = std::str::from_utf8(content).ok()?;
    content.iter().all(is_number).then(|| text.parse().ok())?
}

fn big_number(content: &[u8]) -> Option<String> {
    let digits = content.strip_prefix(b"-").or(content.strip_prefix(b"+")).unwrap_or(content);
    let is_valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_valid.then(|| String::from_utf8(content.to_vec()).ok())?
}

fn verbatim(mut bytes: Vec<u8>) -> Result<Value, ValueError> {
    match bytes[..] {
        [first, second, third, b':', ..] => {
            bytes.drain(..4);
            Ok(Value::Verbatim { format: [first, second, third], text: bytes })
        }
        _ => Err(ValueError::InvalidContent(b'=')),
    }
}
