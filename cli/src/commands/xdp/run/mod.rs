// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp run`: a program of an object, packet by packet over a capture, on the targets that
//! there are for XDP, with the same maps.

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

use super::subject::Subject;
use anyhow::{Context, bail};
use clap::Args;
use freeport_card::Nic;
use freeport_ebpf::object::{Object, Program, ProgramKind};
use freeport_xdp::Unsteady;
use options::{Exception, On, Place, Time};
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
    Settings of maps and files of them are written as for bpftool:\n  \
    map update name inside key hex 00 00 00 00 value hex 02 00 00 00 any\n\
    In front of `key`, the name alone does as well. Maps of programs or of maps have\n\
    `value name NAME`.")]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Where to run it: `interpreter`, `kernel`, `native` (compiled code in user space), `vliw`
    /// (the model of a small processor), `sim` (its simulated hardware), or two of them with a
    /// comma, which compares each packet and the maps, believes the first, and ends at the first
    /// difference; `both` is kernel,interpreter
    #[arg(long, value_name = "TARGETS", default_value = "interpreter")]
    on: On,
    /// With `vliw`: how many operations a row may hold [default: 4]
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u8).range(super::lanes()))]
    lanes: Option<u8>,
    /// With `sim`: how many cores of the card are in use, among which flows are divided
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(Nic::CORES_MAX)))]
    cores: u8,
    /// With `vliw` and `sim`: run the capture once in the interpreter first, to see which ways
    /// through the program are likely, and schedule for those
    #[arg(long)]
    profile: bool,
    /// Print what is in a map at the end; may be given several times
    #[arg(long, value_name = "MAP")]
    dump: Vec<String>,
    /// Write packets that are passed, sent back or redirected, or those of one verdict; may be
    /// given several times
    #[arg(long, value_name = "[VERDICT=]FILE")]
    write: Vec<Output>,
    /// The queue of that device
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    rx_queue: u32,
    /// Run the whole capture that often, with the maps as they are
    #[arg(long, value_name = "TIMES", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// The time in the interpreter and on the model: `capture`, `running` from 0, or a number of
    /// nanoseconds at which it stands still
    #[arg(long, value_name = "TIME", default_value = "capture")]
    clock: Time,
    /// Where random numbers begin in the interpreter and on the model
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// End a program that executes more instructions for a packet, in the interpreter, or more rows
    /// on the model
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1_000_000)]
    limit: u64,
    /// With two targets: a map, or bytes of its values, that are not compared because they are made
    /// of time or chance
    #[arg(long, value_name = "MAP[:FROM..TO]")]
    except: Vec<Exception>,
    /// With two targets: compare maps after so many packets, instead of as often as their size
    /// allows
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    maps_every: Option<u64>,
    /// Print on standard error what the program prints (`bpf_printk`) in the interpreter or on
    /// the model, with the packet's number
    #[arg(long)]
    printk: bool,
    /// With `sim`: write all signals of the card to this file while the packets run, in the format
    /// VCD
    #[arg(long, value_name = "FILE")]
    wave: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs it, and prints what came of it, also if it ended early.
///
/// # Errors
/// What is wrong with the object, the settings or the capture, what the kernel refuses, and a
/// difference between two targets.
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
    // What differs already is not compared once more.
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

/// Options that are for some targets only.
fn check_targets(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { on, except, maps_every, lanes, cores, profile, .. } = arguments;
    if (!except.is_empty() || maps_every.is_some()) && !on.compares() {
        bail!("--except and --maps-every are for --on both and other pairs, which are compared");
    }
    if lanes.is_some() && (!on.has(Place::Vliw) || on.has(Place::Sim)) {
        bail!("--lanes is for --on vliw; the hardware has those it was built with");
    }
    if arguments.wave.is_some() && !on.has(Place::Sim) {
        bail!("--wave is for --on sim: only the simulated hardware has signals");
    }
    if *cores > 1 && !on.has(Place::Sim) {
        bail!("--cores is for --on sim; the other targets run one packet after the other");
    }
    if *profile && !on.has(Place::Vliw) && !on.has(Place::Sim) {
        bail!("--profile is for --on vliw and --on sim");
    }
    Ok(())
}

/// The kernel's test facility is not for all kinds of programs.
fn check_kind(program: &Program, on: &On) -> anyhow::Result<()> {
    if on.has(Place::Kernel) && program.kind != ProgramKind::Xdp {
        bail!(
            "the kernel's test facility runs no {} programs, as `{}` is; use --on interpreter",
            program.kind,
            program.name
        );
    }
    Ok(())
}

/// Names of maps that are needed at the end are checked at the beginning.
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

/// What is not compared, of all exceptions.
fn unsteady(arguments: &Arguments) -> Vec<Unsteady> {
    arguments.except.iter().map(|exception| exception.0.clone()).collect()
}
