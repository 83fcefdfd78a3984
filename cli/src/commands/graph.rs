// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport graph`: draws a program's element graph.

use crate::library::LibraryArguments;
use crate::program;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport graph capture.cnp -o capture.svg\n\n\
    Endpoints are drawn as pills, elements as boxes, host elements tinted. The number at a channel \
    is its capacity in items; a dashed channel drops items when it is full.")]
pub struct Arguments {
    /// The program, .cnp or .ir
    file: PathBuf,
    /// The SVG file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Writes the drawing.
///
/// # Errors
/// A program that cannot be loaded, or a file that cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let program = program::load(&arguments.file, &arguments.library.folders())?.program;
    let drawing = freeport_graph::draw(&program);
    match &arguments.output {
        Some(path) => std::fs::write(path, drawing)
            .with_context(|| format!("{} cannot be written", path.display()))?,
        None => print!("{drawing}"),
    }
    Ok(ExitCode::SUCCESS)
}
