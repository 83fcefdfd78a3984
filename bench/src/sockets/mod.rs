// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench sockets`: what unmodified programs gain from accelerated sockets.
//!
//! Each measurement runs plain and accelerated in turn: between two programs of the bench, beside
//! the kernel's other channels and the limit, and between well-known servers and their usual
//! clients. Programs, configuration and system are the same in both modes; only the library
//! differs.

mod aims;
pub(crate) mod applications;
mod busy;
mod carriers;
mod cells;
mod crowds;
mod deaths;
mod idle;
pub(crate) mod launcher;
pub mod peer;
pub(crate) mod programs;
mod table;

use crate::between;
use crate::between::content;
use crate::between::placement::Placement;
use crate::between::plot;
use crate::between::results::{self, PairCase, PairResult, Series};
use crate::between::rounds::{self, Carrier, Rounds, chosen};
use crate::fabric::Subject;
use crate::harness::machine::{self, Machine, allowed_cores};
use crate::harness::metrics::{self, MetricResult};
use crate::harness::{Output, folder, report};
use anyhow::{Context, Result};
use applications::{Cell, Measuring};
use busy::Busy;
use carriers::Tcp;
use deaths::Deaths;
use launcher::Launcher;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measures unmodified programs with and without accelerated sockets
///
/// Example: freeport bench sockets --case latency --case redis --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Measurement to run; may be repeated [default: everything]
    #[arg(long = "case", value_enum, value_name = "CASE")]
    pub cases: Vec<Case>,
    /// Message size in bytes, for latency and throughput; may be repeated [default: 8, 64, 1024,
    /// 8192, 65536 and 1048576]
    #[arg(
        long = "size",
        value_name = "BYTES",
        value_parser = clap::value_parser!(u32).range(content::NUMBER_BYTES as i64..=1 << 26)
    )]
    pub sizes: Vec<u32>,
    /// Number of concurrent pairs of programs, for throughput; may be repeated [default: 1, 2, 3
    /// and 4]
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=between::desk::PAIRS_MAX as i64)
    )]
    pub pairs: Vec<u16>,
    /// Where the programs of a pair run, for latency, throughput and connections; may be repeated
    /// [default: both]
    #[arg(long = "placement", value_enum, value_name = "PLACEMENT")]
    pub placements: Vec<Placement>,
    /// Number of rounds; each subject runs once per round [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Milliseconds per round for latency, throughput and connections [default: 50]
    #[arg(
        long,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(1..=2_000)
    )]
    pub window_ms: Option<u64>,
    /// Connections per pair of programs, for open connections [default: 10000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub connections: Option<u32>,
    /// Seconds per round for applications and open connections, and for which servers are idle
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Number of busy loops, for `busy`; may be repeated [default: 0, 2, 4 and 6]
    #[arg(
        long = "load",
        value_name = "LOOPS",
        value_parser = clap::value_parser!(u16).range(0..=1_000)
    )]
    pub loads: Vec<u16>,
    /// Command that accelerates instead of the library: it starts the command that follows it
    #[arg(long, value_name = "COMMAND")]
    pub with: Option<String>,
    /// A few sizes and cells and short rounds, for a quick impression
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Also write sockets.csv, sockets-applications.csv, sockets-latency.svg,
    /// sockets-throughput.svg and sockets-applications.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// A kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Case {
    /// Round trips of messages
    Latency,
    /// Messages one way
    Throughput,
    /// Connections that are made and closed
    Connect,
    /// Idle servers
    Idle,
    /// Thousands of open connections
    Connections,
    /// Time until a program notices that its peer was killed
    Deaths,
    /// redis, with redis-benchmark as the client
    Redis,
    /// nginx, with wrk as the client
    Nginx,
    /// memcached
    Memcached,
    /// A bulk transfer by iperf3
    Bulk,
    /// Latency, throughput, redis, nginx, and nginx with php-fpm, beside busy loops
    Busy,
}

