// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines which pieces begin lines, and their depth: an element's sections, a block's
//! statements, members, values. The pieces between two such positions form one logical line,
//! whatever its length.
//!
//! The text was parsed without an error, so brackets match and statements end. Every piece belongs
//! to exactly one logical line, in order, so nothing can be lost here.

use super::pieces::Piece;
use super::spacing::width_within;
use super::{INDENT, WIDTH};
use crate::parser::{Block, Role, Roles};
use std::collections::HashMap;
use std::ops::Range;

/// A logical line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its pieces.
    pub pieces: Range<usize>,
    /// Indentation in columns.
    pub indent: usize,
    /// Kind of line.
    pub kind: Kind,
}

/// Kind of a logical line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Code.
    Code,
    /// A variable, member or value: one of several that form a table.
    Declaration,
    /// The head of an element, a group, a function.
    Head,
    /// A statement of the configuration.
    Config,
}

/// Returns the logical lines of a text. The last piece, the end of the text, is in none.
pub fn lines_of(pieces: &[Piece], roles: &Roles) -> Vec<Line> {
    let by_start = pieces.iter().enumerate().map(|(at, piece)| (piece.start, at));
    let mut outline = Outline { pieces, roles, by_start: by_start.collect(), lines: vec![] };
    let end = pieces.len() - 1;
    outline.items(0, end, 0);
    outline.close(end);
    outline.lines
}

struct Outline<'a> {
    pieces: &'a [Piece<'a>],
    roles: &'a Roles,
    by_start: HashMap<u32, usize>,
    /// Lines so far. The last one is still open: it ends where the next begins.
    lines: Vec<Line>,
}

