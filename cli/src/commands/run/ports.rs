// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens the ports of a run.

use super::Arguments;
use crate::endpoint::Target;
use crate::interface::Interfaces;
use crate::progress::Progress;
use anyhow::bail;
use freeport_port::{BATCH, Capture, Receive};
use freeport_runtime::server::JoinedPorts;
use std::path::PathBuf;

/// Frames per batch if channels are logged.
const LOGGED_BATCH: usize = 16;

/// Opens all ports.
///
/// # Errors
/// A file or interface that cannot be opened, or a capture of an endpoint without a port.
pub fn open(arguments: &Arguments) -> anyhow::Result<JoinedPorts> {
    check_captures(arguments)?;
    let sources = arguments.inputs.iter().filter_map(|spec| spec.source.interface());
    let targets = arguments.outputs.iter().filter_map(|spec| spec.target.interface());
    let mut interfaces = Interfaces::open(sources.chain(targets))?;
    interfaces.modes().for_each(|mode| eprintln!("{mode}"));
    let is_endless = arguments.inputs.iter().any(|spec| spec.source.is_endless());
    let mut ports = JoinedPorts { is_endless, ..JoinedPorts::default() };
    let batch = arguments.batch.unwrap_or_else(|| match arguments.log.is_empty() {
        _ if writes_files(arguments) => 1,
        // A device keeps a bounded number of logged lines until they are fetched.
        false => LOGGED_BATCH,
        true => BATCH,
    });
    for spec in &arguments.inputs {
        let port = Progress::new(spec.source.open(&mut interfaces)?, batch.max(1));
        let port: Box<dyn Receive> = match capture_of(arguments, &spec.endpoint) {
            Some(path) => Box::new(Capture::create(port, path)?),
            None => Box::new(port),
        };
        ports.inputs.push((spec.endpoint.clone(), port));
    }
    for spec in &arguments.outputs {
        let port = spec.target.open(&mut interfaces)?;
        let port = match capture_of(arguments, &spec.endpoint) {
            Some(path) => Box::new(Capture::create(port, path)?),
            None => port,
        };
        ports.outputs.push((spec.endpoint.clone(), port));
    }
    Ok(ports)
}

fn writes_files(arguments: &Arguments) -> bool {
    let mut ends = arguments.outputs.iter().chain(&arguments.capture);
    ends.any(|spec| matches!(spec.target, Target::Capture(_)))
}

fn capture_of<'a>(arguments: &'a Arguments, endpoint: &str) -> Option<&'a PathBuf> {
    arguments.capture.iter().find_map(|spec| match &spec.target {
        Target::Capture(path) if spec.endpoint == endpoint => Some(path),
        _ => None,
    })
}

/// Refuses a capture of an endpoint without a port, which would stay empty.
fn check_captures(arguments: &Arguments) -> anyhow::Result<()> {
    let inputs = arguments.inputs.iter().map(|spec| &spec.endpoint);
    let ends: Vec<&String> =
        inputs.chain(arguments.outputs.iter().map(|it| &it.endpoint)).collect();
    match arguments.capture.iter().find(|spec| !ends.contains(&&spec.endpoint)) {
        Some(spec) => {
            let end = &spec.endpoint;
            bail!("{end} has no port; join it with --in {end}=... or --out {end}=count")
        }
        None => Ok(()),
    }
}
