// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport node`: runs the monitor of accelerated sockets.

mod limit;
mod log;

use crate::diagnostics::{Diagnostics, LogArguments};
use crate::stopping::stop_signals;
use anyhow::Context;
use clap::Args;
use freeport_clicknp::source::without_mark;
use freeport_monitor::background::{self, Begun, Side};
use freeport_monitor::{Error, Location, Options, Policy, Server, confinement};
use log::Log;
use serde_json::json;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// How long to wait for another monitor that is started at the same time.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Args)]
#[command(after_help = "Example:\n  freeport node\n  freeport node --background --idle 600\n\n\
                  The monitor listens at $FREEPORT_MONITOR. Without that variable, a monitor of \
                  root listens at /run/freeport/monitor.sock, and one of another user at \
                  $XDG_RUNTIME_DIR/freeport/monitor.sock or /tmp/freeport-UID/monitor.sock. See \
                  docs/guide/sockets.md.")]
pub struct Arguments {
    /// Run in the background, and return once the monitor listens; the log is beside the socket
    #[arg(long)]
    background: bool,
    /// Exit after this time without members
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// The initial rules [default: /etc/freeport/sockets.policy, if it exists]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Maximum number of slabs, of 64 connections each, between the processes of two users
    /// [default: an eighth of the monitor's limit of descriptors]
    #[arg(long, value_name = "COUNT")]
    user_slabs: Option<usize>,
    /// Log one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArguments,
}

impl Arguments {
    /// How the command reports events.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        Diagnostics { log: Some(&self.log), runs_long: true, is_json: self.json }
    }
}

/// Runs the monitor until a signal stops it.
///
/// # Errors
/// A monitor runs already, or the socket cannot be created.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let location = Location::of_environment();
    let policy = policy(arguments.policy.as_deref())?;
    let idle = arguments.idle.map(Duration::from_secs);
    let slabs_of_users = arguments.user_slabs;
    let options = Options { policy, idle, slabs_of_users, ..Options::default() };
    if !arguments.background {
        serve(&location, options, arguments.json, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    if location.connect().is_ok() {
        return Ok(ExitCode::SUCCESS);
    }
    location.prepare_folder()?;
    // SAFETY: the command line has started no thread.
    match unsafe { background::detach(&location.beside("log")) }? {
        Side::Before => Ok(ExitCode::SUCCESS),
        Side::Background(begun) => {
            serve(&location, options, arguments.json, Some(begun))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads the rules of a file. The default file may be missing.
fn policy(file: Option<&Path>) -> anyhow::Result<Policy> {
    let default = || match env::var_os("XDG_CONFIG_HOME").filter(|it| !it.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("freeport/sockets.policy"),
        None => "/etc/freeport/sockets.policy".into(),
    };
    let path = file.map_or_else(default, Path::to_owned);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if file.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Policy::default());
        }
        Err(error) => return Err(error).context(path.display().to_string()),
    };
    let policy = Policy::parse(without_mark(&text)).with_context(|| path.display().to_string())?;
    tracing::info!(path = %path.display(), rules = policy.rules().len(), "policy loaded");
    Ok(policy)
}

fn serve(
    location: &Location,
    options: Options,
    json: bool,
    begun: Option<Begun>,
) -> anyhow::Result<()> {
    let made = stop_signals().map_err(anyhow::Error::from).and_then(|stop| {
        let place = location.take()?;
        let path = place.path().display().to_string();
        Ok((stop, Server::new(place, options)?, path))
    });
    let (stop, server, path) = match (made, begun) {
        (Ok((stop, server, path)), begun) => {
            if let Some(begun) = begun {
                begun.well();
            }
            (stop, server, path)
        }
        (Err(error), Some(begun)) => {
            // A monitor that was started at the same time serves as well.
            if matches!(error.downcast_ref(), Some(Error::Runs { .. })) && answers(location) {
                begun.well();
                return Ok(());
            }
            begun.failed(&error.to_string());
            return Err(error);
        }
        (Err(error), None) => return Err(error),
    };
    let mut log = Log::new(json);
    log.line("listening", &json!({ "path": path }), &format!("listens at {path}"));
    // The monitor works on a kernel without filters too.
    if let Err(error) = confinement::confine() {
        let text = format!("keeps rights that it does not need: {error}");
        log.line("unconfined", &json!({ "error": error.to_string() }), &text);
    }
    Ok(server.run(stop.as_fd(), &mut |event| log.event(&event))?)
}

/// Waits until a monitor answers; returns whether one does.
fn answers(location: &Location) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if location.connect().is_ok() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}
