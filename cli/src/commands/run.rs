// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport run`: loads a program, joins its outer ends to files or generators, and runs it until
//! every input has ended.

use crate::endpoint::{InputSpec, OutputSpec, Target};
use crate::progress::Progress;
use crate::values::{self, Assignment, SignalSpec, VariableName};
use crate::{program, stats};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use freeport_ir::interp::{Options, Schedule};
use freeport_ir::{InstanceId, Program};
use freeport_nic::device::{Device, Ports, RunEnd};
use freeport_nic::interpreter::InterpreterDevice;
use freeport_nic::port::{BATCH, Capture, Receive, Transmit};
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Backend {
    /// The reference interpreter: slow, exact
    Interpreter,
}

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport run capture.ir --in from_tor=trace.pcap --out to_tor=out.pcap --signal cnt:0\n  \
    freeport run capture.ir --in from_tor=gen:64x1000 --out to_tor=count --stats json\n\n\
    An input is a pcap or pcapng file, or gen:SIZExCOUNT with a SIZE such as 64, 64-1500 or imix. \
    An output is a file, or `count`. An outer end without --out drops, and counts what it drops.")]
pub struct Arguments {
    /// The program
    file: PathBuf,
    /// What feeds an outer end; may be repeated
    #[arg(long = "in", value_name = "END=SOURCE")]
    inputs: Vec<InputSpec>,
    /// Where an outer end leads; may be repeated
    #[arg(long = "out", value_name = "END=TARGET")]
    outputs: Vec<OutputSpec>,
    /// What runs it
    #[arg(long, value_enum, default_value = "interpreter")]
    on: Backend,
    /// Give a variable a value before the run; may be repeated
    #[arg(long, value_name = "INSTANCE.VARIABLE=VALUE")]
    set: Vec<Assignment>,
    /// Give variables values from a file, {"instance": {"variable": value}}
    #[arg(long, value_name = "FILE.json")]
    init: Option<PathBuf>,
    /// Send a signal after the run and print its answer; may be repeated
    #[arg(long, value_name = "INSTANCE:WORD,WORD")]
    signal: Vec<SignalSpec>,
    /// Print counters after the run
    #[arg(long, value_enum, value_name = "FORMAT")]
    stats: Option<stats::Format>,
    /// Record what passes an outer end; may be repeated
    #[arg(long, value_name = "END=FILE.pcapng")]
    capture: Vec<OutputSpec>,
    /// Frames taken from an input at a time, at most
    #[arg(long, default_value_t = BATCH)]
    batch: usize,
    /// Stop where the program has a breakpoint; then `print INSTANCE.VARIABLE[INDEX]` on standard
    /// input shows a variable, and an empty line goes on
    #[arg(long)]
    breakpoints: bool,
    /// Let everything that is left to chance be decided by this number
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Runs it and prints what was asked for.
///
/// # Errors
/// A program, file, name or value that is not as it should be; a run that cannot go on.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Backend::Interpreter = arguments.on;
    let program = program::load(&arguments.file)?;
    let options = Options {
        schedule: arguments.seed.map_or(Schedule::RoundRobin, |seed| Schedule::Random { seed }),
        random_seed: arguments.seed.unwrap_or_default(),
        ..Options::default()
    };
    let mut device = InterpreterDevice::load(&program, &options)?;
    device.set_breakpoints_enabled(arguments.breakpoints);
    assign(&mut device, &program, arguments)?;
    let end = run_to_the_end(&mut device, &program, arguments)?;
    for probe in device.take_probes() {
        println!("{}: {}", program.instance(probe.instance).name, probe.text.trim_end());
    }
    for spec in &arguments.signal {
        let instance = program::instance(&program, &spec.instance)?;
        let answer = device.signal(instance, &values::signal(&spec.words))?;
        let words = values::answer_words(&answer).map(|word| word.to_string());
        println!("signal {}: {}", spec.instance, words.join(" "));
    }
    if let Some(format) = arguments.stats {
        print!("{}", stats::render(&program, &device.counters(), format));
    }
    match end {
        RunEnd::Stalled(report) => bail!("the program stalls: {report}"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn assign(device: &mut dyn Device, program: &Program, arguments: &Arguments) -> anyhow::Result<()> {
    let mut assignments = vec![];
    if let Some(path) = &arguments.init {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        let values = values::initial_values(&text);
        assignments = values.with_context(|| format!("{}", path.display()))?;
    }
    for assignment in assignments.iter().chain(&arguments.set) {
        let target = &assignment.target;
        let (instance, width) = values::resolve(program, target)?;
        let value = values::number(width, &assignment.value)?;
        device.write_variable(instance, &target.variable, target.index, &value)?;
    }
    Ok(())
}

/// Opens the ports, runs, and closes them.
fn run_to_the_end(
    device: &mut InterpreterDevice<'_>,
    program: &Program,
    arguments: &Arguments,
) -> anyhow::Result<RunEnd> {
    check_captures(arguments)?;
    let mut inputs: Vec<(&str, Box<dyn Receive>)> = vec![];
    for spec in &arguments.inputs {
        let port = Progress::new(spec.source.open()?, arguments.batch.max(1));
        let port: Box<dyn Receive> = match capture_of(arguments, &spec.endpoint) {
            Some(path) => Box::new(Capture::create(port, path)?),
            None => Box::new(port),
        };
        inputs.push((&spec.endpoint, port));
    }
    let mut outputs: Vec<(&str, Box<dyn Transmit>)> = vec![];
    for spec in &arguments.outputs {
        let port = spec.target.open()?;
        let port = match capture_of(arguments, &spec.endpoint) {
            Some(path) => Box::new(Capture::create(port, path)?),
            None => port,
        };
        outputs.push((&spec.endpoint, port));
    }
    let mut commands = std::io::stdin().lock().lines();
    loop {
        let mut ports = Ports::new();
        for (endpoint, port) in &mut inputs {
            ports = ports.with_input(endpoint, port);
        }
        for (endpoint, port) in &mut outputs {
            ports = ports.with_output(endpoint, port);
        }
        match device.run(&mut ports)?.end {
            RunEnd::Breakpoint(instance) => {
                rest_at(device, program, instance, &mut commands)?;
                device.resume(instance);
            }
            end => return Ok(end),
        }
    }
}

fn capture_of<'a>(arguments: &'a Arguments, endpoint: &str) -> Option<&'a PathBuf> {
    arguments.capture.iter().find_map(|spec| match &spec.target {
        Target::Capture(path) if spec.endpoint == endpoint => Some(path),
        _ => None,
    })
}

/// A capture of an end that has no port would silently stay empty.
fn check_captures(arguments: &Arguments) -> anyhow::Result<()> {
    let inputs = arguments.inputs.iter().map(|spec| &spec.endpoint);
    let ends: Vec<&String> =
        inputs.chain(arguments.outputs.iter().map(|it| &it.endpoint)).collect();
    match arguments.capture.iter().find(|spec| !ends.contains(&&spec.endpoint)) {
        Some(spec) => {
            let end = &spec.endpoint;
            bail!("nothing passes {end}; join it with --in {end}=... or --out {end}=count")
        }
        None => Ok(()),
    }
}

/// Shows what is asked for on standard input until an empty line or its end.
fn rest_at(
    device: &mut InterpreterDevice<'_>,
    program: &Program,
    instance: InstanceId,
    commands: &mut impl Iterator<Item = std::io::Result<String>>,
) -> anyhow::Result<()> {
    for probe in device.take_probes() {
        println!("{}: {}", program.instance(probe.instance).name, probe.text.trim_end());
    }
    eprintln!("{} stopped; an empty line goes on", program.instance(instance).name);
    for line in commands {
        let line = line?;
        let Some(name) = line.trim().strip_prefix("print ") else {
            if line.trim().is_empty() {
                break;
            }
            eprintln!("expected `print INSTANCE.VARIABLE[INDEX]` or an empty line");
            continue;
        };
        match show(device, program, name) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("{error:#}"),
        }
    }
    Ok(())
}

fn show(device: &dyn Device, program: &Program, name: &str) -> anyhow::Result<String> {
    let name: VariableName = name.trim().parse()?;
    let (instance, _) = values::resolve(program, &name)?;
    let value = device.read_variable(instance, &name.variable, name.index)?;
    Ok(format!("{}.{}[{}] = {value}", name.instance, name.variable, name.index))
}
