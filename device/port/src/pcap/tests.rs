// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of capture files, in both directions and with damage.

use super::*;
use crate::conformance::{self, drain, plain};
use crate::memory::{Captured, Generator};
use crate::port::{PortError, Receive, Transmit};
use crate::trace::{Sizes, Trace, TraceFrame};

/// Writes a trace to a new file of that name; the folder exists as long as the first value.
fn written(trace: &[TraceFrame], name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let mut port = PcapTransmitter::create(&path).expect("a file");
    if !trace.is_empty() {
        let mut source = Generator::once(trace).expect("a good trace");
        let batch = source.receive(trace.len()).expect("memory");
        port.transmit(batch.as_frames()).expect("it can be written");
    }
    port.finish().expect("it can be written");
    (folder, path)
}

fn read(path: &Path) -> Vec<Captured> {
    drain(&mut PcapReceiver::open(path).expect("readable"), 64)
}

#[test]
fn both_formats_conform_both_ways() {
    for name in ["a.pcap", "a.pcapng"] {
        // The folder may be removed: the port has the file open.
        conformance::check_receiver(|trace| {
            let (folder, path) = written(trace, name);
            let port = PcapReceiver::open(path).expect("readable");
            drop(folder);
            port
        });
        let format = FileFormat::of_path(Path::new(name));
        let make = || {
            let file = tempfile::NamedTempFile::new().expect("a file");
            let path = file.path().to_path_buf();
            PcapTransmitter::new(file, path, format, MAX_FRAME).expect("it can be written")
        };
        conformance::check_transmitter(make, |port| read(port.file()));
    }
}

#[test]
fn what_is_written_is_valid_to_another_reader() {
    // Independent of the crate: the fixed fields of the classic format, as its description states.
    let trace = plain(&[vec![7; 61]]);
    let (_folder, path) = written(&trace, "a.pcap");
    let bytes = std::fs::read(path).expect("readable");
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|k| bytes[at + k]));
    assert_eq!((word(0), word(4), word(20)), (0xa1b2_3c4d, 0x0004_0002, 1));
    assert_eq!((word(24), word(28)), (1_700_000_000, 0));
    assert_eq!((word(32), word(36), bytes.len()), (61, 61, 24 + 16 + 61));
}

#[test]
fn a_cut_frame_keeps_its_length_and_is_reported() {
    let trace = plain(&[vec![1; 60], vec![2; 1_500]]);
    for format in [FileFormat::Pcap, FileFormat::PcapNg] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_path_buf();
        let mut port = PcapTransmitter::new(file, path.clone(), format, 96).expect("a port");
        let mut source = Generator::once(&trace).expect("good");
        port.transmit(source.receive(2).expect("two").as_frames()).expect("written");
        let _file = port.finish().expect("written");
        let mut port = PcapReceiver::open(&path).expect("readable");
        let frames = drain(&mut port, 9);
        assert_eq!((frames[1].bytes.len(), frames[1].original_length), (96, 1_500));
        assert_eq!(port.problem_count(), 1);
        let text = port.problems()[0].to_string();
        assert_eq!(
            text,
            format!("{}: record 2: the capture kept 96 of 1500 bytes", path.display())
        );
    }
}

#[test]
fn records_that_are_no_frames_are_counted_and_told() {
    // The writer writes complete frames only, so these are made by hand.
    let mut bytes = vec![];
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (captured, original) in
        [(60_u32, 60_u32), (0, 0), (9_217, 9_217), (9_216, 9_216), (60, 1_500)]
    {
        for word in [0_u32, 0, captured, original] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(bytes.len() + captured as usize, 7);
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("written");
    let name = file.path().display();
    let mut port = PcapReceiver::open(file.path()).expect("readable");
    assert_eq!((port.lost(), port.remarks()), (0, vec![]));
    let lengths: Vec<usize> = drain(&mut port, 2).iter().map(|frame| frame.bytes.len()).collect();
    assert_eq!((lengths, port.lost()), (vec![60, 9_216, 60], 2));
    let expected = [
        format!(
            "2 records were skipped; the first: {name}: record 2: skipped: 0 bytes, a port \
             carries 1 to 9216"
        ),
        format!(
            "1 frame is truncated; the first: {name}: record 5: the capture kept 60 of 1500 bytes"
        ),
    ];
    assert_eq!(port.remarks(), expected);
    // Wrappers report it as well.
    let boxed: Box<dyn Receive> = Box::new(port);
    let port = crate::pace::Pace::new(boxed, 1e6).expect("a timer");
    assert_eq!((port.lost(), port.remarks().len()), (2, 2));
}

#[test]
fn a_file_that_ends_inside_a_record_says_which() {
    let trace = plain(&[vec![1; 60], vec![2; 100], vec![3; 200]]);
    for name in ["a.pcap", "a.pcapng"] {
        let (_folder, path) = written(&trace, name);
        let bytes = std::fs::read(&path).expect("readable");
        std::fs::write(&path, &bytes[..bytes.len() - 50]).expect("writable");
        let mut port = PcapReceiver::open(&path).expect("the header is whole");
        assert_eq!(port.receive(9).expect("what is whole").len(), 2);
        assert!(!port.is_ended(), "the error is still to come");
        let error = port.receive(9).expect_err("the rest is not");
        let text = format!("{}: record 3: the file ends inside it", path.display());
        assert_eq!(error.to_string(), text);
        assert!(port.is_ended());
    }
}

/// Builds one pcapng block, little endian.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat())
}

