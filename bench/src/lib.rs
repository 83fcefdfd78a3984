// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The measuring harness: Freeport and its peers do the same work in turn on the same machine.

pub mod apps;
mod between;
pub mod fabric;
pub mod harness;
pub mod kernel;
pub mod kv;
pub mod network;
pub mod nf;
pub mod ports;
pub mod sockets;
pub mod xdp;

use anyhow::Result;
use harness::Output;
use std::path::PathBuf;

/// Measure Freeport beside its peers
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

impl Arguments {
    /// Returns whether this process is a part of another measurement, and prints no results of its
    /// own.
    pub fn is_part(&self) -> bool {
        matches!(self.bench, Bench::Peer(_) | Bench::KvLoad(_))
    }
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Bench {
    /// Network functions in memory, beside the kernel's XDP
    Nf(nf::Arguments),
    /// Applications on real traffic, beside the kernel's forwarding
    Apps(apps::Arguments),
    /// A port on an interface, beside a forwarder written for nothing else
    Ports(ports::Arguments),
    /// Bytes between two processes, beside the kernel's sockets and pipes
    Fabric(fabric::Arguments),
    /// The key-value engine in memory, and the key-value server beside redis and memcached
    Kv(kv::Arguments),
    /// Unmodified programs, with and without accelerated sockets
    Sockets(sockets::Arguments),
    /// XDP programs on the small processor, in cycles of its simulated hardware
    Xdp(xdp::Arguments),
    #[command(hide = true)]
    Peer(sockets::peer::Arguments),
    #[command(hide = true)]
    KvLoad(kv::LoadArguments),
}

/// Runs the measurement that the command line names. `library` holds the folders of Freeport's
/// elements. A bench of many measurements reports each step to `progress`.
///
/// # Errors
/// The reason why Freeport could not run.
pub fn run(
    arguments: &Arguments,
    library: &[PathBuf],
    progress: &mut dyn FnMut(&str),
) -> Result<Output> {
    match &arguments.bench {
        Bench::Nf(arguments) => nf::run(arguments, library),
        Bench::Apps(arguments) => apps::run(arguments, library),
        Bench::Ports(arguments) => ports::run(arguments),
        Bench::Fabric(arguments) => fabric::run(arguments, progress),
        Bench::Kv(arguments) => kv::run(arguments, progress),
        Bench::Sockets(arguments) => sockets::run(arguments, progress),
        Bench::Xdp(arguments) => xdp::run(arguments, progress),
        Bench::Peer(arguments) => sockets::peer::run(arguments).map(|()| Output::default()),
        Bench::KvLoad(arguments) => kv::run_load(arguments),
    }
}
