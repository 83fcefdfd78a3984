// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Literals: numbers of any size, addresses, characters and strings.
//!
//! A literal with an invalid value (too large, a bad escape) is reported and still becomes a token,
//! so that the parser does not report its absence.

use super::{Lexer, TokenKind};
use crate::diagnostic::Diagnostic;
use num_bigint::BigUint;

/// Maximum width of a number: that of the widest integer type.
const NUMBER_BITS_MAX: u64 = 4096;
/// Maximum digits of a number: enough for base 2, with room for leading zeros.
const DIGITS_MAX: usize = 2 * NUMBER_BITS_MAX as usize;

impl<'a> Lexer<'a> {
    /// Reads six pairs of hexadecimal digits separated by colons, if they are next.
    pub(super) fn mac(&mut self) -> Option<TokenKind> {
        let bytes = self.rest().as_bytes();
        let mut value = 0u64;
        for at in 0..6 {
            let pair = bytes.get(3 * at..3 * at + 2)?;
            for digit in pair {
                value = value << 4 | u64::from((*digit as char).to_digit(16)?);
            }
            let after = bytes.get(3 * at + 2);
            let is_right = match after {
                Some(b':') => at < 5,
                Some(b'_') => false,
                Some(byte) => at == 5 && !byte.is_ascii_alphanumeric(),
                None => at == 5,
            };
            if !is_right {
                return None;
            }
        }
        self.at += 17;
        Some(TokenKind::Mac(value))
    }

    /// Reads a number or an IPv4 address.
    pub(super) fn number(&mut self) -> Option<TokenKind> {
        let start = self.at;
        if let Some(address) = self.ipv4() {
            return Some(address);
        }
        let word = self.number_word();
        if self.rest().starts_with('.')
            && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit())
        {
            self.at += 1;
            self.number_word();
            let message = "floating-point numbers are not part of the language";
            let help = "write it as an integer, scaled as needed: 1500 thousandths";
            let error = Diagnostic::error("E0105", self.span(start, self.at), message);
            self.diagnostics.push(error.label("not an integer").help(help));
            return Some(TokenKind::Number(BigUint::ZERO, String::new()));
        }
        let (value, suffix) = self.value_of(word, start);
        Some(TokenKind::Number(value, suffix))
    }

    /// Reads letters, digits, underscores and digit separators.
    fn number_word(&mut self) -> &'a str {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut length = 0;
        while length < bytes.len() {
            let is_separator =
                bytes[length] == b'\'' && bytes.get(length + 1).is_some_and(u8::is_ascii_hexdigit);
            if !is_separator && !bytes[length].is_ascii_alphanumeric() && bytes[length] != b'_' {
                break;
            }
            length += 1;
        }
        self.at += length;
        &rest[..length]
    }

    fn ipv4(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let parts: Vec<&str> = rest[..length].split('.').collect();
        if parts.len() != 4 || parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        self.at += length;
        let bytes: Option<Vec<u8>> = parts.iter().map(|part| part.parse().ok()).collect();
        let Some(bytes) = bytes else {
            self.report("E0106", start, "each part of an IPv4 address is at most 255");
            return Some(TokenKind::Ipv4(0));
        };
        Some(TokenKind::Ipv4(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
    }

    /// Returns the value of a number, and its suffix.
    fn value_of(&mut self, word: &str, start: usize) -> (BigUint, String) {
        let word = word.replace('\'', "").to_ascii_lowercase();
        let (radix, body) = match word.as_bytes() {
            [b'0', b'x', ..] => (16, &word[2..]),
            [b'0', b'b', ..] => (2, &word[2..]),
            [b'0', b'0'..=b'9', ..] => (8, &word[1..]),
            _ => (10, &word[..]),
        };
        let length = body.find(|c: char| !c.is_digit(radix)).unwrap_or(body.len());
        let (digits, suffix) = body.split_at(length);
        if digits.is_empty()
            || !matches!(suffix, "" | "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu")
        {
            let what = if suffix.starts_with(|c: char| c.is_ascii_digit()) {
                format!("a digit that base {radix} does not have")
            } else if digits.is_empty() {
                "a number without digits".to_string()
            } else {
                format!("`{suffix}` is not a suffix of a number; use u, l, ul, ll or ull")
            };
            self.report("E0103", start, what);
            return (BigUint::ZERO, String::new());
        }
        let value = (digits.len() <= DIGITS_MAX)
            .then(|| BigUint::parse_bytes(digits.as_bytes(), radix))
            .flatten()
            .filter(|value| value.bits() <= NUMBER_BITS_MAX);
        let Some(value) = value else {
            self.report("E0103", start, format!("a number of more than {NUMBER_BITS_MAX} bits"));
            return (BigUint::ZERO, String::new());
        };
        let suffix = suffix.replace("lu", "ul").replace("lul", "ull");
        (value, suffix)
    }

    /// Reads `"text"`; it ends at the end of the line at the latest.
    pub(super) fn string(&mut self) -> Option<TokenKind> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.rest().chars().next() {
                None | Some('\n') => {
                    self.report("E0102", start, "a text that is never closed");
                    break;
                }
                Some('"') => {
                    self.at += 1;
                    break;
                }
                Some('\\') => text.push(char::from(self.escape())),
                Some(other) => {
                    self.at += other.len_utf8();
                    text.push(other);
                }
            }
        }
        Some(TokenKind::Text(text))
    }

    /// Reads `'c'`.
    pub(super) fn character(&mut self) -> Option<TokenKind> {
        let start = self.at;
        self.at += 1;
        let byte = match self.rest().chars().next() {
            Some('\\') => Some(self.escape()),
            Some('\n' | '\'') | None => None,
            Some(other) => {
                self.at += other.len_utf8();
                u8::try_from(u32::from(other)).ok().filter(u8::is_ascii)
            }
        };
        if self.rest().starts_with('\'') {
            self.at += 1;
            if let Some(byte) = byte {
                return Some(TokenKind::Char(byte));
            }
        } else {
            let rest = self.rest();
            let end = rest.find(['\'', '\n']).unwrap_or(rest.len());
            self.at += end + usize::from(rest[end..].starts_with('\''));
        }
        self.report("E0104", start, "a character is one ASCII character or escape, in `'`");
        Some(TokenKind::Char(0))
    }

    /// Reads an escape sequence, including its backslash.
    fn escape(&mut self) -> u8 {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.rest().chars().next() else { return b'\\' };
        self.at += letter.len_utf8();
        match letter {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            '0'..='7' => {
                self.at -= 1;
                self.escape_number(start, 8, 3)
            }
            'a' => 7,
            'b' => 8,
            'v' => 11,
            'f' => 12,
            'x' => self.escape_number(start, 16, 2),
            '\\' | '\'' | '"' | '?' => letter as u8,
            _ => {
                // A newline must still end the enclosing literal.
                if letter == '\n' {
                    self.at -= 1;
                }
                self.report("E0104", start, "an escape that C does not have");
                b'?'
            }
        }
    }

    fn escape_number(&mut self, start: usize, radix: u32, digits_max: usize) -> u8 {
        let digits: String =
            self.rest().chars().take(digits_max).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        u8::from_str_radix(&digits, radix).unwrap_or_else(|_| {
            self.report("E0104", start, "an escape of no byte");
            b'?'
        })
    }
}
