// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `freeport` command: parses the command line and calls the library that does the work. Each
//! subcommand has a file in [`commands`].

// First, since the other modules use its macros.
#[macro_use]
mod output;

mod arguments;
mod catalogue;
mod commands;
mod diagnostics;
mod endpoint;
mod interface;
mod layouts;
mod library;
mod passes;
mod preload;
mod program;
mod progress;
mod reference;
mod report;
mod rewriting;
mod running;
mod stopping;
mod table;

use clap::Parser;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Accelerated sockets, packet programs and XDP objects, on any Linux server.
#[derive(Parser)]
#[command(name = "freeport", version, arg_required_else_help = true)]
#[command(after_help = "Examples:
  freeport exec redis-server --port 7000
  freeport run firewall.cnp --in from_tor=trace.pcap --out to_tor=allowed.pcap
  freeport xdp run filter.o --trace trace.pcap --on native,interpreter
  freeport doctor

Pages are in docs/ of the repository; `freeport man COMMAND` prints the manual page of a command.")]
struct CommandLine {
    #[command(flatten)]
    log: diagnostics::LogArguments,
    #[command(subcommand)]
    command: commands::Command,
}

impl CommandLine {
    fn run(self) -> anyhow::Result<ExitCode> {
        self.command.diagnostics().begin(&self.log)?;
        self.command.run()
    }
}

fn main() -> ExitCode {
    output::complete(|| match CommandLine::try_parse() {
        Ok(line) => line.run().unwrap_or_else(|error| {
            eprintln!("freeport: {}", message(&error));
            ExitCode::FAILURE
        }),
        Err(error) if error.use_stderr() => error.exit(),
        // Help and version go to standard output.
        Err(help) => {
            let text = help.render();
            match std::io::stdout().is_terminal() {
                true => print!("{}", text.ansi()),
                false => print!("{text}"),
            }
            ExitCode::SUCCESS
        }
    })
}

/// The message of an error and of its causes, without causes that it contains already.
fn message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message += &format!(": {cause}");
        }
    }
    message
}
