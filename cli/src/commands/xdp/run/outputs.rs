// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures of packets by their verdict.

use anyhow::bail;
use freeport_ebpf::interpreter::verdict;
use freeport_port::{Arena, BATCH, PcapTransmitter, PortError, Transmit};
use freeport_xdp::Departure;
use std::convert::Infallible;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// `FILE` for packets that are passed, sent back or redirected, or `VERDICT=FILE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Only packets with this verdict.
    verdict: Option<u32>,
    file: PathBuf,
}

/// Verdicts as they are named before a file.
const VERDICTS: [(&str, u32); 5] = [
    ("aborted", verdict::ABORTED),
    ("drop", verdict::DROP),
    ("pass", verdict::PASS),
    ("tx", verdict::TX),
    ("redirect", verdict::REDIRECT),
];

impl FromStr for Output {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (before, file) = text.split_once('=').unwrap_or(("", text));
        let found = VERDICTS.iter().find(|(name, _)| *name == before);
        let (verdict, file) = match found {
            Some((_, verdict)) => (Some(*verdict), file),
            // The name of the file contains an equals sign.
            None => (None, text),
        };
        Ok(Self { verdict, file: file.into() })
    }
}

impl Output {
    fn takes(&self, verdict: u32) -> bool {
        let is_forwarded = matches!(verdict, verdict::PASS | verdict::TX | verdict::REDIRECT);
        self.verdict.map_or(is_forwarded, |only| only == verdict)
    }
}

/// The files that are written.
pub struct Outputs {
    open: Vec<(Output, Arena, PcapTransmitter)>,
}

impl Outputs {
    /// Creates the files.
    ///
    /// # Errors
    /// A file that cannot be written, or is the capture that is read.
    pub fn create(outputs: &[Output], trace: &Path) -> anyhow::Result<Self> {
        let identity =
            |file: &Path| file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let mut open = vec![];
        for output in outputs {
            let own = identity(&output.file);
            if own.is_some() && own == identity(trace) {
                bail!("{}: this is the capture that is read", output.file.display());
            }
            let writer = PcapTransmitter::create(&output.file)?;
            open.push((output.clone(), Arena::default(), writer));
        }
        Ok(Self { open })
    }

    /// Writes a packet to the files for its verdict.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn offer(&mut self, departure: &Departure, timestamp_ns: u64) -> Result<(), PortError> {
        for (output, arena, writer) in &mut self.open {
            if output.takes(departure.verdict) {
                let bytes = &departure.bytes;
                arena.push(bytes, bytes.len(), timestamp_ns)?;
                if arena.len() == BATCH {
                    writer.transmit(arena.frames())?;
                    arena.clear();
                }
            }
        }
        Ok(())
    }

    /// Writes buffered packets, and closes the files.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(&mut self) -> Result<(), PortError> {
        for (_, arena, mut writer) in self.open.drain(..) {
            writer.transmit(arena.frames())?;
            writer.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_for_one_verdict() {
        let output = |text: &str| text.parse::<Output>().unwrap();
        let taken = |text: &str| (0..6).filter(|&it| output(text).takes(it)).collect::<Vec<_>>();
        assert_eq!(taken("out.pcap"), [2, 3, 4]);
        assert_eq!(taken("drop=out.pcap"), [1]);
        assert_eq!(taken("aborted=a=b.pcap"), [0]);
        assert_eq!(output("aborted=a=b.pcap").file, Path::new("a=b.pcap"));
        assert_eq!(output("a=b.pcap").file, Path::new("a=b.pcap"));
    }
}
