// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench xdp`: XDP programs on the small processor, in cycles of its simulated hardware.
//!
//! Frames of 64 bytes come without a gap, as fast as the card takes them, and all belong to one
//! flow; then to many, on a card of which one, two or four cores are in use, and to one again on
//! four. What is counted are cycles from one verdict to the next, and, of packets that come one by
//! one, from the first beat of a packet to its verdict. Nothing of it is measured by a clock.

use crate::machine::Machine;
use crate::report::{Kind, Line, Traffic, rounded, tables_or_lines};
use crate::{Output, folder};
use anyhow::{Context, Result, ensure};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_sim::{Nic, SPENT, Sim};
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Interpreter, Profiles, Target};
use std::path::PathBuf;

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
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Also write xdp.json to this folder
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
/// Packets before those that are counted: each flow has some of them.
const WARM_UP: usize = 200;
/// Flows where there are many.
const FLOWS: usize = 64;
/// The bus needs as many cycles for a frame of 64 bytes, whatever the number of cores.
const BUS_CYCLES: f64 = 2.0;
/// Packets that come one by one.
const ALONE: usize = 20;
const COMMON: &str = include_str!("../../programs/xdp/packet.bpf.h");
const MINIMAL: &str = include_str!("../../programs/xdp/minimal.bpf.c");
const FIREWALL: &str = include_str!("../../programs/xdp/stateful_firewall.bpf.c");

/// On what a case is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Setting {
    cores: u8,
    flows: usize,
}

const ALONE_SETTING: Setting = Setting { cores: 1, flows: 1 };
const SCALING: [Setting; 4] = [
    Setting { cores: 1, flows: FLOWS },
    Setting { cores: 2, flows: FLOWS },
    Setting { cores: 4, flows: FLOWS },
    Setting { cores: 4, flows: 1 },
];

/// What is counted of a case.
struct Figures {
    case: Case,
    setting: Setting,
    /// Packets of each core.
    packets: Vec<u64>,
    /// From one verdict to the next, the mean.
    cycles: f64,
    /// The same of single packets, in order.
    gaps: Vec<u64>,
    /// From a packet's first beat to its verdict, where packets come one by one; in order.
    latencies: Vec<u64>,
    /// What a packet had of each of [`SPENT`], the mean.
    spent: Vec<f64>,
}

/// Measures what the command line asks for.
///
/// # Errors
/// No clang, or a card that does not answer.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Output> {
    if let Some(out) = &arguments.out {
        folder::make(out)?;
    }
    let machine = Machine::describe();
    let chosen = |case: &Case| arguments.cases.is_empty() || arguments.cases.contains(case);
    let mut all = vec![];
    for case in CASES.into_iter().filter(chosen) {
        for setting in [ALONE_SETTING].into_iter().chain(SCALING) {
            progress(&label(case, setting));
            let figures = count(case, setting, arguments);
            all.push(figures.with_context(|| label(case, setting))?);
        }
    }
    let lines: Vec<Line> = all.iter().flat_map(Figures::lines).collect();
    if let Some(out) = &arguments.out {
        let text: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
        folder::save(out, "xdp.json", text?.join("\n") + "\n")?;
    }
    let profile = match arguments.without_profile {
        true => "as they are, without a profile",
        false => "scheduled for the ways of these packets",
    };
    let notes = [
        "cycles of the simulated hardware, cores of four lanes; rates are those cycles at \
         156.25 MHz, the publication's clock, and no measurement"
            .to_owned(),
        format!("programs are {profile}"),
    ];
    let tables = [table(&all), scaling_table(&all)];
    tables_or_lines(tables.into_iter(), lines.into_iter(), &notes, &machine, arguments.json)
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

    fn published(self) -> Option<f64> {
        CASES.iter().position(|case| *case == self).map(|at| PUBLISHED[at])
    }
}

/// What a case on a setting is called.
fn label(case: Case, Setting { cores, flows }: Setting) -> String {
    let name = case.name();
    match (cores, flows) {
        (1, 1) => name.into(),
        (1, _) => format!("{name}, 1 core, {flows} flows"),
        (_, 1) => format!("{name}, {cores} cores, 1 flow"),
        _ => format!("{name}, {cores} cores, {flows} flows"),
    }
}

