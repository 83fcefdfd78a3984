// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of the disk: writes are refused with the reason, nothing that was released is lost, and
//! the journal works again when the fault ends.

use crate::state::{append, append_admitted, complete, names, open, reopened, wait_for};
use freeport_kv_journal::faulty::{Faults, FaultyDisk};
use freeport_kv_journal::{FailureKind, Journal, Options, Policy, Refusal, SnapshotError, Units};
use freeport_testbed::wait::wait_until;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;

const FULL: &str = "No space left on device";
const HOUR: Duration = Duration::from_secs(3_600);

struct Setting {
    _folder: TempDir,
    options: Options,
    faults: Arc<Faults>,
    journal: Journal,
    units: Units,
}

/// A journal with units 0 to 4, which are durable.
fn setting(policy: Policy, change: impl FnOnce(&mut Options, &Faults)) -> Setting {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = FaultyDisk::default();
    let faults = disk.faults().clone();
    let mut options = Options {
        policy,
        disk: Arc::new(disk),
        sync_interval: Duration::from_millis(5),
        retry_interval: Duration::from_millis(5),
        ..Options::new(folder.path())
    };
    change(&mut options, &faults);
    let (journal, ..) = open(&options).expect("a new folder");
    let mut units = Units::new();
    for number in 0..5 {
        append(&journal, &mut units, number);
    }
    journal.sync().expect("the disk works");
    Setting { _folder: folder, options, faults, journal, units }
}

impl Setting {
    /// Appends a unit when writes are admitted again, and checks that all are recovered.
    fn ends_well(mut self, last: u64) {
        wait_until("writes are admitted", || self.journal.admit(&mut self.units, 8).is_ok());
        assert_eq!(self.journal.failure(), None);
        let position = append_admitted(&self.journal, &mut self.units, last);
        wait_for(&self.journal, position);
        drop(self.journal);
        assert!(reopened(&self.options).into_iter().eq(0..=last));
    }
}

fn refused(reason: &str) -> Result<(), Refusal> {
    Err(Refusal { reason: reason.to_owned() })
}

#[test]
fn a_full_disk_refuses_before_anything_happens() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let mut setting = setting(policy, |_, _| ());
        setting.faults.set_room(Some(0));
        let large = 64 << 20;
        assert_eq!(setting.journal.admit(&mut setting.units, large), refused(FULL));
        assert_eq!(setting.journal.failure(), None);
        assert_eq!(setting.journal.status().last_refusal.as_deref(), Some(FULL));
        // Small ones still use what is reserved.
        append(&setting.journal, &mut setting.units, 5);
        setting.faults.set_room(None);
        wait_until("the space is noticed", || {
            setting.journal.admit(&mut setting.units, large).is_ok()
        });
        assert_eq!(setting.journal.status().last_refusal, None);
        setting.ends_well(6);
    }
}

#[test]
fn a_refused_reservation_is_not_tried_again_at_once() {
    let mut setting = setting(Policy::EverySecond, |options, _| options.retry_interval = HOUR);
    setting.faults.set_room(Some(0));
    let before = setting.faults.counts().allocations;
    for _ in 0..1_000 {
        assert_eq!(setting.journal.admit(&mut setting.units, 64 << 20), refused(FULL));
    }
    // The usual amount, and then the least.
    assert_eq!(setting.faults.counts().allocations, before + 2);
}

#[test]
fn more_than_a_unit_can_have_is_refused() {
    let mut setting = setting(Policy::EverySecond, |_, _| ());
    let refusal = setting.journal.admit(&mut setting.units, 3 << 30).expect_err("too large");
    assert_eq!(refusal.reason, "a command changes more than 2 GiB");
    setting.ends_well(5);
}

