// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A text as its tokens with all comments between them, without loss except for white space. A
//! pragma is not a single piece: the tokens of its line are ordinary pieces.

use crate::lexer::{Token, TokenKind};
use crate::parser::{Block, Role, Roles};

/// Distance of tab stops in texts that contain tabs.
const TAB_COLUMNS: usize = 4;

/// A token, and the text between it and the previous one.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// Text as written.
    pub text: &'a str,
    /// Whether it is a name or keyword.
    pub is_word: bool,
    /// Role of the token, if its text is ambiguous.
    pub role: Option<Role>,
    /// Number of `>` in it that end arguments or parameters: `>>` can end two.
    pub angle_ends: usize,
    /// Whether it is part of a pragma.
    pub is_in_pragma: bool,
    /// Comments before it.
    pub comments: Vec<Comment<'a>>,
    /// Number of line ends before it, after the last comment or the previous piece.
    pub line_ends: usize,
    /// Position of its first byte.
    pub start: u32,
    /// Matching bracket, for round, square and curly ones.
    pub mate: Option<usize>,
}

/// A comment.
#[derive(Clone, Debug)]
pub struct Comment<'a> {
    /// Text with its comment marks, without trailing blanks.
    pub text: &'a str,
    /// Number of line ends before it.
    pub line_ends: usize,
    /// Column where it begins, from 0.
    pub column: usize,
    /// Column of the first character on its line.
    pub line_column: usize,
    /// Columns between it and the previous piece, if that is on the same line.
    pub gap: usize,
}

impl<'a> Piece<'a> {
    /// Returns whether it is that mark or word.
    pub fn is(&self, text: &str) -> bool {
        self.text == text && self.role.is_none()
    }

    /// Returns the kind of block that it opens.
    pub fn block(&self) -> Option<Block> {
        match self.role {
            Some(Role::Block(kind)) => Some(kind),
            _ => None,
        }
    }

    /// Returns whether it is the `#pragma` of a pragma.
    pub fn begins_pragma(&self) -> bool {
        self.is_in_pragma && self.text == PRAGMA
    }

    /// Returns whether the text has, or must have, a line end between the previous piece and this
    /// one.
    pub fn is_on_new_line(&self) -> bool {
        self.line_ends > 0 || self.comments.iter().any(Comment::needs_line)
    }
}

impl Piece<'_> {
    /// Classifies the comments before the first piece of a line: returns how many at the start are
    /// after the previous line's code, and how many at the end are on the line of the piece.
    pub fn comments_on_lines(&self, is_first_in_text: bool) -> (usize, usize) {
        let is_new = |comment: &Comment| comment.line_ends > 0 || comment.has_lines();
        let behind = match is_first_in_text {
            true => 0,
            false => self.comments.iter().position(is_new).unwrap_or(self.comments.len()),
        };
        if self.line_ends > 0 {
            return (behind, 0);
        }
        let own = &self.comments[behind..];
        let is_inline = |it: &&Comment| !it.is_line() && !it.has_lines();
        let inline = own.iter().rev().take_while(is_inline).count();
        let starts = own[own.len() - inline..].iter().rposition(|it| it.line_ends > 0);
        (behind, inline - starts.unwrap_or(0))
    }
}

impl Comment<'_> {
    /// Returns whether it extends to the end of its line.
    pub fn is_line(&self) -> bool {
        self.text.starts_with("//")
    }

    /// Returns whether it has several lines.
    pub fn has_lines(&self) -> bool {
        self.text.contains('\n')
    }

    /// Returns whether it cannot be in the middle of a line.
    pub fn needs_line(&self) -> bool {
        self.line_ends > 0 || self.is_line() || self.has_lines()
    }
}

/// Spelling of the first piece of a pragma.
const PRAGMA: &str = "#pragma";

/// Returns the pieces of a text that was split into `tokens` without an error. The last one is
/// empty: the end of the text.
pub fn pieces_of<'a>(text: &'a str, tokens: &[Token], roles: &Roles) -> Vec<Piece<'a>> {
    let mut maker = Maker { text, roles, cursor: Cursor::default(), end: 0, pieces: vec![] };
    for token in tokens {
        match &token.kind {
            TokenKind::Pragma(inner) => maker.pragma(token, inner),
            _ => maker.token(token, false),
        }
    }
    let mut pieces = maker.pieces;
    join_brackets(&mut pieces);
    pieces
}

