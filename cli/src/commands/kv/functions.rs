// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv functions`: checks files with functions for the key-value server, and lists the
//! functions; and the same files as an option of `freeport kv serve`.

use crate::library::LibraryArguments;
use crate::program::of_diagnostic;
use anyhow::anyhow;
use clap::Args;
use freeport_kv_compiled::{Options, Refused, compile_files};
use freeport_kv_functions::{Registry, Signature};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv functions examples/kv/stock.cnp\n  \
                  freeport kv functions --json stock.cnp bucket.cnp\n\n\
                  Ids are those that a server gives if it gets the same files in the same order. \
                  See docs/guide/kv-functions.md. The exit status is 1 if a file is refused; with \
                  --json, each error is an object as of `freeport check`.")]
pub struct Arguments {
    /// Files with functions, .cnp
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object per line, one for each function
    #[arg(long)]
    json: bool,
}

/// Functions of a server.
#[derive(Args)]
pub struct FunctionArguments {
    /// File with functions on values (.cnp), which are compiled before the server starts; may be
    /// repeated [default: none, only built-in functions]
    #[arg(long, value_name = "FILE")]
    functions: Vec<PathBuf>,
}

/// Lists the functions of the files.
///
/// # Errors
/// A file is refused, and the messages are not wanted as objects.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // The checks do not depend on the code that is made.
    let options = Options { library: library(), ..Options::interpreted() };
    let compiled = match compile_files(&arguments.files, &options) {
        Ok(compiled) => compiled,
        Err(refused) if arguments.json => {
            print_errors(&refused);
            return Ok(ExitCode::FAILURE);
        }
        Err(refused) => return Err(anyhow!("{refused}")),
    };
    compiled.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let functions: Vec<_> = users(&compiled.registry).collect();
    match arguments.json {
        true => functions.iter().for_each(|function| println!("{}", object(function))),
        false => print_table(&functions),
    }
    Ok(ExitCode::SUCCESS)
}

impl FunctionArguments {
    /// Compiles the functions. Warnings go to standard error, and so does the reason why functions
    /// are not native code.
    ///
    /// # Errors
    /// A file is refused.
    pub fn compile(&self) -> anyhow::Result<Registry> {
        if self.functions.is_empty() {
            return Ok(Registry::built_in());
        }
        let options = Options { library: library(), ..Options::default() };
        let compiled = compile_files(&self.functions, &options)
            .map_err(|refused| anyhow!("a file with functions is refused\n{refused}"))?;
        compiled.warnings.iter().for_each(|warning| eprintln!("{warning}"));
        if let Some(reason) = compiled.is_interpreted {
            eprintln!("warning: functions run in the interpreter, which is slow: {reason}");
        }
        Ok(compiled.registry)
    }
}

/// Folders of imported files, besides those of the importing ones.
fn library() -> Vec<PathBuf> {
    LibraryArguments::default().folders()
}

/// The functions that are not built in.
fn users(registry: &Registry) -> impl Iterator<Item = Signature<'_>> {
    registry.signatures().filter(|signature| signature.id >= Registry::FIRST_USER_ID)
}

fn object(function: &Signature<'_>) -> serde_json::Value {
    json!({
        "event": "function",
        "id": function.id,
        "name": function.name,
        "kind": function.kind.to_string(),
        "operands": function.operands.iter().collect::<Vec<_>>(),
        "elements": function.elements.iter().map(|it| it.name()).collect::<Vec<_>>(),
    })
}

fn print_errors(refused: &Refused) {
    for diagnostic in &refused.diagnostics {
        println!("{}", of_diagnostic(diagnostic, &refused.sources).json);
    }
}

/// Prints a line for each function, in columns.
fn print_table(functions: &[Signature<'_>]) {
    let rows = functions.iter().map(|function| {
        let types: Vec<_> = function.elements.iter().map(|element| element.name()).collect();
        let operands = match function.operands.is_empty() {
            true => "-".to_owned(),
            false => function.operands.to_string(),
        };
        let (name, kind) = (function.name.to_owned(), function.kind.to_string());
        [function.id.to_string(), kind, name, operands, types.join(" ")]
    });
    let head = ["id", "kind", "name", "operands", "elements"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    for [id, kind, name, operands, types] in &rows {
        let [first, second, third, fourth] = widths;
        println!("{id:first$}  {kind:second$}  {name:third$}  {operands:fourth$}  {types}");
    }
}