impl Outline<'_> {
    /// Begins a line at that piece.
    fn begin(&mut self, at: usize, indent: usize, kind: Kind) {
        if self.lines.last().is_some_and(|line| line.pieces.start == at) {
            return;
        }
        self.close(at);
        self.lines.push(Line { pieces: at..at, indent, kind });
    }

    fn close(&mut self, at: usize) {
        if let Some(last) = self.lines.last_mut() {
            last.pieces.end = at;
        }
    }

    /// Returns whether the open line, with the pieces up to `end`, fits on one line.
    fn fits(&self, end: usize) -> bool {
        self.lines.last().is_some_and(|line| self.fits_from(line.pieces.start, end, line.indent))
    }

    fn fits_from(&self, start: usize, end: usize, indent: usize) -> bool {
        let (_, glued) = self.pieces[start].comments_on_lines(start == 0);
        let comments = self.pieces[start].comments.iter().rev().take(glued);
        let glued: usize = comments.map(|comment| comment.text.chars().count() + 1).sum();
        let most = WIDTH.saturating_sub(indent + glued);
        end.saturating_sub(start) <= most && width_within(self.pieces, start..end, most).is_some()
    }

    fn mate(&self, at: usize) -> usize {
        self.pieces[at].mate.expect("brackets match in a text that was parsed")
    }

    /// Handles the items of a file or group.
    fn items(&mut self, mut at: usize, end: usize, indent: usize) {
        while at < end {
            if self.pieces[at].is(";")
                && self.lines.last().is_some_and(|it| it.pieces.start < at)
                && !self.pieces[at - 1].is("{")
                && self.pieces[at].comments.is_empty()
            {
                at += 1;
                continue;
            }
            at = self.item(at, indent);
        }
    }

    fn item(&mut self, at: usize, indent: usize) -> usize {
        if let Some(last) = self.roles.config_end(self.pieces[at].start) {
            self.begin(at, indent, Kind::Config);
            return self.by_start[&last] + 1;
        }
        let kind = match self.pieces[at].text {
            "const" | "typedef" => Kind::Declaration,
            "import" => Kind::Code,
            _ => Kind::Head,
        };
        self.begin(at, indent, kind);
        if self.pieces[at].is("import") {
            return at + 2;
        }
        self.rest_of_item(at, indent)
    }

    /// Handles the rest of an item or section whose line has begun.
    fn rest_of_item(&mut self, at: usize, indent: usize) -> usize {
        let mut at = at;
        if self.pieces[at].is("template") {
            let head = self.pieces[at..].iter().position(|it| it.block().is_some());
            let params = self.pieces[at..].iter().position(|it| it.role == Some(Role::AngleEnd));
            let (body, after) = (at + head.unwrap_or(0), at + params.unwrap_or(0) + 1);
            at = after;
            if after < body && !self.fits(body + 1) {
                self.begin(after, indent, Kind::Head);
            }
        }
        self.rest(at, indent, true)
    }

    /// Handles the rest of a construct that ends with `;` or with a block, whose line has begun.
    fn rest(&mut self, mut at: usize, indent: usize, may_stay: bool) -> usize {
        while at < self.pieces.len() - 1 {
            let piece = &self.pieces[at];
            match (piece.text, piece.block()) {
                (";", _) => return at + 1,
                ("{", Some(kind)) => {
                    at = self.block(at, indent, kind, may_stay);
                    if !matches!(kind, Block::Record | Block::Enum) {
                        return at;
                    }
                }
                ("(" | "[" | "{", _) => at = self.mate(at) + 1,
                _ => at += 1,
            }
        }
        at
    }

    /// Handles a block whose `{` is at `open`; returns the piece after it.
    fn block(&mut self, open: usize, indent: usize, kind: Block, may_stay: bool) -> usize {
        if has_line_comment(&self.pieces[open]) {
            self.begin(open, indent, Kind::Code);
        }
        let close = self.mate(open);
        let is_empty = close == open + 1 && self.pieces[close].comments.is_empty();
        if is_empty || may_stay && self.stays_on_line(open, close, kind) {
            return close + 1;
        }
        let inner = indent + INDENT;
        match kind {
            Block::Statements => self.statements(open + 1, close, inner),
            Block::Switch => self.arms(open + 1, close, inner),
            Block::Group => self.items(open + 1, close, inner),
            Block::State | Block::Record | Block::Enum => {
                self.declarations(open + 1, close, inner, kind);
            }
            Block::Sections => {
                let mut at = open + 1;
                while at < close {
                    self.begin(at, inner, Kind::Head);
                    at = self.rest_of_item(at, inner);
                }
            }
        }
        self.begin(close, indent, Kind::Code);
        close + 1
    }

    /// Returns whether a block stays on the line of its `{`: it was written so, fits, and is
    /// simple.
    fn stays_on_line(&self, open: usize, close: usize, kind: Block) -> bool {
        if close - open > WIDTH {
            return false;
        }
        let inside = open + 1..close;
        let is_simple = match kind {
            Block::Switch | Block::Sections | Block::Group => false,
            Block::State | Block::Record | Block::Enum => self.pieces[inside]
                .iter()
                .all(|it| matches!(it.block(), None | Some(Block::Record))),
            Block::Statements => self.is_simple_statement(open + 1, close),
        };
        let is_on_line = self.pieces[open + 1..=close].iter().all(|piece| !piece.is_on_new_line());
        let end = match kind {
            Block::Record | Block::Enum => self.end_of_simple(close + 1),
            _ => close + 1,
        };
        is_simple && is_on_line && self.fits(end)
    }

    /// Returns whether these pieces are one statement without nested statements.
    fn is_simple_statement(&self, at: usize, end: usize) -> bool {
        !self.is_control(at) && self.end_of_simple(at) == end
    }

    /// Returns whether a statement that contains others, or a pragma, begins there.
    fn is_control(&self, at: usize) -> bool {
        let piece = &self.pieces[at];
        let words = ["if", "for", "while", "do", "switch", "case", "default"];
        let is_async = piece.is("async") && self.pieces[at + 1].block().is_some();
        piece.is_in_pragma
            || piece.block().is_some()
            || is_async
            || piece.is(".")
            || words.iter().any(|word| piece.is(word))
    }

    /// Returns the position after the `;` that ends the statement, or where a line's length is
    /// exceeded.
    fn end_of_simple(&self, start: usize) -> usize {
        let last = self.pieces.len() - 1;
        let mut at = start;
        while at < last && at - start <= WIDTH {
            match self.pieces[at].text {
                ";" => return at + 1,
                "(" | "[" | "{" => at = self.mate(at) + 1,
                ")" | "]" | "}" => return at,
                _ => at += 1,
            }
        }
        at
    }

    /// Handles variables, members or values. Those that shared a line still do.
    fn declarations(&mut self, open: usize, close: usize, indent: usize, kind: Block) {
        let mut at = open;
        let mut was_simple = false;
        while at < close {
            let end = match kind {
                Block::Enum => self.end_of_value(at, close),
                _ => self.end_of_simple(at),
            };
            let is_simple =
                end - at <= WIDTH && self.pieces[at..end].iter().all(|it| it.block().is_none());
            let shares = was_simple && is_simple && !self.pieces[at].is_on_new_line();
            if !shares || !self.fits(end) {
                self.begin(at, indent, Kind::Declaration);
            }
            was_simple = is_simple;
            at = match kind {
                Block::Enum => end,
                _ => self.rest(at, indent, true),
            };
        }
    }

    /// Returns the position after the `,` that ends a value of an enum.
    fn end_of_value(&self, mut at: usize, close: usize) -> usize {
        while at < close {
            match self.pieces[at].text {
                "," => return at + 1,
                "(" | "[" | "{" => at = self.mate(at) + 1,
                _ => at += 1,
            }
        }
        close
    }

    fn statements(&mut self, mut at: usize, end: usize, indent: usize) {
        while at < end {
            self.begin(at, indent, Kind::Code);
            at = self.statement(at, indent);
        }
    }

    /// Handles a statement whose line has begun. A pragma is a statement of its own.
    fn statement(&mut self, at: usize, indent: usize) -> usize {
        let piece = &self.pieces[at];
        if piece.begins_pragma() {
            let rest = self.pieces[at + 1..].iter();
            let is_same = |it: &&Piece| it.is_in_pragma && !it.begins_pragma();
            return at + 1 + rest.take_while(is_same).count();
        }
        if let Some(kind) = piece.block() {
            return self.block(at, indent, kind, false);
        }
        if piece.is_word {
            match piece.text {
                "if" => return self.if_statement(at, indent),
                "for" | "while" => return self.body(self.mate(at + 1) + 1, indent),
                "switch" => {
                    return self.block(self.mate(at + 1) + 1, indent, Block::Switch, false);
                }
                "do" => {
                    let after = self.body(at + 1, indent);
                    self.proceed(after, indent);
                    return self.rest(after, indent, true);
                }
                _ => {}
            }
        }
        self.rest(at, indent, true)
    }

    fn if_statement(&mut self, at: usize, indent: usize) -> usize {
        let mut at = self.body(self.mate(at + 1) + 1, indent);
        while self.pieces[at].is("else") {
            self.proceed(at, indent);
            let next = &self.pieces[at + 1];
            let is_chained = next.is("if") && !has_line_comment(next);
            let head_end = if is_chained { self.mate(at + 2) + 1 } else { at + 1 };
            at = self.body(head_end, indent);
            if !is_chained {
                break;
            }
        }
        at
    }

    /// Handles the body of a statement: a block, a short statement kept on the same line, or a
    /// statement on lines of its own.
    fn body(&mut self, at: usize, indent: usize) -> usize {
        if self.pieces[at].block().is_some() {
            return self.block(at, indent, Block::Statements, false);
        }
        let is_short = !self.pieces[at].is_on_new_line()
            && !self.is_control(at)
            && self.fits(self.end_of_simple(at));
        if is_short {
            return self.rest(at, indent, false);
        }
        self.body_below(at, indent + INDENT)
    }

    /// Handles a body on lines of its own, with the pragmas of a loop.
    fn body_below(&mut self, mut at: usize, indent: usize) -> usize {
        loop {
            self.begin(at, indent, Kind::Code);
            let is_about_loop =
                self.pieces[at].begins_pragma() && !self.pieces[at + 1].is("breakpoint");
            at = self.statement(at, indent);
            let continues = self.pieces[at].begins_pragma()
                || ["for", "while", "do"].iter().any(|word| self.pieces[at].is(word));
            if !is_about_loop || !continues {
                return at;
            }
        }
    }

    /// Handles `else`, or the `while` after a body: on the line of the preceding brace, if there is
    /// one.
    fn proceed(&mut self, at: usize, indent: usize) {
        let is_behind_brace = self.pieces[at - 1].is("}")
            && self.lines.last().is_some_and(|line| line.pieces.start == at - 1);
        if !is_behind_brace || has_line_comment(&self.pieces[at]) {
            self.begin(at, indent, Kind::Code);
        }
    }

    fn arms(&mut self, mut at: usize, close: usize, indent: usize) {
        let mut is_behind_label = false;
        while at < close {
            let shares = is_behind_label && !self.pieces[at].is_on_new_line();
            let after = self.end_of_label(at);
            if !shares || !self.fits(after) {
                self.begin(at, indent, Kind::Code);
            }
            at = after;
            is_behind_label = true;
            let is_at_label = |it: &Piece| it.is("case") || it.is("default") || it.is("}");
            if at == close || is_at_label(&self.pieces[at]) {
                continue;
            }
            is_behind_label = false;
            if let Some(end) = self.short_arm(at, close) {
                at = end;
                continue;
            }
            if self.pieces[at].block().is_some() && !has_line_comment(&self.pieces[at]) {
                at = self.block(at, indent, Block::Statements, false);
            }
            while at < close && !is_at_label(&self.pieces[at]) {
                self.begin(at, indent + INDENT, Kind::Code);
                at = self.statement(at, indent + INDENT);
            }
        }
    }

    fn end_of_label(&self, at: usize) -> usize {
        let rest = self.pieces[at..].iter();
        let colon = rest.clone().position(|it| it.role == Some(Role::Label));
        at + colon.map_or(1, |colon| colon + 1)
    }

    /// Returns the position after the statements of an arm, if they are all on the line of its
    /// label and fit.
    fn short_arm(&self, start: usize, close: usize) -> Option<usize> {
        let mut at = start;
        while at < close && !self.pieces[at].is("case") && !self.pieces[at].is("default") {
            if self.is_control(at) || at - start > WIDTH {
                return None;
            }
            let end = self.end_of_simple(at);
            if end - at > WIDTH || self.pieces[at..end].iter().any(Piece::is_on_new_line) {
                return None;
            }
            at = end;
        }
        self.fits(at).then_some(at)
    }
}

/// Returns whether a comment before the piece puts it on a new line.
fn has_line_comment(piece: &Piece) -> bool {
    !piece.comments.is_empty() && piece.is_on_new_line()
}
