// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading capture files: records become frames, block by block, and no field of a file is trusted.

use super::{Problem, ProblemKind, reason};
use crate::arena::Arena;
use crate::port::{Batch, PortError, Receive};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// Maximum number of problems that are kept with their position; further ones are only counted.
const MOST_PROBLEMS: usize = 64;
/// Resolution of an interface that states none.
const MICROSECOND_RESOLUTION: u8 = 6;

/// Reads a capture file.
pub struct PcapReceiver {
    file: PathBuf,
    source: Source,
    record: u64,
    arena: Arena,
    first_foreign: Option<Problem>,
    problems: Vec<Problem>,
    problem_count: u64,
    left_out: Kept,
    cut: Kept,
    broken: Option<PortError>,
    ended: bool,
}

/// Number of problems of one kind, and the first of them.
#[derive(Default)]
struct Kept {
    count: u64,
    first: Option<Problem>,
}

enum Source {
    Pcap(PcapReader<BufReader<File>>),
    PcapNg(PcapNgReader<BufReader<File>>, Vec<Interface>),
}

/// Description of an interface in a pcapng file.
struct Interface {
    link: DataLink,
    snap_length: usize,
    resolution: u8,
    offset_s: u64,
}

/// A packet record of either format.
struct Record<'a> {
    bytes: Cow<'a, [u8]>,
    original_length: usize,
    timestamp_ns: u64,
}

/// First bytes of a pcap file: with times in micro- or nanoseconds, in either byte order.
const PCAP_MAGIC: [[u8; 4]; 4] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

impl PcapReceiver {
    /// Opens a file of either format.
    ///
    /// # Errors
    /// A file that cannot be read, is not a capture, or holds no Ethernet frames.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, PortError> {
        let file = path.into();
        let unreadable = |source| PortError::File { file: file.clone(), source };
        let mut reader = BufReader::new(File::open(&file).map_err(unreadable)?);
        let begin = reader.fill_buf().map_err(unreadable)?;
        let is_pcapng = begin.starts_with(&[10, 13, 13, 10]);
        let malformed = |reason: String| PortError::Format { file: file.clone(), reason };
        if !is_pcapng && !PCAP_MAGIC.iter().any(|magic| begin.starts_with(magic)) {
            let what = if begin.is_empty() { "it is empty" } else { "it does not begin like one" };
            return Err(malformed(format!("is not a capture, neither pcap nor pcapng: {what}")));
        }
        let source = if is_pcapng {
            let reader = PcapNgReader::new(reader).map_err(|error| malformed(reason(&error)))?;
            Source::PcapNg(reader, vec![])
        } else {
            let reader = PcapReader::new(reader).map_err(|error| malformed(reason(&error)))?;
            let link = reader.header().datalink;
            if link != DataLink::ETHERNET {
                let link = u32::from(link);
                return Err(malformed(format!("its frames are of link type {link}, not Ethernet")));
            }
            Source::Pcap(reader)
        };
        Ok(Self {
            file,
            source,
            record: 0,
            arena: Arena::default(),
            first_foreign: None,
            problems: vec![],
            problem_count: 0,
            left_out: Kept::default(),
            cut: Kept::default(),
            broken: None,
            ended: false,
        })
    }

    /// Returns the first records that were not complete frames.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the number of records that were not complete frames.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Returns the number of records read; if frames are requested one by one, the last frame is
    /// the last of these.
    pub fn record_count(&self) -> u64 {
        self.record
    }

    /// Returns the first record of an interface that is not Ethernet, among those read so far.
    pub fn first_foreign(&self) -> Option<&Problem> {
        self.first_foreign.as_ref()
    }

    /// Reads one block or record and returns whether there was one.
    fn read_record(&mut self) -> Result<bool, PortError> {
        let next = self.record + 1;
        let outcome = match &mut self.source {
            Source::Pcap(reader) => read_pcap(reader),
            Source::PcapNg(reader, interfaces) => read_pcapng(reader, interfaces),
        };
        let found = match outcome {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) => {
                let file = self.file.clone();
                return Err(PortError::Record { file, record: next, reason: reason(&error) });
            }
        };
        let problem = match found {
            Found::Other => return Ok(true),
            Found::Skip(kind) => Some(kind),
            Found::Packet(record) => {
                let (captured, original) = (record.bytes.len(), record.original_length);
                match self.arena.push(&record.bytes, original, record.timestamp_ns) {
                    Err(_) => Some(ProblemKind::Length(captured)),
                    Ok(()) if captured < original => Some(ProblemKind::Cut { captured, original }),
                    Ok(()) => None,
                }
            }
        };
        self.record = next;
        if let Some(kind) = problem {
            self.note(kind);
        }
        Ok(true)
    }

    /// Records a problem with the record that was read last.
    fn note(&mut self, kind: ProblemKind) {
        self.problem_count += 1;
        let new = || Problem { file: self.file.clone(), record: self.record, kind };
        let kept = match kind {
            ProblemKind::Cut { .. } => &mut self.cut,
            _ => &mut self.left_out,
        };
        kept.count += 1;
        kept.first.get_or_insert_with(new);
        let is_foreign = matches!(kind, ProblemKind::LinkType(_) | ProblemKind::Interface(_));
        let is_first = is_foreign && self.first_foreign.is_none();
        if !is_first && self.problems.len() >= MOST_PROBLEMS {
            return;
        }
        let problem = Problem { file: self.file.clone(), record: self.record, kind };
        if is_first {
            self.first_foreign = Some(problem.clone());
        }
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

impl Receive for PcapReceiver {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        self.arena.clear();
        while !self.ended && self.arena.len() < most {
            match self.read_record() {
                Ok(there_was_one) => self.ended = !there_was_one,
                Err(error) => {
                    self.broken = Some(error);
                    self.ended = true;
                }
            }
        }
        // Frames before the broken record are lent first.
        if self.arena.is_empty()
            && let Some(error) = self.broken.take()
        {
            return Err(error);
        }
        let count = self.arena.len();
        Ok(self.arena.batch(0, count))
    }

    fn is_ended(&self) -> bool {
        self.ended && self.broken.is_none()
    }

    fn lost(&self) -> u64 {
        self.left_out.count
    }

    fn remarks(&self) -> Vec<String> {
        let remark = |kept: &Kept, one: &str, many: &str| {
            let what = if kept.count == 1 { one } else { many };
            kept.first.as_ref().map(|first| format!("{} {what}; the first: {first}", kept.count))
        };
        let left_out = remark(&self.left_out, "record was skipped", "records were skipped");
        let cut = remark(&self.cut, "frame is truncated", "frames are truncated");
        left_out.into_iter().chain(cut).collect()
    }
}

