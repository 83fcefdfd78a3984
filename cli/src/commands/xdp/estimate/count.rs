// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles of the simulated card for packets that arrive back to back.

use super::super::run::distribution::{Distribution, PerPacket};
use super::report::VERDICTS;
use super::{Arguments, Packets};
use anyhow::Context;
use freeport_card::{Cycles, Identity, RowCycles, SPENT, SPENT_ON, Sim, Stamp};
use freeport_ebpf::object::Program;
use freeport_xdp::Arrival;

/// Names of the causes of a row's cycles, for JSON and for text, in the order of [`SPENT_ON`].
const OF_ROWS: [(&str, &str); SPENT_ON.len()] = [
    ("rows", "rows"),
    ("memory_wait_cycles", "waits for memory"),
    ("helper_wait_cycles", "for helpers"),
    ("long_wait_cycles", "for long arithmetic"),
    ("order_wait_cycles", "for the row before"),
    ("jumps", "jumps"),
];

/// Measurement of the card with one schedule.
pub struct Counted {
    /// Cycles from one verdict to the next.
    pub cycles: PerPacket,
    /// Cycles from the first beat of a packet to its verdict, waiting time included.
    pub latency: PerPacket,
    /// Mean cycles per packet of all cores in use, by cause, with its names for JSON and for text.
    /// Their sum is the mean of `cycles` times the number of cores.
    pub spent: Vec<(&'static str, &'static str, f64)>,
    /// Number of packets of each core in use.
    pub by_core: Vec<u64>,
    /// Verdicts: counters of the card that are not 0, with their names.
    pub verdicts: Vec<(&'static str, u64)>,
    pub rows: usize,
    pub map_bytes: u64,
    pub card: Identity,
}

/// Sends all packets to the card.
///
/// # Errors
/// The card does not respond.
pub fn count(
    mut sim: Sim,
    program: &Program,
    packets: &Packets,
    arguments: &Arguments,
) -> anyhow::Result<Counted> {
    let arrival =
        |bytes| Arrival { bytes, ingress_ifindex: arguments.subject.ifindex, rx_queue_index: 0 };
    let arrivals: Vec<Arrival<'_>> = packets.taken.iter().map(|bytes| arrival(bytes)).collect();
    let before = sim.nic_mut().spent()?;
    let (stamps, spent) = match arguments.cores {
        1 => {
            let (stamps, cycles) = sim.run_counted(&program.name, &arrivals)?;
            (stamps, Some(of_one_core(&cycles)))
        }
        _ => (sim.run_stream(&program.name, &arrivals)?, None),
    };
    let (cycles, latency) = distributions(&stamps).context("there are not two packets")?;
    let spent = match spent {
        Some(spent) => spent,
        None => {
            let all = cycles.mean * f64::from(arguments.cores);
            let counted = sim.nic_mut().spent()?.into_iter().zip(before);
            of_cores(counted.map(|(after, before)| after - before).collect(), stamps.len(), all)
        }
    };
    let ends = |name: &str| name.starts_with("stopped_") || VERDICTS.contains(&name);
    let counters = sim.nic_mut().counters()?.into_iter();
    let mut by_core = sim.nic_mut().packets_by_core()?;
    by_core.truncate(arguments.cores.into());
    Ok(Counted {
        cycles,
        latency,
        spent,
        by_core,
        verdicts: counters.filter(|&(name, packets)| packets > 0 && ends(name)).collect(),
        rows: sim.rows(),
        map_bytes: sim.layout().bytes,
        card: sim.nic_mut().identity()?,
    })
}

/// Causes of the cycles of one core, where every cycle between verdicts has a cause.
fn of_one_core(cycles: &Cycles) -> Vec<(&'static str, &'static str, f64)> {
    let mean = |all: u64| all as f64 / cycles.packets.max(1) as f64;
    let sum = |at: usize| cycles.rows.iter().map(|row: &RowCycles| row.cycles[at]).sum();
    let rows = OF_ROWS.iter().enumerate();
    let rows = rows.map(|(at, (name, text))| (*name, *text, mean(sum(at))));
    let beside = [
        ("begin_cycles", "beginnings of packets", mean(cycles.begin)),
        ("idle_cycles", "no packet there", mean(cycles.idle)),
    ];
    rows.chain(beside).collect()
}

/// Causes that the card counts for all cores, and the rest of their cycles.
fn of_cores(
    counters: Vec<u64>,
    packets: usize,
    all: f64,
) -> Vec<(&'static str, &'static str, f64)> {
    let named = SPENT.iter().zip(counters);
    let counted = named.map(|((name, text), count)| (*name, *text, count as f64 / packets as f64));
    let mut spent: Vec<_> = counted.collect();
    let rest = all - spent.iter().map(|(_, _, mean)| mean).sum::<f64>();
    spent.push(("rest_cycles", "between rows and without a packet", rest.max(0.0)));
    spent
}

/// Cycles from one verdict to the next, and from the first beats to the verdicts.
fn distributions(stamps: &[Stamp]) -> Option<(PerPacket, PerPacket)> {
    let (mut cycles, mut latency) = (Distribution::default(), Distribution::default());
    let mut done: Vec<u64> = stamps.iter().map(|stamp| stamp.done).collect();
    done.sort_unstable();
    done.windows(2).for_each(|pair| cycles.count(pair[1] - pair[0]));
    stamps.iter().for_each(|stamp| latency.count(stamp.done - stamp.arrived));
    Some((cycles.per_packet()?, latency.per_packet()?))
}
