// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp estimate`: the cost of a program on the small processor's hardware, in cycles of
//! the simulated card.

mod count;
mod report;

use super::run::feed::Feed;
use super::run::profile;
use super::schedule::Schedule;
use super::subject::Subject;
use anyhow::{Context, bail};
use clap::Args;
use count::Counted;
use freeport_card::{Nic, Sim};
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::{Object, Program};
use freeport_vliw::Options;
use freeport_xdp::{Profiles, Setting};
use std::path::Path;
use std::process::ExitCode;

/// Bytes per beat of the bus that delivers packets.
const BEAT_BYTES: usize = 32;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp estimate filter.bpf.c --trace packets.pcap\n  \
    freeport xdp estimate filter.bpf.o --trace packets.pcap --ifindex 2 \\\n      \
    --map 'inside key 0 0 0 0 value 2 0 0 0' --map-file maps.txt --clock-mhz 250\n  \
    freeport xdp estimate filter.bpf.o --trace packets.pcap --cores 4\n\n\
    Packets of the capture arrive back to back, as fast as the card accepts them; their times\n\
    are ignored. Cycles are counted in a simulation of the hardware; the clock is an assumption.")]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Number of cores of the card in use; flows are distributed among them
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(Nic::CORES_MAX)))]
    cores: u8,
    /// The assumed clock, in MHz, for times and rates
    #[arg(long, value_name = "MHZ", default_value_t = 156.25, value_parser = clock)]
    clock_mhz: f64,
    /// Do not use a profile: by default the program is scheduled for the paths that these packets
    /// take in the interpreter
    #[arg(long)]
    without_profile: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A measurement.
struct Estimate<'a> {
    program: &'a str,
    schedule: &'a Schedule,
    clock_mhz: f64,
    packets: usize,
    /// Packets whose length the card does not support.
    refused: u64,
    counted: Counted,
    /// Mean number of beats per packet, a lower bound of the cycles.
    beats: f64,
    /// Packets with more beats than the median of the cycles.
    long_packets: usize,
}

impl<'a> Estimate<'a> {
    /// Combines a measurement with properties of the packets.
    fn of(
        counted: Counted,
        program: &'a Program,
        schedule: &'a Schedule,
        packets: &Packets,
        arguments: &Arguments,
    ) -> Self {
        let beats = packets.taken.iter().map(|bytes| bytes.len().div_ceil(BEAT_BYTES) as u64);
        let count = packets.taken.len();
        Self {
            program: &program.name,
            schedule,
            clock_mhz: arguments.clock_mhz,
            packets: count,
            refused: packets.refused,
            beats: beats.clone().sum::<u64>() as f64 / count as f64,
            long_packets: beats.filter(|beats| *beats > counted.cycles.median).count(),
            counted,
        }
    }
}

/// Packets of a supported length, and the number of others.
pub(super) struct Packets {
    pub taken: Vec<Vec<u8>>,
    pub refused: u64,
}

/// Simulates the card and prints the estimate.
///
/// # Errors
/// A malformed object, setting or capture, or a program that the card refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let subject = &arguments.subject;
    let (_, mut object) = subject.open()?;
    let settings = subject.prepare(&mut object)?;
    let program = subject.choose(&object)?;
    let packets = Packets::read(&subject.trace, 2)?;
    let (schedule, counted) = best(&object, program, &settings, &packets, arguments)?;
    let estimate = Estimate::of(counted, program, &schedule, &packets, arguments);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&estimate.as_json()).context("as JSON")?);
    } else {
        print!("{estimate}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures both schedules; returns the faster one, or the one that fits.
fn best(
    object: &Object,
    program: &Program,
    settings: &[Setting],
    packets: &Packets,
    arguments: &Arguments,
) -> anyhow::Result<(Schedule, Counted)> {
    let environment = Environment { clock: Clock::running(), ..Environment::default() };
    let load = |profiles: Option<&Profiles>| {
        let nic = Nic::with_cores(arguments.cores)?;
        let sim = match profiles {
            Some(profiles) => Sim::load_profiled_on(nic, object, profiles, &environment)?,
            None => Sim::load_on(nic, object, &Options::default(), &environment)?,
        };
        sim.takes(&program.name)?;
        anyhow::Ok(sim)
    };
    let count = |mut sim: Sim| {
        settings.iter().try_for_each(|setting| setting.apply(object, &mut sim))?;
        count::count(sim, program, packets, arguments).context("on the simulated card")
    };
    let refused = || {
        let (file, trace) = (arguments.subject.object.display(), arguments.subject.trace.display());
        format!(
            "{file}: the card does not run it; without cycles, `freeport xdp run {file} \
             --trace {trace} --on interpreter` does"
        )
    };
    let plain = load(None);
    if arguments.without_profile || plain.is_err() {
        return Ok((Schedule::Plain, count(plain.with_context(refused)?)?));
    }
    let source = profile::Source {
        trace: &arguments.subject.trace,
        ingress_ifindex: arguments.subject.ifindex,
        rx_queue_index: 0,
        environment: environment.clone(),
        follows_capture: true,
    };
    let profiles = profile::take(object, program, settings, source)?;
    let plain = count(plain?)?;
    let profiled = match load(Some(&profiles)) {
        Ok(sim) => Ok(count(sim)?),
        Err(error) => Err(error),
    };
    Ok(Schedule::best(plain, profiled, |counted| counted.cycles.mean))
}

impl Packets {
    /// Reads all packets of a capture, so that they can be sent back to back.
    ///
    /// # Errors
    /// A malformed capture, or one with fewer than `least` packets.
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
                "{file}: {count} packets have a length that the card supports, and {refused} are \
                 not of {} to {} bytes; at least {least} are needed{}",
                Sim::LENGTHS.start(),
                Sim::LENGTHS.end(),
                if least > 1 { " to count from one verdict to the next" } else { "" }
            );
        }
        Ok(packets)
    }
}

/// Parses a clock in MHz.
fn clock(text: &str) -> Result<f64, String> {
    let clock_mhz: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    match clock_mhz.is_finite() && clock_mhz > 0.0 {
        true => Ok(clock_mhz),
        false => Err("the clock must be above 0 MHz".into()),
    }
}
