// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases on the simulated card: cycles from verdict to verdict, and from the first beat to the
//! verdict.

use super::{CLOCK_MHZ, Case, FRAME_BYTES, frame, set_up};
use crate::report::{Kind, Line, Traffic, rounded};
use anyhow::{Result, ensure};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_sim::{SPENT, Sim};
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Interpreter, Profiles, Target};

/// Packets before those that are counted.
const WARM_UP: usize = 100;
/// Packets that come one by one.
const ALONE: usize = 20;

/// What is counted of a case.
pub struct Figures {
    pub case: Case,
    /// From one verdict to the next, the mean.
    cycles: f64,
    /// The same of single packets, in order.
    gaps: Vec<u64>,
    /// From a packet's first beat to its verdict, where packets come one by one; in order.
    latencies: Vec<u64>,
    /// What a packet had of each of [`SPENT`], the mean.
    spent: Vec<f64>,
}

/// Counts the cycles of a case, after the first packet has shown that the program does its work.
pub fn count(case: Case, packets: usize, has_profile: bool) -> Result<Figures> {
    let (_, program, verdict) = case.program();
    let object = Object::parse(&case.compiled()?)?;
    let frame = frame();
    let arrival = Arrival { bytes: &frame, ingress_ifindex: 1, rx_queue_index: 0 };
    let environment = Environment::default();
    let mut sim = if has_profile {
        let mut profiles = Profiles::new(&object);
        let mut interpreter = Interpreter::load(&object, environment.clone())?;
        set_up(case, &mut interpreter)?;
        for _ in 0..WARM_UP {
            interpreter.run_observed(program, &arrival, &mut profiles)?;
        }
        Sim::load_profiled(&object, &profiles, &environment)?
    } else {
        Sim::load(&object, &Options::default(), &environment)?
    };
    set_up(case, &mut sim)?;
    let departure = sim.run(program, &arrival)?;
    ensure!(departure.verdict == verdict, "the verdict is {}", departure.verdict);
    let mut latencies = vec![];
    for _ in 0..ALONE {
        let stamps = sim.run_stream(program, &[arrival])?;
        latencies.extend(stamps.iter().map(|stamp| stamp.done - stamp.arrived));
    }
    let before = sim.nic_mut().spent()?;
    let stamps = sim.run_stream(program, &vec![arrival; WARM_UP + packets])?;
    let after = sim.nic_mut().spent()?;
    let per_packet = |(after, before)| (after - before) as f64 / stamps.len() as f64;
    let spent = after.into_iter().zip(before).map(per_packet).collect();
    let done: Vec<u64> = stamps[WARM_UP - 1..].iter().map(|stamp| stamp.done).collect();
    let mut gaps: Vec<u64> = done.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let cycles = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    gaps.sort_unstable();
    latencies.sort_unstable();
    Ok(Figures { case, cycles, gaps, latencies, spent })
}

impl Figures {
    /// Cycles from verdict to verdict, and from the first beat to the verdict.
    pub fn lines(&self) -> [Line; 2] {
        let of = |sorted: &[u64], percent: usize| sorted[(sorted.len() - 1) * percent / 100] as f64;
        let line = |metric: &str, value: f64, sorted: &[u64], published| Line {
            bench: "xdp".into(),
            case: self.case.name().into(),
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
        [
            line("cycles", self.cycles, &self.gaps, self.case.published()),
            line("latency", latency, &self.latencies, None),
        ]
    }
}

/// For people.
pub fn table(all: &[Figures]) -> String {
    let mut text = String::from(
        "frames of 64 B without a gap, simulated\n\
         case         cycles/packet   published   Mpps at 156.25 MHz   latency, cycles      ns\n",
    );
    for it in all {
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
