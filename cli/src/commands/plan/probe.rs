// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan probe`: micro-benchmarks of this machine, a profile from them, and estimates
//! beside measurements.

use super::results::time;
use super::shared_memory::KIND;
use crate::arguments::bytes;
use crate::progress::ProgressLine;
use crate::table::Table;
use anyhow::Context;
use clap::Args;
use freeport_bench::harness::machine::{disturbances, load};
use freeport_plan_model::local::{Machine, Operation, PATH};
use freeport_plan_probe::{
    Check, Compared, Host, Point, Sample, Settings, check, csv, fit, measure, points,
};
use serde_json::{Value, json};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Longest cell of the table, in characters.
const WIDEST: usize = 30;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan probe --out machine.toml\n  \
    freeport plan probe --out machine.toml --check --csv points.csv\n  \
    freeport plan estimate --profile machine.toml --path shm --operation read --size 4KiB\n\n\
    Reads, writes, messages with answers and atomic operations are measured between two\n\
    processes. With --check, the status is 1 if estimates of an operation deviate from measured\n\
    times by more than 15 % (median over its points). Other programs disturb a measurement: run\n\
    it on an idle machine.")]
pub struct Arguments {
    /// Write the profile to this file; without this option and others, to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure other points as well, and hold estimates against them
    #[arg(long)]
    check: bool,
    /// Write all measured points to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// About the time of the measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    seconds: f64,
    /// Largest range of addresses, for each thread [default: at most 512 MiB, and an eighth of the
    /// available memory together]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    range: Option<usize>,
    /// Print one JSON object per line: every point, with its estimate if it is checked
    #[arg(long)]
    json: bool,
}

/// Measures, and writes and prints the results.
///
/// # Errors
/// The measurement fails, or a file cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let load = load();
    let host = Host::ask()?;
    let chosen = points(&host, arguments.range.map(|range| range as u64))?;
    let fitted = chosen.fitted.len();
    let checked = if arguments.check { chosen.checked } else { vec![] };
    let all: Vec<Point> = chosen.fitted.into_iter().chain(checked).collect();
    let itself = env::current_exe().context("the path of this program is unknown")?;
    let command = || {
        let mut command = Command::new(&itself);
        command.args(["plan", "probe-partner"]);
        command
    };
    // A file that cannot be written is found before the measurement, and keeps its contents until
    // the end of it.
    let mut table = arguments.csv.as_deref().map(Output::open).transpose()?;
    let mut profile = arguments.out.as_deref().map(Output::open).transpose()?;
    let mut line = ProgressLine::default();
    let settings = Settings { seconds: arguments.seconds, command: &command };
    let samples = measure(&host, &all, &settings, |share, point| {
        line.tell(&format!("{:.0} %: {} of {} B", 100.0 * share, point.kind.name(), point.bytes));
    })?;
    drop(line);
    let (for_fit, for_check) = samples.split_at(fitted);
    let machine = fit(&host, for_fit);
    if let Some(table) = &mut table {
        table.write(&csv::csv(PATH, &samples))?;
    }
    let text = machine.text(&["Written by `freeport plan probe`.", "Run it again after changes."]);
    if let Some(profile) = &mut profile {
        profile.write(&text)?;
    }
    let check = check(&machine, for_check)?;
    if arguments.json {
        for_fit.iter().for_each(|sample| println!("{}", sample_json(sample)));
        let pairs = for_check.iter().zip(&check.points);
        pairs.for_each(|(sample, point)| println!("{}", compared_json(sample, point)));
    } else if arguments.check {
        print!("{}", report(&machine, &check));
    } else if arguments.out.is_none() && arguments.csv.is_none() {
        print!("{text}");
    } else {
        println!("{}: {fitted} points were measured", machine.name);
    }
    disturbances(load).iter().for_each(|note| eprintln!("note: {note}"));
    Ok(if check.is_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file for results.
struct Output<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Output<'a> {
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        Ok(Self { path, file: file.with_context(|| format!("writing {}", path.display()))? })
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.with_context(|| format!("writing {}", self.path.display()))
    }
}

fn report(machine: &Machine, check: &Check) -> String {
    let heads = [
        "operation",
        "mode",
        "bytes",
        "batch",
        "range",
        "threads",
        "measured",
        "estimated",
        "deviation",
    ];
    let mut table = Table::new(heads, WIDEST);
    for compared in &check.points {
        let Point { kind, mode, bytes, batch, range, threads } = compared.point;
        table.add([
            kind.name().to_owned(),
            mode.name().to_owned(),
            bytes.to_string(),
            batch.to_string(),
            range.to_string(),
            threads.to_string(),
            time(compared.measured),
            time(compared.estimated),
            format!("{:+.0} %", 100.0 * compared.deviation()),
        ]);
    }
    let right = [false, false, true, true, true, true, true, true, true];
    let median = |operation: Operation| {
        let median = check.median(operation)?;
        Some(format!("  {operation}: {:.0} % (median)\n", 100.0 * median))
    };
    let medians: String = Operation::ALL.into_iter().filter_map(median).collect();
    let (within, all) = (check.within(), check.points.len());
    format!(
        "{}: measured, and {KIND}\n{}{medians}  {within} of {all} points deviate by at most 15 %\n",
        machine.name,
        table.text("  ", right),
    )
}

fn sample_json(sample: &Sample) -> Value {
    let Point { kind, mode, bytes, batch, range, threads } = sample.point;
    json!({
        "transport": PATH,
        "operation": kind.name(),
        "mode": mode.name(),
        "bytes": bytes,
        "batch": batch,
        "range_bytes": range,
        "threads": threads,
        "kind": "measured",
        "median_ns": sample.median,
        "p99_ns": sample.p99,
        "group": sample.group,
        "millions_per_second": sample.rate(),
    })
}

fn compared_json(sample: &Sample, compared: &Compared) -> Value {
    let estimate = json!({
        "measured_ns": compared.measured,
        "estimated_ns": compared.estimated,
        "deviation": compared.deviation(),
        "is_within": compared.is_within(),
    });
    super::results::joined([sample_json(sample), estimate])
}
