// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan estimate`: one kind of requests.

use super::device::{DeviceArguments, Either, SeedArgument};
use super::results::{estimate_json, rate, request, time};
use super::shared_memory::{self, AnyPath};
use crate::arguments::bytes;
use anyhow::bail;
use clap::Args;
use freeport_plan_model::estimate::Estimate;
use freeport_plan_model::local::{Machine, Operation};
use freeport_plan_model::{Load, Path, Profile, Request, estimate_load};

/// Resources that are listed.
const LISTED: usize = 3;

#[derive(Args)]
#[command(
    after_help = "Example:\n  freeport plan estimate --path 1 --operation read --size 64\n  \
    freeport plan estimate --path 3-s2h --operation write --size 256KiB --json\n  \
    freeport plan estimate --path 2 --operation read --size 64 --range 4KiB --profile my.toml\n  \
    freeport plan estimate --path shm --operation read --size 4KiB --profile machine.toml"
)]
pub struct Arguments {
    /// The path: rnic, 1, 2, 3-s2h, 3-h2s, dma-s2h or dma-h2s; shm in a profile of a machine
    #[arg(long)]
    path: AnyPath,
    /// The operation: read, write, or send for a message and its answer; also atomic on path shm
    #[arg(long)]
    operation: Operation,
    /// Payload of a request
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    size: usize,
    /// Requests that are posted with one doorbell, or before completions are polled
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    batch: u32,
    /// Range of addresses over which requests are spread at random [default: 10 GB; the largest
    /// that was measured on path shm]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    range: Option<usize>,
    /// Machines that post requests; of the profile without this option, and one for paths inside a
    /// machine
    #[arg(long, value_name = "NUMBER")]
    machines: Option<u32>,
    /// Threads of each machine; of the profile without this option, and one on path shm
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
    match (arguments.device.load_either()?, arguments.path) {
        (Either::Device(profile), AnyPath::OfDevice(path)) => run_on(arguments, &profile, path),
        (Either::Machine(machine), AnyPath::SharedMemory) => run_here(arguments, &machine),
        (Either::Device(profile), path) => bail!(
            "{} has no path {path}; its paths are {}; `freeport plan probe --out FILE` writes a \
             profile with path shm",
            profile.name,
            Path::ALL.map(Path::name).join(", "),
        ),
        (Either::Machine(machine), path) => {
            bail!("{} has no path {path}; its path is shm", machine.name)
        }
    }
}

/// Prints the estimate for a device.
fn run_on(arguments: &Arguments, profile: &Profile, path: Path) -> anyhow::Result<()> {
    let operation = arguments.operation.name().parse().map_err(anyhow::Error::msg)?;
    let of_study = Request::new(path, operation, arguments.size as u64);
    let range = arguments.range.map_or(of_study.range, |range| range as u64);
    let request = Request { batch: arguments.batch, range, ..of_study };
    let mut load = Load::full(profile, request);
    load.machines = arguments.machines.unwrap_or(load.machines);
    load.threads = arguments.threads.unwrap_or(load.threads);
    let found = estimate_load(profile, &load, arguments.random.seed)?;
    match arguments.json {
        true => println!("{}", estimate_json(&profile.name, &found)),
        false => print!("{}", text(&profile.name, &found)),
    }
    Ok(())
}

/// Prints the estimate for a machine.
fn run_here(arguments: &Arguments, machine: &Machine) -> anyhow::Result<()> {
    if arguments.machines.is_some() {
        bail!("path shm is inside one machine: leave out --machines");
    }
    let request = shared_memory::request(
        machine,
        arguments.operation,
        arguments.size as u64,
        arguments.batch,
        arguments.range.map(|range| range as u64),
        arguments.threads.unwrap_or(1),
    );
    let found = machine.estimate(request)?;
    match arguments.json {
        true => println!("{}", shared_memory::json(&machine.name, &found)),
        false => print!("{}", shared_memory::text(&machine.name, &found)),
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
