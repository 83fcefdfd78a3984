// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles of the simulated card, by row.

use super::super::estimate::Packets;
use anyhow::{Context, bail};
use freeport_card::{Cycles, RowCycles, Sim};
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_vliw::image::Image;
use freeport_xdp::{Arrival, Setting};

/// Cycles of a stream of packets by cause, from the start of the first packet to the last verdict.
pub struct Counted {
    pub packets: u64,
    /// Packets whose length the card does not support.
    pub refused: u64,
    /// Cycles by row of the program.
    pub rows: Vec<RowCycles>,
    /// Cycles until the first rows of packets reach the execute stage.
    pub begin: u64,
    /// Cycles without a packet in the processor.
    pub idle: u64,
    /// Cycles of other programs that tail calls led to, by name.
    pub elsewhere: Vec<(String, u64)>,
    /// Number of all cycles.
    pub total: u64,
}

impl Counted {
    /// The mean per packet of a total.
    pub fn per_packet(&self, all: u64) -> f64 {
        all as f64 / self.packets.max(1) as f64
    }

    /// The percentage of all cycles.
    pub fn percent(&self, cycles: u64) -> f64 {
        100.0 * cycles as f64 / self.total.max(1) as f64
    }
}

/// The environment of programs: the clock of the card starts at 0 and runs.
pub fn environment() -> Environment {
    Environment { clock: Clock::running(), ..Environment::default() }
}

/// Sends the packets to the card back to back, and counts cycles.
pub fn count(
    object: &Object,
    number: usize,
    images: Vec<Result<Image, String>>,
    settings: &[Setting],
    packets: &Packets,
    ifindex: u32,
) -> anyhow::Result<Counted> {
    let name = &object.programs[number].name;
    let rows = images[number].as_ref().map_or(0, |image| image.rows.len());
    let mut sim = Sim::with_images(object, images, &environment())?;
    sim.takes(name)?;
    for setting in settings {
        setting.apply(object, &mut sim)?;
    }
    let arrival = |bytes| Arrival { bytes, ingress_ifindex: ifindex, rx_queue_index: 0 };
    let arrivals: Vec<Arrival<'_>> = packets.taken.iter().map(|bytes| arrival(bytes)).collect();
    let cycles = sim.count_stream(name, &arrivals).context("on the simulated card")?;
    if cycles.attributed() != cycles.total {
        let (found, all) = (cycles.attributed(), cycles.total);
        bail!("{found} of {all} cycles have a row: this is a bug in Freeport, please report it");
    }
    let counted = Counted {
        packets: cycles.packets,
        refused: packets.refused,
        rows: vec![RowCycles::default(); rows],
        begin: cycles.begin,
        idle: cycles.idle,
        elsewhere: vec![],
        total: cycles.total,
    };
    Ok(sorted(counted, &cycles, &sim, object, number))
}

/// Attributes the cycles of rows to rows of the program or to another program.
fn sorted(
    mut counted: Counted,
    cycles: &Cycles,
    sim: &Sim,
    object: &Object,
    number: usize,
) -> Counted {
    for (row, spent) in cycles.rows.iter().enumerate() {
        let place = sim.place_of_row(row);
        match place.filter(|(program, _)| *program == number) {
            // Rows that end in fetch have no cycle of their own, but they were executed.
            Some((_, row)) if row < counted.rows.len() => counted.rows[row] = *spent,
            _ if spent.sum() == 0 => {}
            _ => {
                let name = place.and_then(|(program, _)| object.programs.get(program));
                let name = name.map_or("no program", |program| program.name.as_str());
                match counted.elsewhere.iter_mut().find(|(other, _)| other == name) {
                    Some((_, cycles)) => *cycles += spent.sum(),
                    None => counted.elsewhere.push((name.to_owned(), spent.sum())),
                }
            }
        }
    }
    counted
}