/// Counts the cycles of a case, after the first packet has shown that the program does its work.
fn count(case: Case, setting: Setting, arguments: &Arguments) -> Result<Figures> {
    let (source, program, verdict) = case.program();
    let folder = tempfile::tempdir().context("no folder for the compiler")?;
    let path = folder.path().join("program.bpf.c");
    std::fs::write(folder.path().join("packet.bpf.h"), COMMON)?;
    std::fs::write(&path, source)?;
    let object = Object::parse(&freeport_xdp::compile(&path)?)?;
    let frames: Vec<Vec<u8>> = (0..setting.flows).map(frame).collect();
    let arrival =
        |flow: usize| Arrival { bytes: &frames[flow], ingress_ifindex: 1, rx_queue_index: 0 };
    let environment = Environment::default();
    let nic = Nic::with_cores(setting.cores)?;
    let mut sim = if arguments.without_profile {
        Sim::load_on(nic, &object, &Options::default(), &environment)?
    } else {
        let mut profiles = Profiles::new(&object);
        let mut interpreter = Interpreter::load(&object, environment.clone())?;
        set_up(case, &mut interpreter)?;
        for _ in 0..WARM_UP {
            interpreter.run_observed(program, &arrival(0), &mut profiles)?;
        }
        Sim::load_profiled_on(nic, &object, &profiles, &environment)?
    };
    set_up(case, &mut sim)?;
    let departure = sim.run(program, &arrival(0))?;
    ensure!(departure.verdict == verdict, "the verdict is {}", departure.verdict);
    let mut latencies = vec![];
    for _ in 0..ALONE {
        let stamps = sim.run_stream(program, &[arrival(0)])?;
        latencies.extend(stamps.iter().map(|stamp| stamp.done - stamp.arrived));
    }
    let before = sim.nic_mut().spent()?;
    let packets = WARM_UP + arguments.packets as usize;
    let arrivals: Vec<_> = (0..packets).map(|number| arrival(number % setting.flows)).collect();
    let stamps = sim.run_stream(program, &arrivals)?;
    let after = sim.nic_mut().spent()?;
    let per_packet = |(after, before)| (after - before) as f64 / stamps.len() as f64;
    let spent = after.into_iter().zip(before).map(per_packet).collect();
    // Cores are done in an order of their own.
    let mut done: Vec<u64> = stamps.iter().map(|stamp| stamp.done).collect();
    done.sort_unstable();
    let mut gaps: Vec<u64> = done[WARM_UP - 1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let cycles = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    gaps.sort_unstable();
    latencies.sort_unstable();
    let of_core = |core| stamps.iter().filter(|stamp| stamp.core == core).count() as u64;
    let packets = (0..setting.cores.into()).map(of_core).collect();
    Ok(Figures { case, setting, packets, cycles, gaps, latencies, spent })
}

/// Entries that maps need.
fn set_up(case: Case, target: &mut dyn Target) -> Result<()> {
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

impl Figures {
    /// Cycles from verdict to verdict, and from the first beat to the verdict.
    fn lines(&self) -> Vec<Line> {
        let of = |sorted: &[u64], percent: usize| sorted[(sorted.len() - 1) * percent / 100] as f64;
        let line = |metric: &str, value: f64, sorted: &[u64], published| Line {
            bench: "xdp".into(),
            case: label(self.case, self.setting),
            traffic: Traffic::Frames { frame_bytes: FRAME_BYTES },
            metric: metric.into(),
            unit: "cycles/packet".into(),
            kind: Kind::Simulated,
            value: rounded(value),
            p50: of(sorted, 50),
            p99: of(sorted, 99),
            peer: None,
            peer_value: None,
            ratio: None,
            published,
            note: None,
        };
        let latency = of(&self.latencies, 50);
        let is_alone = self.setting == ALONE_SETTING;
        let published = self.case.published().filter(|_| is_alone);
        vec![
            line("cycles", self.cycles, &self.gaps, published),
            line("latency", latency, &self.latencies, None),
        ]
    }
}

/// For people.
fn table(all: &[Figures]) -> String {
    let mut text = String::from(
        "frames of 64 B without a gap, simulated\n\
         case         cycles/packet   published   Mpps at 156.25 MHz   latency, cycles      ns\n",
    );
    for it in all.iter().filter(|it| it.setting == ALONE_SETTING) {
        let latency = it.latencies[it.latencies.len() / 2];
        text += &format!(
            "{:<12} {:>13.2} {:>11} {:>20.1} {latency:>17} {:>7.0}\n",
            it.case.name(),
            it.cycles,
            it.case.published().map_or("-".into(), |cycles| format!("{cycles:.1}")),
            CLOCK_MHZ / it.cycles,
            latency as f64 / CLOCK_MHZ * 1e3,
        );
        let of = |((_, name), value): (&(_, &str), &f64)| format!("{name} {value:.1}");
        let spent: Vec<String> = SPENT.iter().zip(&it.spent).map(of).collect();
        text += &format!("  per packet: {}\n", spent.join(", "));
    }
    text
}

/// What several cores bring, for people.
fn scaling_table(all: &[Figures]) -> String {
    let mut text = format!(
        "the same on several cores, simulated; the bus alone takes {BUS_CYCLES:.2} cycles\n\
         case       cores  flows   cycles/packet   Mpps at 156.25 MHz   packets of each core\n"
    );
    for it in all.iter().filter(|it| it.setting != ALONE_SETTING) {
        let packets: Vec<String> = it.packets.iter().map(u64::to_string).collect();
        text += &format!(
            "{:<10} {:>5} {:>6} {:>15.2} {:>20.1}   {}\n",
            it.case.name(),
            it.setting.cores,
            it.setting.flows,
            it.cycles,
            CLOCK_MHZ / it.cycles,
            packets.join(" "),
        );
    }
    text
}
