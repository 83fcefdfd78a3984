// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Breaks a logical line that is too long into several.
//!
//! A line that the user has broken at a permitted position stays broken. If that is not enough, it
//! is broken at the loosest position that leaves the first part short enough. The continuation is
//! aligned after the innermost open bracket, or after `=` or `return`. A list whose `{` ends a
//! line, and a chain of connections, keep their lines even if they would fit on one.

use super::outline::{Kind, Line};
use super::pieces::{Comment, Piece};
use super::spacing::{is_assignment, is_comment_spaced, is_spaced, operator_level, width_within};
use super::writing::{Output, OutputLine};
use super::{ALIGNED_MAX, INDENT, WIDTH};
use crate::parser::Role;
use std::ops::Range;

/// Weights that make up the rank of a break position; the line is broken at the lowest rank.
const RANK_OF_NESTING: usize = 32;
const RANK_OF_QUESTION: usize = 1;
const RANK_OF_HEAD: usize = 3;
const RANK_OF_OPERATORS: usize = 4;
const RANK_OF_ASSIGNMENT: usize = 1 << 20;
const RANK_OF_BRACKET: usize = 1 << 21;

/// Appends a logical line. The comments before its first piece are written already, except those on
/// its line.
pub fn write_line(pieces: &[Piece], line: &Line, glued: &[Comment], output: &mut Output) {
    let atoms = atoms_of(pieces, line, glued);
    let mut wrapper = Wrapper {
        atoms: &atoms,
        kind: line.kind,
        anchor: line.indent + if line.kind == Kind::Head { 2 * INDENT } else { INDENT },
        open: vec![],
    };
    let mut start = 0;
    let mut indent = line.indent;
    let mut fits = wrapper.fits(start, indent);
    while start < atoms.len() {
        let end = wrapper.end_of_line(start, indent, fits);
        output.add(wrapper.written(start..end, indent, line.indent));
        if end < atoms.len() {
            indent = wrapper.indent_of(end);
            if matches!(atoms[end].before, Break::Must) {
                fits = wrapper.fits(end, indent);
            }
        }
        start = end;
    }
}

/// A piece or a comment to be placed on a line.
struct Atom<'a> {
    text: &'a str,
    piece: Option<&'a Piece<'a>>,
    comment: Option<&'a Comment<'a>>,
    is_spaced: bool,
    before: Break,
    has_blank_line: bool,
}

/// Whether a line may or must end before an atom.
enum Break {
    Never,
    May {
        rank: usize,
        /// Whether the user has broken the line here.
        is_wanted: bool,
    },
    Must,
}

impl Atom<'_> {
    fn width(&self) -> usize {
        // A comment that ends the line is not counted: it could not be anywhere else.
        let is_counted = !self.comment.is_some_and(Comment::is_line);
        if is_counted { self.text.chars().count() } else { 0 }
    }

    fn is_mark(&self, marks: &[&str]) -> bool {
        self.piece.is_some_and(|piece| marks.contains(&piece.text))
    }
}

fn atoms_of<'a>(pieces: &'a [Piece<'a>], line: &Line, glued: &'a [Comment<'a>]) -> Vec<Atom<'a>> {
    let range = line.pieces.clone();
    let mut places = Places::of(pieces, line);
    let mut atoms: Vec<Atom> = vec![];
    for comment in glued {
        let before = if ends_line(&atoms) { Break::Must } else { Break::Never };
        atoms.push(comment_atom(comment, !atoms.is_empty(), before));
    }
    for at in range.clone() {
        let piece = &pieces[at];
        let is_first = at == range.start;
        if !is_first {
            for comment in &piece.comments {
                let is_spaced = is_comment_spaced(Some(&pieces[at - 1]), None);
                let breaks = comment.line_ends > 0 || comment.has_lines() || ends_line(&atoms);
                let before = if breaks { Break::Must } else { Break::Never };
                atoms.push(comment_atom(comment, is_spaced, before));
            }
        }
        let before = places.before(at);
        let follows_comment = atoms.last().is_some_and(|atom| atom.comment.is_some());
        let follows_own = !is_first && piece.comments.iter().any(|it| it.line_ends > 0);
        let breaks = ends_line(&atoms) || follows_own && piece.line_ends > 0;
        let is_spaced = match follows_comment {
            true => is_comment_spaced(None, Some(piece)),
            false => !is_first && is_spaced(pieces, at),
        };
        atoms.push(Atom {
            text: piece.text,
            piece: Some(piece),
            comment: None,
            is_spaced,
            before: match breaks {
                true => Break::Must,
                false if follows_own => Break::Never,
                false => before,
            },
            has_blank_line: piece.line_ends > 1,
        });
    }
    atoms
}

fn comment_atom<'a>(comment: &'a Comment<'a>, is_spaced: bool, before: Break) -> Atom<'a> {
    let has_blank_line = comment.line_ends > 1;
    Atom {
        text: comment.text,
        piece: None,
        comment: Some(comment),
        is_spaced,
        before,
        has_blank_line,
    }
}

/// Returns whether the last atom is a comment that ends its line.
fn ends_line(atoms: &[Atom]) -> bool {
    let last = atoms.last().and_then(|atom| atom.comment);
    last.is_some_and(|comment| comment.is_line() || comment.has_lines())
}

/// Positions where a logical line can be broken.
struct Places<'a> {
    pieces: &'a [Piece<'a>],
    line: &'a Line,
    /// Open brackets, including angles; whether each belongs to a list with lines of its own.
    open: Vec<Bracket>,
    is_too_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Plain,
    /// A list whose line breaks are kept.
    KeptList,
    /// A list that is broken because it does not fit.
    FilledList,
}

