// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts programs plain, or accelerated by the preloaded library with a private monitor.

use super::programs::{Program, until};
use anyhow::{Context, Result, ensure};
use freeport_sockets_proto::MONITOR_VARIABLE;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit for the start of the monitor.
const BEGINNING: Duration = Duration::from_secs(10);

/// Whether a program is accelerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// With the library.
    Accelerated,
    /// Without the library.
    Plain,
}

impl Mode {
    /// Both modes, accelerated first.
    pub const ALL: [Self; 2] = [Self::Accelerated, Self::Plain];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accelerated => "freeport",
            Self::Plain => "plain",
        }
    }
}

/// Starts programs.
pub struct Launcher {
    /// Path of this program.
    itself: PathBuf,
    acceleration: Acceleration,
}

enum Acceleration {
    /// A command that starts the command that follows it.
    Prefix(Vec<String>),
    /// `freeport exec`, with a monitor that listens at `address`.
    Exec { address: PathBuf, monitor: Program },
    /// Nothing can be accelerated, for this reason.
    Missing(String),
}

impl Launcher {
    /// Creates a launcher that accelerates by the command `prefix`, or by `freeport exec` with the
    /// library. `folder` is for its files.
    ///
    /// # Errors
    /// The monitor does not start.
    pub fn new(prefix: Option<&str>, folder: &Path) -> Result<Self> {
        let itself = std::env::current_exe().context("the path of this program is unknown")?;
        let acceleration = match prefix {
            Some(prefix) => {
                let words: Vec<String> = prefix.split_whitespace().map(str::to_owned).collect();
                ensure!(!words.is_empty(), "the command of --with is empty");
                Acceleration::Prefix(words)
            }
            None => with_monitor(&itself, folder)?,
        };
        Ok(Self { itself, acceleration })
    }

    /// Returns the reason why nothing can be accelerated, if so.
    pub fn missing(&self) -> Option<&str> {
        match &self.acceleration {
            Acceleration::Missing(why) => Some(why),
            _ => None,
        }
    }

    /// Returns the modes that can be measured, accelerated first.
    pub fn modes(&self) -> &'static [Mode] {
        if self.missing().is_some() { &Mode::ALL[1..] } else { &Mode::ALL }
    }

    /// Returns the monitor's process, if there is one.
    pub fn monitor(&self) -> Option<&Program> {
        match &self.acceleration {
            Acceleration::Exec { monitor, .. } => Some(monitor),
            _ => None,
        }
    }

    /// Returns the number of connections that the monitor has accelerated, if there is one.
    pub fn accelerated(&self) -> Option<u64> {
        let Acceleration::Exec { address, .. } = &self.acceleration else { return None };
        paired(&self.itself, address)
    }

    /// Returns a warning if a measurement accelerated nothing; `before` is the result of
    /// [`accelerated`](Self::accelerated) before it.
    pub fn doubt_since(&self, before: Option<u64>) -> Option<String> {
        if self.missing().is_some() {
            return Some("nothing is accelerated, since the library is missing".into());
        }
        let is_none = before.is_some() && self.accelerated() == before;
        is_none.then(|| "no connection was accelerated".into())
    }

    /// Returns a command for a program, to which arguments can be added.
    pub fn command(&self, mode: Mode, program: impl AsRef<OsStr>) -> Command {
        let administrators = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let mut command = match (&self.acceleration, mode) {
            (Acceleration::Prefix(words), Mode::Accelerated) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]).arg(program);
                command
            }
            (Acceleration::Exec { address, .. }, Mode::Accelerated) => {
                let mut command = exec(&self.itself, address);
                command.arg(program);
                command
            }
            _ => Command::new(program),
        };
        command.env("PATH", administrators);
        command
    }

    /// Returns a command for a program of the bench that plays a role.
    pub fn peer(&self, mode: Mode) -> Command {
        let mut command = self.command(mode, &self.itself);
        command.args(["bench", "peer"]);
        command
    }
}

/// Returns the number of connections that the monitor at `address` has paired, if it answers.
fn paired(itself: &Path, address: &Path) -> Option<u64> {
    let mut command = Command::new(itself);
    command.args(["sockets", "stats", "--json"]).env(MONITOR_VARIABLE, address);
    let reported: Value = serde_json::from_slice(&command.output().ok()?.stdout).ok()?;
    reported["paired"].as_u64()
}

/// Returns `freeport exec`, to which a command can be added.
fn exec(itself: &Path, address: &Path) -> Command {
    let mut command = Command::new(itself);
    command.args(["exec", "--"]).env(MONITOR_VARIABLE, address);
    command
}

/// Starts a monitor, and checks whether a command can be accelerated: without the library none can.
fn with_monitor(itself: &Path, folder: &Path) -> Result<Acceleration> {
    let address = folder.join("monitor.sock");
    let mut command = Command::new(itself);
    command.arg("node").env(MONITOR_VARIABLE, &address);
    let mut monitor = Program::start("the monitor", command, &[], &folder.join("monitor.log"))?;
    until(BEGINNING, || Ok(paired(itself, &address).is_some()), &mut monitor)?;
    let mut probe = exec(itself, &address);
    let probe = probe.arg(itself).arg("--version").output().context("freeport exec")?;
    if probe.status.success() {
        return Ok(Acceleration::Exec { address, monitor });
    }
    let said = String::from_utf8_lossy(&probe.stderr);
    Ok(Acceleration::Missing(format!("nothing is accelerated: {}", said.trim())))
}
