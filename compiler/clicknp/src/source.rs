// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Source texts and locations in them.

use std::path::PathBuf;

/// A location: bytes `start..end` of file number `file` of a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// File number.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span from the start of this one to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end.max(self.end), ..self }
    }
}

/// Removes the byte order mark that some editors add.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The files of one compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// A file and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path as given on the command line or found by an import.
    pub path: PathBuf,
    /// Whole text.
    pub text: String,
    line_starts: Vec<u32>,
}

impl SourceMap {
    /// Adds a file; returns its number.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> u32 {
        let mut text = text.into();
        if without_mark(&text).len() < text.len() {
            text = without_mark(&text).to_string();
        }
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = [0].into_iter().chain(starts.map(|(at, _)| at as u32 + 1)).collect();
        self.files.push(SourceFile { path: path.into(), text, line_starts });
        self.files.len() as u32 - 1
    }

    /// Returns the files, by number.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Returns the text of a span.
    pub fn text(&self, span: Span) -> &str {
        &self.files[span.file as usize].text[span.start as usize..span.end as usize]
    }

    /// Returns the line and column (in characters) of the start of a span, both from 1.
    pub fn position(&self, span: Span) -> (u32, u32) {
        let file = &self.files[span.file as usize];
        let line = file.line_starts.partition_point(|start| *start <= span.start);
        let start = file.line_starts[line - 1] as usize;
        let column = file.text[start..span.start as usize].chars().count() as u32 + 1;
        (line as u32, column)
    }

    /// Returns the text of a line, from 1, without its end.
    pub fn line(&self, file: u32, line: u32) -> &str {
        let file = &self.files[file as usize];
        let start = file.line_starts[line as usize - 1] as usize;
        file.text[start..].split('\n').next().unwrap_or_default().trim_end_matches('\r')
    }

    /// Returns the span of `length` bytes at a location of the IR.
    pub fn span(&self, loc: freeport_ir::Loc, length: u32) -> Span {
        let file = &self.files[loc.file.index()];
        let line = self.line(loc.file.0, loc.line.max(1));
        let column = loc.column.saturating_sub(1) as usize;
        let before: usize = line.chars().take(column).map(char::len_utf8).sum();
        let start = file.line_starts[loc.line.max(1) as usize - 1] + before as u32;
        let end = (start + length).min(file.text.len() as u32);
        Span { file: loc.file.0, start, end }
    }

    /// Returns the start of a span as a location of the IR; the file numbers are the same.
    pub fn loc(&self, span: Span) -> freeport_ir::Loc {
        let (line, column) = self.position(span);
        freeport_ir::Loc { file: freeport_ir::FileId(span.file), line, column }
    }
}
