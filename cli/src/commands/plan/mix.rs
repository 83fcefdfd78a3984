// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan mix`: loads that share a machine.

use super::device::{DeviceArguments, SeedArgument};
use super::results::{flow_json, joined, load, outcome_json, rate, request_json, time};
use crate::arguments::bytes;
use clap::Args;
use freeport_plan_model::bounds::{limit_in, path3_budget};
use freeport_plan_model::{Load, Profile, Request, estimate_mix};
use serde_json::{Value, json};
use std::str::FromStr;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport plan mix --load 1:read:64 --load 2:read:64\n  \
    freeport plan mix --load 1:read:64KiB --load 3-s2h:read:64KiB:0.1 --json")]
pub struct Arguments {
    /// A load: path, operation, payload, and millions of requests per second, or as many as
    /// possible; may be repeated
    #[arg(long = "load", value_name = "PATH:OPERATION:BYTES[:MILLIONS]", required = true)]
    loads: Vec<Offered>,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    random: SeedArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A load of the command line.
#[derive(Clone, Copy, Debug)]
struct Offered {
    request: Request,
    millions: Option<f64>,
}

impl FromStr for Offered {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let (path, operation, size, millions) = match parts[..] {
            [path, operation, size] => (path, operation, size, None),
            [path, operation, size, millions] => (path, operation, size, Some(millions)),
            _ => return Err("expected PATH:OPERATION:BYTES[:MILLIONS], such as 1:read:64".into()),
        };
        let millions = millions.map(|text| {
            let rate = text.parse().ok().filter(|rate| *rate > 0.0 && f64::is_finite(*rate));
            rate.ok_or("expected millions of requests per second above 0, such as 0.5")
        });
        let request = Request::new(path.parse()?, operation.parse()?, bytes(size)? as u64);
        Ok(Self { request, millions: millions.transpose()? })
    }
}

/// Prints the estimate.
///
/// # Errors
/// The profile or a load is invalid.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = arguments.device.load()?;
    let of = |offered: &Offered| {
        let full = Load::full(&profile, offered.request);
        offered.millions.map_or(full, |millions| full.offering(millions))
    };
    let loads: Vec<Load> = arguments.loads.iter().map(of).collect();
    let together = estimate_mix(&profile, &loads, arguments.random.seed)?;
    let alone = alone(&profile, &loads, arguments.random.seed)?;
    let limits: Vec<&str> =
        (0..loads.len()).map(|number| limit_in(&profile, &loads, &together, number)).collect();
    let flows = || loads.iter().zip(&together.flows).zip(&alone).zip(&limits);
    if arguments.json {
        let flows: Vec<Value> = flows()
            .map(|(((load, flow), alone), limit)| {
                let extra = json!({
                    "offered_millions_per_second": load.offered,
                    "alone_millions_per_second": alone,
                    "bottleneck": limit,
                });
                joined([request_json(&load.request), flow_json(flow), extra])
            })
            .collect();
        let head = json!({ "device": profile.name, "loads": flows });
        println!("{}", joined([head, outcome_json(&together)]));
        return Ok(());
    }
    let plural = if loads.len() == 1 { "" } else { "s" };
    println!("{}: {} load{plural} together (simulated)", profile.name, loads.len());
    for (((one, flow), alone), limit) in flows() {
        println!(
            "  {}: {}, {:.1} Gbit/s, latency {} (99 % below {}); alone {}; limited by {limit}",
            load(one),
            rate(flow.rate),
            flow.goodput,
            time(flow.median),
            time(flow.p99),
            alone.map_or("-".into(), rate),
        );
    }
    println!("  busiest: {}", together.bottleneck());
    if loads.iter().any(|load| load.request.path.crossings().pcie1 == 2) {
        let budget = path3_budget(&profile);
        println!("  path 3 leaves clients their bandwidth up to {budget} Gbit/s");
    }
    if !together.is_steady {
        println!("  not steady: a load completed too few requests beside the others to say much");
    }
    Ok(())
}

/// Returns the rates of all loads on a machine of their own; none where too few requests are
/// completed.
fn alone(profile: &Profile, loads: &[Load], seed: u64) -> anyhow::Result<Vec<Option<f64>>> {
    let rate = |load: &Load| {
        let found = estimate_mix(profile, &[*load], seed)?;
        Ok(found.is_steady.then(|| found.flows[0].rate))
    };
    loads.iter().map(rate).collect()
}
