// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan study key-value`: gets of a store.

use super::counted;
use crate::arguments::bytes;
use crate::commands::plan::device::DeviceArguments;
use anyhow::bail;
use clap::Args;
use freeport_study_kv::Alternative;
use freeport_study_kv::peaks::{Run, Sizes};
use serde_json::json;
use std::str::FromStr;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan study key-value --gets A1\n  \
    freeport plan study key-value --gets A5:200 --gets A4 --skew 0.99 --json\n\n\
    A1 reads index and item in the host; A2 asks the processor, which reads both there; A3 asks\n\
    the processor, which has the index; A4 reads the index in the processor's memory and the item\n\
    in the host's; A5 asks the processor for a cached item; A5-READ reads that item itself.")]
pub struct Arguments {
    /// An alternative, and how many clients use it; without a number, all that are left
    #[arg(long = "gets", value_name = "ALTERNATIVE[:CLIENTS]", required = true)]
    gets: Vec<Gets>,
    /// Number of keys
    #[arg(long, value_name = "NUMBER", default_value_t = Sizes::default().keys)]
    keys: u64,
    /// Length of a value; the default is fitted to the study, which does not state it
    #[arg(long, value_name = "BYTES", value_parser = bytes,
          default_value_t = Sizes::default().value_bytes)]
    value: usize,
    /// Skew of the popularity of keys (Zipf): 0 for none, below 1
    #[arg(long, value_name = "SKEW", default_value_t = 0.0)]
    skew: f64,
    #[command(flatten)]
    device: DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Clients of an alternative.
#[derive(Clone, Copy, Debug)]
struct Gets {
    alternative: Alternative,
    clients: Option<usize>,
}

impl FromStr for Gets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, clients) = counted(text)?;
        Ok(Self { alternative: name.parse()?, clients })
    }
}

/// Runs the store, and prints the results.
///
/// # Errors
/// The profile or a number is invalid.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { keys, value, skew, .. } = *arguments;
    let profile = arguments.device.load()?;
    let sizes = Sizes { keys, value_bytes: value, skew, ..Sizes::default() };
    let run = Run::new(&profile, &sizes)?.skewed();
    let alternatives = assigned(&arguments.gets, run.clients())?;
    let usage = run.with_clients(alternatives.len()).rate(|client| alternatives[client])?;
    let (busiest, share) = usage.busiest;
    if arguments.json {
        let gets = arguments.gets.iter().map(|gets| {
            let clients = alternatives.iter().filter(|it| **it == gets.alternative).count();
            json!({ "alternative": gets.alternative.name(), "clients": clients })
        });
        let object = json!({
            "kind": "simulated",
            "device": profile.name,
            "gets": gets.collect::<Vec<_>>(),
            "millions_per_second": usage.rate,
            "busiest": busiest,
            "busiest_share": share,
            "misses": usage.misses,
        });
        println!("{object}");
        return Ok(());
    }
    println!("{}: {} clients get (simulated)", profile.name, alternatives.len());
    println!("  rate      {:.1} M/s", usage.rate);
    println!("  busiest   {busiest}, {:.0} %", 100.0 * share);
    if arguments.gets.iter().any(|gets| gets.alternative == Alternative::CallCache) {
        println!("  misses    {:.1} % of the answers of A5", 100.0 * usage.misses);
    }
    Ok(())
}

/// Returns the alternative of each client.
fn assigned(gets: &[Gets], clients: usize) -> anyhow::Result<Vec<Alternative>> {
    let mut assigned = vec![];
    let open = gets.iter().filter(|gets| gets.clients.is_none()).count();
    if open > 1 {
        bail!("only one --gets may be without a number of clients");
    }
    let named: usize = gets.iter().filter_map(|gets| gets.clients).sum();
    if named > clients || (open == 1 && named == clients) {
        bail!("the profile has {clients} clients (machines, threads, window), and not more");
    }
    for Gets { alternative, clients: count } in gets {
        let count = count.unwrap_or(clients - named);
        assigned.extend(std::iter::repeat_n(*alternative, count));
    }
    Ok(assigned)
}
