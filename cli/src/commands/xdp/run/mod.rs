// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp run`: runs a program of an object on each packet of a capture, on one target, or
//! on two with the same maps that are compared.

pub(super) mod distribution;
pub(super) mod feed;
pub(super) mod json;
mod options;
mod outputs;
pub(super) mod profile;
pub(super) mod report;
mod session;
mod tally;
mod targets;

use super::place::Place;
use super::subject::Subject;
use anyhow::{Context, bail};
use clap::Args;
use freeport_card::Nic;
use freeport_ebpf::object::{Object, Program, ProgramKind};
use freeport_xdp::Unsteady;
use options::{Exception, On, Time};
use outputs::Output;
use report::Report;
use session::Session;
use std::path::PathBuf;
use std::process::ExitCode;
use targets::Targets;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp run filter.bpf.o --trace packets.pcap\n  \
    freeport xdp run filter.bpf.c --trace packets.pcap --on both\n  \
    freeport xdp run filter.bpf.c --trace packets.pcap --on vliw --profile\n  \
    freeport xdp run filter.bpf.o --trace packets.pcap --ifindex 2 \\\n      \
    --map 'inside key 0 0 0 0 value 2 0 0 0' --map-file maps.txt \\\n      \
    --dump flows --write out.pcap --write drop=dropped.pcap\n  \
    freeport xdp run filter.bpf.o --trace packets.pcap --map-size flows=4096 --set limit=100\n\n\
    Settings of maps have the syntax of bpftool, on the command line and in files:\n  \
    map update name inside key hex 00 00 00 00 value hex 02 00 00 00 any\n\
    The words before the name of the map may be omitted. Maps of programs or of maps take\n\
    `value name NAME`.")]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// The target: `interpreter`, `kernel`, `native` (compiled code in user space), `vliw` (the
    /// model of a small processor) or `sim` (its simulated hardware). Two targets with a comma
    /// between them are compared after each packet, and the run ends at the first difference; the
    /// first target is the reference. `both` is kernel,interpreter
    #[arg(long, value_name = "TARGETS", default_value = "interpreter")]
    on: On,
    /// With `vliw`: number of operations per row [default: 4]
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u8).range(super::lanes()))]
    lanes: Option<u8>,
    /// With `sim`: number of cores of the card in use; flows are distributed among them
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(Nic::CORES_MAX)))]
    cores: u8,
    /// With `vliw` and `sim`: run the capture in the interpreter first, and schedule the program
    /// for the paths that packets take
    #[arg(long)]
    profile: bool,
    /// Print the contents of a map at the end; may be repeated
    #[arg(long, value_name = "MAP")]
    dump: Vec<String>,
    /// Write packets that are passed, sent back or redirected, or those with one verdict, to a
    /// capture; may be repeated
    #[arg(long, value_name = "[VERDICT=]FILE")]
    write: Vec<Output>,
    /// Index of the receive queue that packets arrive on
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    rx_queue: u32,
    /// Run the whole capture this number of times; maps keep their contents
    #[arg(long, value_name = "TIMES", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// The clock in the interpreter and on the model: `capture` (the times of the packets),
    /// `running` (from 0), or a fixed number of nanoseconds
    #[arg(long, value_name = "TIME", default_value = "capture")]
    clock: Time,
    /// Seed of random numbers in the interpreter and on the model
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Maximum number of instructions, or of rows on the model, per packet; the program is aborted
    /// beyond it
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1_000_000)]
    limit: u64,
    /// With two targets: do not compare this map or these bytes of its values, for example because
    /// they depend on time or random numbers
    #[arg(long, value_name = "MAP[:FROM..TO]")]
    except: Vec<Exception>,
    /// With two targets: compare maps at this interval of packets [default: depends on their size]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    maps_every: Option<u64>,
    /// Print on standard error the output of `bpf_printk` in the interpreter or on the model, with
    /// the packet's number
    #[arg(long)]
    printk: bool,
    /// With `sim`: write all signals of the card to this file (VCD)
    #[arg(long, value_name = "FILE")]
    wave: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the program and prints the report, also if the run ends early.
