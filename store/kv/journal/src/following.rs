// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Following a log: batches are read from its files while others append.
//!
//! A follower reads up to the position that is *written*, under every policy. An appending thread
//! does nothing for followers, except that it wakes one that waits.

use crate::chain::Place;
use crate::disk::{File, words};
use crate::folder::Folder;
use crate::frame::{FILE_BYTES, FRAME_BYTES, FileKind, Items, Kind};
use crate::journal::Journal;
use crate::reader::{Advance, Bad, Reader, Step};
use crate::shared::{Shared, Tail};
use crate::status::Position;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A batch of a log.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Its position.
    pub position: Position,
    /// Its units. There may be none.
    pub units: Items<'a>,
}

impl Batch<'_> {
    /// The position behind it.
    pub fn end(&self) -> Position {
        Position(self.position.0 + (FRAME_BYTES + self.units.bytes().len()) as u64)
    }
}

/// Reasons why a log cannot be followed from a position, or not any longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// The log does not have this position, or not any longer. The follower needs the whole state.
    #[error(
        "position {} is not in the log, which can be read from {} to {}; the follower needs the \
         whole state", .position.0, .first.0, .end.0
    )]
    Missing {
        /// The position.
        position: Position,
        /// The first position that can be read.
        first: Position,
        /// The end of the log.
        end: Position,
    },
    /// The follower is too slow: for it, more of the log would have to be kept than its limit.
    #[error("the follower is {bytes} bytes behind the log that is kept, more than its limit")]
    Behind {
        /// Bytes between the follower and the first segment that the folder has anyway.
        bytes: u64,
    },
    /// A file cannot be read as it was written. The follower needs the whole state.
    #[error("{} at offset {offset}: {reason}", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
    },
    /// The system reported an error.
    #[error("reading {}: {reason}", .file.display())]
    System {
        /// The file.
        file: PathBuf,
        /// The error in the words of the system.
        reason: String,
    },
    /// The journal was closed, or its contents were replaced ([`Journal::install`]).
    #[error("the log is not open any longer")]
    Closed,
}

impl FollowError {
    fn system(file: &Path) -> impl FnOnce(io::Error) -> FollowError {
        move |error| FollowError::System { file: file.to_owned(), reason: words(&error) }
    }

    fn damaged(file: &Path, Bad { offset, reason }: Bad) -> FollowError {
        FollowError::Damaged { file: file.to_owned(), offset, reason }
    }
}

impl Journal {
    /// Follows the log from the position of a batch on, or from the end. At most `limit` bytes of
    /// segments that snapshots free are kept for a slow follower; with more it fails. Bytes that
    /// the folder has anyway do not count.
    ///
    /// # Errors
    ///
    /// [`FollowError::Missing`] and [`FollowError::Damaged`]: the follower needs the whole state,
    /// from [`Journal::read_snapshot`]. [`FollowError::System`]: it may try again.
    pub fn follow(&self, from: Position, limit: u64) -> Result<Follower, FollowError> {
        let mut follower = Follower::new(&self.shared, &mut self.shared.tail(), from.0, limit)?;
        follower.check_start()?;
        Ok(follower)
    }

    /// The whole state: the entries of the newest snapshot, and a follower of the log from there
    /// on. Without a snapshot there are no entries, and the log is whole.
    ///
    /// # Errors
    ///
    /// [`FollowError::Damaged`] and [`FollowError::System`].
    pub fn read_snapshot(&self, limit: u64) -> Result<(SnapshotReader, Follower), FollowError> {
        let shared = &self.shared;
        let mut tail = shared.tail();
        // The lock ensures that no other manifest removes the files meanwhile.
        let snapshot = match tail.manifest.snapshot {
            Some(number) => SnapshotReader::open(&shared.folder, shared.salt, number)?,
            None => SnapshotReader { file: None },
        };
        let from = tail.manifest.segments[0].position;
        let follower = Follower::new(shared, &mut tail, from, limit)?;
        Ok((snapshot, follower))
    }

    /// The first position from which the log can be followed.
    pub fn first(&self) -> Position {
        Position(self.shared.tail().chain.first())
    }
}

/// A reader of a log's batches. It keeps files that it needs open, also when they are removed.
pub struct Follower {
    shared: Arc<Shared>,
    place: Arc<Place>,
    /// Number of installed states when it began.
    epoch: u64,
    /// Number of the segment that is read.
    number: u64,
    reader: Reader,
}

impl Follower {
    fn new(
        shared: &Arc<Shared>,
        tail: &mut Tail,
        from: u64,
        limit: u64,
    ) -> Result<Follower, FollowError> {
        let missing = FollowError::Missing {
            position: Position(from),
            first: Position(tail.chain.first()),
            end: Position(tail.end),
        };
        let Some((link, _)) = tail.chain.find(from).filter(|_| from <= tail.end) else {
            return Err(missing);
        };
        let segment = link.segment;
        let file = link.open(&shared.folder);
        let file = file.map_err(FollowError::system(&shared.folder.log(segment.number)))?;
        let place = Arc::new(Place { position: AtomicU64::new(from), limit });
        tail.chain.add_follower(&place);
        let reader = Reader::from(file, shared.salt, segment.position, from, None);
        let number = segment.number;
        let mut follower =
            Follower { shared: shared.clone(), place, epoch: tail.epoch, number, reader };
        follower.advance(tail)?;
        Ok(follower)
    }