#[test]
fn the_last_of_the_space_is_used() {
    let mut setting = setting(Policy::Always, |options, _| options.preallocate_bytes = 1 << 20);
    setting.faults.set_room(Some(3 << 20));
    let mut admitted = 0;
    let unit = vec![0; 100 << 10];
    while setting.journal.admit(&mut setting.units, unit.len() as u64).is_ok() {
        setting.units.push(&unit);
        setting.journal.append(&mut setting.units);
        admitted += unit.len();
    }
    assert!(admitted >= 3 << 20, "{admitted} bytes");
    setting.journal.sync().expect("what was admitted has room");
}

#[test]
fn without_reservation_a_full_disk_is_found_by_writing() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let mut setting = setting(policy, |_, faults| faults.set_can_reserve(false));
        let wakes = Arc::new(AtomicU64::new(0));
        let seen = wakes.clone();
        setting.journal.on_release(Box::new(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        }));
        setting.faults.set_room(Some(20));
        let position = append(&setting.journal, &mut setting.units, 5);
        wait_until("the write fails", || setting.journal.failure().is_some());
        let failure = setting.journal.failure().expect("it fails until there is room");
        assert_eq!((failure.kind, failure.reason.as_str()), (FailureKind::Write, FULL));
        assert_eq!(setting.journal.admit(&mut setting.units, 8), refused(FULL));
        assert!(setting.journal.released() < position);
        assert_eq!(setting.journal.begin_snapshot().err(), Some(SnapshotError::Failing(failure)));
        setting.faults.set_room(None);
        wait_for(&setting.journal, position);
        wait_until("the server is woken", || wakes.load(Ordering::Relaxed) > 0);
        setting.ends_well(6);
    }
}

#[test]
fn short_and_failing_writes_are_completed() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let mut setting = setting(policy, |_, faults| faults.set_longest_write(Some(7)));
        append(&setting.journal, &mut setting.units, 5);
        setting.journal.sync().expect("short writes are repeated");
        setting.faults.fail_writes(3);
        let position = append(&setting.journal, &mut setting.units, 6);
        wait_for(&setting.journal, position);
        wait_until("it is counted", || setting.journal.status().faults == 3);
        let last = setting.journal.status().last_failure.expect("it has failed");
        assert!(last.to_string().ends_with("log.1: Input/output error"), "{last}");
        setting.ends_well(7);
    }
}

#[test]
fn the_server_may_look_at_the_journal_when_it_is_woken() {
    let mut setting = setting(Policy::Always, |_, _| ());
    let journal = Arc::new(setting.journal);
    let (sender, woken) = mpsc::channel();
    let seen = Arc::downgrade(&journal);
    journal.on_release(Box::new(move || {
        let failure = seen.upgrade().and_then(|journal| journal.failure());
        // The test may have ended.
        let _ = sender.send(failure.map(|failure| failure.kind));
    }));
    let wait_for = |kind| while woken.recv().expect("it is called") != kind {};

    setting.faults.fail_syncs(u64::MAX);
    append(&journal, &mut setting.units, 5);
    wait_for(Some(FailureKind::Sync));
    setting.faults.fail_syncs(0);
    wait_for(None);

    setting.faults.fail_renames(1);
    assert!(journal.begin_snapshot().is_err());
    wait_for(None);
    wait_until("writes are admitted", || journal.admit(&mut setting.units, 8).is_ok());
    setting.faults.fail_writes(1);
    append_admitted(&journal, &mut setting.units, 6);
    wait_for(Some(FailureKind::Write));
    wait_for(None);
}

#[test]
fn a_failed_sync_of_bytes_in_memory_begins_a_new_segment() {
    let mut setting = setting(Policy::Always, |_, _| ());
    // The segment's, and twice that of a new segment's header.
    setting.faults.fail_syncs(3);
    let position = append(&setting.journal, &mut setting.units, 5);
    wait_for(&setting.journal, position);
    assert_eq!(setting.journal.failure(), None);
    assert!(!setting.journal.wants_snapshot());
    assert_eq!(setting.journal.status().segments, 2);
    setting.ends_well(6);
}

