// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench fabric`: what moving bytes between two processes of one machine costs, by
//! Freeport's rings and by the kernel.
//!
//! Each measurement forks processes of its own, two for a pair, which stay on their cores; all
//! subjects are measured in turn, with what limits them: a cache line that goes to and fro, a copy
//! of the bytes, and a ring that checks nothing.

mod aims;
mod channel;
mod connections;
mod content;
mod limits;
mod measure;
mod plot;
mod processes;
mod results;
mod shared;
mod subjects;
mod wait;

pub use results::Case;
pub use subjects::Placement;

use crate::machine::{self, Machine, allowed_cores};
use crate::{Output, folder};
use anyhow::{Context, Result};
use measure::Plan;
use results::{FabricResult, Series, Setting};
use std::path::{Path, PathBuf};
use std::time::Duration;
use subjects::Subject;
use wait::Wait;

/// Measures moving bytes between two processes, beside the kernel's sockets and pipes
///
/// Example: freeport bench fabric --case latency --size 64 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// What to measure; may be repeated; by default everything
    #[arg(long = "case", value_enum, value_name = "CASE")]
    pub cases: Vec<Case>,
    /// Bytes of a message; may be repeated [default: 8, 64, 1024, 16384, 65536 and 1048576]
    #[arg(
        long = "size",
        value_name = "BYTES",
        value_parser = clap::value_parser!(u32).range(content::NUMBER_BYTES as i64..=1 << 26)
    )]
    pub sizes: Vec<u32>,
    /// Pairs of processes at once, for throughput; may be repeated [default: 1, 2 and 4]
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub pairs: Vec<u16>,
    /// Where the processes of a pair are; may be repeated; by default both
    #[arg(long = "placement", value_enum, value_name = "PLACEMENT")]
    pub placements: Vec<Placement>,
    /// How often each subject is measured [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// How long each subject is measured in a round [default: 50]
    #[arg(
        long,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(1..=2_000)
    )]
    pub window_ms: Option<u64>,
    /// A few sizes, one pair and short rounds, for a first impression
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Also write fabric.csv, fabric-latency.svg and fabric-throughput.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

const SIZES: [u32; 6] = [8, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20];
const PAIRS: [u16; 3] = [1, 2, 4];
const ROUNDS: u32 = 7;
const WINDOW_MS: u64 = 50;
const QUICK_SIZES: [u32; 3] = [8, 64, 1 << 20];
const QUICK_ROUNDS: u32 = 2;
const QUICK_WINDOW_MS: u64 = 8;
/// Messages in the round of which every byte is compared: at least a few, and otherwise so many
/// bytes.
const FULL_CHECK: (u64, u64) = (4, 4 << 20);
/// The same, of the messages from which follows how many a round takes.
const TRIAL: (u64, u64) = (20, 4 << 20);
const TRIAL_MESSAGES_MAX: u64 = 500;
const TRIALS: usize = 4;

/// Processes that were running before, from which on the machine was not at rest.
const BUSY: f64 = 1.0;
/// The message that ends a silence.
const IDLE_SIZE: u32 = 8;
/// A silence is so many times as long as other measurements.
const IDLE_WINDOWS: u32 = 4;

/// Measures; tells how far it is.
///
/// # Errors
/// What kept a subject from working, or a byte that was lost or damaged.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Output> {
    let machine = Machine::describe();
    let load = machine::load();
    let cores = allowed_cores();
    let settings = settings(arguments);
    let mut results = vec![];
    for (at, setting) in settings.iter().enumerate() {
        let of = format!("{} of {} measurements", at + 1, settings.len());
        let Setting { case, placement, pairs, size } = setting;
        let what = format!("{}, {size} B, {pairs} pairs, {}", case.name(), placement.name());
        progress(&format!("{of}: {what}"));
        results.push(measure(*setting, arguments, &cores).with_context(|| what)?);
    }
    if let Some(out) = &arguments.out {
        write(out, &results, &machine)?;
    }
    let notes = notes(&results, &cores, load);
    output(&results, &notes, &machine, arguments.json)
}

/// What the command line asks for, in order.
fn settings(arguments: &Arguments) -> Vec<Setting> {
    let is_quick = arguments.quick;
    let cases = chosen(&arguments.cases, &Case::ALL);
    let sizes = chosen(&arguments.sizes, if is_quick { &QUICK_SIZES } else { &SIZES });
    let pairs = chosen(&arguments.pairs, if is_quick { &PAIRS[..1] } else { &PAIRS });
    let mut settings = vec![];
    for case in cases {
        for placement in chosen(&arguments.placements, &Placement::ALL) {
            let pairs = if *case == Case::Throughput { pairs } else { &[1] };
            let sizes = if *case == Case::Idle { &[IDLE_SIZE] } else { sizes };
            for pairs in pairs {
                settings.extend(sizes.iter().map(|size| Setting {
                    case: *case,
                    placement: *placement,
                    pairs: usize::from(*pairs),
                    size: *size as usize,
                }));
            }
        }
    }
    settings
}

fn chosen<'a, T>(given: &'a [T], usual: &'a [T]) -> &'a [T] {
    if given.is_empty() { usual } else { given }
}

