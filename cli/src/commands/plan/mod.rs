// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan`: paths between clients, a host and its NIC with a processor, in a calibrated
//! model.

mod apply;
mod calibrate;
mod device;
mod estimate;
mod function;
mod function_json;
mod mix;
mod plot;
mod probe;
mod profile;
mod results;
mod sankey;
mod shared_memory;
mod study;
mod sweep;

use clap::{Args, Subcommand};
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "Example:\n  freeport plan estimate --path 2 --operation read --size 64\n  \
    freeport plan sweep --svg paths.svg > paths.csv\n  \
    freeport plan plan key-value --svg load.svg\n\n\
    Paths: 1 from clients to the host, 2 from clients to the processor of the NIC (its SoC),\n\
    3-s2h and 3-h2s between both through the NIC cores, dma-s2h and dma-h2s between both by the\n\
    DMA engine, host-peer and soc-peer from each to another machine, and rnic from clients to the\n\
    host over a plain NIC. A profile that probe writes has path shm, between two processes of\n\
    this machine.\n\
    All numbers come from a model with the parameters of a profile; only probe measures."
)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Estimate latency, rate and limit of one kind of requests
    Estimate(estimate::Arguments),
    /// Estimate loads that share a machine
    Mix(mix::Arguments),
    /// Estimate all paths, sizes and batches, as CSV or as a drawing
    Sweep(sweep::Arguments),
    /// Plan which alternatives of a function serve which share of its calls
    Plan(function::Arguments),
    /// Write the settings of a plan to a file for services
    Apply(apply::Arguments),
    /// Run a case study on the simulated machine
    Study(study::Arguments),
    /// Print the profile of a device, or check a file
    Profile(profile::Arguments),
    /// Compare a profile with published results, or fit its unknown parameters to them
    Calibrate(calibrate::Arguments),
    /// Measure this machine's shared memory, and write a profile of it
    Probe(probe::Arguments),
    #[command(hide = true)]
    ProbePartner,
}

/// Runs the command.
///
/// # Errors
/// The reason why it cannot.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Estimate(arguments) => estimate::run(arguments)?,
        What::Mix(arguments) => mix::run(arguments)?,
        What::Sweep(arguments) => sweep::run(arguments)?,
        What::Plan(arguments) => function::run(arguments)?,
        What::Apply(arguments) => apply::run(arguments)?,
        What::Study(arguments) => study::run(arguments)?,
        What::Profile(arguments) => profile::run(arguments)?,
        What::Calibrate(arguments) => return calibrate::run(arguments),
        What::Probe(arguments) => return probe::run(arguments),
        What::ProbePartner => freeport_plan_probe::respond()?,
    }
    Ok(ExitCode::SUCCESS)
}
