// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames of the replication link: their bytes, and what a reader makes of damage and of lengths.
//! `tests/src/untrusted/kv_replication.rs` has any bytes in any pieces.

use freeport_kv_protocol::replication::{
    ANSWER_BYTES_MAX, Frame, FrameReader, HEADER_BYTES, MAX_ITEMS_BYTES, MAX_TEXT_BYTES, Malformed,
    ReadError,
};
use std::io::{self, Read};

const FRAMES: [Frame<'_>; 11] = [
    Frame::Begin { is_full: true, position: 1, bytes: 2 },
    Frame::Lineage { text: "text" },
    Frame::Entries { count: 1, items: b"\x01\0\0\0e" },
    Frame::EntriesEnd { entries: 3 },
    Frame::Batch { position: 4, end: 5, count: 1, items: b"\x01\0\0\0u" },
    Frame::Ping { end: 6, time_ms: 7 },
    Frame::Refused { text: "reason" },
    Frame::Complete { position: 8 },
    Frame::Resumed,
    Frame::Moved { revision: 9 },
    Frame::Ack { released: 10, durable: 11 },
];

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![];
    frame.write(&mut bytes);
    bytes
}

/// A header with a right check.
fn header(kind: u8, body_bytes: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(body_bytes.to_le_bytes());
    bytes.extend(crc32c::crc32c(body).to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

#[test]
fn a_batch_has_the_bytes_of_the_page() {
    let bytes = written(&FRAMES[4]);
    let body = b"\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0u";
    assert_eq!(bytes, [header(5, body.len() as u32, body), body.to_vec()].concat());
    let mut head = vec![];
    FRAMES[4].write_head(&mut head);
    head.extend(FRAMES[4].payload());
    assert_eq!(head, bytes);
}

#[test]
fn frames_are_read_as_they_are_written() {
    for frame in FRAMES {
        let bytes = written(&frame);
        assert_eq!(Frame::decode(&bytes), Ok(Some((frame, bytes.len()))));
        for length in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..length]), Ok(None), "{frame:?}, {length} bytes");
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    for frame in FRAMES {
        for at in 0..written(&frame).len() {
            let mut bytes = written(&frame);
            bytes[at] ^= 0x10;
            let expected =
                if at < HEADER_BYTES { Malformed::HeaderCheck } else { Malformed::BodyCheck };
            assert_eq!(Frame::decode(&bytes), Err(expected), "{frame:?}, byte {at}");
        }
    }
}

#[test]
fn kinds_lengths_and_fields_that_cannot_be_are_refused() {
    assert_eq!(Frame::decode(&header(12, 0, b"")), Err(Malformed::Kind(12)));
    for (kind, bytes) in [
        (1, 16),
        (1, 18),
        (2, MAX_TEXT_BYTES + 1),
        (3, 3),
        (5, 19),
        (5, MAX_ITEMS_BYTES + 21),
        (6, 15),
        (9, 1),
        (11, 17),
    ] {
        let found = Frame::decode(&header(kind, bytes as u32, b"")).map(|_| ());
        assert_eq!(found, Err(Malformed::Length { kind, bytes }));
    }
    let begin = [&[0; 16][..], &[2]].concat();
    let backwards = [&[9; 8][..], &[8; 8], &[0; 4]].concat();
    for (kind, body) in [(1, &begin[..]), (2, b"\xff"), (5, &backwards)] {
        let bytes = [header(kind, body.len() as u32, body), body.to_vec()].concat();
        assert_eq!(Frame::decode(&bytes), Err(Malformed::Field(kind)));
    }
}

/// A stream of equal bytes that notes how many were asked for.
struct Endless {
    left: usize,
    largest: usize,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.largest = self.largest.max(into.len());
        let bytes = into.len().min(self.left);
        self.left -= bytes;
        Ok(bytes)
    }
}

#[test]
fn memory_follows_what_was_received_and_not_what_was_announced() {
    let announced = header(5, MAX_ITEMS_BYTES as u32, b"");
    let mut reader = FrameReader::new(&announced);
    let mut stream = Endless { left: 3 << 20, largest: 0 };
    let ended = reader.read(&mut stream);
    assert!(matches!(ended, Err(ReadError::Closed)), "{ended:?}");
    assert!(stream.largest <= 4 << 20, "{} bytes", stream.largest);
}

/// A leader takes only short frames, whatever its follower announces.
#[test]
fn a_reader_with_a_limit_takes_no_longer_frames() {
    let answer = written(&Frame::Ack { released: 1, durable: 2 });
    let announced = header(5, MAX_ITEMS_BYTES as u32, b"");
    let mut stream = &[&answer[..], &announced].concat()[..];
    let mut reader = FrameReader::with_limit(ANSWER_BYTES_MAX);
    let frame = reader.read(&mut stream).expect("it is short");
    assert_eq!(frame, Frame::Ack { released: 1, durable: 2 });
    let refused = reader.read(&mut stream);
    let bytes = MAX_ITEMS_BYTES;
    assert!(
        matches!(
            refused,
            Err(ReadError::Malformed(Malformed::Length { kind: 5, bytes: it })) if it == bytes
        ),
        "{refused:?}"
    );
}

#[test]
fn large_and_small_frames_follow_each_other() {
    let items = vec![7; 10 << 20];
    let large = Frame::Entries { count: 1, items: &items };
    let frames = [FRAMES[0], large, FRAMES[5], FRAMES[8], large, FRAMES[10]];
    let bytes: Vec<u8> = frames.iter().flat_map(written).collect();
    let mut stream = &bytes[..];
    let mut reader = FrameReader::default();
    for frame in frames {
        let found = reader.read(&mut stream).expect("it is whole");
        assert!(found == frame);
    }
    assert!(matches!(reader.read(&mut stream), Err(ReadError::Closed)));
}
