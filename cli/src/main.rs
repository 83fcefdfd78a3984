// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `freeport` command: reads the command line and calls the library that does the work. One
//! file per subcommand, in [`commands`].

mod arguments;
mod catalogue;
mod commands;
mod endpoint;
mod graph;
mod interface;
mod layouts;
mod library;
mod passes;
mod preload;
mod program;
mod progress;
mod report;
mod rewriting;
mod running;

use clap::Parser;
use std::process::ExitCode;

/// Packet programs, from source to a running graph.
#[derive(Parser)]
#[command(name = "freeport", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match CommandLine::parse().command.run() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("freeport: {}", message(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes, without those that it tells itself.
fn message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message += &format!(": {cause}");
        }
    }
    message
}
