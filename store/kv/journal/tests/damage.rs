// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damaged folders: the end of an interrupted write is cut off, and everything else is refused with
//! the place and a way out.

use crate::state::{State, append, complete, open, wait_for};
use freeport_kv_journal::inspect::{Ignore, cut_on, inspect};
use freeport_kv_journal::memory::MemoryDisk;
use freeport_kv_journal::{FILE_BYTES, OpenError, Options, Policy, Recovered, Units};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a batch with one number.
const BATCH: usize = 40 + 4 + 8;

type Files = Vec<(String, Vec<u8>)>;

fn options(disk: MemoryDisk) -> Options {
    Options { policy: Policy::Always, disk: Arc::new(disk), ..Options::new("folder") }
}

/// The files of a server that was killed: units 0 to 2, a snapshot of these, units 3 and 4, a
/// snapshot that was cancelled, units 5 to 7. Each was released before the next.
fn files() -> Files {
    let disk = MemoryDisk::default();
    let (journal, ..) = open(&options(disk.clone())).expect("a new folder");
    let mut units = Units::new();
    let mut append = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            wait_for(&journal, append(&journal, &mut units, number));
        }
    };
    append(0..3);
    let writer = journal.begin_snapshot().expect("the disk works");
    complete(writer, 0..3).expect("the disk works");
    append(3..5);
    journal.begin_snapshot().expect("the disk works").cancel();
    append(5..8);
    all_files(&disk)
}

fn all_files(disk: &MemoryDisk) -> Files {
    let read = |name: String| (name.clone(), disk.read(&name).expect("it is listed"));
    disk.names().into_iter().map(read).collect()
}

fn disk(files: &Files) -> MemoryDisk {
    MemoryDisk::with_files(files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])))
}

/// Opens the files after a change of one of them.
fn changed(
    files: &Files,
    name: &str,
    change: impl FnOnce(&mut Vec<u8>),
) -> (MemoryDisk, Result<(State, Recovered), OpenError>) {
    let mut files = files.clone();
    let file = files.iter_mut().find(|file| file.0 == name).expect("there is such a file");
    change(&mut file.1);
    let disk = disk(&files);
    let opened = open(&options(disk.clone()));
    (disk, opened.map(|(_, state, recovered)| (state, recovered)))
}

#[test]
fn the_files_are_those_that_the_tests_change() {
    let files = files();
    let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
    assert_eq!(names, ["log.2", "log.4", "manifest", "snapshot.3"]);
    assert_eq!(files[0].1.len(), FILE_BYTES as usize + 2 * BATCH);
    assert_eq!(files[1].1.len(), FILE_BYTES as usize + 3 * BATCH);
    let (_, state, recovered) = open(&options(disk(&files))).expect("it is whole");
    assert!(state.0.into_iter().eq(0..8));
    assert_eq!((recovered.entries, recovered.units, recovered.cut), (3, 5, None));
}

#[test]
fn a_log_that_ends_anywhere_has_the_units_before() {
    let files = files();
    let full = files[1].1.len();
    for length in FILE_BYTES as usize..full {
        let (_, opened) = changed(&files, "log.4", |bytes| bytes.truncate(length));
        let (state, recovered) = opened.expect("the end of a write that was interrupted");
        let whole = (length - FILE_BYTES as usize) / BATCH;
        assert!(state.0.into_iter().eq(0..5 + whole as u64), "{length} bytes");
        let offset = FILE_BYTES as usize + whole * BATCH;
        let cut = recovered.cut.map(|cut| (cut.offset as usize, cut.bytes as usize));
        assert_eq!(cut, (length > offset).then_some((offset, length - offset)));
    }
}

#[test]
fn a_changed_byte_is_corrupt_if_it_was_durable() {
    let files = files();
    let full = files[1].1.len();
    for at in 0..full {
        let (disk, opened) = changed(&files, "log.4", |bytes| bytes[at] ^= 0x10);
        let first_of_last = full - BATCH;
        if at >= first_of_last {
            // Nothing says that the last batch was durable.
            let (state, recovered) = opened.expect("as if its write was interrupted");
            assert!(state.0.into_iter().eq(0..7));
            let cut = recovered.cut.expect("it is reported");
            assert_eq!((cut.offset as usize, cut.bytes as usize), (first_of_last, BATCH));
            continue;
        }
        let batch = at.saturating_sub(FILE_BYTES as usize) / BATCH;
        let place = if at < FILE_BYTES as usize { 0 } else { FILE_BYTES as usize + batch * BATCH };
        let error = opened.err().unwrap_or_else(|| panic!("byte {at}")).to_string();
        for part in [
            &format!("folder/log.4 at offset {place}: ") as &str,
            "durable",
            "`freeport kv inspect folder --cut`",
        ] {
            assert!(error.contains(part), "byte {at}: {error}");
        }
        // Nothing was changed, and cutting keeps what is before.
        let place = cut_on(Arc::new(disk.clone()), Path::new("folder")).expect("it can be cut");
        assert!(place.is_some_and(|place| !place.is_torn()));
        let (_, state, _) = open(&options(disk)).expect("it is whole again");
        assert!(state.0.into_iter().eq(0..5 + batch as u64), "byte {at}");
    }
}

