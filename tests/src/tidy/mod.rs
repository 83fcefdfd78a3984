// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The style sheet as code. A rule looks at the [`Tree`], the text files of the repository, and
//! gives [`Finding`]s; a tree can also be made of a few lines of text, to test the rules.

mod directions;
mod documents;
mod elements;
mod english;
mod modules;
mod sources;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the top, with `/` between folders.
    pub path: String,
    /// Contents of the file.
    pub text: String,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path of the file, from the top.
    pub path: String,
    /// Line number, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Description of the violation, and the remedy.
    pub message: String,
}

/// The text files of a repository.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Files, sorted by path.
    pub files: Vec<File>,
}

/// Name of a rule, and the function that finds violations.
pub type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

/// All rules.
pub const RULES: &[Rule] = &[
    ("line length", sources::line_length),
    ("licence line", sources::licence_line),
    ("leftover marks", sources::leftover_marks),
    ("console prints", sources::console_prints),
    ("unwrap outside tests", sources::unwraps),
    ("claims", sources::claims),
    ("file length", sources::file_length),
    ("module headers", sources::module_headers),
    ("module names", modules::module_names),
    ("dead files", modules::dead_files),
    ("directions", directions::directions),
    ("element manuals", elements::manuals),
    ("element goldens", elements::goldens),
    ("formatted programs", elements::formatted),
    ("documented commands", documents::commands),
    ("links", documents::links),
    ("sentences", english::sentences),
    ("phrases", english::phrases),
    ("table of contents", documents::contents),
];

/// Folders without sources.
const SKIPPED: [&str; 3] = ["target", "out", ".git"];

impl Tree {
    /// Reads every text file below `top`.
    ///
    /// # Errors
    /// A folder or file that cannot be read.
    pub fn read(top: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.add_folder(top, "")?;
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// Returns a tree of these paths and texts.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.into(), text: text.into() };
        let mut files: Vec<File> = files.iter().map(file).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Self { files }
    }

    /// Returns the file at `path`.
    pub fn file(&self, path: &str) -> Option<&File> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        Some(&self.files[at])
    }

    /// Returns whether there is a file or folder at `path`.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.file(path).is_some() || self.files.iter().any(|file| file.path.starts_with(&folder))
    }

    fn add_folder(&mut self, top: &Path, path: &str) -> io::Result<()> {
        for entry in fs::read_dir(top.join(path))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if entry.file_type()?.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.add_folder(top, &below)?;
                }
            } else {
                // Traces and drawings count as existing files, but only text has lines to check.
                let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                self.files.push(File { path: below, text });
            }
        }
        Ok(())
    }
}

impl File {
    /// Extension after the last dot of the name; empty without one.
    pub fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Whether people write and read it as source code.
    pub fn is_source(&self) -> bool {
        const EXTENSIONS: [&str; 9] = ["rs", "toml", "sh", "c", "h", "cnp", "sv", "v", "py"];
        EXTENSIONS.contains(&self.extension())
            || matches!(self.path.as_str(), "Makefile" | ".ci/run")
    }

    /// Returns a finding in line `line` of this file.
    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }

    /// Returns the lines with their numbers, up to the tests at the end; none in a file of tests.
    fn lines_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        lines.take_while(move |(_, line)| !is_test && !line.starts_with("#[cfg(test)]"))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.message)
    }
}

#[cfg(test)]
pub(crate) fn found(rule: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
    let place = |finding: Finding| format!("{}:{}", finding.path, finding.line);
    rule(&Tree::of(files)).into_iter().map(place).collect()
}