impl Case {
    const ALL: [Self; 11] = [
        Self::Latency,
        Self::Throughput,
        Self::Connect,
        Self::Idle,
        Self::Connections,
        Self::Deaths,
        Self::Redis,
        Self::Nginx,
        Self::Memcached,
        Self::Bulk,
        Self::Busy,
    ];

    /// Returns the measurements between two programs of the bench.
    fn of_pairs(self) -> &'static [PairCase] {
        match self {
            Self::Latency => &[PairCase::Latency],
            Self::Throughput => &[PairCase::Throughput],
            Self::Connect => &[PairCase::Connect, PairCase::Reconnect],
            _ => &[],
        }
    }
}

const SIZES: [u32; 6] = [8, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20];
const PAIRS: [u16; 4] = [1, 2, 3, 4];
const ROUNDS: u32 = 5;
const WINDOW_MS: u64 = 50;
const QUICK_SIZES: [u32; 3] = [8, 64, 1 << 20];
const QUICK_ROUNDS: u32 = 1;
const QUICK_LOADS: [u16; 1] = [4];
const QUICK_WINDOW_MS: u64 = 10;

/// All results.
#[derive(Default)]
struct Results {
    pairs: Vec<PairResult>,
    applications: Vec<(Cell, MetricResult)>,
    idle: Option<MetricResult>,
    crowds: Vec<MetricResult>,
    deaths: Vec<Deaths>,
    busy: Vec<Busy>,
}

/// Runs the measurement and reports each step to `progress`.
///
/// # Errors
/// Something that is installed fails.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(&str)) -> Result<Output> {
    let machine = Machine::describe();
    let load = machine::load();
    let cores = allowed_cores();
    let temporary =
        tempfile::tempdir().context("no temporary folder can be created for servers")?;
    let launcher = Launcher::new(arguments.with.as_deref(), temporary.path())?;
    let usual = if arguments.quick { QUICK_ROUNDS } else { ROUNDS };
    let with = Measuring {
        launcher: &launcher,
        rounds: arguments.rounds.unwrap_or(usual),
        seconds: arguments.seconds,
        cores: &cores,
        folder: temporary.path(),
    };
    let (mut failures, mut doubts) = (vec![], vec![]);
    let results = Results {
        pairs: pairs(arguments, &with, progress, &mut doubts)?,
        applications: applications(arguments, &with, progress, &mut failures),
        idle: idle(arguments, &with, progress)?,
        crowds: crowds(arguments, &with, progress)?,
        deaths: deaths(arguments, &with, progress)?,
        busy: busy(arguments, &with, progress, &mut failures)?,
    };
    if let Some(out) = &arguments.out {
        results.write(out, &machine)?;
    }
    let mut notes: Vec<String> = launcher.missing().map(str::to_owned).into_iter().collect();
    if launcher.missing().is_none() {
        notes.extend(doubts);
    }
    notes.extend(results.aims());
    notes.extend(results::crowd(&results.pairs, &cores));
    notes.extend(machine::disturbances(load));
    let (tables, lines) = (results.tables().into_iter(), results.lines().into_iter());
    let output = report::tables_or_lines(tables, lines, &notes, &machine, arguments.json)?;
    Ok(Output { failures, ..output })
}

