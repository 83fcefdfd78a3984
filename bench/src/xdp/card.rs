// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases on the simulated card: cycles from verdict to verdict, and from the first beat to the
//! verdict, on one core and on several.

use super::{Arguments, CLOCK_MHZ, Case, FRAME_BYTES, frame, set_up};
use crate::harness::report::{Kind, Line, Traffic, rounded};
use anyhow::{Result, ensure};
use freeport_card::{Nic, SPENT, Sim};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Interpreter, Profiles, Target};

/// Packets before those that are counted; each flow has some of them.
const WARM_UP: usize = 200;
/// Number of flows where there are several.
const FLOWS: usize = 64;
/// Cycles that the bus needs for a frame of 64 bytes, independent of the number of cores.
const BUS_CYCLES: f64 = 2.0;
/// Number of packets sent one by one.
const SINGLE_PACKETS: usize = 20;
/// The setting of a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    cores: u8,
    flows: usize,
}

/// One flow on one core.
pub const ALONE: Setting = Setting { cores: 1, flows: 1 };
/// Settings that show scaling over several cores.
pub const SCALING: [Setting; 4] = [
    Setting { cores: 1, flows: FLOWS },
    Setting { cores: 2, flows: FLOWS },
    Setting { cores: 4, flows: FLOWS },
    Setting { cores: 4, flows: 1 },
];

/// Cycles of a case.
pub struct Figures {
    pub case: Case,
    setting: Setting,
    /// Packets of each core.
    packets: Vec<u64>,
    /// Mean cycles from one verdict to the next.
    cycles: f64,
    /// Cycles between verdicts of individual packets, sorted.
    gaps: Vec<u64>,
    /// Cycles from a packet's first beat to its verdict, for packets sent one by one; sorted.
    latencies: Vec<u64>,
    /// Mean cycles per packet in each category of [`SPENT`].
    spent: Vec<f64>,
}

/// Returns the name of a case in a setting.
pub fn label(case: Case, Setting { cores, flows }: Setting) -> String {
    let name = case.name();
    match (cores, flows) {
        (1, 1) => name.into(),
        (1, _) => format!("{name}, 1 core, {flows} flows"),
        (_, 1) => format!("{name}, {cores} cores, 1 flow"),
        _ => format!("{name}, {cores} cores, {flows} flows"),
    }
}

/// Counts the cycles of a case, after the first packet has shown that the program works.
pub fn count(case: Case, setting: Setting, arguments: &Arguments) -> Result<Figures> {
    let (_, program, verdict) = case.program();
    let object = Object::parse(&case.compiled()?)?;
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
    for _ in 0..SINGLE_PACKETS {
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
    // Cores finish in any order.
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

impl Figures {
    /// Returns lines for cycles from verdict to verdict, and from the first beat to the verdict.
    pub fn lines(&self) -> Vec<Line> {
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
        let is_alone = self.setting == ALONE;
        let published = self.case.published().filter(|_| is_alone);
        vec![
            line("cycles", self.cycles, &self.gaps, published),
            line("latency", latency, &self.latencies, None),
        ]
    }
}

/// Formats the results as a table.
pub fn table(all: &[Figures]) -> String {
    let mut text = String::from(
        "frames of 64 B without a gap, simulated\n\
         case         cycles/packet   published   Mpps at 156.25 MHz   latency, cycles      ns\n",
    );
    for it in all.iter().filter(|it| it.setting == ALONE) {
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

/// Formats a table of the scaling over several cores.
pub fn scaling_table(all: &[Figures]) -> String {
    let mut text = format!(
        "the same on several cores, simulated; the bus alone takes {BUS_CYCLES:.2} cycles\n\
         case       cores  flows   cycles/packet   Mpps at 156.25 MHz   packets of each core\n"
    );
    for it in all.iter().filter(|it| it.setting != ALONE) {
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
