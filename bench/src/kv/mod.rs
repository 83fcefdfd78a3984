// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench kv`: the key-value engine in the memory of one process.
//!
//! One thread, pinned to a core, works on a store that was filled before. The engine and its peers
//! take turns in each round, with the same keys in the same order. The limit beside them reads
//! random lines of as much memory, and does nothing else.

mod accesses;
mod aims;
mod case;
mod draws;
mod plot;
mod stores;
mod vectors;

use crate::between::rounds::chosen;
use crate::harness::machine::{self, Machine};
use crate::harness::metrics::{self, MetricResult};
use crate::harness::{Output, folder, report};
use anyhow::{Result, ensure};
use case::{CaseName, Setting};
use draws::Spread;
use std::path::PathBuf;
use std::time::Duration;

/// Measures the key-value engine in memory, beside the standard library's map
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
    /// Bytes per value; may be repeated [default: 2, 92 and 1024]
    #[arg(
        long = "value",
        value_name = "BYTES",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1 << 20)
    )]
    pub values: Vec<usize>,
    /// How operations choose keys; may be repeated [default: both]
    #[arg(long = "distribution", value_enum, value_name = "DISTRIBUTION")]
    pub distributions: Vec<Spread>,
    /// MiB of memory of the engine, half of which is filled with keys and values
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
    /// Also write kv.csv, kv-rates.svg and kv-accesses.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

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
    ensure!(
        machine::pin_to_one_core().is_some(),
        "cannot pin this process to a core; run it where sched_setaffinity is permitted"
    );
    let cases = chosen(&arguments.cases, &CaseName::ALL);
    let pace = pace(arguments);
    let mut results = vec![];
    let settings = settings(arguments);
    for (at, setting) in settings.iter().enumerate() {
        let of = format!("{} of {} settings", at + 1, settings.len());
        results.extend(case::measure(setting, cases, pace, &mut |step: &str| {
            progress(&format!("{of}, {setting}: {step}"));
        })?);
    }
    if cases.contains(&CaseName::EngineVector) {
        progress("vectors");
        results.extend(vectors::measure(pace, arguments.quick)?);
    }
    let accesses = if cases.contains(&CaseName::Accesses) {
        accesses::measure(arguments.quick, progress)?
    } else {
        accesses::Accesses::default()
    };
    if let Some(out) = &arguments.out {
        folder::make(out)?;
        let all: Vec<&MetricResult> = results.iter().collect();
        folder::save(out, "kv.csv", metrics::csv(&all, &machine))?;
        let rates = plot::rates(&results, &machine);
        let counts = plot::accesses(accesses.rows(), &machine);
        for (name, drawing) in [("kv-rates.svg", rates), ("kv-accesses.svg", counts)] {
            if let Some(drawing) = drawing {
                folder::save(out, name, drawing)?;
            }
        }
    }
    let mut notes = aims::aims(&results);
    notes.extend(machine::disturbances(load));
    let tables = results.iter().map(MetricResult::text).chain(accesses.text());
    let lines = results.iter().flat_map(MetricResult::lines).chain(accesses.lines());
    report::tables_or_lines(tables, lines, &notes, &machine, arguments.json)
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
