// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads a whole folder, and changes nothing: first the snapshot, then the log in its order.
//!
//! The first bad place of the log is either the end of an interrupted write, which is *torn*, or it
//! is *corrupt*. It is corrupt if bytes behind it were durable once: a later segment exists, which
//! is named only after the segments before it are durable, or a later batch says that the log was
//! durable beyond the place when it was written.

use crate::disk::File;
use crate::error::OpenError;
use crate::folder::{Folder, MANIFEST, offset_in};
use crate::frame::{FILE_BYTES, FileKind, Kind};
use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, Segment, number_of};
use crate::reader::{Bad, Reader, Step};
use crate::status::{Position, Progress};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The user of a folder's contents.
pub trait Replay {
    /// Takes an entry of the snapshot. An error ends the reading, and is reported with its place.
    fn entry(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// Takes a unit of the log.
    fn unit(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// The units that follow are in the batch at this offset of a segment's file, and at this
    /// position of the log.
    fn batch(&mut self, file: &Path, offset: u64, position: Position) {
        let _ = (file, offset, position);
    }
}

/// Bytes between two calls of the progress function.
const PROGRESS_BYTES: u64 = 4 << 20;

/// Contents of a folder.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The manifest.
    pub manifest: Manifest,
    /// The snapshot.
    pub snapshot: Option<SnapshotFacts>,
    /// The segments, up to the one with the bad place.
    pub segments: Vec<SegmentFacts>,
    /// The first bad place of the log.
    pub bad_place: Option<BadPlace>,
    /// Names of files that look like ours, and which the manifest does not name.
    pub strays: Vec<String>,
}

/// Facts about a snapshot, which is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// The file.
    pub file: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of entries.
    pub entries: u64,
}

/// Facts about a segment of the log, up to its first bad place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// The file.
    pub file: PathBuf,
    /// Number of the file.
    pub number: u64,
    /// Bytes of the file that belong to the log, with the file's header.
    pub bytes: u64,
    /// Position of the first batch.
    pub position: Position,
    /// Position behind the last good batch.
    pub end: Position,
    /// Sequence number of the batch that would follow.
    pub next_sequence: u64,
    /// Number of batches.
    pub batches: u64,
    /// Number of units.
    pub units: u64,
    /// The highest position up to which a batch says that the log was durable.
    pub durable: Position,
}

/// The first place of the log at which there is no batch of the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPlace {
    /// The segment.
    pub file: PathBuf,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Position in the log.
    pub position: Position,
    /// Bytes from there to the end of the file.
    pub bytes: u64,
    /// The fault.
    pub reason: String,
    /// The reason why bytes behind the place had been durable. Without one the place is the end of
    /// an interrupted write.
    pub evidence: Option<String>,
}

impl BadPlace {
    /// Whether the place is the end of an interrupted write, which opening the folder cuts off.
    pub fn is_torn(&self) -> bool {
        self.evidence.is_none()
    }
}

/// The manifest of a folder; `None` if there is none.
pub(crate) fn read_manifest(folder: &Folder) -> Result<Option<Manifest>, OpenError> {
    let path = folder.file(MANIFEST);
    let text = folder.read_text(MANIFEST, MAX_MANIFEST_BYTES);
    let Some(text) = text.map_err(OpenError::system("reading", &path))? else { return Ok(None) };
    let manifest = text.and_then(|text| Manifest::parse(&text));
    manifest.map(Some).map_err(|reason| OpenError::Manifest { file: path, reason })
}

/// Reads everything that the manifest names. `Err` is for what cannot be repaired by cutting the
/// log: errors of the system, missing files, a bad snapshot, and errors of `replay`.
pub(crate) fn walk(
    folder: &Folder,
    manifest: Manifest,
    replay: &mut dyn Replay,
    progress: &mut dyn FnMut(Progress),
) -> Result<Contents, OpenError> {
    let names = folder.disk.list(&folder.path);
    let names = names.map_err(OpenError::system("listing", &folder.path))?;
    let is_stray = |name: &String| number_of(name).is_some() && !manifest.names(name);
    let strays = names.into_iter().filter(is_stray).collect();

    let snapshot = manifest.snapshot.map(|number| open(folder.snapshot(number), folder));
    let snapshot = snapshot.transpose()?;
    let opened = manifest.segments.iter().map(|segment| open(folder.log(segment.number), folder));
    let opened = opened.collect::<Result<Vec<Opened>, OpenError>>()?;

    let all = opened.iter().chain(&snapshot);
    let total_bytes = all.fold(0, |sum: u64, file| sum.saturating_add(file.length));
    let mut walk = Walk {
        manifest: &manifest,
        replay,
        progress,
        state: Progress { bytes: 0, total_bytes },
        reported: 0,
    };
    let snapshot = snapshot.map(|file| walk.snapshot(file)).transpose()?;
    let mut segments = vec![];
    let mut bad_place = None;
    for (at, file) in opened.into_iter().enumerate() {
        let facts;
        (facts, bad_place) = walk.segment(at, file)?;
        segments.push(facts);
        if bad_place.is_some() {
            break;
        }
    }
    Ok(Contents { manifest, snapshot, segments, bad_place, strays })
}

struct Opened {
    path: PathBuf,
    file: Arc<dyn File>,
    length: u64,
}

fn open(path: PathBuf, folder: &Folder) -> Result<Opened, OpenError> {
    let opened = folder.disk.open(&path, false).and_then(|file| Ok((file.length()?, file)));
    match opened {
        Ok((length, file)) => Ok(Opened { path, file, length }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::Missing { file: path })
        }
        Err(error) => Err(OpenError::system("opening", &path)(error)),
    }
}

