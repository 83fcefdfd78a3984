// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets of a capture, one after the other, with their numbers as other tools have them, and
//! the time that goes on through repetitions.

use anyhow::bail;
use freeport_nic::port::{PcapReceiver, PortError, ProblemKind, Receive};
use std::path::{Path, PathBuf};

/// A capture and the packet that is at hand.
pub struct Feed {
    file: PathBuf,
    receiver: PcapReceiver,
    bytes: Vec<u8>,
    timestamp_ns: u64,
    /// What is added to the times of this repetition; none before its first packet.
    offset_ns: Option<u64>,
    time_ns: u64,
}

impl Feed {
    /// Opens a capture. No packet is at hand yet.
    ///
    /// # Errors
    /// A file that cannot be read or is no capture of Ethernet.
    pub fn open(file: &Path) -> Result<Self, PortError> {
        let receiver = PcapReceiver::open(file)?;
        let file = file.to_owned();
        Ok(Self { file, receiver, bytes: vec![], timestamp_ns: 0, offset_ns: Some(0), time_ns: 0 })
    }

    /// Begins again; the time goes on.
    ///
    /// # Errors
    /// As with [`open`](Self::open).
    pub fn rewind(&mut self) -> Result<(), PortError> {
        self.receiver = PcapReceiver::open(&self.file)?;
        self.offset_ns = None;
        Ok(())
    }

    /// Takes the next packet; says whether there is one.
    ///
    /// # Errors
    /// Where the file is broken, and a record that is not of Ethernet.
    pub fn advance(&mut self) -> anyhow::Result<bool> {
        loop {
            let batch = self.receiver.receive(1)?;
            let frame = batch.frames().first().copied();
            if frame.is_some() {
                self.bytes.clear();
                self.bytes.extend_from_slice(batch.bytes(0));
            }
            self.refuse_others()?;
            if let Some(frame) = frame {
                self.timestamp_ns = frame.timestamp_ns;
                let time_ns = self.time_ns;
                let offset_ns = self
                    .offset_ns
                    .get_or_insert_with(|| time_ns.saturating_sub(frame.timestamp_ns));
                // Records may be out of order; the kernel's clock never goes back.
                self.time_ns = time_ns.max(frame.timestamp_ns.saturating_add(*offset_ns));
                return Ok(true);
            }
            if self.receiver.is_ended() {
                return Ok(false);
            }
        }
    }

    fn refuse_others(&self) -> anyhow::Result<()> {
        let Some(problem) = self.receiver.first_foreign() else { return Ok(()) };
        let place = format!("{}: packet {}", problem.file.display(), problem.record);
        match problem.kind {
            ProblemKind::LinkType(link) => bail!("{place} is of link type {link}, not Ethernet"),
            _ => bail!("{place} is of an interface that the file does not describe"),
        }
    }

    /// The packet's number in the file, from 1.
    pub fn number(&self) -> u64 {
        self.receiver.record_count()
    }

    /// The packet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// When it was captured, in nanoseconds since 1970.
    pub fn timestamp_ns(&self) -> u64 {
        self.timestamp_ns
    }

    /// The same with the repetitions before, and never less than of an earlier packet.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Says on standard error what of the capture was not whole.
    pub fn warn(&self) {
        if let Some(first) = self.receiver.problems().first() {
            let count = self.receiver.problem_count();
            eprintln!("warning: {count} records are no whole packets; the first: {first}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_nic::port::{Arena, PcapTransmitter, Transmit};

    #[test]
    fn packets_are_numbered_and_the_time_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pcap");
        let mut arena = Arena::default();
        for (bytes, time_ns) in [(&[1][..], 1_000), (&[2, 2], 5_000), (&[3], 4_000)] {
            arena.push(bytes, bytes.len(), time_ns).unwrap();
        }
        let mut writer = PcapTransmitter::create(&file).unwrap();
        writer.transmit(arena.frames()).unwrap();
        writer.finish().unwrap();
        let mut feed = Feed::open(&file).unwrap();
        let mut seen = vec![];
        for repetition in 0..2 {
            if repetition > 0 {
                feed.rewind().unwrap();
            }
            while feed.advance().unwrap() {
                seen.push((feed.number(), feed.bytes().len(), feed.timestamp_ns(), feed.time_ns()));
            }
        }
        let first = [(1, 1, 1_000, 1_000), (2, 2, 5_000, 5_000), (3, 1, 4_000, 5_000)];
        let second = [(1, 1, 1_000, 5_000), (2, 2, 5_000, 9_000), (3, 1, 4_000, 9_000)];
        assert_eq!(seen, [first, second].concat());
    }
}
