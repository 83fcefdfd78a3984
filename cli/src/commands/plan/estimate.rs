// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan estimate`: one kind of requests.

use super::device::{DeviceArguments, SeedArgument};
use super::results::{estimate_json, rate, request, time};
use crate::arguments::bytes;
use clap::Args;
use freeport_plan_model::estimate::Estimate;
use freeport_plan_model::{Load, Operation, Path, Request, estimate_load};

/// Range of addresses in the study's measurements, in bytes.
const RANGE: &str = "10000000000";
/// Resources that are listed.
const LISTED: usize = 3;

#[derive(Args)]
#[command(
    after_help = "Example:\n  freeport plan estimate --path 1 --operation read --size 64\n  \
    freeport plan estimate --path 3-s2h --operation write --size 256KiB --json\n  \
    freeport plan estimate --path 2 --operation read --size 64 --range 4KiB --profile my.toml"
)]
pub struct Arguments {
    /// The path: rnic, 1, 2, 3-s2h, 3-h2s, dma-s2h or dma-h2s
    #[arg(long)]
    path: Path,
    /// The operation: read, write, or send for a message and its answer
    #[arg(long)]
    operation: Operation,
    /// Payload of a request
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    size: usize,
    /// Requests that are posted with one doorbell
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    batch: u32,
    /// Range of addresses over which requests are spread at random
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = RANGE)]
    range: usize,
    /// Machines that post requests; of the profile without this option, and one for paths inside a
    /// machine
    #[arg(long, value_name = "NUMBER")]
    machines: Option<u32>,
    /// Threads of each machine; of the profile without this option
    #[arg(long, value_name = "NUMBER")]
    threads: Option<u32>,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    random: SeedArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the estimate.
///
/// # Errors
/// The profile or the request is invalid.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = arguments.device.load()?;
    let Arguments { path, operation, batch, .. } = *arguments;
    let (bytes, range) = (arguments.size as u64, arguments.range as u64);
    let request = Request { path, operation, bytes, batch, range };
    let mut load = Load::full(&profile, request);
    load.machines = arguments.machines.unwrap_or(load.machines);
    load.threads = arguments.threads.unwrap_or(load.threads);
    let found = estimate_load(&profile, &load, arguments.random.seed)?;
    match arguments.json {
        true => println!("{}", estimate_json(&profile.name, &found)),
        false => print!("{}", text(&profile.name, &found)),
    }
    Ok(())
}

fn text(device: &str, estimate: &Estimate) -> String {
    let Estimate { single, full, limit, .. } = estimate;
    let flow = full.flows[0];
    let busiest: Vec<String> = full
        .uses
        .iter()
        .take(LISTED)
        .map(|it| format!("{} {:.0} %", it.name, 100.0 * it.share))
        .collect();
    format!(
        "{device}: {} (simulated)\n  latency     {}, one request at a time\n  \
         rate        {}, {:.1} Gbit/s, latency then {} (99 % below {})\n  \
         limited by  {}\n  used        {}\n  bound       {}, by {}\n",
        request(&estimate.request),
        time(single.median),
        rate(flow.rate),
        flow.goodput,
        time(flow.median),
        time(flow.p99),
        full.bottleneck(),
        busiest.join(", "),
        rate(limit.rate),
        limit.name,
    )
}
