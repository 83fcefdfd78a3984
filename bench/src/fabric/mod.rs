// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench fabric`: the cost of moving bytes between two processes of one machine, by
//! Freeport's rings and by the kernel.
//!
//! Each measurement forks its own processes, two for a pair, which are pinned to their cores. All
//! subjects are measured in turn, together with their limits: a cache line that is passed back and
//! forth, a copy of the bytes, and a ring without checks.

mod aims;
mod connections;
mod shared_queue;
mod subjects;

use crate::between::content;
use crate::between::placement::Placement;
use crate::between::plot;
use crate::between::results::{self, PairCase, PairResult, Setting};
use crate::between::rounds::{self, Carrier, Rounds, chosen};
use crate::harness::machine::{self, Machine, allowed_cores};
use crate::harness::{Output, folder, report};

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;
pub(crate) use subjects::Subject;

/// Measures moving bytes between two processes, beside the kernel's sockets and pipes
///
/// Example: freeport bench fabric --case latency --size 64 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Measurement to run; may be repeated [default: everything]
    #[arg(long = "case", value_enum, value_name = "CASE")]
    pub cases: Vec<CaseName>,
    /// Message size in bytes; may be repeated [default: 8, 64, 1024, 16384, 65536 and 1048576]
    #[arg(
        long = "size",
        value_name = "BYTES",
        value_parser = clap::value_parser!(u32).range(content::NUMBER_BYTES as i64..=1 << 26)
    )]
    pub sizes: Vec<u32>,
    /// Number of concurrent pairs of processes, for throughput; may be repeated [default: 1, 2 and
    /// 4]
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub pairs: Vec<u16>,
    /// Where the processes of a pair run; may be repeated [default: both]
    #[arg(long = "placement", value_enum, value_name = "PLACEMENT")]
    pub placements: Vec<Placement>,
    /// Number of rounds; each subject runs once per round [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Milliseconds per subject and round [default: 50]
    #[arg(
        long,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(1..=2_000)
    )]
    pub window_ms: Option<u64>,
    /// A few sizes, one pair and short rounds, for a quick impression
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Also write fabric.csv, fabric-latency.svg and fabric-throughput.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// A kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum CaseName {
    /// Round trips of messages
    Latency,
    /// Messages one way
    Throughput,
    /// A silence, and the first message after it
    Idle,
    /// Up to a million connections that share one queue
    SharedQueue,
}

impl CaseName {
    const ALL: [Self; 4] = [Self::Latency, Self::Throughput, Self::Idle, Self::SharedQueue];

    /// Returns the case of the same name that other channels have as well.
    fn common(self) -> Option<PairCase> {
        match self {
            Self::Latency => Some(PairCase::Latency),
            Self::Throughput => Some(PairCase::Throughput),
            Self::Idle => Some(PairCase::Idle),
            Self::SharedQueue => None,
        }
    }
}

const SIZES: [u32; 6] = [8, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20];
const PAIRS: [u16; 3] = [1, 2, 4];
const ROUNDS: u32 = 7;
const WINDOW_MS: u64 = 50;
const QUICK_SIZES: [u32; 3] = [8, 64, 1 << 20];
const QUICK_ROUNDS: u32 = 2;
const QUICK_WINDOW_MS: u64 = 8;

/// Runs the measurement and reports each step to `progress`.
///
/// # Errors
/// A subject fails, or a byte was lost or damaged.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Output> {
    let machine = Machine::describe();
    let load = machine::load();
    let cores = allowed_cores();
    let is_quick = arguments.quick;
    let rounds = arguments.rounds.unwrap_or(if is_quick { QUICK_ROUNDS } else { ROUNDS });
    let window_ms = if is_quick { QUICK_WINDOW_MS } else { WINDOW_MS };
    let window = Duration::from_millis(arguments.window_ms.unwrap_or(window_ms));
    let cases = chosen(&arguments.cases, &CaseName::ALL);
    let queues = if cases.contains(&CaseName::SharedQueue) {
        let placements = chosen(&arguments.placements, &Placement::ALL);
        shared_queue::measure(placements, rounds, is_quick, &cores, progress)?
    } else {
        vec![]
    };
    let rounds = Rounds { rounds, window, cores: &cores };
    let settings = settings(arguments, cases);
    let mut results = vec![];
    for (at, setting) in settings.iter().enumerate() {
        let of = format!("{} of {} measurements", at + 1, settings.len());
        let Setting { case, placement, pairs, size } = setting;
        let what = format!("{}, {size} B, {pairs} pairs, {}", case.name(), placement.name());
        progress(&format!("{of}: {what}"));
        results.push(
            rounds.measure("fabric", *setting, &subjects(setting.case)).with_context(|| what)?,
        );
    }
    if let Some(out) = &arguments.out {
        write(out, &results, &machine)?;
    }
    let mut notes = aims::aims(&results);
    notes.extend(results::crowd(&results, &cores));
    notes.extend(shared_queue::aims(&queues));
    notes.extend(machine::disturbances(load));
    let of_queues = (!queues.is_empty()).then(|| shared_queue::text(&queues));
    let tables = results.iter().map(PairResult::text).chain(of_queues);
    let of_queues = queues.iter().flat_map(shared_queue::QueueResult::lines);
    let lines = results.iter().flat_map(PairResult::lines).chain(of_queues);
    report::tables_or_lines(tables, lines, &notes, &machine, arguments.json)
}

/// Returns the settings that the command line selects, in order.
fn settings(arguments: &Arguments, cases: &[CaseName]) -> Vec<Setting> {
    let is_quick = arguments.quick;
    let sizes = chosen(&arguments.sizes, if is_quick { &QUICK_SIZES } else { &SIZES });
    let pairs = chosen(&arguments.pairs, if is_quick { &PAIRS[..1] } else { &PAIRS });
    let cases: Vec<PairCase> = cases.iter().filter_map(|case| case.common()).collect();
    rounds::settings(&cases, chosen(&arguments.placements, &Placement::ALL), pairs, sizes)
}

fn subjects(case: PairCase) -> Vec<&'static dyn Carrier> {
    let of = |subjects: &'static [Subject]| subjects.iter().map(|it| it as &dyn Carrier).collect();
    match case {
        PairCase::Latency => of(&Subject::OF_LATENCY),
        PairCase::Throughput => of(&Subject::OF_THROUGHPUT),
        PairCase::Idle => of(&Subject::OF_IDLE),
        PairCase::Connect | PairCase::Reconnect => vec![],
    }
}

fn write(out: &Path, results: &[PairResult], machine: &Machine) -> Result<()> {
    folder::make(out)?;
    folder::save(out, "fabric.csv", results::csv(results, machine))?;
    let has = |case| results.iter().any(|it| it.setting.case == case);
    if has(PairCase::Latency) {
        folder::save(out, "fabric-latency.svg", plot::latencies(results, machine))?;
    }
    if has(PairCase::Throughput) {
        folder::save(out, "fabric-throughput.svg", plot::throughputs(results, machine))?;
    }
    Ok(())
}
