// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Appended units are recovered, under every policy, with and without snapshots.

use crate::state::{State, append, complete, names, open, reopened, wait_for};
use freeport_kv_journal::{
    Entries, Journal, OpenError, Options, Policy, Replay, SnapshotError, Units,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const POLICIES: [Policy; 3] = [Policy::Always, Policy::EverySecond, Policy::Never];

#[test]
fn units_are_recovered_in_their_order() {
    for policy in POLICIES {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { policy, ..Options::new(folder.path().join("deep/folder")) };
        let (journal, _, recovered) = open(&options).expect("a new folder");
        assert!(recovered.is_new);
        let mut units = Units::new();
        for number in 0..100 {
            let position = append(&journal, &mut units, number);
            assert_eq!(journal.end(), position);
            wait_for(&journal, position);
        }
        journal.sync().expect("the disk works");
        assert_eq!(journal.durable(), journal.end());
        drop(journal);
        let (journal, state, recovered) = open(&options).expect("it opens again");
        assert!(state.0.iter().copied().eq(0..100));
        assert_eq!((recovered.is_new, recovered.units, recovered.cut), (false, 100, None));
        append(&journal, &mut units, 100);
        drop(journal);
        assert!(reopened(&options).into_iter().eq(0..=100));
    }
}

#[test]
fn workers_append_at_the_same_time() {
    for policy in POLICIES {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { policy, ..Options::new(folder.path()) };
        let (journal, ..) = open(&options).expect("a new folder");
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let journal = &journal;
                scope.spawn(move || {
                    let mut units = Units::new();
                    for number in 0..200 {
                        let position = append(journal, &mut units, worker * 1_000 + number);
                        if number % 50 == 0 {
                            wait_for(journal, position);
                        }
                    }
                });
            }
        });
        drop(journal);
        let numbers = reopened(&options);
        assert_eq!(numbers.len(), 800);
        for worker in 0..4 {
            let own = numbers.iter().filter(|&&number| number / 1_000 == worker);
            assert!(own.copied().eq(worker * 1_000..worker * 1_000 + 200));
        }
    }
}

#[test]
fn a_snapshot_replaces_the_log_before_it() {
    for policy in POLICIES {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { policy, ..Options::new(folder.path()) };
        let (journal, ..) = open(&options).expect("a new folder");
        let mut units = Units::new();
        for round in 0..3 {
            for number in 0..10 {
                append(&journal, &mut units, round * 20 + number);
            }
            let writer = journal.begin_snapshot().expect("the disk works");
            for number in 10..20 {
                append(&journal, &mut units, round * 20 + number);
            }
            assert_eq!(journal.begin_snapshot().err(), Some(SnapshotError::Busy));
            assert_eq!(complete(writer, 0..round * 20 + 10), Ok(round * 20 + 10));
        }
        let status = journal.status();
        assert_eq!((status.segments, status.snapshot_is_active), (1, false));
        drop(journal);
        assert_eq!(names(folder.path()), ["lock", "log.6", "manifest", "snapshot.7"]);
        assert!(reopened(&options).into_iter().eq(0..60));
    }
}

#[test]
fn a_cancelled_snapshot_leaves_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let mut units = Units::new();
    for number in 0..5 {
        append(&journal, &mut units, number);
        let writer = journal.begin_snapshot().expect("the disk works");
        let mut entries = Entries::new();
        entries.push(&[0; 100_000]);
        writer.write(&mut entries).expect("the disk works");
        match number {
            0 => drop(writer),
            _ => writer.cancel(),
        }
        assert!(!names(folder.path()).iter().any(|name| name.starts_with("snapshot")));
    }
    let writer = journal.begin_snapshot().expect("the disk works");
    drop(journal);
    let mut entries = Entries::new();
    entries.push(b"late");
    assert_eq!(writer.write(&mut entries), Err(SnapshotError::Cancelled));
    assert!(reopened(&options).into_iter().eq(0..5));
}

#[test]
fn a_second_server_names_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let error = open(&options).err().expect("the folder is in use");
    assert!(matches!(&error, OpenError::InUse { .. }));
    let process = format!("process {}", std::process::id());
    assert!(error.to_string().contains(&process), "{error}");
    drop(journal);
    open(&options).expect("it is free");
}

#[test]
fn the_committer_wakes_after_it_has_released() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { policy: Policy::Always, ..Options::new(folder.path()) };
    let (journal, ..) = open(&options).expect("a new folder");
    let journal = Arc::new(journal);
    let (sender, receiver) = std::sync::mpsc::channel();
    let seen = Arc::downgrade(&journal);
    journal.on_release(Box::new(move || {
        if let Some(journal) = seen.upgrade() {
            let _ = sender.send(journal.released());
        }
    }));
    let mut units = Units::new();
    for number in 0..20 {
        let position = append(&journal, &mut units, number);
        while receiver.recv().expect("it is called") < position {}
    }
}

#[test]
fn the_policy_changes_while_workers_append() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut units = Units::new();
            for number in 0..2_000 {
                append(&journal, &mut units, number);
                next.store(number, Ordering::Relaxed);
            }
        });
        for at in 0.. {
            journal.set_policy(POLICIES[at % 3]);
            if next.load(Ordering::Relaxed) == 1_999 {
                break;
            }
            std::thread::yield_now();
        }
    });
    wait_for(&journal, journal.end());
    drop(journal);
    assert!(reopened(&options).into_iter().eq(0..2_000));
}

#[test]
fn an_error_of_the_replay_names_file_and_offset() {
    struct Refusing;
    impl Replay for Refusing {
        fn entry(&mut self, _: &[u8]) -> Result<(), String> {
            Err("no such type".to_owned())
        }
        fn unit(&mut self, _: &[u8]) -> Result<(), String> {
            Err("no such command".to_owned())
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    append(&journal, &mut Units::new(), 1);
    drop(journal);
    let opened = Journal::open(options.clone(), &mut Refusing, &mut |_| {});
    let error = opened.err().expect("the unit is refused").to_string();
    assert!(error.ends_with("log.1 at offset 32: no such command"), "{error}");
}

#[test]
fn large_units_and_progress() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let mut units = Units::new();
    for number in 0..3u64 {
        let mut unit = number.to_le_bytes().to_vec();
        unit.resize(5 << 20, 7);
        journal.admit(&mut units, unit.len() as u64).expect("there is room");
        units.push(&unit);
        journal.append(&mut units);
    }
    drop(journal);
    let mut calls = vec![];
    let opened =
        Journal::open(options, &mut State::default(), &mut |progress| calls.push(progress));
    let (_, recovered) = opened.expect("it opens again");
    assert_eq!((recovered.units, calls.len()), (3, 3));
    assert!(calls.iter().all(|progress| progress.bytes <= progress.total_bytes));
}