/// Measures pairs of programs of the bench.
fn pairs(
    arguments: &Arguments,
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
    doubts: &mut Vec<String>,
) -> Result<Vec<PairResult>> {
    let is_quick = arguments.quick;
    let window_ms = if is_quick { QUICK_WINDOW_MS } else { WINDOW_MS };
    let window = Duration::from_millis(arguments.window_ms.unwrap_or(window_ms));
    let rounds = Rounds { rounds: with.rounds, window, cores: with.cores };
    let sizes = chosen(&arguments.sizes, if is_quick { &QUICK_SIZES } else { &SIZES });
    let pairs = chosen(&arguments.pairs, if is_quick { &PAIRS[..1] } else { &PAIRS });
    let usual = if with.cores.len() > 1 { &Placement::ALL[..] } else { &[Placement::Same] };
    let placements = chosen(&arguments.placements, usual);
    let cases: Vec<PairCase> = chosen(&arguments.cases, &Case::ALL)
        .iter()
        .flat_map(|case| case.of_pairs())
        .copied()
        .collect();
    let tcp = with.launcher.modes().iter().map(|mode| Tcp { launcher: with.launcher, mode: *mode });
    let tcp: Vec<Tcp<'_>> = tcp.collect();
    let mut all = vec![];
    for setting in rounds::settings(&cases, placements, pairs, sizes) {
        let results::Setting { case, placement, pairs, size } = setting;
        let what = format!("{}, {size} B, {pairs} pairs, {}", case.name(), placement.name());
        progress(&what);
        let others: &[Subject] = match setting.case {
            PairCase::Latency => &[Subject::Unix, Subject::Pipe, Subject::CacheLine],
            PairCase::Throughput => &[Subject::Unix, Subject::Pipe],
            PairCase::Connect | PairCase::Reconnect | PairCase::Idle => &[],
        };
        let subjects: Vec<&dyn Carrier> = tcp
            .iter()
            .map(|it| it as &dyn Carrier)
            .chain(others.iter().map(|it| it as &dyn Carrier))
            .collect();
        let before = with.launcher.accelerated();
        let measured = rounds.measure("sockets", setting, &subjects);
        let mut result = measured.with_context(|| what.clone())?;
        // Connections to new listeners do not live long enough to be accelerated.
        let is_short = setting.case == PairCase::Connect;
        doubts.extend(
            with.launcher
                .doubt_since(before)
                .filter(|_| !is_short)
                .map(|doubt| format!("{what}: {doubt}")),
        );
        if with.launcher.missing().is_some() {
            result.series.insert(0, Series::new(carriers::OURS));
        }
        all.push(result);
    }
    Ok(all)
}

fn applications(
    arguments: &Arguments,
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
    failures: &mut Vec<String>,
) -> Vec<(Cell, MetricResult)> {
    let mut all = vec![];
    for case in chosen(&arguments.cases, &Case::ALL) {
        for cell in cells::of(*case, arguments.quick, with.cores.len()) {
            progress(&cell.title());
            // A cell that fails does not prevent the others from being measured.
            let result = cell.measure(with).unwrap_or_else(|error| {
                let title = cell.title();
                failures.push(format!("{title}: {error:#}"));
                MetricResult { note: Some("failed".into()), ..cell.nothing() }
            });
            all.push((cell, result));
        }
    }
    all
}