impl<'a> Places<'a> {
    fn of(pieces: &'a [Piece<'a>], line: &'a Line) -> Self {
        let most = WIDTH.saturating_sub(line.indent);
        let is_too_long = width_within(pieces, line.pieces.clone(), most).is_none();
        Self { pieces, line, open: vec![], is_too_long }
    }

    /// Returns whether a line may end before that piece; pieces must be queried in order.
    fn before(&mut self, at: usize) -> Break {
        let piece = &self.pieces[at];
        if piece.is_in_pragma {
            return Break::Never;
        }
        let closes = [")", "]", "}"].contains(&piece.text);
        let closed = if closes { self.open.pop() } else { None };
        let found = match at == self.line.pieces.start {
            true => Break::Never,
            false if closes => match closed {
                Some(Bracket::KeptList | Bracket::FilledList)
                    if self.pieces[at - 1].text != "{" =>
                {
                    Break::Must
                }
                _ => Break::Never,
            },
            false => self.between(at),
        };
        for _ in 0..piece.angle_ends {
            self.open.pop();
        }
        match (piece.text, piece.role) {
            ("{", None) => self.open.push(self.list(at)),
            ("(" | "[" | "{", _) => self.open.push(Bracket::Plain),
            (_, Some(Role::Arguments | Role::Parameters)) => self.open.push(Bracket::Plain),
            _ => {}
        }
        found
    }

    fn list(&self, at: usize) -> Bracket {
        if self.pieces[at + 1].is_on_new_line() && self.pieces[at].mate != Some(at + 1) {
            return Bracket::KeptList;
        }
        match self.is_too_long && self.open.is_empty() {
            true => Bracket::FilledList,
            false => Bracket::Plain,
        }
    }

    /// Decides for a piece that is not the first and closes no bracket.
    fn between(&self, at: usize) -> Break {
        let (left, right) = (&self.pieces[at - 1], &self.pieces[at]);
        let in_list = self.open.last().copied().unwrap_or(Bracket::Plain);
        if left.text == "{" && in_list != Bracket::Plain {
            return Break::Must;
        }
        let Some(rank) = self.rank(left, right) else { return Break::Never };
        let is_wanted = self.is_wanted(at);
        if is_wanted && (in_list == Bracket::KeptList || is_link(self.line, right)) {
            return Break::Must;
        }
        Break::May { rank, is_wanted }
    }

    fn rank(&self, left: &Piece, right: &Piece) -> Option<usize> {
        let nested = self.open.len() * RANK_OF_NESTING;
        let is_head = self.line.kind == Kind::Head && self.open.is_empty();
        if [",", ";"].contains(&left.text) {
            return Some(nested);
        }
        if is_link(self.line, right) {
            return Some(0);
        }
        if right.is("?") {
            return Some(nested + RANK_OF_QUESTION);
        }
        if right.role == Some(Role::Conditional) {
            return Some(nested + RANK_OF_QUESTION + 1);
        }
        let begins_clause = right.role == Some(Role::Ports)
            || right.role == Some(Role::Keyword)
            || right.is("await");
        if is_head && begins_clause {
            return Some(RANK_OF_HEAD);
        }
        if left.is("->") && self.line.kind == Kind::Head {
            return Some(nested + RANK_OF_OPERATORS);
        }
        if let Some(level) = operator_level(left) {
            return Some(nested + RANK_OF_OPERATORS + 2 * level);
        }
        if is_assignment(left) && self.open.is_empty() && self.line.kind != Kind::Config {
            return Some(RANK_OF_ASSIGNMENT);
        }
        (left.text == "(").then_some(RANK_OF_BRACKET + nested)
    }

    /// Returns whether the user has broken the line here, or on the other side of the operator.
    fn is_wanted(&self, at: usize) -> bool {
        let (left, right) = (&self.pieces[at - 1], &self.pieces[at]);
        let is_inner = at > self.line.pieces.start + 1;
        let joins_left = left.text == "," || operator_level(left).is_some() || left.is("->");
        let joins_right =
            is_link(self.line, right) || right.is("?") || right.role == Some(Role::Conditional);
        // A comment breaks the line at its own position only.
        let is_broken =
            |piece: &Piece| piece.line_ends > 0 && !piece.comments.iter().any(Comment::needs_line);
        let next = self.pieces[..self.line.pieces.end].get(at + 1);
        is_broken(right)
            || is_inner && joins_left && is_broken(left)
            || joins_right && next.is_some_and(is_broken)
    }
}