struct Maker<'a, 'b> {
    text: &'a str,
    roles: &'b Roles,
    cursor: Cursor,
    /// Position after the last piece.
    end: usize,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Maker<'a, '_> {
    fn token(&mut self, token: &Token, is_in_pragma: bool) {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        let is_word = matches!(token.kind, TokenKind::Name(_));
        self.add(&self.text[start..end], start, end, is_word, is_in_pragma);
    }

    fn pragma(&mut self, pragma: &Token, inner: &[Token]) {
        let start = pragma.span.start as usize;
        let word = self.text[start..].find("pragma").unwrap_or_default();
        self.add(PRAGMA, start, start + word + "pragma".len(), true, true);
        for token in inner {
            self.token(token, true);
        }
    }

    fn add(&mut self, text: &'a str, start: usize, end: usize, is_word: bool, in_pragma: bool) {
        let (comments, line_ends) = self.gap(start);
        let role = self.roles.at(start as u32);
        let ends_second =
            text.starts_with(">>") && self.roles.at(start as u32 + 1) == Some(Role::AngleEnd);
        let angle_ends = usize::from(role == Some(Role::AngleEnd)) + usize::from(ends_second);
        self.pieces.push(Piece {
            text,
            is_word,
            role,
            angle_ends,
            is_in_pragma: in_pragma,
            comments,
            line_ends,
            start: start as u32,
            mate: None,
        });
        self.end = end;
    }

    /// Returns the comments before a piece, and the number of line ends between the last of them
    /// and it.
    fn gap(&mut self, start: usize) -> (Vec<Comment<'a>>, usize) {
        let mut comments = vec![];
        let mut line_ends = 0;
        let mut at = self.end;
        self.cursor.go_to(self.text, at);
        let end_column = self.cursor.column;
        while at < start {
            let rest = &self.text[at..start];
            let blanks = rest.len() - rest.trim_start().len();
            line_ends += rest[..blanks].matches('\n').count();
            at += blanks;
            let rest = &rest[blanks..];
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else {
                rest.get(2..).and_then(|inside| inside.find("*/")).map_or(rest.len(), |it| it + 4)
            };
            if length > 0 {
                self.cursor.go_to(self.text, at);
                let Cursor { column, line_column, .. } = self.cursor;
                let text = rest[..length].trim_end();
                let gap = column.saturating_sub(end_column);
                comments.push(Comment { text, line_ends, column, line_column, gap });
                line_ends = 0;
            }
            at += length;
        }
        (comments, line_ends)
    }
}

/// A position in a text and its column. It only moves forward, so that each character is visited
/// once.
#[derive(Default)]
struct Cursor {
    at: usize,
    column: usize,
    /// Column of the first non-blank character on this line, once passed.
    line_column: usize,
    has_begun: bool,
}

impl Cursor {
    fn go_to(&mut self, text: &str, to: usize) {
        for character in text[self.at..to].chars() {
            if !character.is_whitespace() && !self.has_begun {
                (self.has_begun, self.line_column) = (true, self.column);
            }
            match character {
                '\n' => (self.column, self.has_begun) = (0, false),
                '\t' => self.column = (self.column / TAB_COLUMNS + 1) * TAB_COLUMNS,
                _ => self.column += 1,
            }
        }
        self.at = to;
        if !self.has_begun {
            (self.has_begun, self.line_column) = (true, self.column);
        }
    }
}

fn join_brackets(pieces: &mut [Piece]) {
    let mut open = vec![];
    for at in 0..pieces.len() {
        match pieces[at].text {
            "(" | "[" | "{" => open.push(at),
            ")" | "]" | "}" => {
                if let Some(start) = open.pop() {
                    pieces[start].mate = Some(at);
                    pieces[at].mate = Some(start);
                }
            }
            _ => {}
        }
    }
}
