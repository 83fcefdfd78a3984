// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens a folder: makes a new journal, or reads what is there and prepares it for appending.
//!
//! Every step may be interrupted by a crash, and is then repeated by the next start. Nothing is
//! changed before everything has been read.

use crate::chain::Chain;
use crate::disk::{File, Lock, Unlocked, write_all};
use crate::error::OpenError;
use crate::folder::{Folder, LINEAGE, LOCK, NEW_LINEAGE, NEW_MANIFEST, Unstored, offset_in};
use crate::journal::Options;
use crate::lineage::{Lineage, read_lineage};
use crate::manifest::{Manifest, Segment, number_of};
use crate::shared::{Counts, Faults, Shared, Tail};
use crate::status::{Cut, Position, Progress, Recovered};
use crate::walk::{Contents, Replay, data_without_manifest, read_manifest, walk};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

/// Takes the folder for this process.
pub(crate) fn lock(folder: &Folder) -> Result<Lock, OpenError> {
    let created = folder.disk.create_folder(&folder.path);
    created.map_err(OpenError::system("making the folder", &folder.path))?;
    let path = folder.file(LOCK);
    folder.disk.lock(&path).map_err(|unlocked| match unlocked {
        Unlocked::Held(pid) => OpenError::InUse { folder: folder.path.clone(), pid },
        Unlocked::Failed(error) => OpenError::system("locking", &path)(error),
    })
}

/// Opens the folder, whose lock the caller has.
pub(crate) fn open(
    folder: Folder,
    options: &Options,
    replay: &mut dyn Replay,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Shared, Recovered), OpenError> {
    let Some(manifest) = read_manifest(&folder)? else {
        let manifest = create(&folder)?;
        let recovered = Recovered { is_new: true, ..Recovered::default() };
        let segment = manifest.last();
        let tail = open_tail(&folder, options, manifest, segment, Position::default())?;
        return Ok((shared(folder, options, tail, Lineage::default()), recovered));
    };
    let contents = walk(&folder, manifest, replay, progress)?;
    refuse_corrupt(&folder, &contents)?;
    // The last process may have been killed before the name of this manifest was durable. Files
    // that only an earlier one names are removed below.
    let synced = folder.disk.sync_folder(&folder.path);
    synced.map_err(OpenError::system("making durable", &folder.path))?;

    let manifest = contents.manifest.clone();
    let facts = contents.segments.last().expect("a manifest has a segment");
    let end =
        Segment { number: facts.number, position: facts.end.0, sequence: facts.next_sequence };
    let mut tail = open_tail(&folder, options, manifest, end, facts.durable)?;
    tail.snapshot_bytes = contents.snapshot.as_ref().map_or(0, |facts| facts.bytes);
    let removed = remove_strays(&folder, &contents.strays)?;
    let highest = contents.strays.iter().filter_map(|name| number_of(name)).max();
    tail.next_number = tail.next_number.max(highest.map_or(0, |number| number + 1));
    let (lineage, lost_lineage) = read_lineage(&folder, Position(tail.end));
    let recovered = Recovered {
        is_new: false,
        entries: contents.snapshot.as_ref().map_or(0, |facts| facts.entries),
        units: contents.segments.iter().map(|facts| facts.units).sum(),
        bytes: tail.snapshot_bytes + contents.segments.iter().map(|facts| facts.bytes).sum::<u64>(),
        cut: contents.bad_place.map(|place| Cut {
            file: place.file,
            offset: place.offset,
            bytes: place.bytes,
            reason: place.reason,
        }),
        removed,
        lost_lineage,
    };
    Ok((shared(folder, options, tail, lineage), recovered))
}

fn refuse_corrupt(folder: &Folder, contents: &Contents) -> Result<(), OpenError> {
    let Some(place) = &contents.bad_place else { return Ok(()) };
    let Some(evidence) = &place.evidence else { return Ok(()) };
    Err(OpenError::Corrupt {
        folder: folder.path.clone(),
        file: place.file.clone(),
        offset: place.offset,
        reason: place.reason.clone(),
        evidence: evidence.clone(),
    })
}

