// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench kv`: the key-value engine in the memory of one process, and servers.
//!
//! For the engine, one thread, pinned to a core, works on a store that was filled before. The
//! engine and its peers take turns in each round, with the same keys in the same order. The limit
//! beside them reads random lines of as much memory, and does nothing else. The module `servers`
//! describes how servers are measured.

mod accesses;
mod aims;
mod case;
mod draws;
pub mod live;
mod load;
mod plot;
mod servers;
mod stores;
mod vectors;

use crate::between::rounds::chosen;
use crate::harness::machine::{self, Machine};
use crate::harness::metrics::{self, MetricResult};
use crate::harness::{Output, folder, report};
use anyhow::{Result, ensure};
use case::{CaseName, Setting};
use draws::Spread;
use load::contents::Workload;
pub use servers::client::{Arguments as LoadArguments, run as run_load};
use std::path::PathBuf;
use std::time::Duration;

/// Measures the key-value engine in memory, and the key-value server beside redis and memcached
///
/// Example: freeport bench kv --case engine-get --value 2 --memory 1024 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Measurement to run; may be repeated [default: everything]
    #[arg(long = "case", value_enum, value_name = "CASE")]
    pub cases: Vec<CaseName>,
    /// Bytes per key
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 8,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(4..=255)
    )]
    pub key: usize,
    /// Bytes per value; may be repeated [default: 2, 92 and 1024, for servers 2 and 92]
    #[arg(
        long = "value",
        value_name = "BYTES",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1 << 20)
    )]
    pub values: Vec<usize>,
    /// How operations choose keys; may be repeated [default: both, for servers zipf]
    #[arg(long = "distribution", value_enum, value_name = "DISTRIBUTION")]
    pub distributions: Vec<Spread>,
    /// MiB of memory of the engine or the server; keys and values take half of it, in a server at
    /// most a million
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 1024,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(16..=65_536)
    )]
    pub memory: usize,
    /// Operations in a batch
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 128,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65_536)
    )]
    pub batch: usize,
    /// Outstanding requests of a connection to a server, or operations in a packet; may be repeated
    /// [default: 1, 16 and 64; in packets 16, 64 and 256]
    #[arg(
        long = "pipeline",
        value_name = "COUNT",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=PIPELINE_MAX)
    )]
    pub pipelines: Vec<usize>,
    /// Connections to a server [default: 50; for packets 4]
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000)
    )]
    pub connections: Option<usize>,
    /// Operations on a server, as in YCSB; may be repeated [default: a and c, in packets also b]
    #[arg(long = "workload", value_enum, value_name = "WORKLOAD")]
    pub workloads: Vec<Workload>,
    /// Command of a server to measure instead of `freeport kv serve`; `{port}`,
    /// `{memcached-port}`, `{batch-port}`, `{batch-udp-port}` and `{batch-fabric}` in it are
    /// replaced
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// Number of rounds; each subject runs once per round [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Milliseconds per subject and round [default: 200]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub window_ms: Option<u64>,
    /// One size, little memory and short rounds, for a quick impression
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Also write kv.csv, kv-rates.svg, kv-accesses.svg, kv-servers.svg and kv-batches.svg to this
    /// folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Longest pipeline.
const PIPELINE_MAX: u64 = 1024;
const VALUES: [usize; 3] = [2, 92, 1024];
const ROUNDS: u32 = 7;
const WINDOW_MS: u64 = 200;
const QUICK_VALUES: [usize; 1] = [2];
const QUICK_ROUNDS: u32 = 3;
const QUICK_WINDOW_MS: u64 = 20;
const QUICK_MEMORY_MIB: usize = 64;

/// How long and how often each subject works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    rounds: usize,
    window: Duration,
}

