// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp load`: a program that goes on running between network interfaces, in the kernel,
//! in the interpreter, on the model of the small processor or on its simulated hardware.

mod port;
mod target;

use super::subject::{Preparation, choose, open};
use crate::diagnostics::{Diagnostics, LogArguments};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use freeport_attach::{OfXdp, Request, Worker};
use freeport_ebpf::object::ProgramKind;
use freeport_nic::server::{
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
    /// Which program, where there are several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Where it runs
    #[arg(long, value_enum)]
    on: On,
    /// An interface (`xdp:NAME`), and outside the kernel also a TAP interface (`tap:NAME`), a
    /// capture (`FILE.pcap`) or generated frames (`gen:64@1000`); behind a comma `host=PORT`, where
    /// passed packets go, and `ifindex=NUMBER`. May be given several times
    #[arg(long, value_name = "PORT[,host=PORT][,ifindex=NUMBER]", required = true)]
    port: Vec<PortSpec>,
    #[command(flatten)]
    preparation: Preparation,
    /// With `kernel`: pin the maps that the object asks to be pinned in this folder of a bpf file
    /// system, and take up those that are there; else none is pinned
    #[arg(long, value_name = "FOLDER")]
    pin_maps: Option<PathBuf>,
    /// What other commands call it [default: the program's name]
    #[arg(long)]
    name: Option<String>,
    /// With `kernel`: in the driver, behind it, or where it can be [default: best]
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// With `kernel`: have the kernel count runs and their time, those of all programs of the
    /// machine, which makes each run longer
    #[arg(long)]
    count_runs: bool,
    /// With `vliw`: how many operations a row may hold [default: 4]
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u8).range(super::lanes()))]
    lanes: Option<u8>,
    /// Outside the kernel: where random numbers begin
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Serve counters to Prometheus at this address or port
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = crate::arguments::address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArguments,
}

impl Arguments {
    /// How events are reported.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        Diagnostics { log: Some(&self.log), runs_long: true, is_json: false }
    }
}

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum On {
    /// In the kernel
    Kernel,
    /// In the interpreter, in user space
    Interpreter,
    /// As compiled code, in user space
    Native,
    /// On the model of the small processor
    Vliw,
    /// On the small processor's simulated hardware
    Sim,
}

/// Where on an interface the kernel runs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    /// In the driver, or behind it if the driver has no place
    Best,
    /// In the driver
    Native,
    /// Behind the driver
    Generic,
}

impl On {
    /// How it is written.
    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Interpreter => "interpreter",
            Self::Native => "native",
            Self::Vliw => "vliw",
            Self::Sim => "sim",
        }
    }
}

/// Goes on until it is stopped.
///
/// # Errors
/// What is wrong with the object, the settings or the ports, or what the target refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    check(arguments)?;
    let file = arguments.object.display();
    let (bytes, mut object) = open(&arguments.object)?;
    let settings = arguments.preparation.apply(&mut object)?;
    let program = choose(&object, arguments.program.as_deref());
    let program = program.with_context(|| file.to_string())?;
    if program.kind != ProgramKind::Xdp {
        bail!("{file}: `{}` is a program of kind {}, for no interface", program.name, program.kind);
    }
    let program = program.name.clone();
    let name = arguments.name.as_ref().unwrap_or(&program);
    let (handle, jobs) = jobs::<Request>().context("requests cannot be taken")?;
    let stopped = handle.clone();
    let stop = move || drop(stopped.ask(Request::Stop));
    stop_on_interrupts(stop).context("signals cannot be taken")?;
    // Before it has a port: one of that name may run on the same interfaces.
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
    // Nobody's request waits for a worker that has ended, and it leaves its interfaces.
    drop(worker);
    tracing::info!(name, "detached");
    drop(server);
    if let Ok(statistics) = statistics {
        print!("{statistics}");
    }
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Options that are for some targets only.
fn check(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { on, mode, count_runs, lanes, pin_maps, .. } = arguments;
    if *on != On::Kernel && (mode.is_some() || *count_runs || pin_maps.is_some()) {
        bail!("--mode, --count-runs and --pin-maps are for --on kernel");
    }
    if *on != On::Vliw && lanes.is_some() {
        bail!("--lanes is for --on vliw");
    }
    Ok(())
}

/// Says that it runs, and where its counters are.
fn announce(arguments: &Arguments, name: &str, handle: Handle<Request>) -> anyhow::Result<()> {
    if let Some(address) = arguments.metrics {
        let served =
            serve_metrics(address, move || handle.ask(Request::Stats(StatsFormat::Prometheus)));
        let address = served.with_context(|| format!("counters cannot be served at {address}"))?;
        eprintln!("counters are at http://{address}/metrics");
    }
    if arguments.on == On::Sim {
        eprintln!("the card is simulated: how fast packets pass says nothing of hardware");
    }
    eprintln!("{name} runs; `freeport stop --to {name}` or Ctrl-C ends it");
    Ok(())
}

/// What clients are told of the process.
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
