// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport run`: loads a program, joins its endpoints to files, generators or interfaces, and
//! runs it until every input has ended or, with a name, until it is stopped.

mod device;
mod finite;
mod ports;
mod serve;

use crate::arguments::{Assignment, SignalSpec, address};
use crate::endpoint::{InputSpec, OutputSpec};
use crate::library::LibraryArguments;
use crate::passes::PassArguments;
use crate::program::{self, WarningArguments};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use device::{Backend, How, Managed, Spread};
use freeport_ir::channel_log::log_channels;
use freeport_ir::{Direction, Endpoint, InstanceId, Item, Program};
use freeport_runtime::device::{Device, RunEnd};
use freeport_runtime::placement::Placement;
use freeport_runtime::server::JoinedPorts;
use freeport_runtime::steering::{Call, Manager};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of elements of a variable whose values are part of `--stats json`.
const MOST_VALUES: u64 = 1_024;

/// Format of counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum StatsFormat {
    /// Text tables
    Text,
    /// One JSON object
    Json,
    /// The Prometheus text exposition format
    Prometheus,
}

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport run capture.cnp --in from_tor=trace.pcap --out to_tor=out.pcap --signal cnt:0\n  \
    freeport run capture.cnp --in from_tor=gen:64x1000 --out to_tor=count --stats json\n  \
    freeport run capture.cnp --in from_tor=xdp:eth0 --out to_tor=xdp:eth1 --name capture\n  \
    freeport run capture.cnp --in from_tor=trace.pcap --out to_tor=count --place logger=1\n  \
    freeport run firewall.cnp --in from_tor=xdp:eth0 --out to_tor=xdp:eth1 --workers 2\n\n\
    An input is a pcap or pcapng file, or gen:SIZExCOUNT with a SIZE such as 64, 64-1500 or imix; \
    gen:SIZE has no end. Either form takes the suffix @RATE, the maximum number of frames per \
    second, and then the suffix ,flows=NUMBER, the number of flows. An output is a file, or \
    `count`. Inputs and outputs may be interfaces: xdp:NAME or xdp:NAME/QUEUE, by AF_XDP, or \
    tap:NAME, which is created if it does not exist. An endpoint without --out drops and counts \
    its frames.")]
pub struct Arguments {
    /// The program, .cnp or .ir
    file: PathBuf,
    /// The source of an endpoint; may be repeated
    #[arg(long = "in", value_name = "END=SOURCE")]
    inputs: Vec<InputSpec>,
    /// The target of an endpoint; may be repeated
    #[arg(long = "out", value_name = "END=TARGET")]
    outputs: Vec<OutputSpec>,
    /// Serve requests of `freeport call`, `stats`, `stop` and others under this name [default: the
    /// name of the file, if an input has no end]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Serve counters to Prometheus at http://ADDRESS:PORT/metrics; without an address, only to
    /// this machine
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address)]
    metrics: Option<SocketAddr>,
    /// The back end that runs the program
    #[arg(long, value_enum, default_value = "native")]
    on: Backend,
    /// Run instances, groups or arrays on workers other than 0, each of which is a thread; native
    /// code only
    #[arg(long, value_name = "INSTANCE=WORKER,INSTANCE=WORKER")]
    place: Option<Placement>,
    /// Run this number of copies of the whole program, each on a worker, and steer both directions
    /// of a flow to the same copy; native code only
    #[arg(long, value_name = "NUMBER", conflicts_with = "place")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: Option<u8>,
    /// Pin workers 1, 2 and so on to these processor cores, with --place or --workers
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Set a variable before the run; may be repeated
    #[arg(long, value_name = "INSTANCE.VARIABLE[INDEX]=VALUE")]
    set: Vec<Assignment>,
    /// Set variables and call methods before the run, read from a file: {"instance": {"variable":
    /// value, "method()": [[argument, argument]]}}
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
    /// Print counters after the run; as JSON, with the values of variables
    #[arg(long, value_enum, value_name = "FORMAT")]
    stats: Option<StatsFormat>,
    /// Print on standard error how long the run took, excluding the time to load the program
    #[arg(long)]
    time: bool,
    /// Record the frames of an endpoint; may be repeated
    #[arg(long, value_name = "END=FILE.pcapng")]
    capture: Vec<OutputSpec>,
    /// Maximum number of frames taken from an input at a time [default: 1 if a file is written, so
    /// that each frame in it has the time of the one that caused it; else 256]
    #[arg(long, value_name = "FRAMES")]
    batch: Option<usize>,
    /// Log the items of a channel, named as in the statistics; `all` logs every channel; may be
    /// repeated
    #[arg(long, value_name = "CHANNEL")]
    log: Vec<String>,
    /// Stop at the breakpoints of the program. With a name, `freeport resume` resumes; otherwise
    /// `print INSTANCE.VARIABLE[INDEX]` on standard input prints a variable, and an empty line
    /// resumes
    #[arg(long)]
    breakpoints: bool,
    /// Seed of the program's random numbers and, in the interpreter, of the order of firings
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    #[command(flatten)]
    passes: PassArguments,
    #[command(flatten)]
    warnings: WarningArguments,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Runs the program and prints what the options request.