/// All subjects in turn, round after round; before that, each with a comparison of every byte.
fn measure(setting: Setting, arguments: &Arguments, cores: &[usize]) -> Result<FabricResult> {
    let is_quick = arguments.quick;
    let rounds = arguments.rounds.unwrap_or(if is_quick { QUICK_ROUNDS } else { ROUNDS });
    let window_ms = if is_quick { QUICK_WINDOW_MS } else { WINDOW_MS };
    let window = Duration::from_millis(arguments.window_ms.unwrap_or(window_ms));
    let wait = setting.placement.wait(setting.pairs, cores);
    let subjects = match setting.case {
        Case::Latency => &Subject::OF_LATENCY[..],
        Case::Throughput => &Subject::OF_THROUGHPUT,
        Case::Idle => &Subject::OF_IDLE,
    };
    let round = Round { setting, wait, window };
    let mut series = vec![];
    for subject in subjects {
        let plan = round.prepare(*subject, setting.placement.cores(setting.pairs, cores)?)?;
        series.push((Series::new(*subject), plan));
    }
    for _ in 0..rounds {
        for (series, plan) in &mut series {
            let latest = round.measure(series, plan)?;
            // Where others keep a trial or a round from its core, it seems to be long enough.
            plan.messages = plan.messages.max(round.messages(latest));
        }
    }
    let series = series.into_iter().map(|(series, _)| series).collect();
    Ok(FabricResult { setting, series })
}

fn messages(size: usize, (least, bytes): (u64, u64)) -> u64 {
    least.max(bytes / size as u64)
}

/// How a round of one subject is measured.
struct Round {
    setting: Setting,
    wait: Wait,
    window: Duration,
}

impl Round {
    /// Compares every byte, and finds out how many messages take as long as a round should.
    fn prepare(&self, subject: Subject, cores: Vec<[usize; 2]>) -> Result<Plan> {
        let size = self.setting.size;
        let count = |of| messages(size, of).min(TRIAL_MESSAGES_MAX);
        let mut plan = Plan { size, messages: count(FULL_CHECK), is_full_check: true, cores };
        match self.setting.case {
            Case::Latency => drop(subject.round_trips(&plan, self.wait)?),
            Case::Throughput => _ = subject.stream(&plan, self.wait)?,
            Case::Idle => return Ok(plan),
        }
        plan.is_full_check = false;
        plan.messages = count(TRIAL);
        // What begins is slow, so a trial that is much shorter than a round says little.
        for _ in 0..TRIALS {
            let wanted = self.messages(self.measure(&mut Series::new(subject), &plan)?);
            let is_long = plan.messages > wanted / 4;
            plan.messages = wanted;
            if is_long {
                break;
            }
        }
        Ok(plan)
    }

    /// How many messages each pair sends in the time of a round, going by the figure of another.
    fn messages(&self, figure: f64) -> u64 {
        let window_us = self.window.as_secs_f64() * 1e6;
        let messages = match self.setting.case {
            Case::Throughput => window_us * figure / self.setting.pairs as f64,
            Case::Latency => window_us / figure.max(1e-3),
            Case::Idle => 0.0,
        };
        (messages as u64).max(TRIAL.0)
    }

    /// One round; gives its figure, see [`Series::rounds`].
    fn measure(&self, series: &mut Series, plan: &Plan) -> Result<f64> {
        let figure = match self.setting.case {
            Case::Latency => {
                let trips = series.subject.round_trips(plan, self.wait)?;
                series.trips.merge(&trips);
                trips.quantile(0.5) / 1e3
            }
            Case::Throughput => {
                let elapsed = series.subject.stream(plan, self.wait)?;
                let messages = plan.messages as f64 * plan.cores.len() as f64;
                messages / elapsed.as_secs_f64().max(1e-9) / 1e6
            }
            Case::Idle => {
                let silence = self.window * IDLE_WINDOWS;
                let idle = series.subject.idle(plan, self.wait, silence)?;
                series.waiting.rates.push(idle.waiting.as_secs_f64() / silence.as_secs_f64());
                series.trips.add(idle.trip);
                idle.trip.as_secs_f64() * 1e6
            }
        };
        series.rounds.rates.push(figure);
        Ok(figure)
    }
}

/// What people, or programs, get to see.
fn output(
    results: &[FabricResult],
    notes: &[String],
    machine: &Machine,
    as_json: bool,
) -> Result<Output> {
    let mut output = Output::default();
    if as_json {
        for line in results.iter().flat_map(FabricResult::lines) {
            output.text += &(serde_json::to_string(&line)? + "\n");
        }
        output.notes = notes.iter().map(|note| format!("{note}\n")).collect();
        return Ok(output);
    }
    for result in results {
        output.text += &(result.text() + "\n");
    }
    for note in notes {
        output.text += &format!("- {note}\n");
    }
    let place = format!("{}; commit {}; {}\n", machine.machine, machine.commit, machine.date);
    output.text += &place;
    Ok(output)
}

fn notes(results: &[FabricResult], cores: &[usize], load: Option<f64>) -> Vec<String> {
    let mut notes = aims::aims(results);
    if let Some(load) = load.filter(|load| *load > BUSY) {
        notes.push(format!(
            "others were running ({load:.1} processes on average before): do not quote this"
        ));
    }
    let is_crowded = |it: &FabricResult| {
        it.setting.placement.wait(it.setting.pairs, cores) == Wait::Yield
            && it.setting.placement == Placement::Across
    };
    if results.iter().any(is_crowded) {
        let cores = cores.len();
        notes.push(format!(
            "more processes than the {cores} cores share them: rings then yield while they wait"
        ));
    }
    if cfg!(debug_assertions) {
        notes.push("a build without optimization: do not quote this".into());
    }
    notes
}

fn write(out: &Path, results: &[FabricResult], machine: &Machine) -> Result<()> {
    folder::make(out)?;
    folder::save(out, "fabric.csv", results::csv(results, machine))?;
    let has = |case| results.iter().any(|it| it.setting.case == case);
    if has(Case::Latency) {
        folder::save(out, "fabric-latency.svg", plot::latencies(results, machine))?;
    }
    if has(Case::Throughput) {
        folder::save(out, "fabric-throughput.svg", plot::throughputs(results, machine))?;
    }
    Ok(())
}
