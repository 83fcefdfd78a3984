// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Capture files as ports: pcap and pcapng in and out.
//!
//! Timestamps are kept to the nanosecond. A capture may have cut a frame at its snap length: such a
//! frame is lent as it is, with its original length, and reported. A file is untrusted input: what
//! cannot be a frame is skipped, reported, and counted as lost, and where the file is broken the
//! report names the file and the record, counted from 1 as other tools count.

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
    /// The old one; written with nanoseconds.
    Pcap,
    /// The new one, with blocks.
    PcapNg,
}

impl FileFormat {
    /// The format that the end of a file's name asks for: pcapng unless it is `.pcap`.
    pub fn of_path(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("pcap") => FileFormat::Pcap,
            _ => FileFormat::PcapNg,
        }
    }
}

/// A record that is not a whole frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Which file.
    pub file: PathBuf,
    /// Which record, counted from 1.
    pub record: u64,
    /// What is the matter with it.
    pub kind: ProblemKind,
}

/// What can be the matter with a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProblemKind {
    /// The capture cut the frame; what there is of it was lent.
    Cut {
        /// Bytes in the file.
        captured: usize,
        /// Bytes on the wire.
        original: usize,
    },
    /// No frame of that many bytes exists here; it was left out.
    Length(usize),
    /// It comes from an interface that is not Ethernet; it was left out.
    LinkType(u32),
    /// It names an interface that the file does not describe; it was left out.
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
                write!(f, "left out: {length} bytes, a port carries 1 to {MAX_FRAME}")
            }
            ProblemKind::LinkType(link) => write!(f, "left out: link type {link}, not Ethernet"),
            ProblemKind::Interface(id) => write!(f, "left out: no interface {id} is described"),
        }
    }
}

/// What a reader's complaint means for whoever has the file.
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
