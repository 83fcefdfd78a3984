// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests are the same in whatever pieces their bytes arrive.

use super::examples::examples;
use fastrand::Rng;
use freeport_kv_protocol::memcached::{LINE_BYTES, Limits, Read, Reader, Step};
use freeport_testbed::{seed, usual_or_long};

/// Returns the steps that follow from bytes which arrive in pieces with the given ends. The caller
/// calls again with each piece, or only with as many bytes as the reader needs.
fn transcript(
    bytes: &[u8],
    ends: impl IntoIterator<Item = usize>,
    is_patient: bool,
) -> Vec<String> {
    let mut reader = Reader::new(Limits { item_bytes_max: 1_000, ..Limits::default() });
    let (mut steps, mut begin, mut needed) = (vec![], 0, 0);
    for end in ends.into_iter().chain([bytes.len()]) {
        while !is_patient || end - begin >= needed {
            let Read { taken, step } = reader.read(&bytes[begin..end]);
            begin += taken;
            match step {
                Step::Wait { needs } => {
                    assert!(needs > end - begin, "it waits only for bytes that are not there");
                    needed = needs;
                    break;
                }
                Step::Close => {
                    steps.push(format!("{step:?} at {begin}"));
                    return steps;
                }
                _ => steps.push(format!("{step:?}")),
            }
            needed = 0;
        }
    }
    steps.push(format!("{} of {} left", bytes.len() - begin, bytes.len()));
    steps
}

/// Compares all ways to cut the bytes into two, and some into more pieces.
fn check(bytes: &[u8], rng: &mut Rng) {
    let whole = transcript(bytes, [], false);
    for is_patient in [false, true] {
        for end in 0..=bytes.len() {
            assert_eq!(transcript(bytes, [end], is_patient), whole, "cut at {end}: {bytes:?}");
        }
        assert_eq!(transcript(bytes, 0..bytes.len(), is_patient), whole, "bytes: {bytes:?}");
        let mut ends: Vec<usize> = (0..5).map(|_| rng.usize(..=bytes.len())).collect();
        ends.sort_unstable();
        assert_eq!(
            transcript(bytes, ends.clone(), is_patient),
            whole,
            "cut at {ends:?}: {bytes:?}"
        );
    }
}

#[test]
fn examples_can_be_cut_anywhere() {
    let mut rng = Rng::with_seed(1);
    for example in examples() {
        check(&example.requests, &mut rng);
    }
    let large = "set k 1 0 990 noreply\r\n".to_owned() + &"v".repeat(990) + "\r\nmn\r\n";
    check(large.as_bytes(), &mut rng);
    check(b"\x80\x01\0\0", &mut rng);
}

#[test]
fn changed_examples_can_be_cut_anywhere() {
    let examples = examples();
    let first = seed();
    for seed in first..first + usual_or_long(100, 2_000) {
        let mut rng = Rng::with_seed(seed);
        let mut bytes = vec![];
        for _ in 0..rng.usize(1..4) {
            bytes.extend_from_slice(&examples[rng.usize(..examples.len())].requests);
        }
        for _ in 0..rng.usize(..8) {
            let (place, alphabet) = (rng.usize(..bytes.len()), b"\0\r\n 09kbTMO\xff");
            match rng.u8(..3) {
                0 => bytes[place] = alphabet[rng.usize(..alphabet.len())],
                1 => _ = bytes.remove(place),
                _ => bytes.insert(place, alphabet[rng.usize(..alphabet.len())]),
            }
            if bytes.is_empty() {
                break;
            }
        }
        check(&bytes, &mut rng);
    }
}

#[test]
fn a_line_ends_within_its_limit() {
    let limits = Limits { line_bytes_max: 5_000, ..Limits::default() };
    for (begin, bytes_max) in [
        ("delete ", LINE_BYTES),
        ("get ", 5_000),
        ("gats 0 ", 5_000),
        ("getx ", LINE_BYTES),
        (&format!("{}get ", " ".repeat(100)), 5_000),
        (&format!("{}get ", " ".repeat(101)), LINE_BYTES),
    ] {
        for (length, is_closed) in [(bytes_max, false), (bytes_max + 1, true)] {
            let line = begin.to_owned() + &"k ".repeat(length);
            let line = line[..length].to_owned() + "\n";
            let is_close = |read: Read| matches!(read.step, Step::Close);
            // The decision is the same with the end of the line, and without it.
            let mut reader = Reader::new(limits);
            assert_eq!(is_close(reader.read(line.as_bytes())), is_closed, "{begin}{length}");
            let mut reader = Reader::new(limits);
            let is_close = is_close(reader.read(&line.as_bytes()[..length]));
            assert_eq!(is_close, is_closed, "{begin}{length}");
            assert!(is_close == matches!(reader.read(b"").step, Step::Close), "it stays closed");
        }
    }
}

/// If each call looked at all bytes again, this test would take hours.
#[test]
fn single_bytes_take_linear_time() {
    let line = "get ".to_owned() + &"key ".repeat((1 << 18) - 2) + "\r\n";
    let value = "set k 0 0 1000000\r\n".to_owned() + &"v".repeat(1_000_000) + "\r\n";
    for bytes in [line, value] {
        let mut reader = Reader::new(Limits::default());
        let steps = (1..=bytes.len()).map(|end| reader.read(&bytes.as_bytes()[..end]).taken);
        assert_eq!(steps.filter(|taken| *taken != 0).collect::<Vec<_>>(), [bytes.len()]);
    }
}

#[test]
fn a_large_value_is_refused_before_it_arrives() {
    let mut reader = Reader::new(Limits::default());
    let line = b"set k 0 0 2147483645\r\n";
    let Read { taken, step } = reader.read(line);
    let Step::Refused(refusal) = step else { panic!("{step:?}") };
    assert_eq!(
        (taken, refusal.reply()),
        (line.len(), &b"SERVER_ERROR object too large for cache\r\n"[..])
    );
    assert_eq!(refusal.removes.map(|key| key.written), Some(&b"k"[..]));
    let (piece, mut left) = (vec![b'\n'; 1 << 20], 2_147_483_645 + 2);
    while left > piece.len() {
        assert_eq!(reader.read(&piece), Read { taken: piece.len(), step: Step::Wait { needs: 1 } });
        left -= piece.len();
    }
    let end = [&piece[..left], b"mn\r\n"].concat();
    let Read { taken, step } = reader.read(&end);
    assert_eq!((taken, format!("{step:?}")), (end.len(), "Request(MetaNoop)".to_owned()));
}