///
/// # Errors
/// An invalid program, file, name or value, or a run that fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut loaded =
        program::load_with(&arguments.file, &arguments.library.folders(), arguments.warnings)?;
    log_channels(&mut loaded.program, &arguments.log)?;
    let how = How {
        on: arguments.on,
        options: arguments.passes.options()?,
        seed: arguments.seed,
        has_breakpoints: arguments.breakpoints,
    };
    let placed = arguments.place.as_ref().map(Spread::Placed);
    let spread = placed.or(arguments.workers.map(|count| Spread::Copies(count.into())));
    let device: Box<dyn Device> = match spread {
        Some(spread) => device::load_spread(loaded.program, &spread, &arguments.cores, &how)?,
        None => device::load(loaded.program, &how)?,
    };
    let mut manager = Manager::new(device, loaded.layouts);
    if let Some(path) = &arguments.init {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        let results = manager.set_initial(&text).with_context(|| format!("{}", path.display()))?;
        tell_results(&results);
        check_refused(&results, path, |path, result| manager.is_refusal(path, result))?;
    }
    for assignment in &arguments.set {
        manager.write(&assignment.path, &assignment.value)?;
    }
    for call in &arguments.call {
        print_call(&mut manager, call)?;
    }
    // A name that does not exist is reported before the run, not after it.
    for path in &arguments.get {
        manager.read(path)?;
    }
    let mut ports = ports::open(arguments)?;
    tell_unfed(manager.device().program(), arguments);
    let (mut manager, ports, end) = match serve::name_of(arguments, manager.device().program()) {
        Some(name) => serve::run(manager, ports, arguments, &name, how)?,
        None => {
            let end = finite::run(&mut manager, &mut ports, arguments)?;
            (manager, ports, end)
        }
    };
    print_reported(&mut manager);
    ports.remarks().for_each(|remark| eprintln!("{remark}"));
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
    print_stats(&manager, &ports, arguments.stats)?;
    match end {
        RunEnd::Stalled(report) => bail!("the program stalls: {report}"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Calls a method and prints its result.
fn print_call(manager: &mut Managed, call: &Call) -> anyhow::Result<()> {
    println!("{} = {}", call.path, manager.call(call)?);
    Ok(())
}

/// Prints the number of calls of each method from a file, by result: an insertion into a full table
/// returns another result than the others.
fn tell_results(results: &[(String, Value)]) {
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for (path, result) in results {
        *counts.entry((path, result.to_string())).or_default() += 1;
    }
    for ((path, result), count) in counts {
        eprintln!("{path}: {count} calls returned {result}");
    }
}

/// Fails if a method of an initial file returned that it did not do what it should.
fn check_refused(
    results: &[(String, Value)],
    file: &Path,
    is_refusal: impl Fn(&str, &Value) -> bool,
) -> anyhow::Result<()> {
    let calls = |path: &str| results.iter().filter(|(it, _)| it == path).count();
    let refused = results.iter().filter(|(path, result)| is_refusal(path, result));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    refused.for_each(|(path, _)| *counts.entry(path).or_default() += 1);
    let reported = counts
        .iter()
        .map(|(path, count)| format!("{path} refused {count} of {} calls", calls(path)));
    let reported: Vec<String> = reported.collect();
    if reported.is_empty() {
        return Ok(());
    }
    bail!(
        "{}: {}; a table may be full, or a value out of range: see the page of the element",
        file.display(),
        reported.join(", ")
    )
}

/// Warns if nothing feeds a program that only waits for packets.
fn tell_unfed(program: &Program, arguments: &Arguments) {
    let is_input =
        |it: &&Endpoint| it.direction == Direction::Into && !matches!(it.item, Item::Bits(_));
    let inputs: Vec<&str> =
        program.graph.endpoints.iter().filter(is_input).map(|it| it.name.as_str()).collect();
    let Arguments { call, then, signal, get, .. } = arguments;
    // A run that only inspects or calls the program needs no packets.
    let is_looked_at = !(call.is_empty() && then.is_empty() && signal.is_empty() && get.is_empty());
    let is_fed = !arguments.inputs.is_empty() || program.has_sources();
    if !inputs.is_empty() && !is_fed && !is_looked_at {
        eprintln!(
            "nothing feeds {}: name a source, such as --in {}=trace.pcap or --in {}=gen:64x1000",
            inputs.join(", "),
            inputs[0],
            inputs[0]
        );
    }
}

fn print_reported(manager: &mut Managed) {
    let reported = manager.device_mut().take_reported();
    for (instance, text) in reported.lines {
        println!("{}: {}", name_of(manager, instance), text.trim_end());
    }
    if reported.lost > 0 {
        eprintln!("{} lines of printf, logs and breakpoints were lost", reported.lost);
    }
}

fn name_of(manager: &Managed, instance: InstanceId) -> &str {
    &manager.device().program().instance(instance).name
}

fn print_stats(
    manager: &Managed,
    ports: &JoinedPorts,
    format: Option<StatsFormat>,
) -> anyhow::Result<()> {
    let statistics = manager.statistics().with_lost(ports.lost());
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