/// Returns whether a piece connects two instances of a chain.
fn is_link(line: &Line, piece: &Piece) -> bool {
    line.kind == Kind::Config && piece.is("->")
}

/// An open bracket.
struct Open {
    /// Column of its contents.
    column: usize,
    /// Column of the line that it is on.
    line: usize,
}

struct Wrapper<'a> {
    atoms: &'a [Atom<'a>],
    kind: Kind,
    /// Column of continuation lines outside brackets.
    anchor: usize,
    open: Vec<Open>,
}

impl Wrapper<'_> {
    /// Returns whether the atoms from `start` fit on one line, up to the next required line end.
    fn fits(&self, start: usize, indent: usize) -> bool {
        let mut width = indent;
        for (at, atom) in self.atoms.iter().enumerate().skip(start) {
            if at > start && matches!(atom.before, Break::Must) {
                break;
            }
            width += usize::from(at > start && atom.is_spaced) + atom.width();
            if width > WIDTH {
                return false;
            }
        }
        true
    }

    /// Returns the end of the line that begins with atom `start`.
    fn end_of_line(&self, start: usize, indent: usize, fits: bool) -> usize {
        let mut best: Option<(usize, usize)> = None;
        let mut column = indent + self.atoms[start].width();
        for (at, atom) in self.atoms.iter().enumerate().skip(start + 1) {
            match atom.before {
                Break::Must => return at,
                Break::May { is_wanted: true, .. } if !fits => return at,
                Break::May { rank, .. } if best.is_none_or(|(least, _)| rank <= least) => {
                    best = Some((rank, at));
                }
                _ => {}
            }
            column += usize::from(atom.is_spaced) + atom.width();
            if column > WIDTH
                && !fits
                && let Some((_, place)) = best
            {
                return place;
            }
        }
        self.atoms.len()
    }

    /// Builds the line of these atoms.
    fn written(&mut self, range: Range<usize>, indent: usize, base: usize) -> OutputLine {
        let first = &self.atoms[range.start];
        let is_table = self.kind == Kind::Declaration || !self.open.is_empty();
        let mut line = OutputLine::new(indent, first.has_blank_line, is_table);
        if let Some(comment) = first.comment
            && range.len() == 1
        {
            line.set_comment(comment);
            return line;
        }
        let mut column = indent;
        for at in range.clone() {
            let atom = &self.atoms[at];
            if let Some(comment) = atom.comment.filter(|comment| comment.is_line()) {
                line.trail(comment);
                continue;
            }
            if at > range.start && atom.is_spaced {
                line.text.push(' ');
                column += 1;
            }
            line.text += atom.text;
            column += atom.width();
            let continues = at + 1 < range.end && !ends_line(&self.atoms[at + 1..at + 2]);
            self.pass(atom, column, indent, base, continues);
        }
        line
    }

    /// Updates the open brackets and the alignment of continuation lines.
    fn pass(&mut self, atom: &Atom, column: usize, indent: usize, base: usize, continues: bool) {
        let Some(piece) = atom.piece else { return };
        let opens_angle = matches!(piece.role, Some(Role::Arguments | Role::Parameters));
        if ["(", "[", "{"].contains(&piece.text) || opens_angle {
            let gap = usize::from(piece.text == "{" && piece.role != Some(Role::Options));
            let aligned = match continues {
                true if column + gap <= ALIGNED_MAX => column + gap,
                true => indent + 2 * INDENT,
                false => indent + INDENT,
            };
            self.open.push(Open { column: aligned, line: indent });
        }
        let closes = usize::from([")", "]", "}"].contains(&piece.text)) + piece.angle_ends;
        for _ in 0..closes {
            self.open.pop();
        }
        let is_anchor = self.kind != Kind::Head && self.kind != Kind::Config;
        if self.open.is_empty() && is_anchor && (is_assignment(piece) || piece.is("return")) {
            self.anchor = match continues {
                true if column < ALIGNED_MAX => column + 1,
                true => base + 2 * INDENT,
                false => base + INDENT,
            };
        }
    }

    /// Returns the indentation of a line that begins with atom `at`.
    fn indent_of(&self, at: usize) -> usize {
        match self.open.last() {
            Some(open) if self.atoms[at].is_mark(&[")", "]", "}"]) => open.line,
            Some(open) => open.column,
            None => self.anchor,
        }
    }
}
