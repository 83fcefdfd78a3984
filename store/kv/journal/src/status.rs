// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies, and what the server reports about its journal.

use crate::error::Failure;

/// When the bytes of the log become durable, as `appendfsync` of Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Before their replies are sent. One sync serves all batches that have gathered meanwhile.
    Always,
    /// About once a second. A crash of the machine loses the last second or two; a crash of the
    /// process loses nothing.
    #[default]
    EverySecond,
    /// When the operating system likes. A crash of the process loses nothing.
    Never,
}

/// A position in the log: the number of bytes before it, over all segments. It never decreases,
/// except when another state is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The state of a journal, for reports.
#[derive(Clone, Debug)]
pub struct Status {
    /// The policy.
    pub policy: Policy,
    /// Number of the manifest.
    pub generation: u64,
    /// Bytes of the snapshot and of all segments of the log.
    pub bytes: u64,
    /// Bytes of the snapshot; 0 without one.
    pub snapshot_bytes: u64,
    /// Bytes of all segments of the log.
    pub log_bytes: u64,
    /// Number of segments.
    pub segments: usize,
    /// Position of all that was appended.
    pub end: Position,
    /// Position up to which the log is written.
    pub written: Position,
    /// Position up to which the log is durable.
    pub durable: Position,
    /// Bytes in memory that could not be written yet, or wait for the next sync.
    pub unwritten_bytes: u64,
    /// The lasting fault, if there is one.
    pub failure: Option<Failure>,
    /// The last fault, also if it has ended.
    pub last_failure: Option<Failure>,
    /// Reason for which the last write was refused, if it was.
    pub last_refusal: Option<String>,
    /// Whether a snapshot is being written.
    pub snapshot_is_active: bool,
    /// Number of batches and units, and their bytes, since the folder was opened.
    pub appended_batches: u64,
    /// Number of units appended since the folder was opened.
    pub appended_units: u64,
    /// Number of syncs of the log.
    pub syncs: u64,
    /// Number of syncs that took longer than the time between two of them (`EverySecond`).
    pub delayed_syncs: u64,
    /// Number of operations of the disk that failed.
    pub faults: u64,
}

/// Findings and changes of opening a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the folder had no journal, so that a new one was made.
    pub is_new: bool,
    /// Number of entries of the snapshot.
    pub entries: u64,
    /// Number of units of the log.
    pub units: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// The end of an interrupted write, which was cut off.
    pub cut: Option<Cut>,
    /// Names of files that no manifest named, and which were removed.
    pub removed: Vec<String>,
    /// The reason why the file `lineage` cannot be used. Followers then need the whole state.
    pub lost_lineage: Option<String>,
}

/// Bytes that were cut off the end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: std::path::PathBuf,
    /// The new length of the file, in bytes.
    pub offset: u64,
    /// Number of bytes that were cut off.
    pub bytes: u64,
    /// The fault at that place.
    pub reason: String,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Cut { file, offset, bytes, reason } = self;
        let file = file.display();
        write!(formatter, "{file} was cut at offset {offset}, by {bytes} bytes: {reason}")
    }
}

/// How far reading a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}
