// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport build`: compiles a program to native code and reports what each pass did.

use crate::library::LibraryArguments;
use crate::passes::PassArguments;
use crate::program::{self, WarningArguments};
use crate::report::Report;
use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport build capture.cnp -o out\n  \
    freeport build capture.cnp -o out --without unroll\n\n\
    Writes out/capture.c, out/capture.so and out/manifest.json, which describes the ports, \
    elements, variables and channels of the shared object.")]
pub struct Arguments {
    /// The program, .cnp or .ir
    file: PathBuf,
    /// The folder to write to, which is created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    passes: PassArguments,
    #[command(flatten)]
    warnings: WarningArguments,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Builds the program and prints the report.
///
/// # Errors
/// A program that cannot be loaded or compiled to native code, a missing compiler, or a file that
/// cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let program =
        program::load_with(&arguments.file, &arguments.library.folders(), arguments.warnings)?
            .program;
    let options = arguments.passes.options()?;
    let image = freeport_native::build(&program, &options)?;
    let folder = &arguments.output;
    fs::create_dir_all(folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    let stem = arguments.file.file_stem().unwrap_or_default();
    let path = |extension: &str| folder.join(stem).with_extension(extension);
    let (source, library, manifest) = (path("c"), path("so"), folder.join("manifest.json"));
    write(&source, &read(&image.source)?)?;
    write(&library, &read(&image.library)?)?;
    write(&manifest, (serde_json::to_string_pretty(&image.manifest)? + "\n").as_bytes())?;
    let report = Report::of(&program, &options.passes, &image.manifest);
    let files = [source, library, manifest].map(|path| path.display().to_string());
    if arguments.json {
        let mut object = serde_json::to_value(&report)?;
        object["files"] = json!(files);
        println!("{object}");
    } else {
        print!("{report}");
        println!("wrote {}", files.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}
