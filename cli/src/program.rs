// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads a program named on the command line: ClickNP source, which is compiled, or the text form
//! of the IR, which is parsed and verified. Errors of both have the same form.

use crate::layouts;
use clap::{Args, ValueEnum};
use freeport_clicknp::diagnostic::{Diagnostic, Severity};
use freeport_clicknp::source::{SourceMap, Span};
use freeport_clicknp::{Options, compile_file, library};
use freeport_ir::{Program, VerifyError, text, verify};
use freeport_runtime::layouts::Layouts;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A program that may be run.
#[derive(Debug)]
pub struct Loaded {
    /// A program that the verifier accepts.
    pub program: Program,
    /// Layouts of its variables; empty for the text form of the IR.
    pub layouts: Layouts,
    /// Warnings.
    pub warnings: Vec<Message>,
}

/// An error or warning about a program.
#[derive(Clone, Debug)]
pub struct Message {
    /// The text for a terminal.
    pub text: String,
    /// Whether it is an error, and not a warning.
    pub is_error: bool,
    /// The message as an object, for editors.
    pub json: Value,
}

/// Options about warnings.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct WarningArguments {
    /// Refuse a program that has warnings (docs/reference/warnings.md lists them)
    #[arg(long, value_enum, value_name = "WARNINGS")]
    deny: Option<Denied>,
}

/// Messages that can be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Denied {
    /// All warnings
    Warnings,
}

impl WarningArguments {
    /// Whether a program with this number of warnings is refused.
    pub fn refuse(self, warnings: usize) -> bool {
        self.deny == Some(Denied::Warnings) && warnings > 0
    }
}

/// Loads a program; warnings go to standard error.
///
/// # Errors
/// All errors of the program, with their places.
pub fn load(path: &Path, library: &[PathBuf]) -> anyhow::Result<Loaded> {
    load_with(path, library, WarningArguments::default())
}

/// Loads a program as [`load`] does, if its warnings are not refused.
///
/// # Errors
/// All errors of the program, with their places, or its warnings if those are denied.
pub fn load_with(
    path: &Path,
    library: &[PathBuf],
    denied: WarningArguments,
) -> anyhow::Result<Loaded> {
    match examine(path, library) {
        Ok(mut loaded) => {
            let graph = &loaded.program.graph;
            let is_empty = graph.instances.is_empty() && graph.channels.is_empty();
            // A file that only defines elements is valid until it is to run.
            if is_empty && !loaded.warnings.iter().any(|it| it.json["code"] == EMPTY) {
                loaded.warnings.push(nothing_runs(path));
            }
            loaded.warnings.iter().for_each(|warning| eprintln!("{}", warning.text));
            let count = loaded.warnings.len();
            if denied.refuse(count) {
                anyhow::bail!("{} has {count} warning(s), which are denied", path.display());
            }
            Ok(loaded)
        }
        Err(messages) => {
            let texts: Vec<String> = messages.into_iter().map(|message| message.text).collect();
            anyhow::bail!("{} cannot be used\n{}", path.display(), texts.join("\n").trim_end())
        }
    }
}

/// Code of the warning that nothing runs.
const EMPTY: &str = "W0614";

fn nothing_runs(path: &Path) -> Message {
    let message = "no instance is declared, so nothing runs; declare one, `Pass :: pass`, and \
                   join it: `from_tor -> pass -> to_tor`";
    let mut reported = error(EMPTY, path, (1, 1), message.to_owned());
    reported.text = reported.text.replacen("error", "warning", 1);
    reported.json["severity"] = json!("warning");
    reported.is_error = false;
    reported
}

/// Loads a program.
///
/// # Errors
/// All errors and warnings, in the order of the source.
pub fn examine(path: &Path, library: &[PathBuf]) -> Result<Loaded, Vec<Message>> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("cnp") => compiled(path, library),
        Some("ir") => parsed(path),
        _ => {
            let message = "a program is a .cnp file, or a .ir file with the text form of the IR";
            Err(vec![error("F0001", path, (1, 1), message.to_owned())])
        }
    }
}

fn compiled(path: &Path, library: &[PathBuf]) -> Result<Loaded, Vec<Message>> {
    let options = Options { library: library.to_vec() };
    let reported = |diagnostics: &[Diagnostic], sources: &SourceMap| {
        diagnostics.iter().map(|it| of_diagnostic(it, sources)).collect::<Vec<_>>()
    };
    let compiled = compile_file(path, &options)
        .map_err(|failure| reported(&failure.diagnostics, &failure.sources))?;
    let program = verified(compiled.program, path)?;
    let layouts = layouts::of(&program, &compiled.layouts);
    Ok(Loaded { layouts, warnings: reported(&compiled.warnings, &compiled.sources), program })
}

fn parsed(path: &Path) -> Result<Loaded, Vec<Message>> {
    let source = library::read(path).map_err(|reason| {
        vec![error("F0002", path, (1, 1), format!("cannot be read: {reason}"))]
    })?;
    let mut program = text::parse(&source).map_err(|it| {
        let mut reported = error("I0001", path, (it.line, it.column), it.message.clone());
        reported.text = format!("error[I0001]: {}:{it}", path.display());
        vec![reported]
    })?;
    if program.name.is_empty() {
        program.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let program = verified(program, path)?;
    Ok(Loaded { program, layouts: Layouts::default(), warnings: vec![] })
}

fn verified(program: Program, path: &Path) -> Result<Program, Vec<Message>> {
    let reported = |broken: VerifyError| {
        let file = program.files.get(broken.loc.file.index());
        let file = file.map_or_else(|| path.to_owned(), PathBuf::from);
        let place = (broken.loc.line.max(1) as usize, broken.loc.column.max(1) as usize);
        error("I0002", &file, place, broken.to_string())
    };
    match verify(&program) {
        Ok(()) => Ok(program),
        Err(rules) => Err(rules.into_iter().map(reported).collect()),
    }
}

fn error(code: &str, file: &Path, (line, column): (usize, usize), message: String) -> Message {
    let file = file.display();
    let text = format!("error[{code}]: {file}:{line}:{column}: {message}");
    let json = json!({
        "severity": "error", "code": code, "file": file.to_string(), "line": line,
        "column": column, "message": message, "label": "", "notes": [], "help": null,
    });
    Message { text, is_error: true, json }
}

/// A message of the compiler of ClickNP.
pub fn of_diagnostic(diagnostic: &Diagnostic, sources: &SourceMap) -> Message {
    let place = |span: Span| {
        let (line, column) = sources.position(span);
        (sources.files()[span.file as usize].path.display().to_string(), line, column)
    };
    let note = |(span, text): &(Span, String)| {
        let (file, line, column) = place(*span);
        json!({ "file": file, "line": line, "column": column, "text": text })
    };
    let is_error = diagnostic.severity == Severity::Error;
    let (file, line, column) = place(diagnostic.span);
    let json = json!({
        "severity": if is_error { "error" } else { "warning" },
        "code": diagnostic.code,
        "file": file,
        "line": line,
        "column": column,
        "message": diagnostic.message,
        "label": diagnostic.label,
        "notes": diagnostic.notes.iter().map(note).collect::<Vec<_>>(),
        "help": diagnostic.help,
    });
    Message { text: diagnostic.render(sources), is_error, json }
}
