// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON as values. Null is a light userdata without an address, so that a table can hold it.
//! Beside the grammar, numbers may be what `strtod` of C reads, unless the script forbids that.

use super::{DEPTH_LIMIT, Settings};
use crate::native::{Failure, Outcome};
use crate::number::leading;
use mlua::{Lua, Value};

pub(super) fn decode(lua: &Lua, text: &[u8], settings: &Settings) -> Outcome<Value> {
    // The second byte of any JSON in UTF-8 is not null.
    if matches!(text, [0, _, ..] | [_, 0, ..]) {
        return Err(Failure::text("JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { lua, text, settings, place: 0, depth: 0 };
    let first = decoder.next();
    let value = decoder.value(first)?;
    match decoder.next() {
        Token { kind: Kind::End, .. } => Ok(value),
        token => Err(expected("the end", &token)),
    }
}

struct Decoder<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    settings: &'a Settings,
    /// The next byte.
    place: usize,
    depth: i64,
}

struct Token {
    kind: Kind,
    /// Its first byte.
    place: usize,
}

enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Colon,
    Comma,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    End,
    Error(&'static str),
}

impl Kind {
    /// The name in errors.
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::End => "T_END",
            Self::Error(text) => text,
        }
    }
}

fn expected(what: &str, found: &Token) -> Failure {
    let (name, character) = (found.kind.name(), found.place + 1);
    Failure::Text(format!("Expected {what} but found {name} at character {character}"))
}

impl Decoder<'_> {
    fn value(&mut self, token: Token) -> Outcome<Value> {
        Ok(match token.kind {
            Kind::String(text) => Value::String(self.lua.create_string(text)?),
            Kind::Number(number) => Value::Number(number),
            Kind::Boolean(value) => Value::Boolean(value),
            Kind::Null => Value::NULL,
            Kind::ObjectBegin => self.nested(Self::object)?,
            Kind::ArrayBegin => self.nested(Self::array)?,
            _ => return Err(expected("value", &token)),
        })
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Outcome<Value>) -> Outcome<Value> {
        self.depth += 1;
        if self.depth > self.settings.decode_depth.min(DEPTH_LIMIT) {
            let (depth, place) = (self.depth, self.place);
            let text =
                format!("Found too many nested data structures ({depth}) at character {place}");
            return Err(Failure::Text(text));
        }
        let value = parse(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Outcome<Value> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.kind, Kind::ObjectEnd) {
            return Ok(Value::Table(table));
        }
        loop {
            let Kind::String(key) = token.kind else {
                return Err(expected("object key string", &token));
            };
            let key = self.lua.create_string(key)?;
            token = self.next();
            if !matches!(token.kind, Kind::Colon) {
                return Err(expected("colon", &token));
            }
            token = self.next();
            table.raw_set(key, self.value(token)?)?;
            token = self.next();
            match token.kind {
                Kind::ObjectEnd => return Ok(Value::Table(table)),
                Kind::Comma => token = self.next(),
                _ => return Err(expected("comma or object end", &token)),
            }
        }
    }

    fn array(&mut self) -> Outcome<Value> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.kind, Kind::ArrayEnd) {
            return Ok(Value::Table(table));
        }
        for index in 1.. {
            table.raw_set(index, self.value(token)?)?;
            token = self.next();
            match token.kind {
                Kind::ArrayEnd => break,
                Kind::Comma => token = self.next(),
                _ => return Err(expected("comma or array end", &token)),
            }
        }
        Ok(Value::Table(table))
    }

    fn next(&mut self) -> Token {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.place += self.text[self.place..].iter().take_while(is_space).count();
        let place = self.place;
        let rest = &self.text[place..];
        let (kind, length) = match rest.first() {
            None | Some(0) => (Kind::End, 0),
            Some(b'{') => (Kind::ObjectBegin, 1),
            Some(b'}') => (Kind::ObjectEnd, 1),
            Some(b'[') => (Kind::ArrayBegin, 1),
            Some(b']') => (Kind::ArrayEnd, 1),
            Some(b':') => (Kind::Colon, 1),
            Some(b',') => (Kind::Comma, 1),
            Some(b'"') => return self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(rest),
            _ if rest.starts_with(b"true") => (Kind::Boolean(true), 4),
            _ if rest.starts_with(b"false") => (Kind::Boolean(false), 5),
            _ if rest.starts_with(b"null") => (Kind::Null, 4),
            Some(b'+' | b'i' | b'I' | b'n' | b'N')
                if self.settings.decodes_invalid && is_beyond_grammar(rest) =>
            {
                self.number(rest)
            }
            _ => (Kind::Error("invalid token"), 0),
        };
        self.place += length;
        Token { kind, place }
    }

    fn number(&self, rest: &[u8]) -> (Kind, usize) {
        let error = (Kind::Error("invalid number"), 0);
        if !self.settings.decodes_invalid && is_beyond_grammar(rest) {
            return error;
        }
        leading(rest).map_or(error, |(number, length)| (Kind::Number(number), length))
    }

    /// Errors are at the byte that the text cannot continue with.
    fn string(&mut self) -> Token {
        let start = self.place;
        let mut bytes = vec![];
        self.place += 1;
        loop {
            match self.text.get(self.place) {
                None | Some(0) => return self.failed("unexpected end of string"),
                Some(b'"') => break,
                Some(b'\\') => match self.escape(&mut bytes) {
                    Ok(length) => self.place += length,
                    Err(text) => return self.failed(text),
                },
                Some(&byte) => {
                    bytes.push(byte);
                    self.place += 1;
                }
            }
        }
        self.place += 1;
        Token { kind: Kind::String(bytes), place: start }
    }

    fn failed(&self, text: &'static str) -> Token {
        Token { kind: Kind::Error(text), place: self.place }
    }

    /// Appends what an escape stands for, and returns the escape's length.
    fn escape(&self, bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
        let rest = &self.text[self.place..];
        bytes.push(match rest.get(1) {
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'f') => 0x0c,
            Some(b'r') => b'\r',
            Some(b'u') => {
                let (letter, length) = unicode(rest).ok_or("invalid unicode escape code")?;
                bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(length);
            }
            _ => return Err("invalid escape code"),
        });
        Ok(2)
    }
}

/// The letter of one escape, or of two that are its halves, and their length.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let unit = |text: &[u8]| {
        let digits = text.strip_prefix(b"\\u")?.get(..4)?;
        let digit = |value, &byte: &u8| Some(value << 4 | char::from(byte).to_digit(16)?);
        digits.iter().try_fold(0, digit)
    };
    let first = unit(text)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second = unit(&text[6..])?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let letter = 0x1_0000 + ((first & 0x3ff) << 10 | second & 0x3ff);
    Some((char::from_u32(letter)?, 12))
}

/// The text begins with a number that JSON does not have: with a plus or a leading zero, in
/// hexadecimal, infinite, or none.
fn is_beyond_grammar(text: &[u8]) -> bool {
    if text.first() == Some(&b'+') {
        return true;
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match text {
        [b'0', next, ..] => matches!(next, b'x' | b'X' | b'0'..=b'9'),
        [b'1'..=b'9', ..] => false,
        _ => [b"inf", b"nan"]
            .iter()
            .any(|name| text.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(&name[..]))),
    }
}
