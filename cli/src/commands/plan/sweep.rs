// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan sweep`: all paths, operations, sizes and batches.

use super::device::{DeviceArguments, SeedArgument};
use super::plot;
use super::results::estimate_json;
use crate::arguments::bytes;
use crate::progress::ProgressLine;
use anyhow::{Context, bail};
use clap::Args;
use freeport_plan_model::estimate::Estimate;
use freeport_plan_model::estimate::EstimateError::{Message, NoOperation};
use freeport_plan_model::sweep::sweep;
use freeport_plan_model::{Operation, Path, Request};
use std::fs;
use std::path::PathBuf;

/// Payloads in bytes.
const SIZES: [usize; 12] =
    [8, 16, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536, 1 << 20, 16 << 20];

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan sweep > paths.csv\n  \
    freeport plan sweep --path 1 --path 2 --operation read --svg reads.svg\n  \
    freeport plan sweep --path 3-s2h --operation read --size 64 --batch 1 --batch 32 --json")]
pub struct Arguments {
    /// A path; all without this option; may be repeated
    #[arg(long = "path")]
    paths: Vec<Path>,
    /// An operation; all without this option; may be repeated
    #[arg(long = "operation")]
    operations: Vec<Operation>,
    /// A payload; from 8 B to 16 MiB without this option; may be repeated
    #[arg(long = "size", value_name = "BYTES", value_parser = bytes)]
    sizes: Vec<usize>,
    /// Requests that are posted with one doorbell; 1, 4 and 32 without this option; may be repeated
    #[arg(long = "batch", value_name = "NUMBER")]
    batches: Vec<u32>,
    /// Range of addresses over which requests are spread at random; 10 GB without this option; may
    /// be repeated
    #[arg(long = "range", value_name = "BYTES", value_parser = bytes)]
    ranges: Vec<usize>,
    /// Draw latency and rate by size to this file, with the smallest batch
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    random: SeedArgument,
    /// Print one JSON object per line instead of CSV
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn requests(&self) -> Vec<Request> {
        fn or<T: Copy>(given: &[T], all: &[T]) -> Vec<T> {
            if given.is_empty() { all.to_vec() } else { given.to_vec() }
        }
        let batches = or(&self.batches, &[1, 4, 32]);
        let (operations, sizes) = (or(&self.operations, &Operation::ALL), or(&self.sizes, &SIZES));
        let ranges = self.ranges.iter().map(|range| *range as u64);
        let ranges: Vec<Option<u64>> =
            if self.ranges.is_empty() { vec![None] } else { ranges.map(Some).collect() };
        let paths = or(&self.paths, &Path::ALL);
        let of_path =
            paths.into_iter().flat_map(|path| operations.iter().map(move |it| (path, it)));
        let of_size = of_path.flat_map(|(path, operation)| {
            sizes.iter().map(move |size| Request::new(path, *operation, *size as u64))
        });
        let of_range = of_size.flat_map(|one| {
            ranges.iter().map(move |range| Request { range: range.unwrap_or(one.range), ..one })
        });
        let of_batch = of_range
            .flat_map(|one| batches.iter().map(move |batch| Request { batch: *batch, ..one }));
        of_batch.collect()
    }
}

/// Prints the estimates.
///
/// # Errors
/// The profile or a number is invalid, or the drawing cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = arguments.device.load()?;
    let requests = arguments.requests();
    let mut line = ProgressLine::default();
    let results = sweep(&profile, &requests, arguments.random.seed, |done| {
        line.tell(&format!("{done} of {} estimates", requests.len()));
    });
    drop(line);
    // Operations that a path does not have are left out, unless nothing remains.
    let mut estimates: Vec<Estimate> = vec![];
    let mut refused = None;
    for result in results {
        match result {
            Ok(estimate) => estimates.push(estimate),
            Err(error @ (NoOperation { .. } | Message { .. })) => refused = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    if let (true, Some(error)) = (estimates.is_empty(), refused) {
        return Err(error.into());
    }
    if let Some(file) = &arguments.svg {
        if estimates.iter().all(|it| it.request.bytes == 0) {
            bail!("a drawing has payloads on its axis: ask for a --size above 0");
        }
        let drawing = plot::svg(&profile.name, &estimates);
        fs::write(file, drawing).with_context(|| format!("writing {}", file.display()))?;
    }
    match arguments.json {
        true => estimates.iter().for_each(|it| println!("{}", estimate_json(&profile.name, it))),
        false => print!("{}", csv(&profile.name, &estimates)),
    }
    Ok(())
}

fn csv(device: &str, estimates: &[Estimate]) -> String {
    let head = "device,path,operation,bytes,batch,range_bytes,single_ns,millions_per_second,gbps,\
                median_ns,p99_ns,bottleneck,bound_millions_per_second,bound_resource\n";
    let line = |estimate: &Estimate| {
        let Request { path, operation, bytes, batch, range } = estimate.request;
        let flow = estimate.full.flows[0];
        format!(
            "{},{path},{operation},{bytes},{batch},{range},{:.0},{:.6},{:.3},{:.0},{:.0},{},{:.6},\
             {}\n",
            quoted(device),
            estimate.single.median,
            flow.rate,
            flow.goodput,
            flow.median,
            flow.p99,
            quoted(estimate.full.bottleneck()),
            estimate.limit.rate,
            quoted(estimate.limit.name),
        )
    };
    head.to_owned() + &estimates.iter().map(line).collect::<String>()
}

/// Quotes a field that has a comma or a quotation mark.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
