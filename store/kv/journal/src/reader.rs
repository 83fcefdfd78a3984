// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the frames of a file, in their order, up to the first bad place.

use crate::disk::File;
use crate::frame::{FILE_BYTES, FRAME_BYTES, FileKind, Header, Items, Kind, check_file_header};
use std::io;
use std::sync::Arc;

/// The least that is read at once, in bytes.
const READ_BYTES: usize = 1 << 20;

/// Reads frames of one file.
pub(crate) struct Reader {
    file: Arc<dyn File>,
    /// Bytes of the file that may be read.
    end: u64,
    salt: u64,
    /// Offset of the next frame.
    offset: u64,
    /// The place of the next frame, less its offset; see [`crate::frame`].
    place: u64,
    /// Number of the next frame; none if the reader began in the middle of a file.
    sequence: Option<u64>,
    window: Window,
}

/// A frame, whose checks are right.
pub(crate) struct Read<'a> {
    pub header: Header,
    /// Offset of the frame in the file.
    pub offset: u64,
    pub items: Items<'a>,
}

/// A place at which there is no frame of the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub offset: u64,
    pub reason: String,
}

/// Outcomes of a step.
pub(crate) enum Step<'a> {
    Frame(Read<'a>),
    End,
    Bad(Bad),
}

/// Outcomes of an advance.
pub(crate) enum Advance {
    /// A frame and its offset. Its items can be seen until the next advance.
    Frame(Header, u64),
    End,
    /// The bytes up to the end are the beginning of a frame, if anything.
    Short(&'static str),
    Bad(Bad),
}

impl Reader {
    /// A reader of all frames between the header of the file and `end`, an offset that is not
    /// beyond the length. The first frame has `sequence`, and `first_place` as its place.
    pub fn new(
        file: Arc<dyn File>,
        end: u64,
        salt: u64,
        first_place: u64,
        sequence: u64,
    ) -> Reader {
        let place = first_place.wrapping_sub(FILE_BYTES);
        let window = Window { bytes: vec![], offset: 0 };
        let sequence = Some(sequence);
        Reader { file, end, salt, offset: FILE_BYTES, place, sequence, window }
    }

    /// A reader that begins at the frame with a place, of a file whose first frame has
    /// `first_place`. It has no bytes yet: see [`Reader::extend`].
    pub fn from(
        file: Arc<dyn File>,
        salt: u64,
        first_place: u64,
        place: u64,
        sequence: Option<u64>,
    ) -> Reader {
        let offset = place - first_place + FILE_BYTES;
        let place = first_place.wrapping_sub(FILE_BYTES);
        let window = Window { bytes: vec![], offset };
        Reader { file, end: offset, salt, offset, place, sequence, window }
    }

    /// Frames may be read up to another, later place.
    pub fn extend(&mut self, place: u64) {
        self.end = place.wrapping_sub(self.place);
    }

    /// The place up to which frames may be read.
    pub fn reach(&self) -> u64 {
        self.place.wrapping_add(self.end)
    }

    /// Whether the next frame's header, if all its bytes may be read, is right.
    pub fn is_at_frame(&mut self) -> io::Result<bool> {
        if self.end - self.offset < FRAME_BYTES as u64 {
            return Ok(true);
        }
        let place = self.place();
        let bytes = self.window.get(&*self.file, self.offset, FRAME_BYTES, self.end)?;
        let bytes = bytes.first_chunk().expect("the header was read");
        Ok(Header::decode(bytes, self.salt, place).is_some())
    }

    /// Checks the header of the file.
    pub fn check_file(&mut self, kind: FileKind, number: u64) -> io::Result<Result<(), Bad>> {
        let bad = |reason: String| Ok(Err(Bad { offset: 0, reason }));
        if self.end < FILE_BYTES {
            return bad("the file is shorter than its header".to_owned());
        }
        let bytes = self.window.get(&*self.file, 0, FILE_BYTES as usize, self.end)?;
        let header = bytes.first_chunk().expect("the header was read");
        match check_file_header(header, kind, number, self.salt) {
            Ok(()) => Ok(Ok(())),
            Err(reason) => bad(reason),
        }
    }

    /// Offset of the next frame, which is behind the last good one.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Place of the next frame.
    pub fn place(&self) -> u64 {
        self.place.wrapping_add(self.offset)
    }

    /// Sequence number of the next frame, if it is known.
    pub fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    /// Reads the next frame. After a bad place, the same is found again.
    pub fn step(&mut self, kinds: &[Kind]) -> io::Result<Step<'_>> {
        let offset = self.offset;
        Ok(match self.advance(kinds)? {
            Advance::Frame(header, offset) => {
                Step::Frame(Read { header, offset, items: self.items(&header, offset) })
            }
            Advance::End => Step::End,
            Advance::Short(reason) => Step::Bad(Bad { offset, reason: reason.to_owned() }),
            Advance::Bad(bad) => Step::Bad(bad),
        })
    }