fn interface(link: u16, resolution: Option<u8>) -> Vec<u8> {
    let mut body = [&link.to_le_bytes()[..], &[0; 6]].concat();
    if let Some(resolution) = resolution {
        body.extend([9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0]);
    }
    block(1, &body)
}

fn enhanced(interface: u32, ticks: u64, data: &[u8; 4]) -> Vec<u8> {
    let words = [interface, (ticks >> 32) as u32, ticks as u32, 4, 4];
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    body.extend(data);
    block(6, &body)
}

#[test]
fn interfaces_of_a_pcapng_have_their_own_clocks_and_kinds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pcapng");
    let obsolete: Vec<u8> = [0u32, 1, 5, 4, 4].iter().flat_map(|it| it.to_le_bytes()).collect();
    let parts = [
        section(),
        interface(1, None),
        interface(1, Some(9)),
        interface(1, Some(0x80 | 10)),
        interface(113, None),
        enhanced(0, 5, b"mic."),
        enhanced(1, 5, b"nano"),
        enhanced(2, 1_024, b"bin."),
        enhanced(3, 5, b"sll."),
        enhanced(9, 5, b"none"),
        block(2, &[&obsolete[..], b"old."].concat()),
        block(3, &[&4u32.to_le_bytes()[..], b"simp"].concat()),
    ];
    std::fs::write(&path, parts.concat()).expect("writable");
    let mut port = PcapReceiver::open(&path).expect("readable");
    let frames = drain(&mut port, 2);
    let seen = frames.iter().map(|it| (it.timestamp_ns, std::str::from_utf8(&it.bytes)));
    let expected = [
        (5_000, Ok("mic.")),
        (5, Ok("nano")),
        (1_000_000_000, Ok("bin.")),
        (((1 << 32) + 5) * 1_000, Ok("old.")),
        (0, Ok("simp")),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    let kinds: Vec<_> = port.problems().iter().map(|it| (it.record, it.kind)).collect();
    assert_eq!(kinds, [(4, ProblemKind::LinkType(113)), (5, ProblemKind::Interface(9))]);
    assert_eq!(port.first_foreign(), port.problems().first());
    let mut port = PcapReceiver::open(&path).expect("readable");
    let numbers = (0..5).map(|_| {
        assert_eq!(port.receive(1).expect("there are five").len(), 1);
        port.record_count()
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 6, 7], "those left out count");
}

#[test]
fn other_files_are_refused_with_their_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pcap");
    for bytes in [&b""[..], b"plain text, not a capture at all", &[0xd4, 0xc3, 0xb2, 0xa1]] {
        std::fs::write(&path, bytes).expect("writable");
        let error = PcapReceiver::open(&path).err().expect("no capture");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
    let missing = PcapReceiver::open(folder.path().join("b.pcap")).err().expect("no file");
    assert!(matches!(missing, PortError::File { .. }));
}

#[test]
fn damaged_files_never_panic_and_never_loop() {
    let trace = Trace { frames: 20, sizes: Sizes::Uniform(54..=200), ..Trace::default() };
    let mut random = fastrand::Rng::with_seed(9);
    for name in ["a.pcap", "a.pcapng"] {
        let (_folder, path) = written(&trace.generate(), name);
        let good = std::fs::read(&path).expect("readable");
        let mut complaints = 0;
        for _ in 0..300 {
            let mut bytes = good.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..bytes.len());
                bytes[at] = [random.u8(..), 0, 0xff][random.usize(..3)];
            }
            bytes.truncate(random.usize(1..=bytes.len()));
            std::fs::write(&path, bytes).expect("writable");
            let Ok(mut port) = PcapReceiver::open(&path) else { continue };
            for _ in 0..100 {
                complaints += usize::from(port.receive(4).is_err());
            }
            assert!(port.is_ended());
        }
        assert!(complaints > 50, "damage is found: {complaints} times in {name}");
    }
}
