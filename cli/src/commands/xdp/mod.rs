// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp`: XDP objects as clang compiles them.

mod compile;
mod estimate;
mod explain;
mod load;
mod map;
mod place;
mod run;
mod schedule;
mod show;
mod stats;
mod subject;
mod trace;

use crate::diagnostics::Diagnostics;
use clap::{Args, Subcommand};
use freeport_vliw::machine::LANES;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport xdp show filter.bpf.o\n  \
    freeport xdp show filter.bpf.o --program filter --disassemble\n  \
    freeport xdp run filter.bpf.o --trace packets.pcap\n  \
    freeport xdp compile filter.bpf.o --rows\n  \
    freeport xdp estimate filter.bpf.o --trace packets.pcap\n  \
    freeport xdp explain filter.bpf.o --trace packets.pcap\n  \
    freeport xdp load filter.bpf.o --on interpreter --port xdp:eth0 --port xdp:eth1\n  \
    freeport xdp map dump flows\n  \
    freeport xdp stats --watch 1\n  \
    freeport xdp trace filter.bpf.o --trace packets.pcap --packet 3")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print the programs, maps and variables of an object, and what cannot run in the interpreter
    Show(show::Arguments),
    /// Run a program on the packets of a capture, on one target or on two that are compared
    Run(Box<run::Arguments>),
    /// Compile programs to rows of a small VLIW processor, and report the quality of the schedule
    Compile(compile::Arguments),
    /// Estimate the cost of a program on the small processor's hardware, in cycles of the simulated
    /// card
    Estimate(estimate::Arguments),
    /// Print source lines, instructions, rows and cycles of a program side by side
    Explain(explain::Arguments),
    /// Run a program between network interfaces until it is stopped
    Load(Box<load::Arguments>),
    /// List, read and change the maps of a program that `load` runs
    Map(map::Arguments),
    /// Print the counters of a program that `load` runs
    Stats(stats::Arguments),
    /// Trace packets step by step: instructions, rows, or cycles of the simulated card
    Trace(trace::Arguments),
}

impl Arguments {
    /// How the subcommand reports events.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        match &self.what {
            What::Load(arguments) => arguments.diagnostics(),
            _ => Diagnostics::default(),
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Those of the subcommand.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // A reader may close the pipe after the first lines: that ends the command without an error.
    // SAFETY: numbers only.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    match &arguments.what {
        What::Show(arguments) => show::run(arguments),
        What::Run(arguments) => run::run(arguments),
        What::Compile(arguments) => compile::run(arguments),
        What::Estimate(arguments) => estimate::run(arguments),
        What::Explain(arguments) => explain::run(arguments),
        What::Load(arguments) => load::run(arguments),
        What::Map(arguments) => map::run(arguments),
        What::Stats(arguments) => stats::run(arguments),
        What::Trace(arguments) => trace::run(arguments),
    }
}

/// Allowed numbers of lanes, as a range for the command line parser.
fn lanes() -> std::ops::RangeInclusive<i64> {
    i64::from(*LANES.start())..=i64::from(*LANES.end())
}