enum Found<'a> {
    Packet(Record<'a>),
    Skip(ProblemKind),
    Other,
}

fn read_pcap(reader: &mut PcapReader<BufReader<File>>) -> Result<Option<Found<'_>>, PcapError> {
    let unit_ns = match reader.header().ts_resolution {
        TsResolution::MicroSecond => 1_000,
        TsResolution::NanoSecond => 1,
    };
    // The raw form: the checked one refuses every record that the capture truncated.
    let Some(record) = reader.next_raw_packet().transpose()? else { return Ok(None) };
    Ok(Some(Found::Packet(Record {
        original_length: (record.orig_len as usize).max(record.data.len()),
        timestamp_ns: u64::from(record.ts_sec) * 1_000_000_000
            + u64::from(record.ts_frac) * unit_ns,
        bytes: record.data,
    })))
}

fn read_pcapng<'a>(
    reader: &'a mut PcapNgReader<BufReader<File>>,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Found<'a>>, PcapError> {
    let is_little = reader.section().endianness == Endianness::Little;
    let Some(block) = reader.next_block().transpose()? else { return Ok(None) };
    let (id, ticks, original, bytes) = match block {
        Block::SectionHeader(_) => {
            interfaces.clear();
            return Ok(Some(Found::Other));
        }
        Block::InterfaceDescription(block) => {
            interfaces.push(Interface::of(&block));
            return Ok(Some(Found::Other));
        }
        Block::EnhancedPacket(packet) => {
            // The reader takes the ticks as nanoseconds, regardless of the interface's resolution.
            let ticks = packet.timestamp.as_nanos() as u64;
            (packet.interface_id, ticks, packet.original_len, packet.data)
        }
        Block::Packet(packet) => {
            // Two words, the high one first, in either byte order.
            let ticks = packet.timestamp.rotate_left(if is_little { 32 } else { 0 });
            (u32::from(packet.interface_id), ticks, packet.original_len, packet.data)
        }
        Block::SimplePacket(packet) => (0, 0, packet.original_len, packet.data),
        _ => return Ok(Some(Found::Other)),
    };
    let Some(interface) = interfaces.get(id as usize) else {
        return Ok(Some(Found::Skip(ProblemKind::Interface(id))));
    };
    if interface.link != DataLink::ETHERNET {
        return Ok(Some(Found::Skip(ProblemKind::LinkType(interface.link.into()))));
    }
    let original_length = (original as usize).max(1);
    // A simple packet's data runs to the end of its block, padding included.
    let captured = bytes.len().min(interface.snap_length).min(original_length);
    Ok(Some(Found::Packet(Record {
        bytes: prefix(bytes, captured),
        original_length,
        timestamp_ns: interface.to_ns(ticks),
    })))
}

fn prefix(bytes: Cow<'_, [u8]>, length: usize) -> Cow<'_, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..length]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(length);
            Cow::Owned(bytes)
        }
    }
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>) -> Self {
        let snap_length = if block.snaplen == 0 { usize::MAX } else { block.snaplen as usize };
        let mut interface = Self {
            link: block.linktype,
            snap_length,
            resolution: MICROSECOND_RESOLUTION,
            offset_s: 0,
        };
        for option in &block.options {
            match option {
                InterfaceDescriptionOption::IfTsResol(value) => interface.resolution = *value,
                InterfaceDescriptionOption::IfTsOffset(value) => interface.offset_s = *value,
                _ => {}
            }
        }
        interface
    }

    /// Converts ticks, which are 10^-n seconds, or 2^-n with the highest bit of the resolution set.
    fn to_ns(&self, ticks: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        let scaled = u128::from(ticks) * 1_000_000_000;
        let ns = if self.resolution & 0x80 != 0 {
            scaled.checked_shr(exponent).unwrap_or(0)
        } else {
            10u128.checked_pow(exponent).map_or(0, |unit| scaled / unit)
        };
        let offset_ns = u128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns + offset_ns).unwrap_or(u64::MAX)
    }
}
