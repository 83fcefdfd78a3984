// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A decorator that records the frames of a port in a pcapng file.
//!
//! It works in both directions: received frames are written when they are lent, sent ones when the
//! port below has accepted them. So the file has each frame once, in the order on the wire.

use crate::pcap::FileFormat;
use crate::pcap::PcapTransmitter;
use crate::port::{Batch, Frames, MAX_FRAME};
use crate::port::{PortError, Receive, Transmit};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

/// A port whose frames are recorded.
pub struct Capture<P, W: Write = BufWriter<File>> {
    inner: P,
    record: PcapTransmitter<W>,
}

impl<P> Capture<P> {
    /// Records the frames of `inner` in a new pcapng file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(inner: P, path: impl Into<PathBuf>) -> Result<Self, PortError> {
        let path = path.into();
        let file =
            File::create(&path).map_err(|source| PortError::File { file: path.clone(), source })?;
        Self::new(inner, BufWriter::new(file), path)
    }
}

impl<P, W: Write> Capture<P, W> {
    /// Records the frames of `inner` in `target`; messages name it as `file`.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub fn new(inner: P, target: W, file: PathBuf) -> Result<Self, PortError> {
        let record = PcapTransmitter::new(target, file, FileFormat::PcapNg, MAX_FRAME)?;
        Ok(Self { inner, record })
    }

    /// Returns the port below.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Finishes the recording and returns the port below and the target.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub fn finish(self) -> Result<(P, W), PortError> {
        Ok((self.inner, self.record.finish()?))
    }
}

impl<P: Receive, W: Write> Receive for Capture<P, W> {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        let was_ended = self.inner.is_ended();
        let batch = self.inner.receive(most)?;
        self.record.transmit(batch.as_frames())?;
        if batch.is_empty() && !was_ended {
            // The source is idle or has just ended: complete the file up to here.
            self.record.flush()?;
        }
        Ok(batch)
    }

    fn is_ended(&self) -> bool {
        self.inner.is_ended()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks()
    }
}

impl<P: Transmit, W: Write> Transmit for Capture<P, W> {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        let accepted = self.inner.transmit(frames)?;
        self.record.transmit(frames.first(accepted))?;
        Ok(accepted)
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        self.record.flush()?;
        self.inner.flush()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{self, plain};
    use crate::memory::{Generator, Sink};
    use crate::pcap::PcapReceiver;

    fn memory<P>(inner: P) -> Capture<P, Vec<u8>> {
        Capture::new(inner, vec![], "memory".into()).expect("memory can be written")
    }

    #[test]
    fn it_conforms_on_both_sides() {
        conformance::check_receiver(|trace| memory(Generator::once(trace).expect("good")));
        conformance::check_transmitter(|| memory(Sink::keeping()), |it| it.inner.kept().to_vec());
    }

    #[test]
    fn the_file_holds_what_was_accepted_and_only_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.pcapng");
        let trace = plain(&[vec![1; 60], vec![2; 9_000], vec![3; 61]]);
        let mut source = Generator::once(&trace).expect("good");
        let mut port = Capture::create(Sink::counting().with_room(2), &path).expect("a file");
        let batch = source.receive(3).expect("frames");
        assert_eq!(port.transmit(batch.as_frames()).expect("room for two"), 2);
        port.finish().expect("written");
        let mut file = PcapReceiver::open(&path).expect("readable");
        let batch = file.receive(9).expect("two frames");
        assert_eq!(batch.len(), 2);
        assert_eq!((batch.bytes(0), batch.bytes(1)), (&[1; 60][..], &[2; 9_000][..]));
    }
}
