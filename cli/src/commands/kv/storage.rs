// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `freeport kv serve` for the folder that keeps its data, and messages about it.

use clap::{Args, ValueEnum};
use freeport_kv_server::{PersistenceOptions, Policy, Progress, Server};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct StorageArguments {
    /// Folder that keeps all changes of keys, made if it is missing [default: none, and the data is
    /// gone when the server ends]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// When changes are safe from a crash of the machine
    #[arg(long, value_name = "POLICY", default_value = "everysec", requires = "dir")]
    appendfsync: Sync,
}

/// Policies, as Redis names them.
#[derive(Clone, Copy, ValueEnum)]
enum Sync {
    /// Before their replies are sent
    Always,
    /// After a second or two
    Everysec,
    /// When the system writes them
    No,
}

impl StorageArguments {
    /// The folder.
    pub fn folder(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Options of the server.
    pub fn options(&self) -> Option<PersistenceOptions> {
        let policy = match self.appendfsync {
            Sync::Always => Policy::Always,
            Sync::Everysec => Policy::EverySecond,
            Sync::No => Policy::Never,
        };
        let folder = self.dir.clone()?;
        Some(PersistenceOptions { policy, ..PersistenceOptions::new(folder) })
    }
}

/// Says how far the server is with its data, if that takes long.
pub struct Loading {
    next: Instant,
}

/// Time between two lines.
const PAUSE: Duration = Duration::from_secs(2);

impl Default for Loading {
    fn default() -> Self {
        Self { next: Instant::now() + PAUSE }
    }
}

impl Loading {
    /// Prints a line, if it is time for one.
    pub fn report(&mut self, progress: Progress) {
        if Instant::now() >= self.next {
            self.next = Instant::now() + PAUSE;
            let Progress { bytes, total_bytes } = progress;
            let percent = bytes.saturating_mul(100) / total_bytes.max(1);
            eprintln!("loading: {percent} % of {total_bytes} bytes");
        }
    }
}

/// Says what was repaired in the server's folder.
pub fn report_repairs(server: &Server) {
    let Some(recovery) = server.recovery() else { return };
    if let Some(cut) = &recovery.journal.cut {
        eprintln!("recovered: {cut}. A crash has interrupted this write");
    }
    for name in &recovery.journal.removed {
        eprintln!("recovered: {name} was not complete, and is removed");
    }
    if let Some(reason) = &recovery.journal.lost_lineage {
        eprintln!("recovered: lineage cannot be read, so replicas copy everything again: {reason}");
    }
}
