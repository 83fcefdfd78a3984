// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench nf`: network functions on one core, beside other implementations.
//!
//! A case ([`case::Case`]) is a network function with its tables, a trace and a model of the
//! expected output; its file has the implementation for each subject. Freeport's figure covers the
//! whole path: the generator lends batches, the device runs the graph on each frame, and the sink
//! takes them.

mod balancer;
pub mod case;
pub mod click;
mod firewall;
pub mod flows;
mod forward;
pub mod kernel;
pub mod network;
pub mod ours;
mod route;
mod subjects;
pub use subjects::flows_of;
pub mod traffic;
mod vswitch;
mod wildcard;

use crate::harness::alternate;
use crate::harness::machine::{Machine, pin_to_one_core};
use crate::harness::plot;
use crate::harness::report::{self, CaseResult, PACKETS_PER_SECOND, csv};
use crate::harness::{Output, folder};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Measures network functions in memory, beside the kernel and other implementations
///
/// Example: freeport bench nf --case forward --case firewall --rounds 15 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Network function to measure; may be repeated [default: all that Freeport has a program for]
    #[arg(long = "case", value_enum, value_name = "CASE")]
    pub cases: Vec<CaseName>,
    /// Frame size in bytes without the frame check sequence; may be repeated
    #[arg(
        long,
        value_name = "BYTES",
        default_values_t = FRAME_BYTES,
        value_parser = clap::value_parser!(u16).range(60..=1_500)
    )]
    pub frame_bytes: Vec<u16>,
    /// Number of flows that pass in turn, instead of the case's default; up to 4,096 are written
    /// into the frames once, more are stamped into them one by one
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=MOST_FLOWS)
    )]
    pub flows: Option<u32>,
    /// Leave out peers that need a network namespace
    #[arg(long)]
    pub no_network: bool,
    /// FastClick program to measure as a peer [default: $FREEPORT_CLICK]
    #[arg(long, value_name = "PROGRAM")]
    pub click: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Number of rounds; each subject runs once per round
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Also write nf.csv and nf.svg, and the same for each case, to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Default frame sizes.
const FRAME_BYTES: [u16; 2] = [64, 1_500];
/// Maximum number of flows: their indices must fit into the hosts of a /7.
const MOST_FLOWS: i64 = 1 << 25;

/// A network function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum CaseName {
    /// Swap the Ethernet addresses and return the frame
    Forward,
    /// Route by the longest matching of 16 K prefixes
    Route,
    /// Filter by 128 K exact rules
    Firewall,
    /// Filter by the first match of 16 K rules under 16 masks
    FirewallWildcard,
    /// Tunnel each of 1 M flows to its backend
    Balancer,
}

impl CaseName {
    /// All network functions.
    const ALL: [Self; 5] =
        [Self::Forward, Self::Route, Self::Firewall, Self::FirewallWildcard, Self::Balancer];

    /// Creates the case with this number of flows, or its default.
    pub fn make(self, flows: Option<usize>) -> Box<dyn case::Case> {
        match self {
            Self::Forward => Box::new(forward::Forward),
            Self::Route => Box::new(route::Route::new(flows)),
            Self::Firewall => Box::new(firewall::Firewall::new(flows)),
            Self::FirewallWildcard => Box::new(wildcard::Wildcard::new(flows)),
            Self::Balancer => Box::new(balancer::Balancer::new(flows)),
        }
    }
}

/// Runs the measurement; `library` holds the folders of Freeport's elements.
///
/// # Errors
/// The reason why Freeport could not run. A peer that cannot run is left out, with a note that says
/// why.
pub fn run(arguments: &Arguments, library: &[PathBuf]) -> Result<Output> {
    let names = match arguments.cases.as_slice() {
        [] => &CaseName::ALL[..],
        names => names,
    };
    // Done before the process is pinned, after which it sees one core only.
    let machine = Machine::describe();
    let core = pin_to_one_core();
    let flows = arguments.flows.map(|count| count as usize);
    let mut results = vec![];
    for name in names {
        let case = name.make(flows);
        if arguments.cases.is_empty() && case.ours(library)?.is_none() {
            continue;
        }
        for frame_bytes in &arguments.frame_bytes {
            let mut result = measure(case.as_ref(), usize::from(*frame_bytes), arguments, library)
                .with_context(|| format!("case {}", case.name()))?;
            result.notes.push(pinned(core));
            results.push(result);
        }
    }
    if let Some(out) = &arguments.out {
        write(out, &results, &machine)?;
    }
    report::output(&results, &machine, arguments.json)
}

fn measure(
    case: &dyn case::Case,
    frame_bytes: usize,
    arguments: &Arguments,
    library: &[PathBuf],
) -> Result<CaseResult> {
    let click = arguments.click.clone();
    let click = click.or_else(|| std::env::var_os("FREEPORT_CLICK").map(PathBuf::from));
    let peers = subjects::Peers { has_network: !arguments.no_network, click };
    let ours = case.ours(library)?;
    let mut prepared = subjects::prepare(case, ours.as_ref(), frame_bytes, &peers)?;
    let measurements = alternate(&mut prepared.subjects, arguments.rounds as usize)?;
    let mut notes = prepared.notes;
    notes.extend(subjects::less_stamping(&measurements));
    if cfg!(debug_assertions) {
        notes.push("this is a build without optimization: do not quote this".into());
    }
    Ok(CaseResult {
        bench: "nf".into(),
        metric: PACKETS_PER_SECOND.into(),
        case: case.name().into(),
        frame_bytes,
        measurements,
        has_ours: prepared.has_ours,
        published: case.published(frame_bytes),
        notes,
    })
}

fn pinned(core: Option<usize>) -> String {
    match core {
        Some(core) => format!("everything ran on core {core}, in turn"),
        None => "this process could not be pinned to one core".into(),
    }
}

fn write(out: &Path, results: &[CaseResult], machine: &Machine) -> Result<()> {
    folder::make(out)?;
    let save = |name: &str, text: String| folder::save(out, name, text);
    save("nf.csv", csv(results, machine))?;
    save("nf.svg", plot::svg("Network functions in memory, one core", results, machine))?;
    for name in results.iter().map(|result| &result.case).collect::<BTreeSet<_>>() {
        let of_case = |it: &&CaseResult| it.case == *name;
        let results: Vec<CaseResult> = results.iter().filter(of_case).cloned().collect();
        let title = format!("Network function {name} in memory, one core");
        save(&format!("nf-{name}.csv"), csv(&results, machine))?;
        save(&format!("nf-{name}.svg"), plot::svg(&title, &results, machine))?;
    }
    Ok(())
}
