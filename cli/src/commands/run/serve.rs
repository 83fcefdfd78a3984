// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run with a name: other commands control it over its socket while traffic flows.

use super::Arguments;
use super::device::{self, Backend, How, Managed};
use crate::program;
use anyhow::Context;
use freeport_ir::Program;
use freeport_ir::channel_log::log_known_channels;
use freeport_runtime::device::RunEnd;
use freeport_runtime::server::{
    Handle, JoinedPorts, Load, Loaded, OfGraphs, Request, RunFolder, Server, StatsFormat, Worker,
    WorkerEnd, jobs, serve_metrics, stop_on_interrupts,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name to serve under: that of `--name`, or that of the file if an input has no end, the
/// program generates packets itself, or counters are served.
pub fn name_of(arguments: &Arguments, program: &Program) -> Option<String> {
    let is_endless = arguments.inputs.iter().any(|spec| spec.source.is_endless());
    let stem = || arguments.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_served = is_endless || program.has_sources() || arguments.metrics.is_some();
    arguments.name.clone().or_else(|| is_served.then(stem))
}

/// Runs until every input has ended, or a request or signal stops it.
///
/// # Errors
/// A name that is taken, or an error of the device or of a port.
pub fn run(
    manager: Managed,
    ports: JoinedPorts,
    arguments: &Arguments,
    name: &str,
    how: How,
) -> anyhow::Result<(Managed, JoinedPorts, RunEnd)> {
    let (handle, jobs) = jobs().context("cannot accept requests")?;
    let handle: Handle = handle;
    let stopped = handle.clone();
    stop_on_interrupts(move || drop(stopped.ask(Request::Stop)))
        .context("cannot handle signals")?;
    let (library, log) = (arguments.library.folders(), arguments.log.clone());
    let protocol = OfGraphs::new(Arc::new(Loader { library, log, how }));
    let server = Server::start(&RunFolder::of_user()?, name, handle.clone(), protocol)?;
    if let Some(address) = arguments.metrics {
        let counters = move || handle.ask(Request::Stats(StatsFormat::Prometheus));
        let served = serve_metrics(address, counters);
        let address = served.with_context(|| format!("counters cannot be served at {address}"))?;
        eprintln!("counters are at http://{address}/metrics");
    }
    eprintln!("{name} runs; `freeport stop --to {name}` or Ctrl-C ends it");
    let mut worker = Worker::new(manager, ports, jobs, about(arguments, name));
    let end = worker.run();
    // No request waits for a worker that has ended.
    let (manager, ports) = worker.into_parts();
    drop(server);
    Ok((
        manager,
        ports,
        match end? {
            WorkerEnd::Ended | WorkerEnd::Stopped => RunEnd::Ended,
            WorkerEnd::Stalled(report) => RunEnd::Stalled(report),
        },
    ))
}

/// Loads programs that are to replace the running one.
struct Loader {
    library: Vec<PathBuf>,
    /// Channels that are logged, if the program has them.
    log: Vec<String>,
    how: How,
}

impl Load for Loader {
    fn load(&self, file: &Path) -> Result<Loaded, String> {
        let messages = |messages: Vec<program::Message>| {
            let texts: Vec<String> = messages.into_iter().map(|message| message.text).collect();
            format!("{} cannot be used\n{}", file.display(), texts.join("\n").trim_end())
        };
        let mut loaded = program::examine(file, &self.library).map_err(messages)?;
        for name in log_known_channels(&mut loaded.program, &self.log) {
            eprintln!("{} has no channel {name} to log", file.display());
        }
        let device = device::load(loaded.program, &self.how);
        let device = device.map_err(|error| format!("{error:#}"))?;
        Ok(Loaded { device, layouts: loaded.layouts, file: file.display().to_string() })
    }
}

/// Description of the process for clients.
fn about(arguments: &Arguments, name: &str) -> Value {
    let file = arguments.file.canonicalize().unwrap_or_else(|_| arguments.file.clone());
    let inputs = arguments.inputs.iter().map(|spec| {
        json!({"endpoint": spec.endpoint, "direction": "in", "port": spec.source.to_string()})
    });
    let outputs = arguments.outputs.iter().map(|spec| {
        json!({"endpoint": spec.endpoint, "direction": "out", "port": spec.target.to_string()})
    });
    json!({
        "name": name,
        "process": std::process::id(),
        "file": file.display().to_string(),
        "device": match arguments.on {
            Backend::Native => "native",
            Backend::Interpreter => "interpreter",
        },
        "ports": inputs.chain(outputs).collect::<Vec<_>>(),
    })
}