/// Runs the measurement and reports each step to `progress`.
///
/// # Errors
/// A subject fails, or a key that was stored is missing.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Output> {
    let machine = Machine::describe();
    let load = machine::load();
    let cases = chosen(&arguments.cases, &CaseName::ALL);
    let pace = pace(arguments);
    // First, because the engine's cases pin this process to a core.
    let cores = machine::allowed_cores();
    let servers = servers::measure(arguments, cases, pace, &cores, progress)?;
    let engine = of_engine(arguments, cases, pace, progress)?;
    let accesses = if cases.contains(&CaseName::Accesses) {
        accesses::measure(arguments.quick, progress)?
    } else {
        accesses::Accesses::default()
    };
    if let Some(out) = &arguments.out {
        folder::make(out)?;
        let all: Vec<&MetricResult> = engine.iter().chain(&servers.results).collect();
        folder::save(out, "kv.csv", metrics::csv(&all, &machine))?;
        let rates = plot::rates(&engine, &machine);
        let counts = plot::accesses(accesses.rows(), &machine);
        let of_servers = plot::servers(&servers.results, &machine);
        let of_batches = plot::batches(&servers.results, &machine);
        for (name, drawing) in [
            ("kv-rates.svg", rates),
            ("kv-accesses.svg", counts),
            ("kv-servers.svg", of_servers),
            ("kv-batches.svg", of_batches),
        ] {
            if let Some(drawing) = drawing {
                folder::save(out, name, drawing)?;
            }
        }
    }
    let mut notes = aims::of_engine(&engine);
    notes.extend(aims::of_fabric(&servers.results));
    notes.extend(servers.notes.iter().cloned());
    notes.extend(machine::disturbances(load));
    let tables = engine.iter().map(MetricResult::text).chain(accesses.text());
    let lines = engine.iter().flat_map(MetricResult::lines).chain(accesses.lines());
    let lines = lines.chain(servers.results.iter().flat_map(MetricResult::lines));
    let tables = tables.chain(servers.tables());
    let output = report::tables_or_lines(tables, lines, &notes, &machine, arguments.json)?;
    Ok(Output { failures: servers.failures, ..output })
}

/// Measures the chosen cases of the engine, on one core.
fn of_engine(
    arguments: &Arguments,
    cases: &[CaseName],
    pace: Pace,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MetricResult>> {
    let mut results = vec![];
    if !cases.iter().any(|case| case.is_in_process()) {
        return Ok(results);
    }
    ensure!(
        machine::pin_to_one_core().is_some(),
        "cannot pin this process to a core; run it where sched_setaffinity is permitted"
    );
    let settings = settings(arguments);
    for (at, setting) in settings.iter().enumerate() {
        let of = format!("{} of {} settings", at + 1, settings.len());
        results.extend(case::measure(setting, cases, pace, &mut |step: &str| {
            progress(&format!("{of}, {setting}: {step}"));
        })?);
    }
    if [CaseName::EngineVector, CaseName::EngineFunction].iter().any(|it| cases.contains(it)) {
        progress("vectors");
        results.extend(vectors::measure(cases, pace, arguments.quick)?);
    }
    Ok(results)
}

fn pace(arguments: &Arguments) -> Pace {
    let (rounds, window_ms) = match arguments.quick {
        true => (QUICK_ROUNDS, QUICK_WINDOW_MS),
        false => (ROUNDS, WINDOW_MS),
    };
    let window = Duration::from_millis(arguments.window_ms.unwrap_or(window_ms));
    Pace { rounds: arguments.rounds.unwrap_or(rounds) as usize, window }
}

fn settings(arguments: &Arguments) -> Vec<Setting> {
    let is_quick = arguments.quick;
    let values = chosen(&arguments.values, if is_quick { &QUICK_VALUES } else { &VALUES });
    let memory_mib =
        if is_quick { arguments.memory.min(QUICK_MEMORY_MIB) } else { arguments.memory };
    let of_value = |&value_bytes: &usize| {
        chosen(&arguments.distributions, &Spread::ALL).iter().map(move |&spread| Setting {
            key_bytes: arguments.key,
            value_bytes,
            spread,
            memory_bytes: memory_mib << 20,
            batch: arguments.batch,
        })
    };
    values.iter().flat_map(of_value).collect()
}
