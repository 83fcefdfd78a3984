// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of opening a folder, of snapshots, and of writes that are refused.

use crate::disk::words;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a folder is not opened. Each names the file, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error(
        "the folder {} is in use by {}: stop that server, or choose another folder",
        .folder.display(), process(.pid)
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The other process, if its lock names it.
        pid: Option<u32>,
    },
    /// The system reported an error.
    #[error("{action} {}: {}", .file.display(), words(.error))]
    System {
        /// The attempted operation, as in "reading".
        action: &'static str,
        /// Its file or folder.
        file: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The manifest cannot be read.
    #[error("{}: {reason}. Restore the folder from a copy", .file.display())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// The fault.
        reason: String,
    },
    /// There are files of data, and no manifest that names them.
    #[error(
        "{}: the manifest is missing, but there is {name}. Restore the folder from a copy, \
         or choose an empty folder", .folder.display()
    )]
    NoManifest {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        name: String,
    },
    /// A file that the manifest names does not exist.
    #[error("{}: the manifest names this file, and it is missing. Restore the folder from a copy",
        .file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// A snapshot cannot be read as a whole.
    #[error("{} at offset {offset}: {reason}. Restore the folder from a copy", .file.display())]
    Snapshot {
        /// The snapshot.
        file: PathBuf,
        /// The offset of the bad place, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
    },
    /// A bad place in the log, behind which there are bytes that were durable.
    #[error(
        "{} at offset {offset}: {reason}; {evidence}, so this is not the end of an interrupted \
         write. `freeport kv inspect {folder}` shows the folder, and `freeport kv inspect \
         {folder} --cut` cuts the log there and loses what follows. Or restore the folder from a \
         copy", .file.display(), folder = .folder.display()
    )]
    Corrupt {
        /// The folder.
        folder: PathBuf,
        /// The segment.
        file: PathBuf,
        /// The offset of the bad place, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
        /// The reason why bytes behind the place had been durable.
        evidence: String,
    },
    /// The caller did not accept an entry or a unit.
    #[error("{} at offset {offset}: {reason}", .file.display())]
    Replay {
        /// The snapshot or the segment.
        file: PathBuf,
        /// The offset of the block or batch, in bytes.
        offset: u64,
        /// The caller's reason.
        reason: String,
    },
}

fn process(pid: &Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

impl OpenError {
    pub(crate) fn system(action: &'static str, file: &Path) -> impl FnOnce(io::Error) -> OpenError {
        move |error| OpenError::System { action, file: file.to_owned(), error }
    }
}

/// The reason why a write was refused before anything was executed, in the words of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, such as "No space left on device".
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

/// A fault of the disk that lasts: the journal refuses writes, and tries again until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The failing operation.
    pub kind: FailureKind,
    /// The file, or the folder.
    pub file: PathBuf,
    /// The reason in the words of the system, such as "Input/output error".
    pub reason: String,
}

/// Operations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Bytes of units could not be written. They stay in memory.
    Write,
    /// Written bytes could not be made durable, so the segment is not trusted any longer.
    Sync,
    /// It is not known which manifest is on the disk.
    Manifest,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, file: &Path, error: &io::Error) -> Failure {
        Failure { kind, file: file.to_owned(), reason: words(error) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let action = match self.kind {
            FailureKind::Write => "writing",
            FailureKind::Sync => "making durable",
            FailureKind::Manifest => "replacing the manifest of",
        };
        write!(formatter, "{action} {}: {}", self.file.display(), self.reason)
    }
}

/// The lineage of a log was not replaced, because the disk has failed. Another attempt may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("replacing {}: {reason}", .file.display())]
pub struct LineageError {
    /// The file.
    pub file: PathBuf,
    /// The error in the words of the system.
    pub reason: String,
}

/// Reasons why there is no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Another snapshot is being written.
    #[error("a snapshot is being written already")]
    Busy,
    /// The caller cancelled it.
    #[error("the snapshot was cancelled")]
    Cancelled,
    /// The journal has a fault that has to end before.
    #[error("{0}")]
    Failing(Failure),
    /// The lineage of a new state could not be stored.
    #[error("{0}")]
    Lineage(#[from] LineageError),
    /// The system reported an error.
    #[error("{action} {}: {reason}", .file.display())]
    System {
        /// The attempted operation, as in "writing".
        action: &'static str,
        /// Its file.
        file: PathBuf,
        /// The error in the words of the system.
        reason: String,
    },
}

impl SnapshotError {
    pub(crate) fn system(
        action: &'static str,
        file: &Path,
    ) -> impl FnOnce(io::Error) -> SnapshotError {
        move |error| SnapshotError::System { action, file: file.to_owned(), reason: words(&error) }
    }
}
