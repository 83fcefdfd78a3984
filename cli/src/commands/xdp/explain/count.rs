// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles of the simulated card by row.

use super::super::estimate::Packets;
use anyhow::{Context, bail};
use freeport_card::{Cycles, RowCycles, Sim};
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_vliw::image::Image;
use freeport_xdp::{Arrival, Setting};

/// Where the cycles of some packets went, from the first one's beginning to the last one's verdict.
pub struct Counted {
    pub packets: u64,
    /// Packets of lengths that the card does not take.
    pub refused: u64,
    /// By row of the program.
    pub rows: Vec<RowCycles>,
    /// Cycles until packets' first rows are in execute.
    pub begin: u64,
    /// Cycles without a packet in work.
    pub idle: u64,
    /// Other programs that tail calls led to, by name, with their cycles.
    pub elsewhere: Vec<(String, u64)>,
    /// All of them.
    pub total: u64,
}

impl Counted {
    /// The part of a number that a packet has.
    pub fn per_packet(&self, all: u64) -> f64 {
        all as f64 / self.packets.max(1) as f64
    }

    /// How many of a hundred cycles these are.
    pub fn percent(&self, cycles: u64) -> f64 {
        100.0 * cycles as f64 / self.total.max(1) as f64
    }
}

/// What programs learn of the world: the card's clock begins at 0 and goes on.
pub fn environment() -> Environment {
    Environment { clock: Clock::running(), ..Environment::default() }
}

/// Lets the packets come to the card without a gap.
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
        bail!(
            "{found} of {all} cycles have a row: this is a mistake in Freeport, please report it"
        );
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

/// Puts cycles of rows where they belong: to rows of the program, or to another one.
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
