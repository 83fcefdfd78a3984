// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chunks, entries and logs as bytes.

use freeport_study_replication::chunk::{Chunk, HEADER_BYTES};
use freeport_study_replication::entry::{Entry, entries};
use freeport_study_replication::files::FILE_BYTES;
use freeport_study_replication::log::Log;
use freeport_study_replication::{Compression, Files};

/// Bodies that compress in different ways.
fn bodies() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = (0..9000).map(|_| random.u8(..)).collect();
    let repeated = noise[..4096].iter().copied().cycle().take(12_000).collect();
    vec![vec![], vec![7], vec![1; 10_000], noise, repeated]
}

#[test]
fn compression_is_transparent() {
    for compression in [Compression::None, Compression::Lz4] {
        for body in bodies() {
            let chunk = Chunk::new(3, 5 << 40, &body);
            let sent = chunk.compressed(compression);
            assert!(sent.len() <= HEADER_BYTES + body.len());
            let (read, length) = Chunk::read(&sent, body.len()).expect("it is whole");
            assert_eq!((read, length), (chunk, sent.len()), "{compression:?}");
            assert!(body.is_empty() || Chunk::read(&sent, body.len() - 1).is_none());
        }
    }
}

/// A chunk of which a bit has changed, or that is cut, is not read.
#[test]
fn damaged_chunks_are_not_read() {
    for compression in [Compression::None, Compression::Lz4] {
        let body: Vec<u8> = (0..9000_usize).map(|at| (at % 4096 / 16) as u8).collect();
        let chunk = Chunk::new(1 << 40, 1, &body);
        let sent = chunk.compressed(compression);
        let mut random = fastrand::Rng::with_seed(1);
        for at in (0..HEADER_BYTES).chain((HEADER_BYTES..sent.len()).step_by(37)) {
            let mut damaged = sent.clone();
            damaged[at] ^= 1 << random.u8(0..8);
            let read = Chunk::read(&damaged, 10_000).map(|(read, _)| read);
            // A compressed body may have several forms.
            assert!(read.is_none_or(|read| read == chunk && at >= HEADER_BYTES), "{at}");
            assert!(Chunk::read(&sent[..at], 10_000).is_none());
        }
    }
}

#[test]
fn any_bytes_are_read_without_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(0..80)).map(|_| random.u8(0..4)).collect();
        assert!(Chunk::read(&bytes, 1 << 20).is_none());
        let mut files = Files::default();
        files.apply(&bytes);
        assert_eq!(Log::read(&bytes, 4).last, 0);
    }
    let mut files = Files::default();
    for offset in [FILE_BYTES, u64::MAX] {
        files.write(Entry { path: "file", offset, data: &[1] });
    }
    assert_eq!(files, Files::default());
}

#[test]
fn entries_are_read_as_they_were_written() {
    let written = [
        Entry { path: "a", offset: 0, data: b"one" },
        Entry { path: "b/c", offset: 1 << 20, data: &[] },
        Entry { path: "a", offset: 2, data: b"two" },
    ];
    let mut body = Vec::new();
    written.iter().for_each(|entry| entry.put(&mut body));
    assert!(entries(&body).eq(written));
    assert_eq!(entries(&body[..body.len() - 1]).count(), 2);
    let mut files = Files::default();
    files.apply(&body);
    assert_eq!(files.get("a"), Some(b"ontwo".as_slice()));
    assert_eq!(files.get("b/c").map(<[u8]>::len), Some(1 << 20));
}

/// Returns chunks that follow each other, with bodies of 100 B.
fn following(bodies: impl IntoIterator<Item = u8>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = vec![];
    for body in bodies {
        let previous = chunks.last().map_or(0, Chunk::identity);
        chunks.push(Chunk::new(chunks.len() as u64 + 1, previous, &[body; 100]));
    }
    chunks
}

fn contents(chunks: &[Chunk]) -> Vec<u8> {
    chunks.iter().flat_map(Chunk::bytes).copied().collect()
}

#[test]
fn logs_end_where_a_chunk_is_torn_or_out_of_order() {
    let mut chunks = following(1..=5);
    chunks.remove(3);
    let log = contents(&chunks);
    let length = chunks[0].bytes().len();
    for cut in 0..=log.len() {
        let read = Log::read(&log[..cut], 2);
        let expected = (cut / length).min(3);
        assert_eq!((read.last, read.bytes), (expected as u64, (expected * length) as u64));
        assert!(read.identities.into_iter().eq(chunks[..expected].iter().map(Chunk::identity)));
        let recent: Vec<u64> = read.recent.iter().map(|chunk| chunk.number).collect();
        let first = expected.saturating_sub(2);
        assert!(recent.into_iter().eq((first + 1..=expected).map(|number| number as u64)));
    }
}

/// Chunks with the right numbers that follow other chunks are not of the log.
#[test]
fn logs_end_where_another_log_begins() {
    let (one, other) = (following([1, 2, 3, 4]), following([1, 9, 3, 4]));
    assert_eq!(one[0].identity(), other[0].identity());
    let mixed = [&one[..2], &other[2..]].concat();
    assert_eq!(Log::read(&contents(&mixed), 9).last, 2);
    assert_eq!(Log::read(&contents(&other), 9).last, 4);
    // Equal bodies do not make them the same.
    assert!((2..4).all(|at| one[at].body() == other[at].body()));
    assert!((2..4).all(|at| one[at].identity() != other[at].identity()));
}
