// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan probe`: micro-benchmarks of this machine, a profile from them, and estimates
//! beside measurements.

use super::results::time;
use super::shared_memory::KIND;
use crate::arguments::bytes;
use crate::progress::ProgressLine;
use crate::rewriting;
use crate::table::Table;
use anyhow::{Context, bail};
use clap::Args;
use freeport_bench::harness::machine::{disturbances, load};
use freeport_plan_model::local::{Machine, PATH};
use freeport_plan_probe::{
    Check, Compared, Group, Host, Point, Sample, Settings, check, csv, fit, measure, points,
};
use serde_json::{Value, json};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Longest cell of the table, in characters.
const WIDEST: usize = 30;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan probe --out machine.toml\n  \
    freeport plan probe --out machine.toml --check --csv points.csv\n  \
    freeport plan estimate --profile machine.toml --path shm --operation read --size 4KiB\n\n\
    Reads, writes, messages with answers and atomic operations are measured between two\n\
    processes.\n\n\
    Standard output has the points with --json; without it, the comparison with --check; without\n\
    both, the profile if neither --out nor --csv is given, and otherwise a line with the number\n\
    of points. Files are written at the end, and only by a complete measurement. Progress and\n\
    notes go to standard error.\n\n\
    With --check, the status is 1 if the median deviation of estimates from measured times is\n\
    more than 15 % for the points of an operation and mode by one thread, or by several.\n\
    Other programs disturb a measurement: run it on an idle machine.")]
pub struct Arguments {
    /// Write the profile to this file, which is replaced
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure other points as well, and print estimates beside them
    #[arg(long)]
    check: bool,
    /// Write all measured points to this file, which is replaced
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// About the time of the measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    seconds: f64,
    /// Largest range of addresses, for each thread; more than the available memory is refused
    /// [default: at most 512 MiB, and an eighth of the available memory together]
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
    check_files(arguments)?;
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
    let mut line = ProgressLine::default();
    let settings = Settings { seconds: arguments.seconds, command: &command };
    let samples = measure(&host, &all, &settings, |share, point| {
        line.tell(&format!("{:.0} %: {} of {} B", 100.0 * share, point.kind.name(), point.bytes));
    })?;
    drop(line);
    let (for_fit, for_check) = samples.split_at(fitted);
    let machine = fit(&host, for_fit);
    write(arguments.csv.as_deref(), &csv::csv(PATH, &samples))?;
    let text = machine.text(&["Written by `freeport plan probe`.", "Run it again after changes."]);
    write(arguments.out.as_deref(), &text)?;
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

/// Checks that the files of results can be written, before the time of a measurement is lost.
fn check_files(arguments: &Arguments) -> anyhow::Result<()> {
    let files: Vec<&Path> =
        [&arguments.out, &arguments.csv].into_iter().filter_map(Option::as_deref).collect();
    for file in &files {
        rewriting::check_replace(file).with_context(|| format!("writing {}", file.display()))?;
    }
    // Files that do not exist yet are equal if their folders are.
    let place = |file: &Path| {
        let folder = file.parent().map(|folder| Path::new(".").join(folder).canonicalize());
        let folder = folder.and_then(Result::ok).unwrap_or_default();
        file.canonicalize().unwrap_or(folder.join(file.file_name().unwrap_or_default()))
    };
    if let [out, csv] = files[..]
        && place(out) == place(csv)
    {
        bail!("--out and --csv are the same file, {}; choose two", out.display());
    }
    Ok(())
}

fn write(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    rewriting::replace(path, text).with_context(|| format!("writing {}", path.display()))
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
    let groups: String = check.groups().iter().map(group_text).collect();
    let (within, all) = (check.within(), check.points.len());
    format!(
        "{}: measured, and {KIND}\n{}{groups}  {within} of {all} points ({:.0} %) \
         deviate by at most 15 %\n",
        machine.name,
        table.text("  ", right),
        percent(within, all),
    )
}

fn group_text(group: &Group) -> String {
    let Group { operation, mode, has_threads, points, within, median } = *group;
    let threads = if has_threads { ", several threads" } else { "" };
    format!(
        "  {operation} ({}{threads}): median deviation {:.0} %, {within} of {points} points \
         ({:.0} %) within 15 %\n",
        mode.name(),
        100.0 * median,
        percent(within, points),
    )
}

fn percent(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
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
        "quiet_median_ns": sample.quiet_median,
        "group_p99_ns": sample.group_p99,
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
