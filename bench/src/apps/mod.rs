// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench apps`: Freeport's applications on real traffic, beside the same networks with
//! kernel forwarding.
//!
//! A client and its servers are separate hosts with unmodified network stacks and sockets. Between
//! them is either the running command on AF_XDP, with the firewall, the load balancer or both, or
//! the kernel's IPv4 forwarding, which does neither: the figures show the cost of the applications,
//! and of a path through a process compared with one that never leaves the kernel. All share the
//! cores of one machine.

mod live;
mod measure;
mod plot;
mod site;

use crate::harness::machine::Machine;
use crate::harness::metrics::{self, MetricResult, Round, Series};
use crate::harness::report::Traffic;
use crate::harness::{Output, folder};
use crate::network::Launch;
use anyhow::{Context, Result};
use live::Live;
use measure::{METRICS, round};
use site::{App, Site, Way};
use std::path::PathBuf;
use std::time::Duration;

/// Longest frames: those of bulk transfers.
const FRAME_BYTES: usize = 1_514;

/// Measures firewall and load balancer on real traffic, beside the kernel's forwarding
///
/// Example: freeport bench apps --rounds 3 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Application to measure; may be repeated [default: all]
    #[arg(long = "app", value_enum, value_name = "APP")]
    pub apps: Vec<App>,
    /// Number of rounds; each network is measured once per round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Milliseconds for each kind of traffic in a round
    #[arg(
        long,
        value_name = "MILLISECONDS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u64).range(50..=60_000)
    )]
    pub time: u64,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Also write apps.csv, apps-live.csv and apps.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Runs the measurement.
///
/// # Errors
/// A network cannot be set up, or traffic does not flow.
pub fn run(arguments: &Arguments, library: &[PathBuf]) -> Result<Output> {
    let apps = match arguments.apps.as_slice() {
        [] => &App::ALL[..],
        apps => apps,
    };
    let machine = Machine::describe();
    let launch = launch(library)?;
    let time = Duration::from_millis(arguments.time);
    let mut results = vec![];
    for app in apps {
        results.push(measure(*app, &launch, arguments.rounds, time)?);
    }
    let live = match apps.contains(&App::Firewall) {
        true => Some(Live::measure(&launch).context("inserting a rule under load")?),
        false => None,
    };
    if let Some(out) = &arguments.out {
        folder::make(out)?;
        folder::save(out, "apps.csv", metrics::csv(&results.iter().collect::<Vec<_>>(), &machine))?;
        folder::save(out, "apps.svg", plot::svg(&results, live.as_ref(), &machine))?;
        if let Some(live) = &live {
            folder::save(out, "apps-live.csv", live.csv())?;
        }
    }
    let mut output = Output::default();
    if cfg!(debug_assertions) {
        output.notes += "this is a build without optimization: do not quote this\n";
    }
    if arguments.json {
        let lines = results.iter().flat_map(MetricResult::lines);
        for line in lines.chain(live.iter().flat_map(Live::lines)) {
            output.text += &(serde_json::to_string(&line)? + "\n");
        }
        return Ok(output);
    }
    for result in &results {
        output.text += &(result.text() + "\n");
    }
    output.text += &live.as_ref().map(Live::text).unwrap_or_default();
    let place = format!("{}; commit {}; {}\n", machine.machine, machine.commit, machine.date);
    output.text += &place;
    Ok(output)
}

/// Returns how to run this program, with the given element library, in the current folder.
fn launch(library: &[PathBuf]) -> Result<Launch> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let folder = std::env::current_dir().context("the current folder is unknown")?;
    Ok(Launch { program, folder, library: library.to_owned(), cache: None })
}

/// Measures all networks of an application in turn, round after round.
fn measure(app: App, launch: &Launch, rounds: u32, time: Duration) -> Result<MetricResult> {
    let sites = Way::ALL.map(|way| {
        Site::new(app, way, launch).with_context(|| format!("{} by {}", app.name(), way.name()))
    });
    let mut series = vec![];
    for site in sites {
        series.push((site?, Vec::<Round>::new()));
    }
    for _ in 0..rounds {
        for (site, rounds) in &mut series {
            let name = site.way.name();
            rounds.push(round(site, time).with_context(|| format!("{} by {name}", app.name()))?);
        }
    }
    let series = series.into_iter().map(|(site, rounds)| Series { name: site.way.name(), rounds });
    Ok(MetricResult {
        bench: "apps",
        case: app.name().into(),
        traffic: Traffic::Frames { frame_bytes: FRAME_BYTES },
        metrics: &METRICS,
        series: series.collect(),
        note: None,
    })
}