#[test]
fn a_failed_sync_of_other_bytes_needs_a_snapshot() {
    let mut setting = setting(Policy::EverySecond, |_, _| ());
    let (sender, woken) = mpsc::channel();
    setting.journal.on_release(Box::new(move || {
        // The test may have ended.
        let _ = sender.send(());
    }));
    setting.faults.fail_syncs(1);
    append(&setting.journal, &mut setting.units, 5);
    woken.recv().expect("the server is woken to take a snapshot");
    assert!(setting.journal.wants_snapshot());
    let failure = setting.journal.failure().expect("it lasts");
    assert_eq!(failure.kind, FailureKind::Sync);
    assert_eq!(setting.journal.sync(), Err(failure));
    // A command that was admitted before is held.
    let held = append_admitted(&setting.journal, &mut setting.units, 6);
    let writer = setting.journal.begin_snapshot().expect("a new segment can be made");
    setting.faults.fail_syncs(1);
    complete(writer, 0..7).expect_err("the snapshot's sync fails");
    assert!(setting.journal.wants_snapshot());
    assert!(setting.journal.released() < held);

    let writer = setting.journal.begin_snapshot().expect("a new segment can be made");
    let later = append_admitted(&setting.journal, &mut setting.units, 7);
    assert_eq!(complete(writer, 0..7), Ok(7));
    assert!(!setting.journal.wants_snapshot());
    wait_for(&setting.journal, later);
    assert_eq!(setting.journal.status().segments, 1);
    let files = names(&setting.options.folder).len();
    assert_eq!(files, 4, "lock, log, manifest, snapshot");
    setting.ends_well(8);
}

#[test]
fn a_sync_that_fails_during_a_snapshot_needs_another_one() {
    let mut setting = setting(Policy::EverySecond, |_, _| ());
    let writer = setting.journal.begin_snapshot().expect("the disk works");
    setting.faults.fail_syncs(1);
    append(&setting.journal, &mut setting.units, 5);
    wait_until("the sync fails", || setting.journal.wants_snapshot());
    assert_eq!(complete(writer, 0..5), Ok(5));
    assert!(setting.journal.wants_snapshot());
    let writer = setting.journal.begin_snapshot().expect("the disk works");
    assert_eq!(complete(writer, 0..6), Ok(6));
    assert!(!setting.journal.wants_snapshot());
    setting.ends_well(6);
}

#[test]
fn a_snapshot_without_room_leaves_the_log() {
    let mut setting = setting(Policy::EverySecond, |options, _| options.preallocate_bytes = 0);
    append(&setting.journal, &mut setting.units, 5);
    let writer = setting.journal.begin_snapshot().expect("the disk works");
    setting.faults.set_room(Some(1_000));
    let error = complete(writer, 0..100_000).expect_err("the disk is full");
    assert!(error.ends_with(FULL), "{error}");
    let is_snapshot = |name: &String| name.starts_with("snapshot");
    wait_until("its file is removed", || !names(&setting.options.folder).iter().any(is_snapshot));
    assert_eq!(setting.journal.failure(), None);
    setting.faults.set_room(None);
    let writer = setting.journal.begin_snapshot().expect("there is room");
    assert_eq!(complete(writer, 0..6), Ok(6));
    setting.ends_well(6);
}

#[test]
fn an_uncertain_manifest_is_written_until_it_is_certain() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let mut setting = setting(policy, |_, _| ());
        setting.faults.fail_renames(u64::MAX);
        let error = setting.journal.begin_snapshot().err().expect("the rename fails");
        assert!(matches!(error, SnapshotError::Failing(_)), "{error}");
        setting.journal.admit(&mut setting.units, 8).expect_err("it is repaired first");
        let position = append_admitted(&setting.journal, &mut setting.units, 5);
        assert!(setting.journal.released() < position);
        setting.faults.fail_renames(0);
        wait_for(&setting.journal, position);
        setting.ends_well(6);
    }
}
