// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp`: XDP objects as clang makes them.

mod compile;
mod estimate;
mod explain;
mod load;
mod map;
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
    /// Programs, maps and variables of an object, and what of it cannot run in the interpreter
    Show(show::Arguments),
    /// Run a program on the packets of a capture: in the interpreter, in the kernel, on the model
    /// of a small processor, or on two of them, compared
    Run(Box<run::Arguments>),
    /// Programs as rows for a small VLIW processor, how good they are, and a picture of them
    Compile(compile::Arguments),
    /// What a program costs on the small processor's hardware: cycles of the simulated card, and
    /// what limits it
    Estimate(estimate::Arguments),
    /// Source lines, instructions, rows and cycles of a program side by side
    Explain(explain::Arguments),
    /// Let a program run between network interfaces until it is stopped
    Load(Box<load::Arguments>),
    /// List, read and change the maps of a program that `load` has begun
    Map(map::Arguments),
    /// Print the counters of a program that `load` has begun
    Stats(stats::Arguments),
    /// Follow single packets step by step: instructions, rows, or cycles of the simulated card
    Trace(trace::Arguments),
}

impl Arguments {
    /// How events are reported.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        match &self.what {
            What::Load(arguments) => arguments.diagnostics(),
            _ => Diagnostics::default(),
        }
    }
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

/// Numbers of lanes that there may be, as the parser of the command line takes them.
fn lanes() -> std::ops::RangeInclusive<i64> {
    i64::from(*LANES.start())..=i64::from(*LANES.end())
}
