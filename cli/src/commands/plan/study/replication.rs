// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan study replication`: writes of files, replicated to backups.

use super::counted;
use crate::arguments::bytes;
use crate::commands::plan::device::DeviceArguments;
use crate::commands::plan::results::time;
use anyhow::bail;
use clap::Args;
use freeport_study_replication::model::machine::Run;
use freeport_study_replication::{Compression, Policy};
use serde_json::json;
use std::str::FromStr;

/// Most clients.
const CLIENTS_MAX: usize = 64;
/// Longest chunk in bytes, which is the one of the published file system.
const CHUNK_MAX: usize = 16 << 20;
/// Shortest chunk in bytes.
const CHUNK_MIN: usize = 4 << 10;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan study replication --writes a1:8\n  \
    freeport plan study replication --writes auto:8 --ratio 0.5 --json\n\n\
    a1: the NIC's processor reads chunks over the NIC cores, compresses and sends them; a2: it\n\
    reads them by DMA; a3: the host sends them itself; auto: a2 until the processor is saturated,\n\
    and a3 for the rest.")]
pub struct Arguments {
    /// A policy, and how many clients have it: one without a number
    #[arg(long = "writes", value_name = "POLICY[:CLIENTS]", required = true)]
    writes: Vec<Writes>,
    /// Length of a chunk
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "256KiB")]
    chunk: usize,
    /// Chunks of a client in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    window: u32,
    /// Number of backups, one behind the other
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=8))]
    backups: u16,
    /// Share of the data that is noise, which LZ4 cannot compress; not compressed without this
    /// option
    #[arg(long, value_name = "RATIO")]
    ratio: Option<f64>,
    /// Let other work wait for all cores of the host
    #[arg(long)]
    busy: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Clients of a policy.
#[derive(Clone, Copy, Debug)]
struct Writes {
    policy: Policy,
    clients: usize,
}

impl FromStr for Writes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, clients) = counted(text)?;
        Ok(Self { policy: name.parse()?, clients: clients.unwrap_or(1) })
    }
}

/// Runs the file system, and prints the results.
///
/// # Errors
/// The profile or a number is invalid.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = arguments.device.load()?;
    let of = |writes: &Writes| std::iter::repeat_n(writes.policy, writes.clients);
    let clients: usize = arguments.writes.iter().map(|writes| writes.clients).sum();
    if clients > CLIENTS_MAX {
        bail!("there may be {CLIENTS_MAX} clients at most, and not {clients}");
    }
    if !(CHUNK_MIN..=CHUNK_MAX).contains(&arguments.chunk) {
        bail!("--chunk has to be between 4 KiB and 16 MiB");
    }
    let mut run = Run::new(1, Policy::Auto);
    run.clients = arguments.writes.iter().flat_map(of).collect();
    run.window = arguments.window;
    run.is_busy = arguments.busy;
    run.options.chunk_bytes = arguments.chunk;
    run.options.backups = arguments.backups;
    if let Some(ratio) = arguments.ratio {
        if !(ratio > 0.0 && ratio <= 1.0) {
            bail!("--ratio has to be above 0 and at most 1, such as 0.5");
        }
        (run.noise, run.options.compression) = (ratio, Compression::Lz4);
    }
    let measured = run.measure(&profile)?;
    let (goodput, wait_us) = (measured.goodput, measured.wait);
    let saving = measured.counters.saving();
    if arguments.json {
        let object = json!({
            "kind": "simulated",
            "device": profile.name,
            "clients": clients,
            "gbps": goodput,
            "acknowledged_after_us": wait_us,
            "network_saving": saving,
        });
        println!("{object}");
        return Ok(());
    }
    let plural = if clients == 1 { "" } else { "s" };
    println!("{}: {clients} client{plural} write (simulated)", profile.name);
    println!("  rate          {goodput:.1} Gbit/s");
    println!("  acknowledged  {} after the write, on average", time(1000.0 * wait_us));
    println!("  network       {:.0} % less than the data", 100.0 * saving);
    Ok(())
}
