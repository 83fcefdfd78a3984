// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench xdp`: XDP programs on the small processor, in cycles of its simulated hardware.
//!
//! Frames of 64 bytes come without a gap, as fast as the card takes them, and all belong to one
//! flow; then to many, on a card of which one, two or four cores are in use, and to one again on
//! four. What is counted are cycles from one verdict to the next, and, of packets that come one by
//! one, from the first beat of a packet to its verdict. Nothing of it is measured by a clock.

mod beside;
mod card;
mod compiled;
mod interpreter;
mod kernel;
mod work;

use crate::harness::machine::{Machine, disturbances, load};
use crate::harness::report::{Line, tables_or_lines};
use crate::harness::{Output, folder};
use anyhow::{Context, Result};
use beside::Beside;
use card::Figures;
use freeport_xdp::{Error, Target};
use std::path::PathBuf;
use work::Work;

/// Measures XDP programs on the simulated hardware of the small processor
///
/// Example: freeport bench xdp --case drop --case firewall --json
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// What to measure; may be repeated; by default everything
    #[arg(long = "case", value_enum, value_name = "CASE")]
    cases: Vec<Case>,
    /// Packets of each case that are counted
    #[arg(long, default_value_t = 2_000,
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    packets: u32,
    /// Do not schedule programs for the ways that these packets take through them, as the
    /// interpreter sees them first
    #[arg(long)]
    without_profile: bool,
    /// How often kernel, compiled code and interpreter are measured, in turn; 0 for the card alone
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    rounds: u32,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Also write xdp.json, and xdp.csv and xdp.svg of what is measured, to this folder
    #[arg(long)]
    out: Option<PathBuf>,
}

/// What a program does with the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Case {
    /// Drops them
    Drop,
    /// Sends them back with their addresses swapped
    Tx,
    /// Sends them out of another device
    Redirect,
    /// Finds their flow, and sends them out of another device
    Firewall,
}

const CASES: [Case; 4] = [Case::Drop, Case::Tx, Case::Redirect, Case::Firewall];
/// What the publication's card needs, in cycles of 156.25 MHz (hXDP, section 5.2): for the firewall
/// its version that was optimised by hand.
const PUBLISHED: [f64; 4] = [3.0, 6.9, 10.4, 22.0];
/// The clock that cycles are stated at, in MHz: the publication's.
const CLOCK_MHZ: f64 = 156.25;
/// Bytes of a frame without its check sequence.
const FRAME_BYTES: usize = 64;
/// What sources include.
const HEADERS: [(&str, &str); 3] = [
    ("packet.bpf.h", include_str!("../../../programs/xdp/packet.bpf.h")),
    ("protocols.bpf.h", include_str!("../../../programs/xdp/protocols.bpf.h")),
    ("balancer.bpf.h", include_str!("../../../programs/xdp/balancer.bpf.h")),
];
const MINIMAL: &str = include_str!("../../../programs/xdp/minimal.bpf.c");
const FIREWALL: &str = include_str!("../../../programs/xdp/stateful_firewall.bpf.c");

/// Measures what the command line asks for.
///
/// # Errors
/// No clang, or a card that does not answer.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Output> {
    if let Some(out) = &arguments.out {
        folder::make(out)?;
    }
    let (machine, load) = (Machine::describe(), load());
    let chosen = |case: &Case| arguments.cases.is_empty() || arguments.cases.contains(case);
    let mut all = vec![];
    for case in CASES.into_iter().filter(chosen) {
        for setting in [card::ALONE].into_iter().chain(card::SCALING) {
            progress(&card::label(case, setting));
            let figures = card::count(case, setting, arguments);
            all.push(figures.with_context(|| card::label(case, setting))?);
        }
    }
    let beside = measured(arguments, progress)?;
    let lines = all.iter().flat_map(Figures::lines);
    let lines: Vec<Line> = lines.chain(beside.iter().flat_map(Beside::lines)).collect();
    if let Some(out) = &arguments.out {
        let text: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
        folder::save(out, "xdp.json", text?.join("\n") + "\n")?;
        if !beside.is_empty() {
            folder::save(out, "xdp.csv", beside::csv(&beside, &machine))?;
            folder::save(out, "xdp.svg", beside::svg(&beside, &machine))?;
        }
    }
    let profile = match arguments.without_profile {
        true => "as they are, without a profile",
        false => "scheduled for the ways of these packets",
    };
    let mut notes = vec![
        "cycles of the simulated hardware, cores of four lanes; rates are those cycles at \
         156.25 MHz, the publication's clock, and no measurement"
            .to_owned(),
        format!("programs in the tables of cycles are {profile}; beside others, without one"),
    ];
    let mut tables = vec![card::table(&all), card::scaling_table(&all)];
    if !beside.is_empty() {
        tables.push(beside::table(&beside));
        notes.extend(disturbances(load));
    }
    tables_or_lines(tables.into_iter(), lines.into_iter(), &notes, &machine, arguments.json)
}

/// Kernel, compiled code and interpreter on the cases that are asked for, and without a choice on
/// whole programs.
fn measured(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Vec<Beside>> {
    if arguments.rounds == 0 {
        return Ok(vec![]);
    }
    let chosen = |case: &Case| arguments.cases.is_empty() || arguments.cases.contains(case);
    let mut work: Vec<Work> =
        CASES.into_iter().filter(chosen).map(Work::of).collect::<Result<_>>()?;
    if arguments.cases.is_empty() {
        work.extend(Work::whole()?);
    }
    let mut all = vec![];
    for work in &work {
        progress(&format!("{} in the kernel and in user space", work.name));
        all.push(beside::measure(work, arguments.rounds as usize).context(work.name)?);
    }
    Ok(all)
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Tx => "tx",
            Self::Redirect => "redirect",
            Self::Firewall => "firewall",
        }
    }

    /// Its source, its program, and the verdict that the packets get.
    fn program(self) -> (&'static str, &'static str, u32) {
        match self {
            Self::Drop => (MINIMAL, "drop", 1),
            Self::Tx => (MINIMAL, "transmit", 3),
            Self::Redirect => (MINIMAL, "redirect", 4),
            Self::Firewall => (FIREWALL, "firewall", 4),
        }
    }

    /// Its object, as clang makes it.
    fn compiled(self) -> Result<Vec<u8>> {
        compile(self.program().0)
    }

    fn published(self) -> Option<f64> {
        CASES.iter().position(|case| *case == self).map(|at| PUBLISHED[at])
    }
}

/// The object of a source, as clang makes it.
fn compile(source: &str) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("no folder for the compiler")?;
    let path = folder.path().join("program.bpf.c");
    for (name, text) in HEADERS {
        std::fs::write(folder.path().join(name), text)?;
    }
    std::fs::write(&path, source)?;
    Ok(freeport_xdp::compile(&path)?)
}

/// Entries that maps need.
fn set_up(case: Case, target: &mut dyn Target) -> Result<(), Error> {
    if case == Case::Firewall {
        for (way, device) in [(1_u32, 2_u32), (2, 1)] {
            target.update("ways", &way.to_ne_bytes(), &device.to_ne_bytes())?;
        }
    }
    Ok(())
}

/// A UDP packet over IPv4 from inside, in a frame of 64 bytes without its check sequence. Flows
/// differ in the port that they come from.
fn frame(flow: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
    frame.extend((0x3039 + flow as u16).to_be_bytes());
    frame.extend([0, 53, 0, 30, 0, 0]);
    frame.resize(FRAME_BYTES, 0);
    frame
}
