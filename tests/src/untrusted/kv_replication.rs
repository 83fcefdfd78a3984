// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames between a server and its follower. Whether they arrive at once or in pieces, the same are
//! read; and a frame is written as it was read.

use freeport_kv_journal::{Items, Lineage, Position};
use freeport_kv_protocol::replication::{Frame, FrameReader, HEADER_BYTES, ReadError};
use std::io::{self, Read};

/// Reads the bytes as a flag, the size of the pieces, and frames. The flag has the checks of the
/// frames computed anew, so that what they protect is read.
pub fn kv_replication(bytes: &[u8]) {
    let [flags, piece, ref frames @ ..] = *bytes else { return };
    let mut frames = frames.to_vec();
    if flags & 1 != 0 {
        check_frames(&mut frames);
    }
    let mut rest = &frames[..];
    let mut pieces = Pieces { bytes: &frames, length: usize::from(piece) + 1, is_late: false };
    let mut reader = FrameReader::default();
    loop {
        let decoded = Frame::decode(rest);
        match (decoded, read(&mut reader, &mut pieces)) {
            (Ok(Some((frame, length))), Ok(other)) => {
                assert_eq!(frame, other);
                let mut written = vec![];
                frame.write(&mut written);
                assert_eq!(written, rest[..length]);
                read_contents(&frame);
                rest = &rest[length..];
            }
            (Ok(None), Err(ReadError::Closed)) => return,
            (Err(error), Err(ReadError::Malformed(other))) => return assert_eq!(error, other),
            (decoded, read) => panic!("{decoded:?} at once, and {read:?} in pieces"),
        }
    }
}

/// Reads a frame, over any number of time-outs.
fn read<'a>(reader: &'a mut FrameReader, pieces: &mut Pieces<'_>) -> Result<Frame<'a>, ReadError> {
    while let Err(error) = reader.wait(pieces) {
        if !error.is_timeout() {
            return Err(error);
        }
    }
    reader.read(pieces)
}

fn read_contents(frame: &Frame<'_>) {
    match *frame {
        Frame::Lineage { text } => {
            if let Ok(lineage) = text.parse::<Lineage>() {
                assert_eq!(lineage.to_string(), text);
                for history in lineage.histories() {
                    let known = lineage.at(Position(history.start.0 + 1)).expect("it has begun");
                    assert!(known.start <= history.start);
                }
            }
        }
        Frame::Entries { count, items } | Frame::Batch { count, items, .. } => {
            if let Ok(items) = Items::parse(items, count) {
                assert_eq!(items.count(), count as usize);
            }
        }
        _ => {}
    }
}

/// A stream that has a time-out before each piece.
struct Pieces<'a> {
    bytes: &'a [u8],
    length: usize,
    is_late: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.is_late = !self.is_late;
        if self.is_late {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = into.len().min(self.length);
        self.bytes.read(&mut into[..length])
    }
}

/// Computes the checks of all frames.
fn check_frames(mut frames: &mut [u8]) {
    while let Some((header, rest)) = frames.split_first_chunk_mut::<HEADER_BYTES>() {
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let (body, rest) = rest.split_at_mut(length.min(rest.len()));
        header[8..12].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
        let check = crc32c::crc32c(&header[..12]);
        header[12..].copy_from_slice(&check.to_le_bytes());
        frames = rest;
    }
}

/// A full transfer, a continued one with a hand-over, and acknowledgements.
pub fn samples() -> Vec<Vec<u8>> {
    let mut lineage = Lineage::default();
    lineage.begin(3, Position(0));
    lineage.begin(4, Position(81_920));
    let text = &lineage.to_string();
    let items = b"\x03\0\0\0key\x00\0\0\0";
    let frames: [&[Frame<'_>]; 3] = [
        &[
            Frame::Begin { is_full: true, position: 81_920, bytes: 11 },
            Frame::Lineage { text },
            Frame::Entries { count: 2, items },
            Frame::EntriesEnd { entries: 2 },
            Frame::Batch { position: 81_920, end: 81_971, count: 2, items },
            Frame::Refused { text: "the follower is too slow" },
        ],
        &[
            Frame::Begin { is_full: false, position: 5, bytes: 0 },
            Frame::Batch { position: 5, end: 5_000, count: 0, items: b"" },
            Frame::Ping { end: 5_000, time_ms: 1_700_000_000_000 },
            Frame::Complete { position: 5_000 },
            Frame::Resumed,
            Frame::Moved { revision: 7 },
        ],
        &[Frame::Ack { released: 5_000, durable: 4_000 }],
    ];
    let sample = |frames: &[Frame<'_>]| {
        let mut bytes = vec![1, 20];
        frames.iter().for_each(|frame| frame.write(&mut bytes));
        bytes
    };
    frames.into_iter().map(sample).collect()
}
