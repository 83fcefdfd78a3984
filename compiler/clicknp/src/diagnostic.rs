// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors and warnings about a source text: what is wrong, where, what was expected, and what to
//! do.

use crate::source::{SourceMap, Span};
use std::collections::HashSet;
use std::fmt::Write;

/// Severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// An error: the program has no meaning.
    Error,
    /// A warning: the program has a meaning, probably not the intended one.
    Warning,
}

/// A message about a location.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// A stable code, such as `E0102`, one per kind of message.
    pub code: &'static str,
    /// Description of the problem, in a sentence without a full stop.
    pub message: String,
    /// Source location.
    pub span: Span,
    /// Text below the caret, such as what was expected.
    pub label: String,
    /// Related locations, each with its relation.
    pub notes: Vec<(Span, String)>,
    /// Advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: String::new(),
            notes: vec![],
            help: None,
        }
    }

    /// Creates a warning.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Sets the text below the caret.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a related location.
    pub fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push((span, text.into()));
        self
    }

    /// Sets the advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Formats the message for a terminal: `file:line:column`, the line, a caret, the advice.
    pub fn render(&self, sources: &SourceMap) -> String {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut text = format!("{kind}[{}]: {}\n", self.code, self.message);
        render_place(&mut text, sources, self.span, &self.label);
        for (span, note) in &self.notes {
            let _ = writeln!(text, "note: {note}");
            render_place(&mut text, sources, *span, "");
        }
        if let Some(help) = &self.help {
            let _ = writeln!(text, "help: {help}");
        }
        text
    }
}

/// Sorts the diagnostics by position and removes duplicates: anything created several times, such
/// as a group, has the same errors each time.
pub fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let key = |one: &Diagnostic| (one.span.file, one.span.start);
    diagnostics.sort_by_key(key);
    let mut seen = HashSet::new();
    diagnostics.retain(|one| seen.insert((one.code, one.span, one.message.clone())));
    diagnostics
}

fn render_place(text: &mut String, sources: &SourceMap, span: Span, label: &str) {
    let (line, column) = sources.position(span);
    let file = &sources.files()[span.file as usize];
    let source = sources.line(span.file, line).replace('\t', " ");
    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let before = " ".repeat(column as usize - 1);
    let in_line = source.chars().count().saturating_sub(column as usize - 1).max(1);
    let length = sources.text(span).lines().next().unwrap_or("").chars().count();
    let caret = "^".repeat(length.clamp(1, in_line));
    let _ = writeln!(text, "{gutter}--> {}:{line}:{column}", file.path.display());
    // Usually a file that cannot be read: there is nothing to show.
    if file.text.is_empty() {
        return;
    }
    let _ = writeln!(text, "{gutter} |");
    let _ = writeln!(text, "{number} | {source}");
    let marked = format!("{gutter} | {before}{caret} {label}");
    let _ = writeln!(text, "{}", marked.trim_end());
}
