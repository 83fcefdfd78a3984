// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench xdp`: XDP programs on the small processor, in cycles of its simulated hardware.
//!
//! Frames of 64 bytes arrive back to back, as fast as the card takes them: first of one flow on one
//! core, then of many flows on one, two and four cores, and of one flow on four. The cycles from
//! one verdict to the next are counted and, for packets sent one by one, those from the first beat
//! of a packet to its verdict. These figures do not depend on any clock.

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
    /// Case to measure; may be repeated [default: everything]
    #[arg(long = "case", value_enum, value_name = "CASE")]
    cases: Vec<Case>,
    /// Number of counted packets per case
    #[arg(long, default_value_t = 2_000,
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    packets: u32,
    /// Do not schedule programs for the paths that these packets take, which are found by the
    /// interpreter in advance
    #[arg(long)]
    without_profile: bool,
    /// Number of rounds of kernel, compiled code and interpreter; 0 measures the card alone
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    rounds: u32,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Also write xdp.json, and xdp.csv and xdp.svg of the measured targets, to this folder
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Action of a program on packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Case {
    /// Drop them
    Drop,
    /// Send them back with their addresses swapped
    Tx,
    /// Redirect them to another device
    Redirect,
    /// Find their flow, and redirect them to another device
    Firewall,
}

const CASES: [Case; 4] = [Case::Drop, Case::Tx, Case::Redirect, Case::Firewall];
/// Cycles of the published card at 156.25 MHz (hXDP, section 5.2); for the firewall, those of the
/// hand-optimised version.
const PUBLISHED: [f64; 4] = [3.0, 6.9, 10.4, 22.0];
/// Clock rate of all stated cycles in MHz: that of the publication.
const CLOCK_MHZ: f64 = 156.25;
/// Bytes of a frame without the frame check sequence.
const FRAME_BYTES: usize = 64;
/// Headers that sources include.
const HEADERS: [(&str, &str); 3] = [
    ("packet.bpf.h", include_str!("../../../programs/xdp/packet.bpf.h")),
    ("protocols.bpf.h", include_str!("../../../programs/xdp/protocols.bpf.h")),
    ("balancer.bpf.h", include_str!("../../../programs/xdp/balancer.bpf.h")),
];
const MINIMAL: &str = include_str!("../../../programs/xdp/minimal.bpf.c");
const FIREWALL: &str = include_str!("../../../programs/xdp/stateful_firewall.bpf.c");

/// Runs the measurement.
///
/// # Errors
/// clang is missing, or the card does not respond.
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
        true => "scheduled without a profile",
        false => "scheduled for the paths of these packets",
    };
    let mut notes = vec![
        "cycles of the simulated hardware, cores of four lanes; rates are those cycles at \
         156.25 MHz, the publication's clock, and no measurement"
            .to_owned(),
        format!("programs in the tables of cycles are {profile}; in the comparison, without one"),
    ];
    let mut tables = vec![card::table(&all), card::scaling_table(&all)];
    if !beside.is_empty() {
        tables.push(beside::table(&beside));
        notes.extend(disturbances(load));
    }
    tables_or_lines(tables.into_iter(), lines.into_iter(), &notes, &machine, arguments.json)
}

/// Measures kernel, compiled code and interpreter on the selected cases, and by default also on
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

    /// Returns the source, the name of the program, and the expected verdict.
    fn program(self) -> (&'static str, &'static str, u32) {
        match self {
            Self::Drop => (MINIMAL, "drop", 1),
            Self::Tx => (MINIMAL, "transmit", 3),
            Self::Redirect => (MINIMAL, "redirect", 4),
            Self::Firewall => (FIREWALL, "firewall", 4),
        }
    }

    /// Compiles the case's source with clang.
    fn compiled(self) -> Result<Vec<u8>> {
        compile(self.program().0)
    }

    fn published(self) -> Option<f64> {
        CASES.iter().position(|case| *case == self).map(|at| PUBLISHED[at])
    }
}

/// Compiles a source with clang.
fn compile(source: &str) -> Result<Vec<u8>> {
    let folder =
        tempfile::tempdir().context("no temporary folder can be created for the compiler")?;
    let path = folder.path().join("program.bpf.c");
    for (name, text) in HEADERS {
        std::fs::write(folder.path().join(name), text)?;
    }
    std::fs::write(&path, source)?;
    Ok(freeport_xdp::compile(&path)?)
}

/// Fills the maps of a case.
fn set_up(case: Case, target: &mut dyn Target) -> Result<(), Error> {
    if case == Case::Firewall {
        for (way, device) in [(1_u32, 2_u32), (2, 1)] {
            target.update("ways", &way.to_ne_bytes(), &device.to_ne_bytes())?;
        }
    }
    Ok(())
}

/// Returns a UDP packet over IPv4 from the inside, in a frame of 64 bytes without the frame check
/// sequence. Flows differ in the source port.
fn frame(flow: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
    frame.extend((0x3039 + flow as u16).to_be_bytes());
    frame.extend([0, 53, 0, 30, 0, 0]);
    frame.resize(FRAME_BYTES, 0);
    frame
}
