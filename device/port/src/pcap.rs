// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Capture files as ports: reading and writing pcap and pcapng.
//!
//! Timestamps have nanosecond resolution. A capture may have truncated a frame at its snap length:
//! such a frame is lent as it is, with its original length, and reported. A file is untrusted
//! input: records that cannot be frames are skipped, reported, and counted as lost. For a broken
//! file the report names the file and the record, counted from 1 as other tools count.

mod read;
mod write;

pub use read::PcapReceiver;
pub use write::PcapTransmitter;

use crate::port::MAX_FRAME;
use pcap_file::PcapError;
use std::fmt;
use std::path::{Path, PathBuf};

/// The two kinds of capture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// The classic format, written with nanoseconds.
    Pcap,
    /// The newer format, which consists of blocks.
    PcapNg,
}

impl FileFormat {
    /// Returns the format for a file name's extension: pcapng unless it is `.pcap`.
    pub fn of_path(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("pcap") => FileFormat::Pcap,
            _ => FileFormat::PcapNg,
        }
    }
}

/// A record that is not a complete frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Path of the file.
    pub file: PathBuf,
    /// Number of the record, counted from 1.
    pub record: u64,
    /// Kind of problem.
    pub kind: ProblemKind,
}

/// Kinds of problems with a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProblemKind {
    /// The capture truncated the frame; the bytes present were lent.
    Cut {
        /// Bytes in the file.
        captured: usize,
        /// Bytes on the wire.
        original: usize,
    },
    /// No port carries a frame of this length; it was skipped.
    Length(usize),
    /// It comes from an interface that is not Ethernet; it was skipped.
    LinkType(u32),
    /// It names an interface that the file does not describe; it was skipped.
    Interface(u32),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: record {}: ", self.file.display(), self.record)?;
        match self.kind {
            ProblemKind::Cut { captured, original } => {
                write!(f, "the capture kept {captured} of {original} bytes")
            }
            ProblemKind::Length(length) => {
                write!(f, "skipped: {length} bytes, a port carries 1 to {MAX_FRAME}")
            }
            ProblemKind::LinkType(link) => write!(f, "skipped: link type {link}, not Ethernet"),
            ProblemKind::Interface(id) => {
                write!(f, "skipped: the file does not describe interface {id}")
            }
        }
    }
}

/// Explains an error of the reader to the user.
fn reason(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "the file ends inside it".into(),
        PcapError::IoError(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the file ends inside it".into()
        }
        PcapError::IoError(source) => source.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
