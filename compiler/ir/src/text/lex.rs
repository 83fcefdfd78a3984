// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Splits the text form into tokens. Line ends have no meaning; `//` starts a comment.

use super::spelling::is_word;
use crate::{FileId, Loc};

/// Position of a token; line and column count from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// A token and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: Kind,
    pub at: Position,
}

/// A name of a value: `%name`, `%3` or `%name.3`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ValueName {
    pub name: Option<String>,
    pub number: Option<u32>,
}

/// Kind of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A word.
    Word(String),
    /// A number as written: decimal, or hexadecimal after `0x`.
    Number(String),
    /// A quoted text.
    Text(String),
    /// `%name`.
    Value(ValueName),
    /// `@name`; empty in `@#3`.
    Function(String),
    /// `!file:line:column`.
    Loc(Loc),
    /// Punctuation.
    Sign(&'static str),
    /// The end of the text.
    End,
}

impl Kind {
    /// Describes the token for an error message.
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(text) | Kind::Number(text) => format!("`{text}`"),
            Kind::Text(text) => format!("\"{text}\""),
            Kind::Value(ValueName { name, number }) => match (name, number) {
                (Some(name), None) => format!("`%{name}`"),
                (Some(name), Some(number)) => format!("`%{name}.{number}`"),
                (None, number) => format!("`%{}`", number.unwrap_or(0)),
            },
            Kind::Function(name) => format!("`@{name}`"),
            Kind::Loc(_) => "a location".to_owned(),
            Kind::Sign(sign) => format!("`{sign}`"),
            Kind::End => "the end".to_owned(),
        }
    }
}

/// Two-character signs precede their one-character prefixes.
const SIGNS: [&str; 19] = [
    "->", "+:", "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", ";", "=", "|", "#", ".", "-", "+",
];

/// Splits a text into tokens; the last one is [`Kind::End`].
pub fn tokens(text: &str) -> Result<Vec<Token>, (Position, String)> {
    let mut lexer = Lexer { rest: text, at: Position { line: 1, column: 1 } };
    let mut tokens = vec![];
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let kind = lexer.next().map_err(|message| (at, message))?;
        let ends = kind == Kind::End;
        tokens.push(Token { kind, at });
        if ends {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    at: Position,
}

impl<'t> Lexer<'t> {
    fn skip_blanks(&mut self) {
        loop {
            let blanks = self.rest.trim_start();
            self.advance(self.rest.len() - blanks.len());
            if !self.rest.starts_with("//") {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn advance(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        for char in taken.chars() {
            if char == '\n' {
                self.at = Position { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|char| !belongs(char)).unwrap_or(self.rest.len());
        self.advance(end)
    }

    fn next(&mut self) -> Result<Kind, String> {
        let Some(first) = self.rest.chars().next() else { return Ok(Kind::End) };
        match first {
            '"' => self.text().map(Kind::Text),
            '%' => self.value(),
            '@' => {
                self.advance(1);
                let name = match self.rest.starts_with('"') {
                    true => self.text()?,
                    false => self.take_while(|char| is_word(char) || char == '.').to_owned(),
                };
                Ok(Kind::Function(name))
            }
            '!' => self.loc(),
            _ if first.is_ascii_digit() => Ok(Kind::Number(self.take_while(is_word).to_owned())),
            _ if is_word(first) => Ok(Kind::Word(self.take_while(is_word).to_owned())),
            _ => match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => {
                    self.advance(sign.len());
                    Ok(Kind::Sign(sign))
                }
                None => Err(format!("a character that has no meaning here: `{first}`")),
            },
        }
    }

    fn text(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.advance(at + 1);
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, quoted @ ('"' | '\\'))) => text.push(quoted),
                    _ => return Err("an unknown `\\` sequence in a text".to_owned()),
                },
                _ => text.push(char),
            }
        }
        Err("a text without its closing quote".to_owned())
    }

    fn value(&mut self) -> Result<Kind, String> {
        self.advance(1);
        let quoted = self.rest.starts_with('"');
        let word = match quoted {
            true => self.text()?,
            false => self.take_while(is_word).to_owned(),
        };
        if !quoted && word.starts_with(|first: char| first.is_ascii_digit()) {
            return Ok(Kind::Value(ValueName { name: None, number: Some(small(&word)?) }));
        }
        if !quoted && word.is_empty() {
            return Err("a value needs a name or a number after `%`".to_owned());
        }
        let number = match self.rest.starts_with('.') {
            true => {
                self.advance(1);
                Some(self.number()?)
            }
            false => None,
        };
        Ok(Kind::Value(ValueName { name: Some(word), number }))
    }

    fn loc(&mut self) -> Result<Kind, String> {
        self.advance(1);
        let file = FileId(self.number()?);
        let mut parts = [0; 2];
        for part in &mut parts {
            if !self.rest.starts_with(':') {
                return Err("a location is written !file:line:column".to_owned());
            }
            self.advance(1);
            *part = self.number()?;
        }
        Ok(Kind::Loc(Loc { file, line: parts[0], column: parts[1] }))
    }

    fn number(&mut self) -> Result<u32, String> {
        small(self.take_while(|char| char.is_ascii_digit()))
    }
}

fn small(digits: &str) -> Result<u32, String> {
    digits.parse().map_err(|_| format!("expected a number below 2^32, found `{digits}`"))
}