struct Walk<'a> {
    manifest: &'a Manifest,
    replay: &'a mut dyn Replay,
    progress: &'a mut dyn FnMut(Progress),
    state: Progress,
    /// Bytes at the last call of `progress`.
    reported: u64,
}

impl Walk<'_> {
    fn snapshot(&mut self, opened: Opened) -> Result<SnapshotFacts, OpenError> {
        let Opened { path, file, length } = opened;
        let number = self.manifest.snapshot.expect("it is named");
        let wrong =
            |Bad { offset, reason }| OpenError::Snapshot { file: path.clone(), offset, reason };
        let reading = |error| OpenError::system("reading", &path)(error);
        let mut reader = Reader::new(file, length, self.manifest.salt, FILE_BYTES, 0);
        reader.check_file(FileKind::Snapshot, number).map_err(reading)?.map_err(wrong)?;
        let mut entries = 0;
        loop {
            let read = match reader.step(&[Kind::Block, Kind::End]).map_err(reading)? {
                Step::Frame(read) => read,
                Step::Bad(bad) => return Err(wrong(bad)),
                Step::End => {
                    let reason = "the file ends without the mark of its end".to_owned();
                    return Err(wrong(Bad { offset: length, reason }));
                }
            };
            if read.header.kind == Kind::End {
                let (blocks, count) = (read.header.sequence, read.header.mark);
                let reason = if count != entries {
                    format!("the end says {count} entries, and there are {entries}")
                } else if reader.offset() != length {
                    "there are bytes behind the mark of the end".to_owned()
                } else {
                    return Ok(SnapshotFacts { file: path, bytes: length, blocks, entries });
                };
                return Err(wrong(Bad { offset: reader.offset(), reason }));
            }
            let (offset, items) = (read.offset, read.items);
            for item in items {
                let result = self.replay.entry(item);
                result.map_err(|reason| replay_error(&path, offset, reason))?;
                entries += 1;
            }
            self.advance(read.header.bytes);
        }
    }

    /// Reads a segment up to its end or its first bad place.
    fn segment(
        &mut self,
        at: usize,
        opened: Opened,
    ) -> Result<(SegmentFacts, Option<BadPlace>), OpenError> {
        let Opened { path, file, length } = opened;
        let segment = self.manifest.segments[at];
        let next = self.manifest.segments.get(at + 1);
        // Bytes behind the position of the next segment were given up; see `replacement`.
        let limit = next.map(|next| offset_in(segment.position, next.position));
        let end = limit.unwrap_or(length).min(length);
        let reading = |error| OpenError::system("reading", &path)(error);

        let Segment { number, position, sequence } = segment;
        let mut reader = Reader::new(file, end, self.manifest.salt, position, sequence);
        let mut facts = SegmentFacts {
            file: path.clone(),
            number,
            bytes: end,
            position: Position(position),
            end: Position(position),
            next_sequence: sequence,
            batches: 0,
            units: 0,
            durable: Position(0),
        };
        let header = reader.check_file(FileKind::Log, number).map_err(reading)?;
        let header_is_good = header.is_ok();
        let mut bad = header.err();
        while bad.is_none() {
            match reader.step(&[Kind::Batch]).map_err(reading)? {
                Step::End => break,
                Step::Bad(found) => bad = Some(found),
                Step::Frame(read) => {
                    let batch_position = Position(position + (read.offset - FILE_BYTES));
                    self.replay.batch(&path, read.offset, batch_position);
                    for item in read.items {
                        let result = self.replay.unit(item);
                        result.map_err(|reason| replay_error(&path, read.offset, reason))?;
                    }
                    facts.batches += 1;
                    facts.units += u64::from(read.header.items);
                    facts.durable = facts.durable.max(Position(read.header.mark));
                    self.advance(read.header.bytes);
                }
            }
        }
        facts.end = Position(reader.place());
        facts.next_sequence = reader.sequence().expect("the first one was given");
        if bad.is_none()
            && next.is_some_and(|next| {
                (next.position, next.sequence) != (facts.end.0, facts.next_sequence)
            })
        {
            let reason = "the segment ends before the next one begins".to_owned();
            bad = Some(Bad { offset: reader.offset(), reason });
        }
        let Some(bad) = bad else { return Ok((facts, None)) };
        let evidence = if next.is_some() {
            Some("a later segment of the log exists".to_owned())
        } else if !header_is_good {
            Some("the header of a file is durable before the manifest names it".to_owned())
        } else {
            reader.find_proof().map_err(reading)?.map(|(offset, position)| {
                format!(
                    "the batch at offset {offset} says that the log was durable up to position \
                    {position}"
                )
            })
        };
        let bytes = length.saturating_sub(bad.offset);
        let (position, Bad { offset, reason }) = (facts.end, bad);
        let place = BadPlace { file: path, offset, position, bytes, reason, evidence };
        Ok((facts, Some(place)))
    }

    fn advance(&mut self, bytes: u64) {
        self.state.bytes += bytes;
        if self.state.bytes - self.reported >= PROGRESS_BYTES {
            self.reported = self.state.bytes;
            (self.progress)(self.state);
        }
    }
}

fn replay_error(path: &Path, offset: u64, reason: String) -> OpenError {
    OpenError::Replay { file: path.to_owned(), offset, reason }
}

/// Names of files of data in a folder without a manifest. A segment that has only its header is
/// left by a crash while a folder was made, and is not among them.
pub(crate) fn data_without_manifest(folder: &Folder) -> Result<Option<String>, OpenError> {
    let names = folder.disk.list(&folder.path);
    let names = names.map_err(OpenError::system("listing", &folder.path))?;
    for name in names.into_iter().filter(|name| number_of(name).is_some()) {
        let opened = open(folder.file(&name), folder)?;
        if opened.length > FILE_BYTES {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
