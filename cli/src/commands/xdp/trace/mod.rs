// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp trace`: single packets, step by step.

mod card;
mod interpreter;
mod model;

use super::run::feed::Feed;
use super::subject::Subject;
use anyhow::{Context, bail};
use card::OnCard;
use clap::Args;
use freeport_card::Sim;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::{Object, Program};
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Departure, Interpreter, Target, Vliw};
use interpreter::Interpreted;
use model::Modelled;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp trace filter.bpf.c --trace packets.pcap\n  \
    freeport xdp trace filter.bpf.o --trace packets.pcap --packet 7 --packet 9 --on vliw\n  \
    freeport xdp trace filter.bpf.o --trace packets.pcap --on sim --wave filter.vcd\n\n\
    Packets before the ones that are asked for are run as well, without a word, so that maps are\n\
    as they were. The kernel shows no steps of a program; there `bpf_printk` in it helps.")]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// The number of a packet in the capture, from 1; may be given several times
    #[arg(long, value_name = "NUMBER", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..))]
    packet: Vec<u64>,
    /// Where: `interpreter` (instructions), `vliw` (rows of the model of the small processor) or
    /// `sim` (cycles of its simulated hardware)
    #[arg(long, value_name = "TARGET", default_value = "interpreter", value_parser = place)]
    on: Place,
    /// Steps of a packet that are told at most
    #[arg(long, value_name = "STEPS", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: u32,
    /// With `sim`: write all signals of the card to this file (VCD), from the first packet that is
    /// traced on
    #[arg(long, value_name = "FILE")]
    wave: Option<PathBuf>,
    /// Print one JSON object for each step
    #[arg(long)]
    json: bool,
}

/// Where packets can be followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Interpreter,
    Vliw,
    Sim,
}

/// A target that tells what it does for a packet.
trait Tracer {
    /// Where maps are, and where packets go that are not traced.
    fn target(&mut self) -> &mut dyn Target;

    /// Says what time it is, where that is told.
    fn set_time(&mut self, time_ns: u64);

    /// Whether it takes a packet of that length.
    fn takes(&self, _length: usize) -> bool {
        true
    }

    /// Runs a packet, and tells at most so many steps.
    fn trace(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        limit: usize,
    ) -> anyhow::Result<Traced>;
}

/// What was done for a packet.
#[derive(Default)]
struct Traced {
    steps: Vec<Told>,
    /// Steps beyond the limit.
    left_out: u64,
    departure: Departure,
    /// Why the program was ended, if it was.
    ended: Option<String>,
}

/// A step, for people and for scripts.
struct Told {
    text: String,
    json: Value,
}

/// Follows packets, and prints their steps.
///
/// # Errors
/// What is wrong with the object, the settings or the capture, a packet that is not in it, and what
/// a target refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.wave.is_some() && arguments.on != Place::Sim {
        bail!("--wave is for --on sim: only the simulated hardware has signals");
    }
    let subject = &arguments.subject;
    let file = subject.object.display();
    let (_, mut object) = subject.open()?;
    let settings = subject.prepare(&mut object)?;
    let program = subject.choose(&object)?;
    let mut tracer = load(&object, program, arguments).with_context(|| file.to_string())?;
    for setting in settings {
        setting.apply(&object, tracer.target())?;
    }
    let trace = subject.trace.display();
    let mut feed = Feed::open(&subject.trace, false)?;
    let last = arguments.packet.iter().copied().max().unwrap_or(1);
    let mut count = 0;
    while count < last && feed.advance().with_context(|| trace.to_string())? {
        count = feed.number();
        let is_asked = arguments.packet.contains(&count);
        pass(tracer.as_mut(), program, &feed, is_asked, arguments)
            .with_context(|| format!("{trace}: packet {count}"))?;
    }
    match arguments.packet.iter().find(|number| **number > count) {
        Some(number) => bail!("{trace}: there is no packet {number}; the last one is {count}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs the packet that is at hand, and tells of it if it is asked for.
fn pass(
    tracer: &mut dyn Tracer,
    program: &Program,
    feed: &Feed,
    is_asked: bool,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let bytes = feed.bytes();
    let arrival = Arrival { bytes, ingress_ifindex: arguments.subject.ifindex, rx_queue_index: 0 };
    tracer.set_time(feed.time_ns());
    if !tracer.takes(bytes.len()) {
        match is_asked {
            true => bail!("the target does not take a packet of {} bytes", bytes.len()),
            false => return Ok(()),
        }
    }
    if !is_asked {
        tracer.target().run_into(&program.name, &arrival, &mut Departure::default())?;
        return Ok(());
    }
    let traced = tracer.trace(&program.name, &arrival, arguments.limit as usize)?;
    let number = feed.number();
    if arguments.json {
        for (at, mut step) in traced.steps.into_iter().enumerate() {
            (step.json["packet"], step.json["step"]) = (number.into(), (at + 1).into());
            println!("{}", step.json);
        }
    } else {
        println!("packet {number}, {} bytes", bytes.len());
        traced.steps.iter().for_each(|step| print!("{}", step.text));
        let verdict = super::run::report::verdict_name(traced.departure.verdict);
        println!("packet {number}: {verdict}, {} bytes\n", traced.departure.bytes.len());
    }
    if traced.left_out > 0 {
        eprintln!("packet {number}: {} steps more are not told (--limit)", traced.left_out);
    }
    if let Some(ended) = traced.ended {
        eprintln!("packet {number}: the program was ended: {ended}");
    }
    Ok(())
}

fn load<'o>(
    object: &'o Object,
    program: &Program,
    arguments: &Arguments,
) -> anyhow::Result<Box<dyn Tracer + 'o>> {
    let environment = Environment { clock: Clock::running(), ..Environment::default() };
    let options = Options::default();
    Ok(match arguments.on {
        Place::Interpreter => {
            let interpreter = Interpreter::load(object, environment)?;
            interpreter.takes(&program.name)?;
            Box::new(Interpreted { object, interpreter })
        }
        Place::Vliw => {
            let vliw = Vliw::load(object, &options, environment)?;
            vliw.takes(&program.name)?;
            Box::new(Modelled { object, vliw })
        }
        Place::Sim => {
            let sim = Sim::load(object, &options, &environment)?;
            sim.takes(&program.name)?;
            Box::new(OnCard { sim, wave: arguments.wave.clone() })
        }
    })
}

fn place(text: &str) -> Result<Place, String> {
    match text {
        "interpreter" => Ok(Place::Interpreter),
        "vliw" => Ok(Place::Vliw),
        "sim" => Ok(Place::Sim),
        "kernel" => Err("the kernel shows no steps of a program; `bpf_printk` in the program \
                         prints to its trace, and `freeport xdp run --printk` shows the same from \
                         the interpreter"
            .into()),
        _ => Err("expected interpreter, vliw or sim".into()),
    }
}

/// A number as people read it.
fn number(value: u64) -> String {
    if value < 10 { value.to_string() } else { format!("{value:#x}") }
}

/// Bytes in the order in which they lie.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
