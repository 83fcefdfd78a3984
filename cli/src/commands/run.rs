// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport run`: loads a program, joins its outer ends to files or generators, and runs it until
//! every input has ended.

use crate::endpoint::{InputSpec, OutputSpec, Target};
use crate::program;
use crate::progress::Progress;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use freeport_ir::interp::{Options, Schedule};
use freeport_ir::{InstanceId, Program};
use freeport_nic::device::{Ports, RunEnd};
use freeport_nic::interpreter::InterpreterDevice;
use freeport_nic::manager::{Layouts, Manager};
use freeport_nic::port::{BATCH, Capture, Receive, Transmit};
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Backend {
    /// The reference interpreter: slow, exact
    Interpreter,
}

/// How counters are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum StatsFormat {
    /// Tables
    Text,
    /// One JSON object
    Json,
    /// The Prometheus text exposition
    Prometheus,
}

/// `PATH=VALUE`
#[derive(Clone, Debug)]
struct Assignment {
    path: String,
    value: String,
}

/// `INSTANCE:WORD,WORD`
#[derive(Clone, Debug)]
struct SignalSpec {
    instance: String,
    words: Vec<u64>,
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
    #[arg(long, value_name = "INSTANCE.VARIABLE[INDEX]=VALUE")]
    set: Vec<Assignment>,
    /// Give variables values from a file, {"instance": {"variable": value}}
    #[arg(long, value_name = "FILE.json")]
    init: Option<PathBuf>,
    /// Send a signal after the run and print its answer; may be repeated
    #[arg(long, value_name = "INSTANCE:WORD,WORD")]
    signal: Vec<SignalSpec>,
    /// Print counters after the run
    #[arg(long, value_enum, value_name = "FORMAT")]
    stats: Option<StatsFormat>,
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
    let mut manager = Manager::new(device, Layouts::default());
    if let Some(path) = &arguments.init {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        manager.set_initial(&text).with_context(|| format!("{}", path.display()))?;
    }
    for assignment in &arguments.set {
        manager.write(&assignment.path, &assignment.value)?;
    }
    let end = run_to_the_end(&mut manager, &program, arguments)?;
    print_probes(&mut manager, &program);
    for spec in &arguments.signal {
        let answer = manager.signal(&spec.instance, 0, &spec.words)?;
        let words = answer.params.map(|word| word.to_string());
        println!("signal {}: {}", spec.instance, words.join(" "));
    }
    match arguments.stats {
        Some(StatsFormat::Text) => print!("{}", manager.statistics().text()),
        Some(StatsFormat::Json) => println!("{}", manager.statistics().json()),
        Some(StatsFormat::Prometheus) => print!("{}", manager.statistics().prometheus()),
        None => {}
    }
    match end {
        RunEnd::Stalled(report) => bail!("the program stalls: {report}"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn print_probes(manager: &mut Manager<InterpreterDevice<'_>>, program: &Program) {
    for probe in manager.device_mut().take_probes() {
        println!("{}: {}", program.instance(probe.instance).name, probe.text.trim_end());
    }
}

/// Opens the ports, runs, and closes them.
fn run_to_the_end(
    manager: &mut Manager<InterpreterDevice<'_>>,
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
        match manager.run(&mut ports)?.end {
            RunEnd::Breakpoint(instance) => {
                rest_at(manager, program, instance, &mut commands)?;
                manager.device_mut().resume(instance);
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
    manager: &mut Manager<InterpreterDevice<'_>>,
    program: &Program,
    instance: InstanceId,
    commands: &mut impl Iterator<Item = std::io::Result<String>>,
) -> anyhow::Result<()> {
    print_probes(manager, program);
    eprintln!("{} stopped; an empty line goes on", program.instance(instance).name);
    for line in commands {
        let line = line?;
        let Some(path) = line.trim().strip_prefix("print ") else {
            if line.trim().is_empty() {
                break;
            }
            eprintln!("expected `print INSTANCE.VARIABLE[INDEX]` or an empty line");
            continue;
        };
        match manager.read(path.trim()) {
            Ok(value) => println!("{} = {value}", path.trim()),
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}

impl FromStr for Assignment {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (path, value) = text
            .split_once('=')
            .context("expected INSTANCE.VARIABLE=VALUE, such as cnt.count=5")?;
        Ok(Self { path: path.into(), value: value.into() })
    }
}

impl FromStr for SignalSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (instance, words) =
            text.split_once(':').context("expected INSTANCE:WORD,WORD, such as cnt:0,7")?;
        let words = words.split(',').filter(|word| !word.is_empty()).map(|word| {
            let value = match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => word.parse(),
            };
            value.with_context(|| format!("`{word}` is no word of 64 bits"))
        });
        Ok(Self { instance: instance.into(), words: words.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_an_instance_and_words() {
        let words = |text: &str| text.parse::<SignalSpec>().map(|spec| spec.words);
        assert_eq!(words("group.cnt:7,0x10").unwrap(), [7, 16]);
        assert!(words("cnt:").unwrap().is_empty());
        for text in ["cnt", "cnt:x", "cnt:-1", "cnt:99999999999999999999"] {
            assert!(words(text).is_err(), "{text}");
        }
    }
}
