// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing capture files.

use super::{FileFormat, reason};
use crate::port::{Frames, MAX_FRAME, PortError, Transmit};
use pcap_file::pcap::PcapHeader;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Resolution written: ticks of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// A transmitter that writes a capture file.
pub struct PcapTransmitter<W: Write = BufWriter<File>> {
    file: PathBuf,
    target: Target<W>,
    snap_length: usize,
}

enum Target<W: Write> {
    // The crate's writer of this format cannot be flushed, so its records are written here.
    Pcap(W),
    PcapNg(PcapNgWriter<W>),
}

impl PcapTransmitter {
    /// Creates or replaces a file, in the format that its name requests.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, PortError> {
        let file = path.into();
        let target =
            File::create(&file).map_err(|source| PortError::File { file: file.clone(), source })?;
        let format = FileFormat::of_path(&file);
        Self::new(BufWriter::new(target), file, format, MAX_FRAME)
    }
}

impl<W: Write> PcapTransmitter<W> {
    /// Writes to `target` at most `snap_length` bytes of each frame; messages name it as `file`.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub fn new(
        mut target: W,
        file: PathBuf,
        format: FileFormat,
        snap_length: usize,
    ) -> Result<Self, PortError> {
        let snaplen = u32::try_from(snap_length).unwrap_or(u32::MAX);
        let made = match format {
            FileFormat::Pcap => {
                let ts_resolution = TsResolution::NanoSecond;
                let endianness = Endianness::Little;
                let header =
                    PcapHeader { snaplen, ts_resolution, endianness, ..Default::default() };
                header.write_to(&mut target).map(|_| Target::Pcap(target))
            }
            FileFormat::PcapNg => start_pcapng(target, snaplen).map(Target::PcapNg),
        };
        match made {
            Ok(target) => Ok(Self { file, target, snap_length }),
            Err(error) => Err(write_error(&file, error)),
        }
    }

    /// Returns the name of the file in messages.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Flushes the target and returns it.
    ///
    /// # Errors
    /// A target that cannot be written.
    pub fn finish(mut self) -> Result<W, PortError> {
        self.flush()?;
        Ok(match self.target {
            Target::Pcap(writer) => writer,
            Target::PcapNg(writer) => writer.into_inner(),
        })
    }
}

impl<W: Write> Transmit for PcapTransmitter<W> {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        for (frame, bytes) in frames.iter() {
            let data = &bytes[..bytes.len().min(self.snap_length)];
            let original = frame.original_length.max(bytes.len());
            let original_len = u32::try_from(original).unwrap_or(u32::MAX);
            let written = match &mut self.target {
                Target::Pcap(writer) => write_pcap(writer, frame.timestamp_ns, original_len, data),
                Target::PcapNg(writer) => writer.write_pcapng_block(EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp: Duration::from_nanos(frame.timestamp_ns),
                    original_len,
                    data: Cow::Borrowed(data),
                    options: vec![],
                }),
            };
            written.map_err(|error| write_error(&self.file, error))?;
        }
        Ok(frames.len())
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        let flushed = match &mut self.target {
            Target::Pcap(writer) => writer.flush(),
            Target::PcapNg(writer) => writer.get_mut().flush(),
        };
        flushed.map(|()| true).map_err(|error| write_error(&self.file, PcapError::IoError(error)))
    }
}

/// Writes a record: the seconds, the nanoseconds, the captured and the original length, the bytes.
fn write_pcap<W: Write>(
    writer: &mut W,
    timestamp_ns: u64,
    original_len: u32,
    data: &[u8],
) -> Result<usize, PcapError> {
    let seconds = u32::try_from(timestamp_ns / 1_000_000_000);
    let seconds = seconds.map_err(|_| PcapError::InvalidField("a timestamp beyond 2106"))?;
    let nanoseconds = (timestamp_ns % 1_000_000_000) as u32;
    for word in [seconds, nanoseconds, data.len() as u32, original_len] {
        writer.write_all(&word.to_le_bytes()).map_err(PcapError::IoError)?;
    }
    writer.write_all(data).map_err(PcapError::IoError)?;
    Ok(16 + data.len())
}

fn start_pcapng<W: Write>(target: W, snaplen: u32) -> Result<PcapNgWriter<W>, PcapError> {
    let mut writer = PcapNgWriter::new(target)?;
    writer.write_pcapng_block(InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen,
        options: vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)],
    })?;
    Ok(writer)
}

fn write_error(file: &Path, error: PcapError) -> PortError {
    let file = file.to_path_buf();
    match error {
        PcapError::IoError(source) => PortError::File { file, source },
        other => PortError::Format { file, reason: reason(&other) },
    }
}
