// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport run`: loads a program, joins its outer ends to files or generators, and runs it until
//! every input has ended.

use crate::endpoint::{InputSpec, OutputSpec, Target};
use crate::library::LibraryArguments;
use crate::program;
use crate::progress::Progress;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use freeport_ir::interp::{self, Schedule};
use freeport_ir::{InstanceId, Program};
use freeport_nic::call::Call;
use freeport_nic::cpu::CpuDevice;
use freeport_nic::device::{Device, DeviceError, Ports, Run, RunEnd};
use freeport_nic::interpreter::InterpreterDevice;
use freeport_nic::manager::Manager;
use freeport_nic::port::{BATCH, Capture, Receive, Transmit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

/// Elements of the largest variable whose values stand in `--stats json`.
const MOST_VALUES: u64 = 1_024;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Backend {
    /// Native code, made with clang-19 and kept for the next time
    Native,
    /// The reference interpreter: slow, exact, and it stops at breakpoints
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
    freeport run capture.cnp --in from_tor=trace.pcap --out to_tor=out.pcap --signal cnt:0\n  \
    freeport run capture.cnp --in from_tor=gen:64x1000 --out to_tor=count --stats json\n\n\
    An input is a pcap or pcapng file, or gen:SIZExCOUNT with a SIZE such as 64, 64-1500 or imix. \
    An output is a file, or `count`. An outer end without --out drops, and counts what it drops.")]
pub struct Arguments {
    /// The program, .cnp or .ir
    file: PathBuf,
    /// What feeds an outer end; may be repeated
    #[arg(long = "in", value_name = "END=SOURCE")]
    inputs: Vec<InputSpec>,
    /// Where an outer end leads; may be repeated
    #[arg(long = "out", value_name = "END=TARGET")]
    outputs: Vec<OutputSpec>,
    /// What runs it
    #[arg(long, value_enum, default_value = "native")]
    on: Backend,
    /// Give a variable a value before the run; may be repeated
    #[arg(long, value_name = "INSTANCE.VARIABLE[INDEX]=VALUE")]
    set: Vec<Assignment>,
    /// Give variables values and call methods from a file, {"instance": {"variable": value,
    /// "method()": [[argument, argument]]}}
    #[arg(long, value_name = "FILE.json")]
    init: Option<PathBuf>,
    /// Call a method before the run and print its result; may be repeated. A struct is written as
    /// {member: value}
    #[arg(long, value_name = "INSTANCE.METHOD(VALUE,VALUE)")]
    call: Vec<Call>,
    /// Call a method after the run and print its result; may be repeated
    #[arg(long, value_name = "INSTANCE.METHOD(VALUE,VALUE)")]
    then: Vec<Call>,
    /// Send a signal after the run and print its answer; may be repeated
    #[arg(long, value_name = "INSTANCE:WORD,WORD")]
    signal: Vec<SignalSpec>,
    /// Print a variable, an element or a member of it after the run; may be repeated
    #[arg(long, value_name = "INSTANCE.VARIABLE[INDEX]")]
    get: Vec<String>,
    /// Print counters after the run; as JSON, also the values of variables
    #[arg(long, value_enum, value_name = "FORMAT")]
    stats: Option<StatsFormat>,
    /// Tell on standard error how long the run took, without making the program ready
    #[arg(long)]
    time: bool,
    /// Record what passes an outer end; may be repeated
    #[arg(long, value_name = "END=FILE.pcapng")]
    capture: Vec<OutputSpec>,
    /// Frames taken from an input at a time, at most [default: 1 where a file is written, so that
    /// each frame in it has the time of the one that caused it; else 256]
    #[arg(long, value_name = "FRAMES")]
    batch: Option<usize>,
    /// Stop where the program has a breakpoint (on the interpreter); then
    /// `print INSTANCE.VARIABLE[INDEX]` on standard input shows a variable, and an empty line goes
    /// on
    #[arg(long)]
    breakpoints: bool,
    /// Decides the program's random numbers, and on the interpreter the order of firings
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Runs it and prints what was asked for.
///
/// # Errors
/// A program, file, name or value that is not as it should be; a run that cannot go on.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let loaded = program::load(&arguments.file, &arguments.library.folders())?;
    let mut manager = Manager::new(device(&loaded.program, arguments)?, loaded.layouts);
    if let Some(path) = &arguments.init {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        let results = manager.set_initial(&text).with_context(|| format!("{}", path.display()))?;
        tell_results(&results);
    }
    for assignment in &arguments.set {
        manager.write(&assignment.path, &assignment.value)?;
    }
    for call in &arguments.call {
        print_call(&mut manager, call)?;
    }
    // A name that does not exist is told before the run, not after it.
    for path in &arguments.get {
        manager.read(path)?;
    }
    let end = run_to_the_end(&mut manager, arguments)?;
    print_told(&mut manager);
    for call in &arguments.then {
        print_call(&mut manager, call)?;
    }
    for spec in &arguments.signal {
        let answer = manager.signal(&spec.instance, 0, &spec.words)?;
        let words = answer.params.map(|word| word.to_string());
        println!("signal {}: {}", spec.instance, words.join(" "));
    }
    for path in &arguments.get {
        println!("{path} = {}", manager.read(path)?);
    }
    print_stats(&manager, arguments.stats)?;
    match end {
        RunEnd::Stalled(report) => bail!("the program stalls: {report}"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

type Managed<'p> = Manager<Box<dyn Device + 'p>>;

/// What the program is loaded into.
fn device<'p>(program: &'p Program, arguments: &Arguments) -> anyhow::Result<Box<dyn Device + 'p>> {
    let seed = arguments.seed.unwrap_or_default();
    match arguments.on {
        Backend::Native if arguments.breakpoints => {
            bail!("native code does not stop at breakpoints; add --on interpreter")
        }
        Backend::Native => {
            let options = freeport_native::Options::default();
            match CpuDevice::load_seeded(program, &options, seed) {
                Ok(device) => Ok(Box::new(device)),
                Err(error @ DeviceError::Native(freeport_native::Error::Unsupported { .. })) => {
                    bail!("{error}; add --on interpreter")
                }
                Err(error) => Err(error.into()),
            }
        }
        Backend::Interpreter => {
            let options = interp::Options {
                schedule: arguments
                    .seed
                    .map_or(Schedule::RoundRobin, |_| Schedule::Random { seed }),
                random_seed: seed,
                ..interp::Options::default()
            };
            let mut device = InterpreterDevice::load(program, &options)?;
            device.set_breakpoints_enabled(arguments.breakpoints);
            Ok(Box::new(device))
        }
    }
}

/// Calls a method and prints what it gives.
fn print_call(manager: &mut Managed<'_>, call: &Call) -> anyhow::Result<()> {
    println!("{} = {}", call.path, manager.call(call)?);
    Ok(())
}

/// Tells how often each method was called from a file, by result: an insertion that found no room
/// gives another result than the others.
fn tell_results(results: &[(String, Value)]) {
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for (path, result) in results {
        *counts.entry((path, result.to_string())).or_default() += 1;
    }
    for ((path, result), count) in counts {
        eprintln!("{path}: {count} calls gave {result}");
    }
}

fn print_told(manager: &mut Managed<'_>) {
    let told = manager.device_mut().take_told();
    for (instance, text) in told.lines {
        println!("{}: {}", name_of(manager, instance), text.trim_end());
    }
    if told.lost > 0 {
        eprintln!("{} lines of printf, log and breakpoint were lost", told.lost);
    }
}

fn name_of<'m>(manager: &'m Managed<'_>, instance: InstanceId) -> &'m str {
    &manager.device().program().instance(instance).name
}

fn print_stats(manager: &Managed<'_>, format: Option<StatsFormat>) -> anyhow::Result<()> {
    let statistics = manager.statistics();
    match format {
        Some(StatsFormat::Text) => print!("{}", statistics.text()),
        Some(StatsFormat::Json) => {
            let mut json = statistics.json();
            json["variables"] = manager.values(MOST_VALUES)?;
            println!("{json}");
        }
        Some(StatsFormat::Prometheus) => print!("{}", statistics.prometheus()),
        None => {}
    }
    Ok(())
}

/// Opens the ports, runs, and closes them.
fn run_to_the_end(manager: &mut Managed<'_>, arguments: &Arguments) -> anyhow::Result<RunEnd> {
    check_captures(arguments)?;
    let mut inputs: Vec<(&str, Box<dyn Receive>)> = vec![];
    let batch = arguments.batch.unwrap_or_else(|| if writes_files(arguments) { 1 } else { BATCH });
    for spec in &arguments.inputs {
        let port = Progress::new(spec.source.open()?, batch.max(1));
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
    let started = Instant::now();
    let mut whole = Run::default();
    loop {
        let mut ports = Ports::new();
        for (endpoint, port) in &mut inputs {
            ports = ports.with_input(endpoint, port);
        }
        for (endpoint, port) in &mut outputs {
            ports = ports.with_output(endpoint, port);
        }
        let run = manager.run(&mut ports)?;
        whole.received += run.received;
        whole.sent += run.sent;
        match run.end {
            RunEnd::Breakpoint(instance) => {
                rest_at(manager, instance, &mut commands)?;
                manager.device_mut().resume(instance);
            }
            end => {
                if arguments.time {
                    print_time(&whole, started.elapsed().as_secs_f64());
                }
                return Ok(end);
            }
        }
    }
}

fn print_time(run: &Run, seconds: f64) {
    let rate = run.received as f64 / seconds.max(1e-9);
    let (received, sent) = (run.received, run.sent);
    eprintln!("{received} frames in, {sent} out in {seconds:.6} s: {rate:.0} a second");
}

fn writes_files(arguments: &Arguments) -> bool {
    let mut ends = arguments.outputs.iter().chain(&arguments.capture);
    ends.any(|spec| matches!(spec.target, Target::Capture(_)))
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
    manager: &mut Managed<'_>,
    instance: InstanceId,
    commands: &mut impl Iterator<Item = std::io::Result<String>>,
) -> anyhow::Result<()> {
    print_told(manager);
    eprintln!("{} stopped; an empty line goes on", name_of(manager, instance));
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
