// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp load`: runs a program between network interfaces until it is stopped: in the
//! kernel, in the interpreter, as compiled code, on the model of the small processor or on its
//! simulated hardware.

mod port;
mod target;

use super::place::Place;
use super::subject::{Preparation, choose, open};
use crate::diagnostics::{Diagnostics, LogArguments};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use freeport_attach::{OfXdp, Request, Worker};
use freeport_ebpf::object::ProgramKind;
use freeport_runtime::server::{
    Handle, RunFolder, Server, StatsFormat, jobs, serve_metrics, stop_on_interrupts,
};
use port::PortSpec;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport xdp load filter.bpf.o --on kernel --port xdp:eth0 --port xdp:eth1 --name fw &\n  \
    freeport xdp load filter.bpf.o --on interpreter --port xdp:eth0,host=tap:h0 \\\n      \
    --port xdp:eth1 --map 'inside key 0 0 0 0 value 2 0 0 0'\n  \
    freeport xdp map dump flows --to fw\n  \
    freeport xdp stats --to fw\n  \
    freeport stop --to fw\n\n\
    See docs/guide/xdp-running.md.")]
pub struct Arguments {
    /// An object, or its source (.c)
    object: PathBuf,
    /// The program, if the object has several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// The target
    #[arg(long, value_enum)]
    on: Place,
    /// An interface (`xdp:NAME`) or, outside the kernel, a TAP interface (`tap:NAME`), a capture
    /// (`FILE.pcap`) or generated frames (`gen:64@1000`). `host=PORT` is where passed packets go,
    /// and `ifindex=NUMBER` the index that the program sees. May be repeated
    #[arg(long, value_name = "PORT[,host=PORT][,ifindex=NUMBER]", required = true)]
    port: Vec<PortSpec>,
    #[command(flatten)]
    preparation: Preparation,
    /// With `kernel`: pin the maps that the object marks as pinned in this folder of a bpf file
    /// system, and reuse those that exist [default: no map is pinned]
    #[arg(long, value_name = "FOLDER")]
    pin_maps: Option<PathBuf>,
    /// The name for other commands [default: the name of the program]
    #[arg(long)]
    name: Option<String>,
    /// With `kernel`: attach in the driver, or in the generic hook after it [default: best]
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// With `kernel`: enable the kernel's counters of runs and their time, which slows down all
    /// programs of the machine
    #[arg(long)]
    count_runs: bool,
    /// With `vliw`: number of operations per row [default: 4]
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u8).range(super::lanes()))]
    lanes: Option<u8>,
    /// Outside the kernel: seed of random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Serve counters to Prometheus at http://ADDRESS:PORT/metrics; without an address, only to
    /// this machine
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = crate::arguments::address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArguments,
}

impl Arguments {
    /// How the subcommand reports events.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        Diagnostics { log: Some(&self.log), runs_long: true, is_json: false }
    }
}

/// Where the kernel attaches a program to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    /// In the driver if it supports that, else in the generic hook
    Best,
    /// In the driver
    Native,
    /// In the generic hook after the driver
    Generic,
}

/// Runs the program until it is stopped.
///
/// # Errors
/// A malformed object, setting or port, or a program that the target refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    check(arguments)?;
    let file = arguments.object.display();
    let (bytes, mut object) = open(&arguments.object)?;
    let settings = arguments.preparation.apply(&mut object)?;
    let program = choose(&object, arguments.program.as_deref());
    let program = program.with_context(|| file.to_string())?;
    if program.kind != ProgramKind::Xdp {
        bail!(
            "{file}: `{}` is a program of kind {}, which cannot be attached to an interface",
            program.name,
            program.kind
        );
    }
    let program = program.name.clone();
    let name = arguments.name.as_ref().unwrap_or(&program);
    let (handle, jobs) = jobs::<Request>().context("cannot accept requests")?;
    let stopped = handle.clone();
    let stop = move || drop(stopped.ask(Request::Stop));
    stop_on_interrupts(stop).context("cannot handle signals")?;
    // Before ports are opened: a program of this name may run on the same interfaces.
    let server = Server::start(&RunFolder::of_user()?, name, handle.clone(), OfXdp)?;
    let loaded = target::Loaded { bytes: &bytes, object: &object, program: &program };
    let running = target::begin(&loaded, &settings, arguments).with_context(|| file.to_string())?;
    let ports = arguments.port.iter().map(PortSpec::to_string).collect::<Vec<_>>();
    tracing::info!(name, program, on = arguments.on.name(), ?ports, "attached");
    announce(arguments, name, handle)?;
    let about = about(arguments, name, &program);
    let mut worker = Worker::new(running, object, jobs, about);
    let ended = worker.run();
    if let Err(error) = &ended {
        tracing::error!(name, %error, "a port or the target failed");
    }
    let statistics = worker.statistics();
    // No request waits for a worker that has ended; dropping it detaches the program.
    drop(worker);
    tracing::info!(name, "detached");
    drop(server);
    if let Ok(statistics) = statistics {
        print!("{statistics}");
    }
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Checks options that apply only to some targets.
fn check(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { on, mode, count_runs, lanes, pin_maps, .. } = arguments;
    if *on != Place::Kernel && (mode.is_some() || *count_runs || pin_maps.is_some()) {
        bail!("--mode, --count-runs and --pin-maps are for --on kernel");
    }
    if *on != Place::Vliw && lanes.is_some() {
        bail!("--lanes is for --on vliw");
    }
    Ok(())
}

/// Reports that the program runs, and where its counters are.
fn announce(arguments: &Arguments, name: &str, handle: Handle<Request>) -> anyhow::Result<()> {
    if let Some(address) = arguments.metrics {
        let served =
            serve_metrics(address, move || handle.ask(Request::Stats(StatsFormat::Prometheus)));
        let address = served.with_context(|| format!("counters cannot be served at {address}"))?;
        eprintln!("counters are at http://{address}/metrics");
    }
    if arguments.on == Place::Sim {
        eprintln!("the card is simulated: its speed does not indicate that of hardware");
    }
    eprintln!("{name} runs; `freeport stop --to {name}` or Ctrl-C ends it");
    Ok(())
}

/// Description of the process for clients.
fn about(arguments: &Arguments, name: &str, program: &str) -> Value {
    let file = arguments.object.canonicalize().unwrap_or_else(|_| arguments.object.clone());
    let port = |spec: &PortSpec| {
        let port = spec.to_string();
        json!({ "endpoint": program, "direction": "port", "port": port })
    };
    json!({
        "name": name,
        "process": std::process::id(),
        "file": file.display().to_string(),
        "program": program,
        "device": format!("xdp on {}", arguments.on.name()),
        "ports": arguments.port.iter().map(port).collect::<Vec<_>>(),
    })
}
