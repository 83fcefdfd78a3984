// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subcommands. Each has its arguments, with an example in its help, and a `run`.

mod bench;
mod build;
mod call;
mod check;
mod completions;
mod doctor;
mod elements;
mod exec;
mod fmt;
mod get;
mod graph;
mod man;
mod node;
mod ps;
mod reference;
mod replace;
mod resume;
mod run;
mod set;
mod signal;
mod sockets;
mod stats;
mod stop;
mod table;
mod test;
mod told;
mod xdp;

use crate::diagnostics::Diagnostics;
use clap::Subcommand;
use std::process::ExitCode;

/// What `freeport` can do.
#[derive(Subcommand)]
pub enum Command {
    /// Say everything that is wrong with programs
    Check(check::Arguments),
    /// Rewrite programs in the one style
    Fmt(fmt::Arguments),
    /// Make a program native code, and tell what became of it on the way
    Build(build::Arguments),
    /// Draw a program's element graph
    Graph(graph::Arguments),
    /// Run a program between files, generators or interfaces
    Run(Box<run::Arguments>),
    /// List running programs
    Ps(ps::Arguments),
    /// Print the counters of a running program
    Stats(stats::Arguments),
    /// Call methods of a running program, also those of its tables
    Call(call::Arguments),
    /// List and change the tables of a running program
    Table(table::Arguments),
    /// Print variables of a running program
    Get(get::Arguments),
    /// Write variables of a running program
    Set(set::Arguments),
    /// Send signals to a running program
    Signal(signal::Arguments),
    /// Print what a running program has printed and logged
    Told(told::Arguments),
    /// Let instances of a running program go on from their breakpoints
    Resume(resume::Arguments),
    /// Run goldens of elements on both devices
    Test(test::Arguments),
    /// Replace the program of a running process, which keeps its state
    Replace(replace::Arguments),
    /// End a running program
    Stop(stop::Arguments),
    /// Run a command with its sockets accelerated
    Exec(exec::Arguments),
    /// Run the monitor of accelerated sockets
    Node(node::Arguments),
    /// List accelerated sockets, and say why others are not
    Sockets(sockets::Arguments),
    /// Say what is in an XDP object, and run it on the packets of a capture
    Xdp(xdp::Arguments),
    /// Measure Freeport beside its peers
    Bench(bench::Arguments),
    /// Tell what this machine offers, and what falls back to what, and why
    Doctor(doctor::Arguments),
    /// List the element library, or print one manual page
    Elements(elements::Arguments),
    /// Print the completion script of a shell
    Completions(completions::Arguments),
    /// Print a manual page, or write those of all subcommands
    Man(man::Arguments),
    /// Print the page of documentation that describes all subcommands
    #[command(hide = true)]
    Reference(reference::Arguments),
}

impl Command {
    /// How it reports events.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        match self {
            Command::Node(arguments) => arguments.diagnostics(),
            Command::Run(_) => Diagnostics { runs_long: true, ..Diagnostics::default() },
            Command::Xdp(arguments) => arguments.diagnostics(),
            _ => Diagnostics::default(),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// What went wrong and what to do, for the user.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Check(arguments) => check::run(&arguments),
            Command::Fmt(arguments) => fmt::run(&arguments),
            Command::Build(arguments) => build::run(&arguments),
            Command::Graph(arguments) => graph::run(&arguments),
            Command::Run(arguments) => run::run(&arguments),
            Command::Ps(arguments) => ps::run(&arguments),
            Command::Stats(arguments) => stats::run(&arguments),
            Command::Call(arguments) => call::run(&arguments),
            Command::Table(arguments) => table::run(&arguments),
            Command::Get(arguments) => get::run(&arguments),
            Command::Set(arguments) => set::run(&arguments),
            Command::Signal(arguments) => signal::run(&arguments),
            Command::Test(arguments) => test::run(&arguments),
            Command::Told(arguments) => told::run(&arguments),
            Command::Resume(arguments) => resume::run(&arguments),
            Command::Replace(arguments) => replace::run(&arguments),
            Command::Stop(arguments) => stop::run(&arguments),
            Command::Exec(arguments) => exec::run(&arguments),
            Command::Node(arguments) => node::run(&arguments),
            Command::Sockets(arguments) => sockets::run(&arguments),
            Command::Xdp(arguments) => xdp::run(&arguments),
            Command::Bench(arguments) => bench::run(&arguments),
            Command::Doctor(arguments) => doctor::run(&arguments),
            Command::Elements(arguments) => elements::run(&arguments),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments),
            Command::Reference(arguments) => reference::run(&arguments),
        }
    }
}
