// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv tune`: chooses the parameters of an engine with a fixed index, for a mix of sizes
//! and operations.

use anyhow::{Context, bail};
use clap::Args;
use freeport_kv_study::access::Layout;
use freeport_kv_study::sweep::Bench;
use freeport_kv_study::tuner::{self, Demand, Plan, Work};
use freeport_kv_study::workload::Sizes;
use serde_json::json;
use std::process::ExitCode;
use std::str::FromStr;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv tune --pairs 10 --utilisation 0.5\n  \
                  freeport kv tune --pairs 10:7 --pairs 62:3 --gets 0.5 --measure --json")]
pub struct Arguments {
    /// Bytes of a pair, key and value together, and its weight among all pairs; may be repeated
    #[arg(long = "pairs", value_name = "BYTES[:WEIGHT]", required = true)]
    pairs: Vec<Pairs>,
    /// Bytes of all pairs over bytes of memory, between 0 and 1
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = share)]
    utilisation: f64,
    /// Share of gets among the operations, between 0 and 1; the others are puts of stored keys
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = share)]
    gets: f64,
    /// Fill engines of 2 MiB and count their accesses, instead of calculating them
    #[arg(long)]
    measure: bool,
    /// Print one JSON object per line, one for each inline threshold
    #[arg(long)]
    json: bool,
}

/// A size with its weight.
#[derive(Clone, Copy, Debug)]
struct Pairs {
    bytes: usize,
    weight: f64,
}

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bytes, weight) = text.split_once(':').unwrap_or((text, "1"));
        let bytes = bytes.parse().ok().filter(|bytes| (1..=1 << 20).contains(bytes));
        let weight = weight.parse().ok().filter(|weight| *weight > 0.0 && f64::is_finite(*weight));
        match (bytes, weight) {
            (Some(bytes), Some(weight)) => Ok(Self { bytes, weight }),
            (None, _) => Err("sizes are bytes from 1 to 1048576, such as 62 or 62:3".into()),
            (_, None) => Err("weights are numbers above 0, such as 62:3".into()),
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number between 0 and 1, such as 0.5".into())
}

/// Prints the candidates and the choice.
///
/// # Errors
/// The pairs do not fit with any parameters.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let weights: Vec<(usize, f64)> =
        arguments.pairs.iter().map(|pairs| (pairs.bytes, pairs.weight)).collect();
    let demand = Demand {
        pairs: Sizes::weighted(&weights).context("--pairs names no size")?,
        utilisation: arguments.utilisation,
        work: Work::gets(arguments.gets),
    };
    let plan = match arguments.measure {
        true => tuner::measure(&Bench::default(), &demand),
        false => tuner::plan(&Layout::ENGINE, &demand),
    };
    let Some(plan) = plan else {
        bail!(
            "pairs of {:.0} bytes on average do not fill {} of the memory with any parameters; \
             ask for a lower --utilisation",
            demand.pairs.mean(),
            demand.utilisation
        );
    };
    match arguments.json {
        true => print!("{}", lines(&plan, arguments.measure)),
        false => println!("{plan}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(plan: &Plan, is_measured: bool) -> String {
    let kind = if is_measured { "measured" } else { "modelled" };
    let line = |candidate: &tuner::Candidate| {
        let fits = candidate.index_ratio.is_some();
        let line = json!({
            "inline_threshold": candidate.inline_threshold,
            "index_ratio": candidate.index_ratio,
            "accesses": fits.then_some(candidate.accesses),
            "kind": kind,
            "is_chosen": candidate == &plan.best,
        });
        format!("{line}\n")
    };
    plan.candidates.iter().map(line).collect()
}
