// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formatter, which gives programs the style that docs/reference/language.md describes.
//!
//! 1. The text is split into `pieces`: its tokens, and all comments between them. The parser
//!    determines the role of each token, and rejects an invalid text.
//! 2. The `outline` determines which pieces begin lines, and their depth. Every piece belongs to
//!    one line.
//! 3. A line that is too long is broken (`wrapping`); `spacing` determines the blanks.
//! 4. The lines are joined to a text (`writing`), with comments aligned in columns.
//!
//! Only white space ever changes. This holds by construction, and is checked for each text.

mod check;
mod difference;
mod outline;
mod pieces;
mod spacing;
mod wrapping;
mod writing;

pub use difference::{Change, changes};

use crate::diagnostic::{Diagnostic, in_order};
use crate::lexer::tokens_of;
use crate::library::FILE_BYTES_MAX;
use crate::parser::roles_of;
use crate::source::{SourceMap, without_mark};
use std::path::Path;

/// Maximum columns of a line.
const WIDTH: usize = 100;
/// Indentation of a block's contents, in columns.
const INDENT: usize = 4;
/// Minimum columns between code and a comment after it.
const GAP: usize = 2;
/// Maximum column for aligning continuation lines.
const ALIGNED_MAX: usize = 60;

/// Why a text could not be formatted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unformatted {
    /// The text is invalid. Contains the formatted messages.
    #[error("{0}")]
    Wrong(String),
    /// The text, or its formatted version, is too large.
    #[error("more than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// More than white space would have changed: an error in the formatter.
    #[error(
        "an error in the formatter: it would have changed {0}; nothing was written, please \
         report it"
    )]
    Changed(String),
}

/// Formats a text. `name` is used in messages.
///
/// # Errors
/// See [`Unformatted`].
pub fn format_text(name: impl AsRef<Path>, text: &str) -> Result<String, Unformatted> {
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Unformatted::TooLarge);
    }
    let text = without_mark(text);
    let mut sources = SourceMap::default();
    let file = sources.add(name.as_ref(), text);
    let mut diagnostics = vec![];
    let tokens = tokens_of(&sources, file, &mut diagnostics);
    let roles = roles_of(&tokens, &mut diagnostics);
    if !diagnostics.is_empty() {
        let all = in_order(diagnostics);
        let rendered: Vec<_> = all.iter().map(|it: &Diagnostic| it.render(&sources)).collect();
        return Err(Unformatted::Wrong(rendered.join("\n")));
    }
    let pieces = pieces::pieces_of(text, &tokens, &roles);
    let mut output = writing::Output::default();
    for line in outline::lines_of(&pieces, &roles) {
        let first = &pieces[line.pieces.start];
        // Comments before a closing brace belong to the block it closes.
        let indent = line.indent + if first.is("}") { INDENT } else { 0 };
        let glued = output.add_comments(first, indent);
        wrapping::write_line(&pieces, &line, glued, &mut output);
    }
    if let Some(end) = pieces.last() {
        let glued = output.add_comments(end, 0);
        output.add_own(glued, 0);
    }
    if output.size() as u64 > FILE_BYTES_MAX {
        return Err(Unformatted::TooLarge);
    }
    let formatted = with_line_ends_of(text, output.text());
    match check::first_change(text, &formatted) {
        None => Ok(formatted),
        Some(change) => Err(Unformatted::Changed(change)),
    }
}

/// Converts the line ends of `formatted` to those of `text`, as seen in its first line.
fn with_line_ends_of(text: &str, formatted: String) -> String {
    let first = text.split('\n').next().unwrap_or_default();
    let has_returns = first.len() < text.len() && first.ends_with('\r');
    if has_returns { formatted.replace('\n', "\r\n") } else { formatted }
}
