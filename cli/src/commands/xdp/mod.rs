// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp`: XDP objects as clang makes them.

mod show;

use anyhow::Context;
use clap::{Args, Subcommand};
use freeport_ebpf::object::Object;
use std::path::Path;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport xdp show filter.bpf.o\n  \
    freeport xdp show filter.bpf.o --program filter --disassemble")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Programs, maps and variables of an object, and what of it cannot run in the interpreter
    Show(show::Arguments),
}

/// Does it.
///
/// # Errors
/// What is wrong with the object, or is not in it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Who reads only the first lines hangs up: that ends the command, and is no failure to tell.
    // SAFETY: numbers only.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    match &arguments.what {
        What::Show(arguments) => show::run(arguments),
    }
}

/// The object in a file; a source (`.c`) is compiled first.
fn open(file: &Path) -> anyhow::Result<Object> {
    if file.extension().is_some_and(|extension| extension == "c") {
        let bytes = freeport_xdp::compile(file)?;
        return Object::parse(&bytes).with_context(|| file.display().to_string());
    }
    Ok(Object::open(file)?)
}