#[test]
fn a_change_before_a_later_segment_is_corrupt() {
    let files = files();
    for at in 0..files[0].1.len() {
        let (disk, opened) = changed(&files, "log.2", |bytes| bytes[at] ^= 1);
        let error = opened.expect_err("a later segment exists").to_string();
        assert!(error.contains("log.2 at offset "), "{error}");
        assert!(error.contains("a later segment of the log exists"), "{error}");
        cut_on(Arc::new(disk.clone()), Path::new("folder")).expect("it can be cut");
        assert!(disk.read("log.4").is_none(), "it follows the bad place");
        let (_, state, _) = open(&options(disk)).expect("it is whole again");
        let batches = at.saturating_sub(FILE_BYTES as usize) / BATCH;
        assert!(state.0.into_iter().eq(0..3 + batches as u64), "byte {at}");
    }
    let (_, opened) = changed(&files, "log.2", |bytes| bytes.truncate(FILE_BYTES as usize + BATCH));
    let error = opened.expect_err("a batch is missing").to_string();
    assert!(error.contains("the segment ends before the next one begins"), "{error}");
}

#[test]
fn a_snapshot_is_whole_or_refused() {
    let files = files();
    let full = files[3].1.len();
    for at in 0..full {
        let (_, changed_byte) = changed(&files, "snapshot.3", |bytes| bytes[at] ^= 1);
        let (_, shorter) = changed(&files, "snapshot.3", |bytes| bytes.truncate(at));
        for opened in [changed_byte, shorter] {
            let error = opened.expect_err("it is not whole");
            assert!(matches!(error, OpenError::Snapshot { .. }), "{error}");
            assert!(error.to_string().starts_with("folder/snapshot.3 at offset "), "{error}");
        }
    }
    let (_, longer) = changed(&files, "snapshot.3", |bytes| bytes.push(0));
    let error = longer.expect_err("there is more").to_string();
    assert!(error.contains("there are bytes behind the mark of the end"), "{error}");
}

#[test]
fn files_that_are_missing_or_not_named() {
    let files = files();
    for missing in ["log.2", "log.4", "snapshot.3"] {
        let mut fewer = files.clone();
        fewer.retain(|(name, _)| name != missing);
        let error = open(&options(disk(&fewer))).err().expect("a file is missing");
        assert!(matches!(&error, OpenError::Missing { .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("folder/{missing}: ")), "{error}");
    }
    let mut fewer = files.clone();
    fewer.retain(|(name, _)| name != "manifest");
    let error = open(&options(disk(&fewer))).err().expect("the manifest is missing");
    assert!(matches!(&error, OpenError::NoManifest { .. }), "{error}");

    let mut more = files.clone();
    for name in ["log.9", "snapshot.7", "manifest.new", "log.old", "notes"] {
        more.push((name.to_owned(), b"left by a crash".to_vec()));
    }
    let disk = disk(&more);
    let (journal, _, recovered) = open(&options(disk.clone())).expect("they are not named");
    assert_eq!(recovered.removed, ["log.9", "snapshot.7"]);
    for name in ["log.9", "snapshot.7", "manifest.new"] {
        assert_eq!(disk.read(name), None);
    }
    assert!(disk.read("notes").is_some() && disk.read("log.old").is_some());
    journal.begin_snapshot().expect("the disk works").cancel();
    assert!(disk.names().contains(&"log.10".to_owned()), "numbers are not used twice");
}

#[test]
fn a_copy_of_a_batch_is_not_a_batch() {
    let files = files();
    // A client has stored a part of the log, and a later write was interrupted.
    let copied = files[1].1[FILE_BYTES as usize..].to_vec();
    let disk = disk(&files);
    let (journal, ..) = open(&options(disk.clone())).expect("it is whole");
    let mut units = Units::new();
    let mut unit = 8u64.to_le_bytes().to_vec();
    unit.extend_from_slice(&copied);
    units.push(&unit);
    wait_for(&journal, journal.append(&mut units));
    let files = all_files(&disk);
    let (_, opened) = changed(&files, "log.4", |bytes| bytes.truncate(bytes.len() - 1));
    let (state, recovered) = opened.expect("the copies prove nothing");
    assert!(state.0.into_iter().eq(0..8));
    assert!(recovered.cut.is_some());
}

#[test]
fn inspecting_changes_nothing_and_finds_the_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let mut units = Units::new();
    append(&journal, &mut units, 0);
    complete(journal.begin_snapshot().expect("the disk works"), 0..1).expect("the disk works");
    for number in 1..4 {
        append(&journal, &mut units, number);
    }
    let mut state = State::default();
    let contents = inspect(folder.path(), &mut state, &mut |_| {}).expect("it is in use");
    assert_eq!(state.0, [0, 1, 2, 3]);
    assert_eq!(contents.bad_place, None);
    let snapshot = contents.snapshot.expect("there is one");
    assert_eq!((snapshot.blocks, snapshot.entries), (1, 1));
    let segment = &contents.segments[0];
    assert_eq!((segment.number, segment.batches, segment.units), (2, 3, 3));
    assert_eq!(segment.end, journal.end());
    let error = freeport_kv_journal::inspect::cut(folder.path()).expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(journal);

    let file = folder.path().join("log.2");
    let mut bytes = std::fs::read(&file).expect("a file");
    bytes[FILE_BYTES as usize + BATCH] ^= 1;
    std::fs::write(&file, &bytes).expect("it can be written");
    let contents = inspect(folder.path(), &mut Ignore, &mut |_| {}).expect("it can be read");
    let place = contents.bad_place.expect("there is one");
    assert_eq!(place.offset as usize, FILE_BYTES as usize + BATCH);
    assert!(!place.is_torn(), "the last batch says that all was durable");
    assert_eq!(std::fs::read(&file).expect("a file"), bytes);
    let cut = freeport_kv_journal::inspect::cut(folder.path()).expect("nobody uses it");
    assert_eq!(cut, Some(place));
    assert_eq!(freeport_kv_journal::inspect::cut(folder.path()).expect("it is whole"), None);
    assert_eq!(open(&options).expect("it is whole").1.0, [0, 1]);
}
