// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings about code that has a meaning but certainly not the intended one. To avoid false
//! alarms, a lint reports only what it can be sure of; templates are judged by the arguments that
//! they are used with, and numbers that depend on parameters are not judged at all.
//!
//! Lints run at three places. Lints on the text alone are here, in [`of_files`]; those that need
//! types run while expressions are lowered (`lower/warnings.rs`); those that need the paths through
//! a handler examine its IR ([`of_program`]). No warning is reported for a program with errors.

mod ports;
mod statements;
mod variables;

use crate::ast::{Block, ConfigStatement, Element, File, Section, TopItem};
use crate::diagnostic::Diagnostic;
use crate::source::{SourceMap, Span};

pub use ports::of_program;

/// A kind of warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lint {
    /// Code shown in messages.
    pub code: &'static str,
    /// Name of the lint.
    pub name: &'static str,
}

const fn lint(code: &'static str, name: &'static str) -> Lint {
    Lint { code, name }
}

/// All kinds of warning; `docs/reference/warnings.md` explains each.
pub const LINTS: [Lint; 15] = [
    lint("W0601", "imported configuration"),
    lint("W0602", "hidden state"),
    lint("W0603", "shallow join"),
    lint("W0604", "waits for no port"),
    lint("W0605", "port never read"),
    lint("W0606", "endless loop"),
    lint("W0607", "unused variable"),
    lint("W0608", "assignment as a condition"),
    lint("W0609", "statement without effect"),
    lint("W0610", "missing return"),
    lint("W0611", "port read twice"),
    lint("W0612", "shift by the width or more"),
    lint("W0613", "division by zero"),
    lint("W0614", "empty program"),
    lint("W0615", "more rounds than the watchdog allows"),
];

/// Returns whether a warning is reported only for a program without errors, because an error may be
/// its cause.
pub(crate) fn is_of_sound_programs(code: &str) -> bool {
    LINTS.iter().skip(3).any(|lint| lint.code == code)
}

/// Returns the warnings about the texts of a program.
pub fn of_files(files: &[File], sources: &SourceMap) -> Vec<Diagnostic> {
    let mut found = vec![];
    if files.first().is_some_and(|file| file.items.is_empty()) {
        found.push(empty_program(Span::default()));
    }
    for file in files {
        for block in blocks_of(file) {
            statements::check(block, sources, &mut found);
            variables::check(block, &mut found);
        }
        elements_of(file).for_each(|element| ports::check_read(element, &mut found));
    }
    found
}

/// Returns the warning for a program in which nothing runs.
pub fn empty_program(span: Span) -> Diagnostic {
    Diagnostic::warning("W0614", span, "this program is empty")
        .label("no instance, and no chain")
        .help("declare an instance, `Pass :: pass`, and join it: `from_tor -> pass -> to_tor`")
}

/// Returns every block of statements in a file: of functions, and of sections of elements.
fn blocks_of(file: &File) -> Vec<&Block> {
    let mut blocks = vec![];
    for item in &file.items {
        match item {
            TopItem::Function(function) => blocks.push(&function.body),
            TopItem::Element(element) => blocks.extend(blocks_of_element(element)),
            TopItem::Group(group) => {
                let managers = group.statements.iter().filter_map(manager_of);
                managers.for_each(|manager| blocks.extend(blocks_of_element(manager)));
            }
            TopItem::Config(statement) => {
                blocks.extend(manager_of(statement).into_iter().flat_map(blocks_of_element));
            }
            _ => {}
        }
    }
    blocks
}

fn manager_of(statement: &ConfigStatement) -> Option<&Element> {
    match statement {
        ConfigStatement::Manager(manager) => Some(manager),
        _ => None,
    }
}

fn elements_of(file: &File) -> impl Iterator<Item = &Element> {
    file.items.iter().filter_map(|item| match item {
        TopItem::Element(element) => Some(element),
        _ => None,
    })
}

fn blocks_of_element(element: &Element) -> Vec<&Block> {
    element.sections.iter().filter_map(block_of).collect()
}

fn block_of(section: &Section) -> Option<&Block> {
    match section {
        Section::State(..) => None,
        Section::Init(block, _) | Section::Handler(block, _) | Section::Signal(block, _) => {
            Some(block)
        }
        Section::Method(function) | Section::Function(function) => Some(&function.body),
    }
}
