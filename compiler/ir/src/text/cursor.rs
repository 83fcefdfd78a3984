// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A position in the token list, and small constructs that all parts of the parser share.

use super::ParseError;
use super::lex::{Kind, Position, Token, tokens};
use crate::{Bits, Loc};

/// Errors are boxed: they are rare and large.
pub(super) type Result<T> = std::result::Result<T, Box<ParseError>>;

/// Maximum width of a bit vector in the text form; it bounds allocations for hostile input.
const MOST_BITS: u32 = 1 << 20;

/// Reads tokens in sequence.
pub(super) struct Cursor<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    next: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> std::result::Result<Self, ParseError> {
        let tokens = tokens(text).map_err(|(at, message)| error(text, at, message))?;
        Ok(Self { text, tokens, next: 0 })
    }

    /// Returns the index of the next token, for use in errors.
    pub(super) fn index(&self) -> usize {
        self.next
    }

    /// Moves to the token with that index.
    pub(super) fn go_to(&mut self, index: usize) {
        self.next = index.min(self.tokens.len() - 1);
    }

    /// Returns the next token without consuming it.
    pub(super) fn peek(&self) -> &Kind {
        &self.tokens[self.next.min(self.tokens.len() - 1)].kind
    }

    /// Returns the token after the next without consuming it.
    pub(super) fn peek_second(&self) -> &Kind {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].kind
    }

    /// Consumes the next token, except the end.
    pub(super) fn next(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn is_at_end(&self) -> bool {
        *self.peek() == Kind::End
    }

    /// Returns the next token, if it is a word.
    pub(super) fn word(&self) -> Option<&str> {
        match self.peek() {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Consumes that word if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.word() == Some(word);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Consumes that word if it is next and does not name the end of a channel.
    pub(super) fn take_attribute(&mut self, word: &str) -> bool {
        let is_end = matches!(self.peek_second(), Kind::Sign("." | "->"));
        !is_end && self.take_word(word)
    }

    pub(super) fn keyword(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Returns whether that sign is next.
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Kind::Sign(next) if *next == sign)
    }

    /// Consumes that sign if it is next.
    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        if is_next {
            self.next();
        }
        is_next
    }

    pub(super) fn sign(&mut self, sign: &str) -> Result<()> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Skips `;`, which may separate declarations and operations on one line.
    pub(super) fn skip_separators(&mut self) {
        while self.take_sign(";") {}
    }

    /// Parses a word or a quoted text.
    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        match self.peek().clone() {
            Kind::Word(name) | Kind::Text(name) => {
                self.next();
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn text(&mut self, what: &str) -> Result<String> {
        match self.peek().clone() {
            Kind::Text(text) => {
                self.next();
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn number_u64(&mut self) -> Result<u64> {
        let Kind::Number(digits) = self.peek() else { return Err(self.expected("a number")) };
        let parsed = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let number = parsed.map_err(|_| self.expected("a number below 2^64"))?;
        self.next();
        Ok(number)
    }

    pub(super) fn number_u32(&mut self) -> Result<u32> {
        let at = self.index();
        let number = self.number_u64()?;
        u32::try_from(number).map_err(|_| self.error_at(at, "this number is 2^32 or more"))
    }

    /// Parses the width of a bit vector.
    pub(super) fn width(&mut self) -> Result<u32> {
        let at = self.index();
        match self.number_u32()? {
            width if (1..=MOST_BITS).contains(&width) => Ok(width),
            _ => Err(self.error_at(at, format!("a width is from 1 to {MOST_BITS} bits"))),
        }
    }

    /// Parses `#3`, if it is next.
    pub(super) fn optional_index(&mut self) -> Result<Option<u32>> {
        if self.take_sign("#") { self.number_u32().map(Some) } else { Ok(None) }
    }

    /// Parses `!file:line:column`, if it is next.
    pub(super) fn loc(&mut self) -> Loc {
        match *self.peek() {
            Kind::Loc(loc) => {
                self.next();
                loc
            }
            _ => Loc::default(),
        }
    }

    /// Parses a constant such as `5:32` or `-1:8`; the width may be omitted if one is `expected`.
    pub(super) fn literal(&mut self, expected: Option<u32>) -> Result<Bits> {
        let at = self.index();
        let is_negative = self.take_sign("-");
        let Kind::Number(written) = self.peek().clone() else {
            return Err(self.expected("a constant, such as `5:32`"));
        };
        self.next();
        let width = match (self.take_sign(":"), expected) {
            (true, _) => self.width()?,
            (false, Some(width)) => width,
            (false, None) => return Err(self.expected("`:` and the constant's width")),
        };
        let (digits, radix) = match written.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (written.as_str(), 10),
        };
        // A digit holds at most 4 bits, so the whole number fits this width.
        let room = width.max(u32::try_from(digits.len() * 4).unwrap_or(MOST_BITS)) + 1;
        let Some(whole) = Bits::parse(room, digits, radix) else {
            return Err(self.error_at(at, format!("`{written}` is not a number")));
        };
        let bits = match is_negative {
            true => Bits::unary(crate::UnaryOp::Neg, &whole),
            false => whole,
        };
        let fits = match is_negative {
            true => bits.resize(width).sign_extend(room) == bits,
            false => bits.resize(width).resize(room) == bits,
        };
        match fits {
            true => Ok(bits.resize(width)),
            false => Err(self.error_at(at, format!("this does not fit {width} bits"))),
        }
    }

    /// Parses the constant of a switch case; returns also whether its width is written. If it is
    /// not, the constant has as many bits as its digits can hold.
    pub(super) fn case_literal(&mut self) -> Result<(Bits, bool)> {
        let has_width = matches!(self.peek_second(), Kind::Sign(":"));
        let room = match self.peek() {
            Kind::Number(digits) => u32::try_from(digits.len() * 4).unwrap_or(MOST_BITS),
            _ => 1,
        };
        Ok((self.literal(if has_width { None } else { Some(room) })?, has_width))
    }

    /// Parses items separated by commas, up to and including `close`.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = vec![];
        while !self.take_sign(close) {
            if !items.is_empty() && !self.take_sign(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Creates an error for an unexpected token.
    pub(super) fn expected(&self, what: &str) -> Box<ParseError> {
        self.error_at(self.next, format!("expected {what}, found {}", self.peek().describe()))
    }

    /// Creates an error at the token with that index.
    pub(super) fn error_at(&self, at: usize, message: impl Into<String>) -> Box<ParseError> {
        let token = &self.tokens[at.min(self.tokens.len() - 1)];
        Box::new(error(self.text, token.at, message.into()))
    }
}

fn error(text: &str, at: Position, message: String) -> ParseError {
    let source_line = text.lines().nth(at.line - 1).unwrap_or_default().to_owned();
    ParseError { line: at.line, column: at.column, message, source_line }
}
