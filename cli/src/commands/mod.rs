// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subcommands. Each has a type `Arguments`, with an example in its help, and a function `run`.

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
mod kv;
mod logs;
mod man;
mod node;
mod plan;
mod ps;
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
mod xdp;

use crate::diagnostics::Diagnostics;
use clap::Subcommand;
use std::process::ExitCode;

/// A subcommand of `freeport`.
#[derive(Subcommand)]
pub enum Command {
    /// Check programs and report all errors and warnings
    Check(check::Arguments),
    /// Format programs
    Fmt(fmt::Arguments),
    /// Compile a program to native code, and report what each pass did
    Build(build::Arguments),
    /// Draw a program's element graph
    Graph(graph::Arguments),
    /// Run a program on captures, generated traffic or network interfaces
    Run(Box<run::Arguments>),
    /// List running programs
    Ps(ps::Arguments),
    /// Print the counters of a running program
    Stats(stats::Arguments),
    /// Call methods of a running program or of its tables
    Call(call::Arguments),
    /// Read and change the tables of a running program
    Table(table::Arguments),
    /// Print variables of a running program
    Get(get::Arguments),
    /// Write variables of a running program
    Set(set::Arguments),
    /// Send signals to a running program
    Signal(signal::Arguments),
    /// Print the output of printf, logs and breakpoints of a running program
    #[command(alias = "told")]
    Logs(logs::Arguments),
    /// Resume instances of a running program that stopped at a breakpoint
    Resume(resume::Arguments),
    /// Run the golden tests of elements, in the interpreter and as native code
    Test(test::Arguments),
    /// Replace the program of a running process and keep its state
    Replace(replace::Arguments),
    /// Stop a running program
    Stop(stop::Arguments),
    /// Run a command with its sockets accelerated
    Exec(exec::Arguments),
    /// Run the monitor of accelerated sockets
    Node(node::Arguments),
    /// List accelerated sockets, and explain why others stay in the kernel
    Sockets(sockets::Arguments),
    /// Serve clients of Redis and memcached, and tune the engine
    Kv(kv::Arguments),
    /// Inspect, run, compile and attach XDP objects
    Xdp(xdp::Arguments),
    /// Estimate which path between clients, hosts and NICs is best, in a calibrated model
    Plan(plan::Arguments),
    /// Benchmark Freeport and comparable systems
    Bench(bench::Arguments),
    /// Check what this machine supports, and what is missing or limited
    Doctor(doctor::Arguments),
    /// List the element library, or print one manual page
    Elements(elements::Arguments),
    /// Print the completion script of a shell
    Completions(completions::Arguments),
    /// Print a manual page, or write those of all subcommands
    Man(man::Arguments),
}

impl Command {
    /// How the subcommand reports events.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        match self {
            Command::Node(arguments) => arguments.diagnostics(),
            Command::Run(_) => Diagnostics { runs_long: true, ..Diagnostics::default() },
            Command::Xdp(arguments) => arguments.diagnostics(),
            Command::Kv(arguments) => arguments.diagnostics(),
            _ => Diagnostics::default(),
        }
    }

    /// Runs the subcommand.
    ///
    /// # Errors
    /// A message for the user: what failed, and what to do.
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
            Command::Logs(arguments) => logs::run(&arguments),
            Command::Resume(arguments) => resume::run(&arguments),
            Command::Replace(arguments) => replace::run(&arguments),
            Command::Stop(arguments) => stop::run(&arguments),
            Command::Exec(arguments) => exec::run(&arguments),
            Command::Node(arguments) => node::run(&arguments),
            Command::Sockets(arguments) => sockets::run(&arguments),
            Command::Kv(arguments) => kv::run(&arguments),
            Command::Xdp(arguments) => xdp::run(&arguments),
            Command::Plan(arguments) => plan::run(&arguments),
            Command::Bench(arguments) => bench::run(&arguments),
            Command::Doctor(arguments) => doctor::run(&arguments),
            Command::Elements(arguments) => elements::run(&arguments),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments),
        }
    }
}