    /// The next batch. Waits for it, at most for a time; then the result is `None`. The batch is
    /// read as a whole, into memory that is used again.
    ///
    /// # Errors
    ///
    /// All of [`FollowError`]. The follower cannot be used after it.
    pub fn next_batch(&mut self, timeout: Duration) -> Result<Option<Batch<'_>>, FollowError> {
        let deadline = Instant::now() + timeout;
        let bytes = self.place.before(self.shared.named_from.load(Ordering::Relaxed));
        if bytes > self.place.limit {
            return Err(FollowError::Behind { bytes });
        }
        let position = self.position();
        let (header, offset) = loop {
            let advance = self.reader.advance(&[Kind::Batch]);
            match advance.map_err(|error| self.system(error))? {
                Advance::Frame(header, offset) => break (header, offset),
                Advance::Bad(bad) => return Err(FollowError::damaged(&self.file(), bad)),
                Advance::End | Advance::Short(_) => {
                    if !self.wait(deadline)? {
                        return Ok(None);
                    }
                }
            }
        };
        self.place.position.store(self.reader.place(), Ordering::Relaxed);
        Ok(Some(Batch { position, units: self.reader.items(&header, offset) }))
    }

    /// The position of the next batch.
    pub fn position(&self) -> Position {
        Position(self.reader.place())
    }

    /// Bytes between the next batch and the end of the log.
    pub fn behind(&self) -> u64 {
        self.place.before(self.shared.end.load(Ordering::Acquire))
    }

    /// Waits until more can be read. Returns false at the deadline.
    fn wait(&mut self, deadline: Instant) -> Result<bool, FollowError> {
        let shared = self.shared.clone();
        let mut tail = shared.tail();
        loop {
            if self.advance(&tail)? {
                return Ok(true);
            }
            if tail.is_closing {
                return Err(FollowError::Closed);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            tail.waiting_followers += 1;
            let waited = shared.more.wait_timeout(tail, left);
            tail = waited.expect("no holder of the lock panics").0;
            tail.waiting_followers -= 1;
        }
    }

    /// Has the reader read up to what is written, in the segment that has its place. Returns
    /// whether there is more than before.
    fn advance(&mut self, tail: &Tail) -> Result<bool, FollowError> {
        if tail.epoch != self.epoch {
            return Err(FollowError::Closed);
        }
        let place = self.reader.place();
        let Some((link, end)) = tail.chain.find(place) else {
            let (first, end) = (Position(tail.chain.first()), Position(tail.end));
            return Err(FollowError::Missing { position: Position(place), first, end });
        };
        if link.segment.number != self.number {
            let (folder, segment) = (&self.shared.folder, link.segment);
            let file = link.open(folder);
            let file = file.map_err(FollowError::system(&folder.log(segment.number)))?;
            let sequence = self.reader.sequence();
            self.number = segment.number;
            self.reader = Reader::from(file, self.shared.salt, segment.position, place, sequence);
        }
        let reach = tail.written.min(end);
        let has_more = reach > self.reader.reach();
        if has_more {
            self.reader.extend(reach);
        }
        Ok(has_more)
    }

    /// Finds out whether the first position is one of a batch.
    fn check_start(&mut self) -> Result<(), FollowError> {
        let is_at_frame = self.reader.is_at_frame();
        if is_at_frame.map_err(|error| self.system(error))? {
            return Ok(());
        }
        let (file, offset) = (self.file(), self.reader.offset());
        let reason = "no batch begins here".to_owned();
        Err(FollowError::Damaged { file, offset, reason })
    }

    fn file(&self) -> PathBuf {
        self.shared.folder.log(self.number)
    }

    fn system(&self, error: io::Error) -> FollowError {
        FollowError::system(&self.file())(error)
    }
}

/// A reader of a snapshot's entries.
pub struct SnapshotReader {
    /// Without one there is no snapshot, or its end was reached.
    file: Option<SnapshotFile>,
}

struct SnapshotFile {
    path: PathBuf,
    bytes: u64,
    reader: Reader,
}

impl SnapshotReader {
    fn open(folder: &Folder, salt: u64, number: u64) -> Result<SnapshotReader, FollowError> {
        let path = folder.snapshot(number);
        let opened = folder.disk.open(&path, false);
        let file: Arc<dyn File> = opened.map_err(FollowError::system(&path))?;
        let bytes = file.length().map_err(FollowError::system(&path))?;
        let mut reader = Reader::new(file, bytes, salt, FILE_BYTES, 0);
        let checked = reader.check_file(FileKind::Snapshot, number);
        let checked = checked.map_err(FollowError::system(&path))?;
        checked.map_err(|bad| FollowError::damaged(&path, bad))?;
        Ok(SnapshotReader { file: Some(SnapshotFile { path, bytes, reader }) })
    }

    /// Length of the file, in bytes; 0 without a snapshot.
    pub fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.bytes)
    }

    /// The next block of entries; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`FollowError::Damaged`] and [`FollowError::System`].
    pub fn next_block(&mut self) -> Result<Option<Items<'_>>, FollowError> {
        let Some(SnapshotFile { path, bytes, reader }) = &mut self.file else { return Ok(None) };
        let step = reader.step(&[Kind::Block, Kind::End]);
        match step.map_err(FollowError::system(path))? {
            Step::Frame(read) if read.header.kind == Kind::Block => Ok(Some(read.items)),
            Step::Frame(_) => Ok(None),
            Step::Bad(bad) => Err(FollowError::damaged(path, bad)),
            Step::End => {
                let reason = "the file ends without the mark of its end".to_owned();
                Err(FollowError::damaged(path, Bad { offset: *bytes, reason }))
            }
        }
    }
}
