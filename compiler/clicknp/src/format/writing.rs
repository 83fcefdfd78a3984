// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes lines to the text: comments on lines of their own, blank lines, and comments after code
//! in a common column.
//!
//! Consecutive lines keep the column that most of their comments are in, if there is room; so a
//! table that a user has aligned stays as it is.

use super::pieces::{Comment, Piece};
use super::{GAP, WIDTH};

/// A line to be written.
#[derive(Clone, Debug, Default)]
pub struct OutputLine {
    /// Indentation in columns.
    indent: usize,
    /// Code, or a comment by itself, which may span several lines.
    pub text: String,
    /// Whether a blank line precedes it.
    has_blank_line: bool,
    /// Whether it is one of several that form a table: lines without a comment do not interrupt a
    /// column of comments there.
    is_table: bool,
    is_comment: bool,
    trailing: Option<Trailing>,
}

/// A comment after code.
#[derive(Clone, Debug)]
struct Trailing {
    text: String,
    /// Column if it moved with its code; 0 if it just follows it.
    column: usize,
    /// Column in the original text.
    column_before: usize,
}

impl OutputLine {
    /// Creates an empty line.
    pub fn new(indent: usize, has_blank_line: bool, is_table: bool) -> Self {
        Self { indent, has_blank_line, is_table, ..Self::default() }
    }

    /// Makes it a comment by itself.
    pub fn set_comment(&mut self, comment: &Comment) {
        self.text = moved(comment, self.indent);
        self.is_comment = true;
    }

    /// Appends a comment that ends it.
    pub fn trail(&mut self, comment: &Comment) {
        match &mut self.trailing {
            Some(trailing) => trailing.text += &format!(" {}", comment.text),
            None => {
                let shift = comment.column - comment.line_column.min(comment.column);
                let column = if comment.gap < GAP { 0 } else { self.indent + shift };
                let column_before = comment.column;
                self.trailing =
                    Some(Trailing { text: comment.text.to_string(), column, column_before });
            }
        }
    }

    fn width(&self) -> usize {
        self.indent + self.text.chars().count()
    }

    /// Returns the end of its comment if that begins in this column.
    fn width_with(&self, column: usize) -> usize {
        let trailing = self.trailing.as_ref();
        trailing.map_or(0, |trailing| column + trailing.text.chars().count())
    }
}

/// The lines so far.
#[derive(Default)]
pub struct Output {
    lines: Vec<OutputLine>,
}

impl Output {
    /// Appends a line.
    pub fn add(&mut self, mut line: OutputLine) {
        let opens = |last: &OutputLine| last.text.ends_with('{') && !last.is_comment;
        line.has_blank_line &= !self.lines.last().is_none_or(opens) && !line.text.starts_with('}');
        self.lines.push(line);
    }

