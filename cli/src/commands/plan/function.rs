// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan plan`: which alternatives of a function serve which share of its calls.

use super::device::{DeviceArguments, SeedArgument};
use super::function_json::plan_json;
use super::sankey;
use crate::arguments::bytes;
use anyhow::{Context, bail};
use clap::Args;
use freeport_plan::function::{BUILT_IN, built_in};
use freeport_plan::placement::PlanFile;
use freeport_plan::{Constraints, Function, explain, plan};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// Calls that are simulated, and those of functions with large calls.
const CALLS: u32 = 4000;
const LARGE_CALLS: u32 = 600;
/// Payload from which on a call is large.
const LARGE_BYTES: u64 = 8192;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan plan replication --ratio 0.5\n  \
    freeport plan plan key-value --profile bluefield3 --svg load.svg\n  \
    freeport plan plan key-value --constraint soc-memory=4GiB --out plan.toml\n  \
    freeport plan plan --function my.toml --constraint host-cores=0\n\n\
    Constraints: host-cores, host-memory, soc-memory (bytes) and latency-us.\n\
    Bounds and clients come from the model, and a simulation verifies them; nothing is measured.")]
pub struct Arguments {
    /// A built-in function: replication or key-value
    #[arg(required_unless_present = "function")]
    name: Option<String>,
    /// A file with a function
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    function: Option<PathBuf>,
    /// Compressed by original size of data that are compressed
    #[arg(long, value_name = "NUMBER", value_parser = ratio)]
    ratio: Option<f64>,
    /// Something that the plan has to keep, such as host-cores=0; may be repeated
    #[arg(long = "constraint", value_name = "NAME=VALUE")]
    constraints: Vec<Constraint>,
    /// Clients, each with calls one after the other; of the function without this option
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    clients: Option<u32>,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    random: SeedArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw the load of the links to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the plan to this file, for `freeport plan apply`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A constraint of the command line.
#[derive(Clone, Copy, Debug)]
enum Constraint {
    HostCores(f64),
    HostMemory(u64),
    SocMemory(u64),
    Latency(f64),
}

impl FromStr for Constraint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "expected NAME=VALUE, such as host-cores=0";
        let (name, value) = text.split_once('=').ok_or(form)?;
        let number = |most: f64| {
            let number = value.parse().ok().filter(|number| (0.0..=most).contains(number));
            number.ok_or_else(|| format!("{name} has to be a number from 0 to {most}"))
        };
        match name {
            "host-cores" => Ok(Self::HostCores(number(4096.0)?)),
            "host-memory" => Ok(Self::HostMemory(bytes(value)? as u64)),
            "soc-memory" => Ok(Self::SocMemory(bytes(value)? as u64)),
            "latency-us" => Ok(Self::Latency(number(1e9)?)),
            _ => Err(format!(
                "there is no constraint {name}; the constraints are host-cores, host-memory, \
                 soc-memory and latency-us"
            )),
        }
    }
}

impl Constraint {
    fn add_to(self, constraints: &mut Constraints) {
        match self {
            Self::HostCores(cores) => constraints.host_cores = Some(cores),
            Self::HostMemory(bytes) => constraints.host_memory = Some(bytes),
            Self::SocMemory(bytes) => constraints.soc_memory = Some(bytes),
            Self::Latency(time) => constraints.latency_us = Some(time),
        }
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.01..=1.0).contains(ratio));
    ratio.ok_or_else(|| "expected compressed by original size, from 0.01 to 1".into())
}

/// Prints the plan with its reasons.
///
/// # Errors
/// The profile or the function is invalid, no alternative keeps the constraints, or a file cannot
/// be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = arguments.device.load()?;
    let function = arguments.changed()?;
    let calls = if function.bytes < LARGE_BYTES { CALLS } else { LARGE_CALLS };
    let plan = plan(&profile, &function)?.verified(&profile, calls, arguments.random.seed);
    if let Some(file) = &arguments.svg {
        let drawing = sankey::svg(&profile, &plan);
        fs::write(file, drawing).with_context(|| format!("writing {}", file.display()))?;
    }
    if let Some(file) = &arguments.out {
        let Some(written) = PlanFile::of(&plan) else {
            bail!(
                "{} belongs to no service: put `service = \"replication\"` or `service = \"get\"` \
                 into its file",
                function.name
            );
        };
        fs::write(file, written.text()).with_context(|| format!("writing {}", file.display()))?;
    }
    match arguments.json {
        true => println!("{}", plan_json(&plan)),
        false => print!("{}", explain::explain(&plan)),
    }
    Ok(())
}

impl Arguments {
    /// Returns the function with what the command line changes.
    fn changed(&self) -> anyhow::Result<Function> {
        let mut function = match (&self.function, &self.name) {
            (Some(file), _) => {
                let name = file.display().to_string();
                let text = fs::read_to_string(file).with_context(|| format!("reading {name}"))?;
                Function::parse(&name, &text)?
            }
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                let names = BUILT_IN.map(|(name, _)| name).join(" and ");
                built_in(name).with_context(|| {
                    format!("there is no function {name}; built in are {names}, others are files")
                })??
            }
        };
        function.ratio = self.ratio.unwrap_or(function.ratio);
        function.clients = self.clients.or(function.clients);
        for constraint in &self.constraints {
            constraint.add_to(&mut function.constraints);
        }
        Ok(function)
    }
}