    /// The items of the frame to which the last advance has led.
    pub fn items(&self, header: &Header, offset: u64) -> Items<'_> {
        let bytes = self.window.known(offset + FRAME_BYTES as u64, header.bytes as usize);
        Items::known(bytes, header.items)
    }

    /// Reads and checks the next frame, and passes over it. After a bad place, the same is found
    /// again.
    pub fn advance(&mut self, kinds: &[Kind]) -> io::Result<Advance> {
        let offset = self.offset;
        let bad = |reason: &str| Ok(Advance::Bad(Bad { offset, reason: reason.to_owned() }));
        let left = self.end - offset;
        if left == 0 {
            return Ok(Advance::End);
        }
        if left < FRAME_BYTES as u64 {
            return Ok(Advance::Short("the file ends within the header of a frame"));
        }
        let place = self.place();
        let bytes = self.window.get(&*self.file, offset, FRAME_BYTES, self.end)?;
        let bytes = bytes.first_chunk().expect("the header was read");
        let Some(header) = Header::decode(bytes, self.salt, place) else {
            return bad("the header of a frame does not match its check");
        };
        if !kinds.contains(&header.kind) {
            return bad("a frame of another kind of file");
        }
        if let Some(expected) = self.sequence
            && header.sequence != expected
        {
            let found = header.sequence;
            return bad(&format!("a frame has number {found}, and {expected} is expected"));
        }
        if header.kind == Kind::Batch && header.mark > place {
            return bad("a batch says that bytes behind it were durable before it was written");
        }
        if header.bytes > left - FRAME_BYTES as u64 {
            return Ok(Advance::Short("a frame is longer than the file"));
        }
        let length = header.bytes as usize;
        let bytes = self.window.get(&*self.file, offset + FRAME_BYTES as u64, length, self.end)?;
        if crc32c::crc32c(bytes) != header.items_check {
            return bad("the bytes of a frame do not match their check");
        }
        if let Err(reason) = Items::parse(bytes, header.items) {
            return bad(reason);
        }
        self.offset += FRAME_BYTES as u64 + header.bytes;
        self.sequence = Some(header.sequence + 1);
        Ok(Advance::Frame(header, offset))
    }

    /// Looks behind a bad place for a batch, of any place and sequence, which says that the log was
    /// durable beyond it. Returns the offset of that batch, and the position that it names.
    ///
    /// The header alone proves it: its check includes a secret number and the place.
    pub fn find_proof(&mut self) -> io::Result<Option<(u64, u64)>> {
        let bad_position = self.place();
        let magic = Kind::Batch.magic();
        let mut offset = self.offset + 1;
        while self.end.saturating_sub(offset) >= FRAME_BYTES as u64 {
            let length = (self.end - offset).min(READ_BYTES as u64) as usize;
            let bytes = self.window.get(&*self.file, offset, length, self.end)?;
            let starts = bytes.windows(FRAME_BYTES).enumerate();
            for (at, header) in starts.filter(|(_, header)| header.starts_with(&magic)) {
                let header = header.first_chunk().expect("a window of this size");
                let place = self.place.wrapping_add(offset + at as u64);
                if let Some(header) = Header::decode(header, self.salt, place)
                    && header.mark > bad_position
                {
                    return Ok(Some((offset + at as u64, header.mark)));
                }
            }
            // The last bytes may be the first of a header.
            offset += (length - FRAME_BYTES + 1) as u64;
        }
        Ok(None)
    }
}

/// A part of the file, in memory.
struct Window {
    bytes: Vec<u8>,
    /// Offset of the first byte.
    offset: u64,
}

impl Window {
    /// Bytes at an offset. The caller has checked that they lie before `end`; up to there the
    /// window may read more.
    fn get(&mut self, file: &dyn File, offset: u64, length: usize, end: u64) -> io::Result<&[u8]> {
        let known = self.offset..self.offset + self.bytes.len() as u64;
        if offset < known.start || offset + length as u64 > known.end {
            self.read(file, offset, length, end)?;
        }
        Ok(self.known(offset, length))
    }

    /// Bytes that were read.
    fn known(&self, offset: u64, length: usize) -> &[u8] {
        let at = (offset - self.offset) as usize;
        &self.bytes[at..at + length]
    }

    fn read(&mut self, file: &dyn File, offset: u64, length: usize, end: u64) -> io::Result<()> {
        let kept = offset.checked_sub(self.offset).filter(|&at| at <= self.bytes.len() as u64);
        match kept {
            Some(at) => drop(self.bytes.drain(..at as usize)),
            None => self.bytes.clear(),
        }
        self.offset = offset;
        let wanted = (end - offset).min(length.max(READ_BYTES) as u64) as usize;
        let mut filled = self.bytes.len();
        if wanted < READ_BYTES && self.bytes.capacity() > 64 * READ_BYTES {
            self.bytes.shrink_to(READ_BYTES);
        }
        self.bytes.resize(wanted, 0);
        while filled < wanted {
            match file.read_at(&mut self.bytes[filled..], offset + filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