/// Makes a new journal in a folder without data.
fn create(folder: &Folder) -> Result<Manifest, OpenError> {
    if let Some(name) = data_without_manifest(folder)? {
        return Err(OpenError::NoManifest { folder: folder.path.clone(), name });
    }
    let names = folder.disk.list(&folder.path);
    let names = names.map_err(OpenError::system("listing", &folder.path))?;
    let strays: Vec<String> = names.into_iter().filter(|name| number_of(name).is_some()).collect();
    remove_strays(folder, &strays)?;

    // It would be taken for that of the new log.
    let path = folder.file(LINEAGE);
    match folder.disk.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(OpenError::system("removing", &path)(error));
        }
        _ => {}
    }

    // A random number: the hasher's seeds come from the system.
    let salt = RandomState::new().hash_one(std::process::id());
    let segment = Segment { number: 1, position: 0, sequence: 0 };
    let created = folder.create_log(segment.number, salt);
    created.map_err(OpenError::system("making", &folder.log(segment.number)))?;
    let manifest = Manifest { generation: 1, salt, snapshot: None, segments: vec![segment] };
    let stored = folder.store(&manifest).map_err(|Unstored { error, .. }| error);
    stored.map_err(OpenError::system("writing the manifest in", &folder.path))?;
    Ok(manifest)
}

/// Removes files that no manifest names. The names removed are made durable by the next manifest;
/// until then a crash only brings a file back.
fn remove_strays(folder: &Folder, strays: &[String]) -> Result<Vec<String>, OpenError> {
    folder.remove(&folder.file(NEW_MANIFEST));
    folder.remove(&folder.file(NEW_LINEAGE));
    for name in strays {
        let path = folder.file(name);
        let removed = folder.disk.remove(&path);
        removed.map_err(OpenError::system("removing", &path))?;
    }
    Ok(strays.to_vec())
}

/// Opens the last segment for appending at `end`. Bytes behind it are cut off. Everything before is
/// made durable, because batches that follow say so.
///
/// Bytes behind `durable` are written again. If a sync of the last process failed, the kernel may
/// have them in memory only and not know it, so that another sync would not write them.
fn open_tail(
    folder: &Folder,
    options: &Options,
    manifest: Manifest,
    end: Segment,
    durable: Position,
) -> Result<Tail, OpenError> {
    let segment = manifest.last();
    let path = folder.log(segment.number);
    let file = folder.disk.open(&path, true).map_err(OpenError::system("opening", &path))?;
    let offset = |position| offset_in(segment.position, position);
    let length = offset(end.position);
    file.truncate(length).map_err(OpenError::system("cutting", &path))?;
    let rewritten = write_again(&*file, offset(durable.0.max(segment.position)), length);
    rewritten.map_err(OpenError::system("writing", &path))?;
    file.sync().map_err(OpenError::system("making durable", &path))?;

    let numbers = manifest.segments.iter().map(|segment| segment.number).chain(manifest.snapshot);
    let next_number = numbers.max().expect("a manifest has a segment") + 1;
    let chain = Chain::new(&manifest.segments);
    Ok(Tail {
        policy: options.policy,
        manifest,
        segment,
        file,
        chain,
        waiting_followers: 0,
        epoch: 0,
        is_follower: false,
        is_named: true,
        next_number,
        garbage: vec![],
        snapshot_bytes: 0,
        end: end.position,
        written: end.position,
        durable: end.position,
        sequence: end.sequence,
        unwritten: vec![],
        unsynced: vec![],
        is_writing: false,
        is_idle: false,
        dirty_since: None,
        wanted: 0,
        is_closing: false,
        reserved: end.position,
        can_reserve: true,
        refusal: None,
        faults: Faults::default(),
        last_failure: None,
        retry_at: Instant::now(),
    })
}

fn write_again(file: &dyn File, start: u64, end: u64) -> io::Result<()> {
    let mut bytes = vec![0; (end - start).min(1 << 20) as usize];
    let mut offset = start;
    while offset < end {
        let length = (end - offset).min(bytes.len() as u64) as usize;
        let read = file.read_at(&mut bytes[..length], offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all(file, &bytes[..read], offset).1?;
        offset += read as u64;
    }
    Ok(())
}

fn shared(folder: Folder, options: &Options, tail: Tail, lineage: Lineage) -> Shared {
    Shared {
        folder,
        salt: tail.manifest.salt,
        preallocate_bytes: options.preallocate_bytes,
        backlog_bytes: options.backlog_bytes,
        sync_interval: options.sync_interval,
        retry_interval: options.retry_interval,
        end: AtomicU64::new(tail.end),
        released: AtomicU64::new(tail.end),
        named_from: AtomicU64::new(tail.manifest.segments[0].position),
        tail: Mutex::new(tail),
        work: Condvar::new(),
        progress: Condvar::new(),
        more: Condvar::new(),
        is_failing: AtomicBool::new(false),
        is_short: AtomicBool::new(false),
        free: AtomicI64::new(0),
        snapshot_is_active: AtomicBool::new(false),
        snapshot: Mutex::new(None),
        wake: Mutex::new(None),
        lineage: Mutex::new(lineage),
        lineage_writer: Mutex::new(false),
        counts: Counts::default(),
    }
}
