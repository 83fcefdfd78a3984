// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp trace`: traces packets step by step.

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
    Earlier packets of the capture are run without a trace, so that maps have the same contents.\n\
    The kernel does not expose the steps of a program; use `bpf_printk` there.")]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Number of a packet in the capture, from 1; may be repeated
    #[arg(long, value_name = "NUMBER", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..))]
    packet: Vec<u64>,
    /// The target: `interpreter` (instructions), `vliw` (rows of the model of the small processor)
    /// or `sim` (cycles of its simulated hardware)
    #[arg(long, value_name = "TARGET", default_value = "interpreter", value_parser = place)]
    on: Place,
    /// Maximum number of steps per packet to print
    #[arg(long, value_name = "STEPS", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: u32,
    /// With `sim`: write all signals of the card to this file (VCD), from the first traced packet
    #[arg(long, value_name = "FILE")]
    wave: Option<PathBuf>,
    /// Print one JSON object per step
    #[arg(long)]
    json: bool,
}

/// A target that can trace packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Interpreter,
    Vliw,
    Sim,
}

/// A target that reports its steps for a packet.
trait Tracer {
    /// The target, for maps and for packets that are not traced.
    fn target(&mut self) -> &mut dyn Target;

    /// Sets the clock, if the target has a settable one.
    fn set_time(&mut self, time_ns: u64);

    /// Whether it supports a packet of that length.
    fn takes(&self, _length: usize) -> bool {
        true
    }

    /// Runs a packet, and records at most `limit` steps.
    fn trace(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        limit: usize,
    ) -> anyhow::Result<Traced>;
}

/// The trace of a packet.
#[derive(Default)]
struct Traced {
    steps: Vec<Reported>,
    /// Number of steps beyond the limit.
    left_out: u64,
    departure: Departure,
    /// Why the program was aborted, if it was.
    ended: Option<String>,
}

/// A step, as text and as JSON.
struct Reported {
    text: String,
    json: Value,
}

/// Traces packets and prints their steps.
///
/// # Errors
/// A malformed object, setting or capture, a packet that is not in the capture, or a program that
/// the target refuses.
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

/// Runs the current packet, and prints its trace if that is requested.
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
            true => bail!("the target does not support a packet of {} bytes", bytes.len()),
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
        eprintln!("packet {number}: {} more steps are not printed (--limit)", traced.left_out);
    }
    if let Some(ended) = traced.ended {
        eprintln!("packet {number}: the program was aborted: {ended}");
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
        "kernel" => Err("the kernel does not expose the steps of a program; `bpf_printk` in the \
                         program prints to the trace of the kernel, and `freeport xdp run \
                         --printk` prints the same in the interpreter"
            .into()),
        _ => Err("expected interpreter, vliw or sim".into()),
    }
}

/// A number: decimal if it has one digit, otherwise hexadecimal.
fn number(value: u64) -> String {
    if value < 10 { value.to_string() } else { format!("{value:#x}") }
}

/// Bytes in hexadecimal, in memory order.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
