// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of a key-value server's journal. A folder that opens has the same units when it is
//! opened again or followed, and so has one that was cut at its bad place.

use freeport_kv_journal::inspect::cut_on;
use freeport_kv_journal::memory::MemoryDisk;
use freeport_kv_journal::{Entries, FILE_BYTES, Journal, Options, Policy, Replay, Units};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const SNAPSHOT: &str = "snapshot.3";
const LOG: &str = "log.2";

/// The salt of the samples.
const SALT: u64 = 0x6b76_2d6a;

/// Bytes of a frame before its items.
const FRAME_BYTES: usize = 40;

#[derive(Default)]
struct Collected(Vec<Vec<u8>>);

impl Replay for Collected {
    fn entry(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.unit(bytes)
    }

    fn unit(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0.push(bytes.to_vec());
        Ok(())
    }
}

/// Reads the bytes as a folder: flags, the lengths of the manifest and of the snapshot in two bytes
/// each, these two files, and the rest is the log. A flag has the checks of a file computed anew,
/// so that what they protect is read.
pub fn kv_journal(bytes: &[u8]) {
    let [flags, first, second, third, fourth, ref files @ ..] = *bytes else { return };
    let length = usize::from(u16::from_le_bytes([first, second]));
    let (manifest, files) = files.split_at(length.min(files.len()));
    let length = usize::from(u16::from_le_bytes([third, fourth]));
    let (snapshot, log) = files.split_at(length.min(files.len()));
    let [mut manifest, mut snapshot, mut log] = [manifest, snapshot, log].map(<[u8]>::to_vec);
    if flags & 1 != 0 {
        check_manifest(&mut manifest);
    }
    let salt = salt_of(&manifest);
    if flags & 2 != 0 {
        check_frames(&mut snapshot, salt, FILE_BYTES);
    }
    if flags & 4 != 0 {
        let position = position_of(&manifest);
        check_frames(&mut log, salt, position);
    }
    let files = [("manifest", &manifest[..]), (SNAPSHOT, &snapshot), (LOG, &log)];
    let disk = MemoryDisk::with_files(files);
    if let Some(found) = opened(&disk) {
        assert_eq!(opened(&disk), Some(found), "it is opened again");
        return;
    }
    if let Ok(Some(_)) = cut_on(Arc::new(disk.clone()), Path::new("folder")) {
        assert!(opened(&disk).is_some(), "nothing else was wrong");
    }
}

/// Entries and units of a folder that opens.
fn opened(disk: &MemoryDisk) -> Option<Vec<Vec<u8>>> {
    let mut collected = Collected::default();
    match Journal::open(options(disk), &mut collected, &mut |_| {}) {
        Ok((journal, _)) => {
            assert_eq!(followed(&journal), collected.0, "a follower gets the same");
            Some(collected.0)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "it says what is wrong");
            None
        }
    }
}

/// Entries and units as a follower gets them.
fn followed(journal: &Journal) -> Vec<Vec<u8>> {
    let (mut snapshot, mut follower) = journal.read_snapshot(u64::MAX).expect("it was read");
    let mut all = vec![];
    while let Some(block) = snapshot.next_block().expect("it was read") {
        all.extend(block.map(<[u8]>::to_vec));
    }
    while let Some(batch) = follower.next_batch(Duration::ZERO).expect("it was read") {
        all.extend(batch.units.map(<[u8]>::to_vec));
    }
    all
}

fn options(disk: &MemoryDisk) -> Options {
    Options { policy: Policy::Never, disk: Arc::new(disk.clone()), ..Options::new("folder") }
}

fn check_manifest(manifest: &mut Vec<u8>) {
    let end = manifest.windows(4).rposition(|bytes| bytes == b"end ");
    manifest.truncate(end.unwrap_or(manifest.len()));
    let check = crc32c::crc32c(manifest);
    manifest.extend_from_slice(format!("end {check:08x}\n").as_bytes());
}

