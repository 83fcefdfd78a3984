// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp estimate`: what a program will cost on the small processor's hardware, in cycles
//! of the simulated card.

mod report;

use super::run::distribution::{Distribution, PerPacket};
use super::run::feed::Feed;
use super::run::profile;
use super::subject::Subject;
use anyhow::{Context, bail};
use clap::Args;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::{Object, Program};
use freeport_sim::{Identity, Nic, Sim, Stamp};
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Setting};
use std::path::Path;
use std::process::ExitCode;

/// Bytes of a beat of the bus by which packets come.
const BEAT_BYTES: usize = 32;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp estimate filter.bpf.c --trace packets.pcap\n  \
    freeport xdp estimate filter.bpf.o --trace packets.pcap --ifindex 2 \\\n      \
    --map 'inside key 0 0 0 0 value 2 0 0 0' --map-file maps.txt --clock-mhz 250\n  \
    freeport xdp estimate filter.bpf.o --trace packets.pcap --cores 4\n\n\
    Packets of the capture come one behind the other, as fast as the card takes them, whatever\n\
    their times are. Cycles are counted in a simulation of the hardware; the clock is assumed.")]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// How many cores of the card are in use, among which flows are divided
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(Nic::CORES_MAX)))]
    cores: u8,
    /// The clock at which cycles are stated as times and rates, in MHz
    #[arg(long, value_name = "MHZ", default_value_t = 156.25, value_parser = clock)]
    clock_mhz: f64,
    /// Do not schedule the program for the ways that these packets take through it, as the
    /// interpreter sees them first
    #[arg(long)]
    without_profile: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was counted.
struct Estimate<'a> {
    program: &'a str,
    has_profile: bool,
    clock_mhz: f64,
    packets: usize,
    /// Packets of lengths that the card does not take.
    refused: u64,
    /// Cycles from one verdict to the next.
    cycles: PerPacket,
    /// Cycles from the first beat of a packet to its verdict, behind the others.
    latency: PerPacket,
    /// Beats in which packets come, the mean: fewer cycles are not possible.
    beats: f64,
    /// Packets with more beats than the cycles that half of all packets do with.
    long_packets: usize,
    /// What a packet had of each of [`freeport_sim::SPENT`], the mean.
    spent: Vec<f64>,
    /// How many packets each of the cores in use had.
    by_core: Vec<u64>,
    /// What became of packets: counters of the card, by their names, that are not 0.
    verdicts: Vec<(&'static str, u64)>,
    rows: usize,
    map_bytes: u64,
    card: Identity,
}

/// Packets that the card takes, and how many it does not.
pub(super) struct Packets {
    pub taken: Vec<Vec<u8>>,
    pub refused: u64,
}

/// Simulates, and prints what came of it.
///
/// # Errors
/// What is wrong with the object, the settings or the capture, and why the card refuses a program.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let subject = &arguments.subject;
    let file = subject.object.display();
    let (_, mut object) = subject.open()?;
    let settings = subject.prepare(&mut object)?;
    let program = subject.choose(&object)?;
    let packets = Packets::read(&subject.trace, 2)?;
    let mut sim = load(&object, program, &settings, arguments).with_context(|| {
        let trace = subject.trace.display();
        format!(
            "{file}: the card does not take it; without cycles, `freeport xdp run {file} \
             --trace {trace} --on interpreter` works"
        )
    })?;
    for setting in &settings {
        setting.apply(&object, &mut sim)?;
    }
    let estimate =
        count(&mut sim, program, &packets, arguments).context("on the simulated card")?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&estimate.as_json()).context("as JSON")?);
    } else {
        print!("{estimate}");
    }
    Ok(ExitCode::SUCCESS)
}

