// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport check`: reads a program and says everything that is wrong with it.

use crate::library::LibraryArguments;
use clap::Args;
use freeport_clicknp::diagnostic::{Diagnostic, Severity};
use freeport_clicknp::load;
use freeport_clicknp::source::{SourceMap, Span};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport check firewall.cnp\n  freeport check --json *.cnp")]
pub struct Arguments {
    /// Programs
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object a line, one for each message
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Prints the messages; the status tells whether there was an error among them.
///
/// # Errors
/// None: a file that cannot be read is told like whatever else is wrong.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let library = arguments.library.folders();
    let (mut errors, mut warnings) = (0, 0);
    for path in &arguments.files {
        let loaded = load::load_file(path, &library);
        for diagnostic in &loaded.diagnostics {
            match diagnostic.severity {
                Severity::Error => errors += 1,
                Severity::Warning => warnings += 1,
            }
            if arguments.json {
                println!("{}", as_json(diagnostic, &loaded.sources));
            } else {
                eprintln!("{}", diagnostic.render(&loaded.sources));
            }
        }
    }
    if !arguments.json {
        let files = arguments.files.len();
        eprintln!("{files} file(s): {errors} error(s), {warnings} warning(s)");
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let place = |span: Span| {
        let (line, column) = sources.position(span);
        let file = sources.files()[span.file as usize].path.display().to_string();
        json!({ "file": file, "line": line, "column": column })
    };
    let note = |(span, text): &(Span, String)| json!({ "place": place(*span), "text": text });
    json!({
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": diagnostic.code,
        "message": diagnostic.message,
        "place": place(diagnostic.span),
        "label": diagnostic.label,
        "notes": diagnostic.notes.iter().map(note).collect::<Vec<_>>(),
        "help": diagnostic.help,
    })
}