    /// Appends the comments before the first piece of a logical line; returns those that belong on
    /// the line of that piece.
    pub fn add_comments<'a>(&mut self, piece: &'a Piece, indent: usize) -> &'a [Comment<'a>] {
        let (behind, glued) = piece.comments_on_lines(self.lines.is_empty());
        let (behind, own) = piece.comments.split_at(behind);
        let (own, glued) = own.split_at(own.len() - glued);
        if let Some(last) = self.lines.last_mut() {
            behind.iter().for_each(|comment| last.trail(comment));
        }
        self.add_own(own, indent);
        glued
    }

    /// Appends comments on lines of their own.
    pub fn add_own(&mut self, comments: &[Comment], indent: usize) {
        comments.iter().for_each(|comment| self.add_comment(comment, indent));
    }

    fn add_comment(&mut self, comment: &Comment, indent: usize) {
        if comment.line_ends == 0
            && !comment.has_lines()
            && let Some(last) = self.lines.last_mut().filter(|it| it.is_comment)
            && !last.text.contains('\n')
            && !last.text.starts_with("//")
        {
            last.text += &format!(" {}", comment.text);
            return;
        }
        if let Some(line) = self.continuation(comment) {
            self.lines.push(line);
            return;
        }
        let has_blank_line = comment.line_ends > 1;
        let mut line = OutputLine::new(indent, has_blank_line, false);
        line.set_comment(comment);
        self.add(line);
    }

    /// Returns the line without code for a comment that continues the one above it, in that
    /// comment's column after code.
    fn continuation(&self, comment: &Comment) -> Option<OutputLine> {
        let last = self.lines.last()?;
        let above = last.trailing.as_ref()?;
        let continues = comment.line_ends == 1
            && !comment.has_lines()
            && above.column > 0
            && above.column_before == comment.column;
        let text = comment.text.to_string();
        let trailing = Some(Trailing { text, ..above.clone() });
        continues.then(|| OutputLine { trailing, ..OutputLine::new(last.indent, false, true) })
    }

    /// Returns the minimum size in bytes of the text that these lines make.
    pub fn size(&self) -> usize {
        self.lines.iter().map(|line| line.indent + line.text.len() + 1).sum()
    }

    /// Returns the text.
    pub fn text(mut self) -> String {
        self.align();
        let mut text = String::with_capacity(self.size());
        for line in &self.lines {
            if line.has_blank_line {
                text.push('\n');
            }
            push_blanks(&mut text, line.indent);
            text += &line.text;
            if let Some(trailing) = &line.trailing {
                push_blanks(&mut text, trailing.column.saturating_sub(line.width()));
                text += &trailing.text;
            }
            text.push('\n');
        }
        text
    }

    /// Aligns comments after code in common columns.
    fn align(&mut self) {
        let lines = &mut self.lines;
        let mut start = 0;
        for at in 1..=lines.len() {
            let is_end = at == lines.len() || {
                let (before, line) = (&lines[at - 1], &lines[at]);
                let is_loose = |it: &OutputLine| it.trailing.is_none() && !it.is_table;
                line.has_blank_line
                    || line.is_comment
                    || before.is_comment
                    || line.indent != before.indent
                    || is_loose(line)
                    || is_loose(before)
            };
            if is_end {
                align_group(&mut lines[start..at]);
                start = at;
            }
        }
    }
}

/// Aligns the comments of these lines in the column that most of them use, if there is room.
fn align_group(lines: &mut [OutputLine]) {
    let with_comment: Vec<&OutputLine> = lines.iter().filter(|it| it.trailing.is_some()).collect();
    let Some(least) = with_comment.iter().map(|line| line.width() + GAP).max() else { return };
    let mut columns: Vec<usize> =
        with_comment.iter().filter_map(|line| Some(line.trailing.as_ref()?.column)).collect();
    columns.retain(|column| *column > 0);
    columns.sort_unstable();
    let runs = columns.chunk_by(|one, other| one == other);
    let common =
        runs.max_by_key(|run| (run.len(), usize::MAX - run[0])).map_or(least, |run| run[0]);
    let fits = with_comment.iter().all(|line| line.width_with(common) <= WIDTH);
    let column = if common >= least && fits { common } else { least };
    for trailing in lines.iter_mut().filter_map(|line| line.trailing.as_mut()) {
        trailing.column = column;
    }
}

/// Moves a comment so that its first line begins in column `indent`; further lines move with it, or
/// are aligned by their leading stars.
fn moved(comment: &Comment, indent: usize) -> String {
    let mut lines = comment.text.split('\n').map(str::trim_end);
    let mut text = lines.next().unwrap_or_default().to_string();
    let has_stars = lines.clone().all(|line| line.trim_start().starts_with('*'));
    for line in lines {
        text.push('\n');
        let inside = line.trim_start();
        if inside.is_empty() {
            continue;
        }
        let column = match has_stars {
            true => indent + 1,
            false => (columns_of(&line[..line.len() - inside.len()]) + indent)
                .saturating_sub(comment.column),
        };
        push_blanks(&mut text, column);
        text += inside;
    }
    text
}

fn columns_of(blanks: &str) -> usize {
    let tab = |column: usize| (column / 4 + 1) * 4;
    blanks.chars().fold(0, |column, it| if it == '\t' { tab(column) } else { column + 1 })
}

fn push_blanks(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n(' ', count));
}