fn idle(
    arguments: &Arguments,
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<MetricResult>> {
    if !chosen(&arguments.cases, &Case::ALL).contains(&Case::Idle) {
        return Ok(None);
    }
    progress("idle servers");
    let silence = Duration::from_secs(arguments.seconds.into());
    idle::measure(with.launcher, with.rounds, silence, with.folder)
        .context("idle servers")
        .map(Some)
}

fn crowds(
    arguments: &Arguments,
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MetricResult>> {
    if !chosen(&arguments.cases, &Case::ALL).contains(&Case::Connections) {
        return Ok(vec![]);
    }
    let is_quick = arguments.quick;
    let usual = if is_quick { crowds::QUICK_CONNECTIONS } else { crowds::CONNECTIONS };
    let connections = arguments.connections.unwrap_or(usual) as usize;
    let time = Duration::from_secs(arguments.seconds.into());
    // Opening them takes long, and their cost varies little.
    let rounds = arguments.rounds.unwrap_or(1);
    let plan = crowds::Plan::new(connections, time, is_quick);
    plan.measure(with.launcher, rounds, with.folder, progress)
}

fn deaths(
    arguments: &Arguments,
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Deaths>> {
    if !chosen(&arguments.cases, &Case::ALL).contains(&Case::Deaths) {
        return Ok(vec![]);
    }
    deaths::measure(with.launcher, with.rounds, with.folder, progress)
}

fn busy(
    arguments: &Arguments,
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
    failures: &mut Vec<String>,
) -> Result<Vec<Busy>> {
    if !chosen(&arguments.cases, &Case::ALL).contains(&Case::Busy) {
        return Ok(vec![]);
    }
    let usual = if arguments.quick { &QUICK_LOADS[..] } else { &busy::LOADS };
    busy::measure(chosen(&arguments.loads, usual), with, progress, failures)
}

impl Results {
    fn aims(&self) -> Vec<String> {
        let mut aims = aims::of_pairs(&self.pairs);
        aims.extend(self.idle.as_ref().and_then(aims::of_idle));
        aims.extend(crowds::aims(&self.crowds));
        aims.extend(deaths::aim(&self.deaths));
        aims.extend(busy::aims(&self.busy));
        aims.extend(aims::of_applications(&self.applications));
        aims
    }

    fn tables(&self) -> Vec<String> {
        let mut tables: Vec<String> = self.pairs.iter().map(PairResult::text).collect();
        tables.extend(self.idle.iter().map(MetricResult::text));
        tables.extend(self.crowds.iter().map(crowds::text));
        if !self.deaths.is_empty() {
            tables.push(deaths::text(&self.deaths));
        }
        if !self.busy.is_empty() {
            tables.push(busy::text(&self.busy));
        }
        let (bytes, requests): (Vec<_>, Vec<_>) = self
            .applications
            .iter()
            .map(|(cell, result)| (cell.title(), result))
            .partition(|(_, result)| result.metrics.len() == applications::OF_BYTES.len());
        let unmodified = "unmodified programs, measured, medians of rounds\n";
        if !requests.is_empty() {
            tables.push(unmodified.to_owned() + &table::of_requests(requests.into_iter()));
        }
        if !bytes.is_empty() {
            tables.push(unmodified.to_owned() + &table::of_bytes(bytes.into_iter()));
        }
        tables
    }

    fn lines(&self) -> Vec<report::Line> {
        let mut lines: Vec<report::Line> = self.pairs.iter().flat_map(PairResult::lines).collect();
        let applications = self.applications.iter().map(|(_, result)| result);
        let deaths = self.deaths.iter().map(|it| &it.result);
        let busy = self.busy.iter().map(|it| &it.result);
        lines.extend(
            self.idle
                .iter()
                .chain(&self.crowds)
                .chain(deaths)
                .chain(busy)
                .chain(applications)
                .flat_map(MetricResult::lines),
        );
        lines
    }

    fn write(&self, out: &Path, machine: &Machine) -> Result<()> {
        folder::make(out)?;
        folder::save(out, "sockets.csv", results::csv(&self.pairs, machine))?;
        let deaths = self.deaths.iter().map(|it| &it.result);
        let busy = self.busy.iter().map(|it| &it.result);
        let applications = self.applications.iter().map(|(_, result)| result);
        let applications: Vec<&MetricResult> =
            applications.chain(&self.idle).chain(&self.crowds).chain(deaths).chain(busy).collect();
        folder::save(out, "sockets-applications.csv", metrics::csv(&applications, machine))?;
        let has = |case| self.pairs.iter().any(|it| it.setting.case == case);
        if has(PairCase::Latency) {
            folder::save(out, "sockets-latency.svg", plot::latencies(&self.pairs, machine))?;
        }
        if has(PairCase::Throughput) {
            folder::save(out, "sockets-throughput.svg", plot::throughputs(&self.pairs, machine))?;
        }
        if !self.applications.is_empty() {
            let drawing = table::drawing(&self.applications, machine);
            folder::save(out, "sockets-applications.svg", drawing)?;
        }
        Ok(())
    }
}
