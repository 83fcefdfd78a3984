// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How programs are started: as they are, or accelerated by the preloaded library, with a monitor
//! of the bench's own.

use super::programs::{Program, until};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The library's file.
const LIBRARY: &str = "libfreeport_preload.so";
/// Where the library is, if not where it is looked for.
const LIBRARY_VARIABLE: &str = "FREEPORT_PRELOAD";
/// How long the monitor may take to begin.
const BEGINNING: Duration = Duration::from_secs(10);

/// Whether a program is accelerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// With the library.
    Accelerated,
    /// As it is.
    Plain,
}

impl Mode {
    /// Both, ours first.
    pub const ALL: [Self; 2] = [Self::Accelerated, Self::Plain];

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accelerated => "freeport",
            Self::Plain => "plain",
        }
    }
}

/// Starts programs.
pub struct Launcher {
    /// This program.
    itself: PathBuf,
    acceleration: Acceleration,
}

enum Acceleration {
    /// A command that starts the command behind it.
    Prefix(Vec<String>),
    Library {
        library: PathBuf,
        address: PathBuf,
        monitor: Program,
    },
    /// There is none, for this reason.
    Missing(String),
}

impl Launcher {
    /// One that accelerates by the words of `prefix`, or by the library if it is there. `folder`
    /// is for its files.
    ///
    /// # Errors
    /// The monitor does not begin.
    pub fn new(prefix: Option<&str>, folder: &Path) -> Result<Self> {
        let itself = std::env::current_exe().context("the path of this program")?;
        let acceleration = match (prefix, library(&itself)) {
            (Some(prefix), _) => {
                let words: Vec<String> = prefix.split_whitespace().map(str::to_owned).collect();
                ensure!(!words.is_empty(), "an empty command accelerates nothing");
                Acceleration::Prefix(words)
            }
            (None, Some(library)) => with_monitor(&itself, library, folder)?,
            (None, None) => Acceleration::Missing(format!(
                "{LIBRARY} is neither beside {} nor where {LIBRARY_VARIABLE} says, so nothing is \
                 accelerated: cargo build --release -p freeport-preload",
                itself.display()
            )),
        };
        Ok(Self { itself, acceleration })
    }

    /// Why nothing can be accelerated, if so.
    pub fn missing(&self) -> Option<&str> {
        match &self.acceleration {
            Acceleration::Missing(why) => Some(why),
            _ => None,
        }
    }

    /// What can be measured, ours first.
    pub fn modes(&self) -> &'static [Mode] {
        if self.missing().is_some() { &Mode::ALL[1..] } else { &Mode::ALL }
    }

    /// The monitor's process, if there is one.
    pub fn monitor(&self) -> Option<&Program> {
        match &self.acceleration {
            Acceleration::Library { monitor, .. } => Some(monitor),
            _ => None,
        }
    }

    /// A program, to which arguments can be added.
    pub fn command(&self, mode: Mode, program: impl AsRef<OsStr>) -> Command {
        let administrators = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let mut command = match (&self.acceleration, mode) {
            (Acceleration::Prefix(words), Mode::Accelerated) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]).arg(program);
                command
            }
            _ => Command::new(program),
        };
        if let (Acceleration::Library { library, address, .. }, Mode::Accelerated) =
            (&self.acceleration, mode)
        {
            command.env("LD_PRELOAD", library).env(MONITOR_VARIABLE, address);
        }
        command.env("PATH", administrators);
        command
    }

    /// A program of the bench's own, which plays a role.
    pub fn peer(&self, mode: Mode) -> Command {
        let mut command = self.command(mode, &self.itself);
        command.args(["bench", "peer"]);
        command
    }
}

use freeport_sockets_proto::MONITOR_VARIABLE;

/// The library, where it is put with this program.
fn library(itself: &Path) -> Option<PathBuf> {
    let beside = itself.parent().map(|folder| folder.join(LIBRARY));
    let installed = itself.parent().map(|folder| folder.join("../lib/freeport").join(LIBRARY));
    let told = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    [told, beside, installed].into_iter().flatten().find(|path| path.is_file())
}

fn with_monitor(itself: &Path, library: PathBuf, folder: &Path) -> Result<Acceleration> {
    let address = folder.join("monitor.sock");
    let mut command = Command::new(itself);
    command.arg("node").env(MONITOR_VARIABLE, &address);
    let mut monitor = Program::start("the monitor", command, &[], &folder.join("monitor.log"))?;
    until(BEGINNING, || Ok(UnixStream::connect(&address).is_ok()), &mut monitor)?;
    Ok(Acceleration::Library { library, address, monitor })
}
