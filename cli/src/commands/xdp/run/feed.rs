// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets of a capture in order, with their numbers as in other tools, and with times that
//! increase across repetitions.

use anyhow::bail;
use freeport_port::{Arena, PcapReceiver, PortError, ProblemKind, Receive};
use std::path::{Path, PathBuf};

/// Maximum size of a capture that is kept in memory for repetitions; a larger one is read again.
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// A capture and its current packet.
pub struct Feed {
    file: PathBuf,
    receiver: PcapReceiver,
    bytes: Vec<u8>,
    number: u64,
    timestamp_ns: u64,
    /// Offset of the times of this repetition; `None` before its first packet.
    offset_ns: Option<u64>,
    time_ns: u64,
    kept: Option<Kept>,
}

/// A small capture in memory.
#[derive(Default)]
struct Kept {
    arena: Arena,
    numbers: Vec<u64>,
    bytes: u64,
    /// Index of the next packet, after the capture was read.
    next: Option<usize>,
}

impl Feed {
    /// Opens a capture. There is no current packet until [`advance`](Self::advance).
    ///
    /// # Errors
    /// A file that cannot be read or is not a capture of Ethernet frames.
    pub fn open(file: &Path, repeats: bool) -> Result<Self, PortError> {
        Ok(Self {
            file: file.to_owned(),
            receiver: PcapReceiver::open(file)?,
            bytes: vec![],
            number: 0,
            timestamp_ns: 0,
            offset_ns: Some(0),
            time_ns: 0,
            kept: repeats.then(Kept::default),
        })
    }

    /// Starts again from the first packet; times keep increasing.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn rewind(&mut self) -> Result<(), PortError> {
        self.offset_ns = None;
        match &mut self.kept {
            Some(kept) => kept.next = Some(0),
            None => self.receiver = PcapReceiver::open(&self.file)?,
        }
        Ok(())
    }

    /// Moves to the next packet; returns whether there is one.
    ///
    /// # Errors
    /// A malformed file, or a record that is not an Ethernet frame.
    pub fn advance(&mut self) -> anyhow::Result<bool> {
        let is_kept = self.kept.as_ref().is_some_and(|kept| kept.next.is_some());
        let there_is = if is_kept { self.recall() } else { self.read()? };
        if there_is {
            let (time_ns, timestamp_ns) = (self.time_ns, self.timestamp_ns);
            let offset_ns =
                self.offset_ns.get_or_insert_with(|| time_ns.saturating_sub(timestamp_ns));
            // Records may be out of order; the kernel's clock never goes back.
            self.time_ns = time_ns.max(timestamp_ns.saturating_add(*offset_ns));
        }
        Ok(there_is)
    }

    /// Reads the next packet of the file.
    fn read(&mut self) -> anyhow::Result<bool> {
        loop {
            let batch = self.receiver.receive(1)?;
            let frame = batch.frames().first().copied();
            if frame.is_some() {
                self.bytes.clear();
                self.bytes.extend_from_slice(batch.bytes(0));
            }
            self.refuse_others()?;
            if let Some(frame) = frame {
                self.number = self.receiver.record_count();
                self.timestamp_ns = frame.timestamp_ns;
                self.keep()?;
                return Ok(true);
            }
            if self.receiver.is_ended() {
                return Ok(false);
            }
        }
    }

    /// Keeps the packet for repetitions, unless the capture is large.
    fn keep(&mut self) -> Result<(), PortError> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        kept.bytes += self.bytes.len() as u64;
        if kept.bytes > KEPT_BYTES_MAX {
            self.kept = None;
            return Ok(());
        }
        kept.numbers.push(self.number);
        kept.arena.push(&self.bytes, self.bytes.len(), self.timestamp_ns)
    }

    /// Moves to the next packet in memory.
    fn recall(&mut self) -> bool {
        let Some(Kept { arena, numbers, next: Some(next), .. }) = &mut self.kept else {
            return false;
        };
        let frames = arena.frames();
        let Some(frame) = frames.frames().get(*next) else { return false };
        self.bytes.clear();
        self.bytes.extend_from_slice(frames.bytes(*next));
        (self.number, self.timestamp_ns) = (numbers[*next], frame.timestamp_ns);
        *next += 1;
        true
    }

    fn refuse_others(&self) -> anyhow::Result<()> {
        let Some(problem) = self.receiver.first_foreign() else { return Ok(()) };
        let place = format!("{}: packet {}", problem.file.display(), problem.record);
        match problem.kind {
            ProblemKind::LinkType(link) => bail!("{place} is of link type {link}, not Ethernet"),
            _ => bail!("{place} refers to an interface that the file does not describe"),
        }
    }

    /// The packet's number in the file, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the packet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Time of capture, in nanoseconds since 1970.
    pub fn timestamp_ns(&self) -> u64 {
        self.timestamp_ns
    }

    /// Time across repetitions, which never decreases.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Warns about incomplete records of the capture.
    pub fn warn(&self) {
        if let Some(first) = self.receiver.problems().first() {
            let count = self.receiver.problem_count();
            eprintln!("warning: {count} records are not complete packets; the first: {first}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_port::{Arena, PcapTransmitter, Transmit};

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
        let first = [(1, 1, 1_000, 1_000), (2, 2, 5_000, 5_000), (3, 1, 4_000, 5_000)];
        let second = [(1, 1, 1_000, 5_000), (2, 2, 5_000, 9_000), (3, 1, 4_000, 9_000)];
        // From memory, and from the file again.
        for is_kept in [true, false] {
            let mut feed = Feed::open(&file, is_kept).unwrap();
            for expected in [first, second] {
                let mut seen = vec![];
                while feed.advance().unwrap() {
                    let (length, time_ns) = (feed.bytes().len(), feed.timestamp_ns());
                    seen.push((feed.number(), length, time_ns, feed.time_ns()));
                }
                assert_eq!(seen, expected);
                feed.rewind().unwrap();
            }
        }
    }
}