fn word<'a>(manifest: &'a [u8], before: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(manifest).ok()?;
    text.split(before).nth(1)?.split_whitespace().next()
}

fn salt_of(manifest: &[u8]) -> u64 {
    let word = word(manifest, "salt ").unwrap_or_default();
    u64::from_str_radix(word, 16).unwrap_or_default()
}

fn position_of(manifest: &[u8]) -> u64 {
    word(manifest, "position ").unwrap_or_default().parse().unwrap_or_default()
}

/// Computes the checks of the file's header and of its frames; the first is at `place`.
fn check_frames(file: &mut [u8], salt: u64, mut place: u64) {
    let Some((header, mut frames)) = file.split_at_mut_checked(FILE_BYTES as usize) else {
        return;
    };
    header[20..28].copy_from_slice(&salt.to_le_bytes());
    let check = crc32c::crc32c(&header[..28]);
    header[28..].copy_from_slice(&check.to_le_bytes());
    while let Some((frame, rest)) = frames.split_at_mut_checked(FRAME_BYTES) {
        let length = u64::from_le_bytes(frame[8..16].try_into().expect("eight bytes"));
        let (items, rest) = rest.split_at_mut(length.min(rest.len() as u64) as usize);
        frame[32..36].copy_from_slice(&crc32c::crc32c(items).to_le_bytes());
        let mut checked = [salt.to_le_bytes(), place.to_le_bytes()].concat();
        checked.extend_from_slice(&frame[..4]);
        checked.extend_from_slice(&frame[8..]);
        frame[4..8].copy_from_slice(&crc32c::crc32c(&checked).to_le_bytes());
        place = place.wrapping_add((FRAME_BYTES + items.len()) as u64);
        frames = rest;
    }
}

/// A folder with a snapshot and a log, which can be opened, with each combination of flags.
pub fn samples() -> Vec<Vec<u8>> {
    let disk = MemoryDisk::default();
    let created = Journal::open(options(&disk), &mut Collected::default(), &mut |_| {});
    let (journal, _) = created.expect("a new folder");
    let mut units = Units::new();
    units.push(b"first");
    journal.append(&mut units);
    let writer = journal.begin_snapshot().expect("memory does not fail");
    let mut entries = Entries::new();
    entries.push(b"entry");
    writer.write(&mut entries).expect("memory does not fail");
    entries.push(b"another");
    writer.write(&mut entries).expect("memory does not fail");
    let (sender, receiver) = mpsc::channel();
    writer.finish(Box::new(move |result| sender.send(result).expect("it is received")));
    receiver.recv().expect("there is a result").expect("memory does not fail");
    for unit in ["second", "", "third"] {
        units.push(unit.as_bytes());
        units.push(b"more");
        journal.append(&mut units);
        journal.sync().expect("memory does not fail");
    }
    drop(journal);
    let file = |name| disk.read(name).expect("the journal has made it");
    let (mut manifest, mut snapshot, mut log) = (file("manifest"), file(SNAPSHOT), file(LOG));
    // The salt is random, and samples are always the same.
    let salt = format!("{:016x}", salt_of(&manifest));
    let text = String::from_utf8(manifest).expect("a text");
    manifest = text.replace(&salt, &format!("{SALT:016x}")).into_bytes();
    check_manifest(&mut manifest);
    check_frames(&mut snapshot, SALT, FILE_BYTES);
    check_frames(&mut log, SALT, position_of(&manifest));
    let lengths = [manifest.len() as u16, snapshot.len() as u16].map(u16::to_le_bytes).concat();
    let disk =
        MemoryDisk::with_files([("manifest", &manifest[..]), (SNAPSHOT, &snapshot), (LOG, &log)]);
    assert_eq!(opened(&disk).map(|items| items.len()), Some(8), "two entries and six units");
    (0..8).map(|flags| [&[flags], &lengths[..], &manifest, &snapshot, &log].concat()).collect()
}