impl Packets {
    /// All of a capture, since they have to be there without a gap.
    ///
    /// # Errors
    /// A capture that is broken, or has fewer packets than it takes.
    pub fn read(trace: &Path, least: usize) -> anyhow::Result<Self> {
        let file = trace.display();
        let mut feed = Feed::open(trace, false)?;
        let mut packets = Self { taken: vec![], refused: 0 };
        while feed.advance().with_context(|| file.to_string())? {
            if Sim::LENGTHS.contains(&feed.bytes().len()) {
                packets.taken.push(feed.bytes().to_vec());
            } else {
                packets.refused += 1;
            }
        }
        feed.warn();
        let (count, refused) = (packets.taken.len(), packets.refused);
        if count < least {
            bail!(
                "{file}: there are {count} packets that the card takes, and {refused} of other \
                 lengths than {} to {} bytes; it takes {least}{}",
                Sim::LENGTHS.start(),
                Sim::LENGTHS.end(),
                if least > 1 { " from one verdict to the next" } else { "" }
            );
        }
        Ok(packets)
    }
}

/// The object on the card, which takes the program.
fn load(
    object: &Object,
    program: &Program,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Sim> {
    let environment = Environment { clock: Clock::running(), ..Environment::default() };
    let nic = Nic::with_cores(arguments.cores)?;
    let plain = Sim::load_on(nic, object, &Options::default(), &environment)?;
    plain.takes(&program.name)?;
    if arguments.without_profile {
        return Ok(plain);
    }
    let source = profile::Source {
        trace: &arguments.subject.trace,
        ingress_ifindex: arguments.subject.ifindex,
        rx_queue_index: 0,
        environment: environment.clone(),
        follows_capture: true,
    };
    let profiles = profile::take(object, program, settings, source)?;
    let nic = Nic::with_cores(arguments.cores)?;
    let sim = Sim::load_profiled_on(nic, object, &profiles, &environment)?;
    sim.takes(&program.name)?;
    Ok(sim)
}

/// Lets all packets come.
fn count<'a>(
    sim: &mut Sim,
    program: &'a Program,
    packets: &Packets,
    arguments: &Arguments,
) -> anyhow::Result<Estimate<'a>> {
    let arrival =
        |bytes| Arrival { bytes, ingress_ifindex: arguments.subject.ifindex, rx_queue_index: 0 };
    let arrivals: Vec<Arrival<'_>> = packets.taken.iter().map(|bytes| arrival(bytes)).collect();
    let before = sim.nic_mut().spent()?;
    let stamps = sim.run_stream(&program.name, &arrivals)?;
    let after = sim.nic_mut().spent()?;
    let mean = |all: u64| all as f64 / stamps.len() as f64;
    let beats = packets.taken.iter().map(|bytes| bytes.len().div_ceil(BEAT_BYTES) as u64);
    let ends = |name: &str| name.starts_with("stopped_") || report::VERDICTS.contains(&name);
    let counters = sim.nic_mut().counters()?.into_iter();
    let mut by_core = sim.nic_mut().packets_by_core()?;
    by_core.truncate(arguments.cores.into());
    let (cycles, latency) = distributions(&stamps).context("there are not two packets")?;
    Ok(Estimate {
        program: &program.name,
        has_profile: !arguments.without_profile,
        clock_mhz: arguments.clock_mhz,
        packets: stamps.len(),
        refused: packets.refused,
        cycles,
        latency,
        beats: mean(beats.clone().sum()),
        long_packets: beats.filter(|beats| *beats > cycles.median).count(),
        spent: after.into_iter().zip(before).map(|(after, before)| mean(after - before)).collect(),
        by_core,
        verdicts: counters.filter(|&(name, packets)| packets > 0 && ends(name)).collect(),
        rows: sim.rows(),
        map_bytes: sim.layout().bytes,
        card: sim.nic_mut().identity()?,
    })
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

/// A clock that goes.
fn clock(text: &str) -> Result<f64, String> {
    let clock_mhz: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    match clock_mhz.is_finite() && clock_mhz > 0.0 {
        true => Ok(clock_mhz),
        false => Err("a clock has more than 0 MHz".into()),
    }
}