///
/// # Errors
/// A malformed object, setting or capture, a program that the target refuses, or a difference
/// between two targets.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    check_targets(arguments)?;
    let subject = &arguments.subject;
    let (bytes, mut object) = subject.open()?;
    let settings = subject.prepare(&mut object)?;
    let file = subject.object.display();
    let program = subject.choose(&object)?;
    check_kind(program, &arguments.on).with_context(|| file.to_string())?;
    check_maps(&object, arguments).with_context(|| file.to_string())?;
    let source = profile::Source {
        trace: &subject.trace,
        ingress_ifindex: subject.ifindex,
        rx_queue_index: arguments.rx_queue,
        environment: targets::environment(arguments),
        follows_capture: arguments.clock == Time::Capture,
    };
    let profiles = arguments.profile.then(|| profile::take(&object, program, &settings, source));
    let profiles = profiles.transpose()?;
    let subject_of_run =
        targets::Subject { bytes: &bytes, object: &object, program, settings: &settings };
    let mut targets = Targets::load(&subject_of_run, profiles.as_ref(), arguments)
        .with_context(|| file.to_string())?;
    for setting in &settings {
        targets.set(setting)?;
    }
    if let Some(path) = &arguments.wave {
        targets.open_waveform(path)?;
    }
    let image = targets.image();
    let mut session = Session::begin(arguments, program, targets)?;
    let mut ended = session.run();
    let mut maps = vec![];
    // After a difference, the final comparison would repeat it.
    if ended.is_ok() || !arguments.on.compares() {
        let finished = session.finish().map(|contents| maps = contents);
        ended = ended.and(finished);
    }
    let tally = session.tally();
    let on = &arguments.on;
    let report = Report { object: &object, program, on, tally, image, maps: &maps };
    if arguments.json {
        let text = serde_json::to_string_pretty(&report.as_json(ended.as_ref().err()));
        println!("{}", text.context("as JSON")?);
    } else {
        print!("{report}");
    }
    session.warn();
    ended.map(|()| ExitCode::SUCCESS)
}

/// Checks options that apply only to some targets.
fn check_targets(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { on, except, maps_every, lanes, cores, profile, .. } = arguments;
    if (!except.is_empty() || maps_every.is_some()) && !on.compares() {
        bail!("--except and --maps-every need two targets, such as --on both");
    }
    if lanes.is_some() && (!on.has(Place::Vliw) || on.has(Place::Sim)) {
        bail!("--lanes is for --on vliw; the lanes of the hardware are fixed");
    }
    if arguments.wave.is_some() && !on.has(Place::Sim) {
        bail!("--wave is for --on sim: only the simulated hardware has signals");
    }
    if *cores > 1 && !on.has(Place::Sim) {
        bail!("--cores is for --on sim; the other targets run one packet at a time");
    }
    if *profile && !on.has(Place::Vliw) && !on.has(Place::Sim) {
        bail!("--profile is for --on vliw and --on sim");
    }
    Ok(())
}

/// Checks that the test facility of the kernel supports this kind of program.
fn check_kind(program: &Program, on: &On) -> anyhow::Result<()> {
    if on.has(Place::Kernel) && program.kind != ProgramKind::Xdp {
        bail!(
            "the test facility of the kernel does not run {} programs such as `{}`; use --on \
             interpreter",
            program.kind,
            program.name
        );
    }
    Ok(())
}

/// Checks before the run that the maps that are needed at its end exist.
fn check_maps(object: &Object, arguments: &Arguments) -> anyhow::Result<()> {
    let excepted = arguments.except.iter().map(|exception| &exception.0.map);
    for name in arguments.dump.iter().chain(excepted) {
        if !object.maps.iter().any(|map| map.name == *name) {
            let names: Vec<&str> = object.maps.iter().map(|map| map.name.as_str()).collect();
            bail!("there is no map `{name}`; there are: {}", names.join(", "));
        }
    }
    Ok(())
}

/// Maps and bytes that are not compared.
fn unsteady(arguments: &Arguments) -> Vec<Unsteady> {
    arguments.except.iter().map(|exception| exception.0.clone()).collect()
}
