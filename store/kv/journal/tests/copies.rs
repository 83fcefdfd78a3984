// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random lives of a log, with several appending threads, snapshots, and faults of the disk, while
//! others follow it from random positions and copy it. They see the same log, and a copy has the
//! same batches at the same positions.

use crate::state::{State, complete, number, open, reopened, wait_for};
use freeport_kv_journal::faulty::{Faults, FaultyDisk};
use freeport_kv_journal::memory::MemoryDisk;
use freeport_kv_journal::{
    Batch, CopyError, Follower, Items, Journal, Lineage, Options, Policy, Position, Units,
};
use freeport_testbed::effort::usual_or_long;
use freeport_testbed::wait::{PATIENCE, wait_until};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NO_LIMIT: u64 = u64::MAX;

/// Bytes of the log between two faults.
const DISTURBANCE_BYTES: u64 = 500;

/// Batches by their positions.
type Log = BTreeMap<u64, Vec<u64>>;

/// A journal in memory, whose disk can fail.
fn options(policy: Policy) -> (Options, Arc<Faults>) {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::default()));
    let faults = disk.faults().clone();
    let options = Options {
        policy,
        disk: Arc::new(disk),
        backlog_bytes: 2_000,
        sync_interval: Duration::from_millis(2),
        retry_interval: Duration::from_millis(1),
        ..Options::new("folder")
    };
    (options, faults)
}

/// A log that is appended to, and everything that was appended.
struct Life {
    journal: Journal,
    log: Mutex<Log>,
    is_over: AtomicBool,
}

impl Life {
    /// A worker: it appends batches of a few numbers.
    fn append(&self, worker: u64, batches: u64) {
        let mut units = Units::new();
        for batch in 0..batches {
            let numbers: Vec<u64> =
                (0..fastrand::u64(1..4)).map(|at| worker << 32 | batch << 8 | at).collect();
            for number in &numbers {
                // A fault has to be repaired first.
                wait_until("it is admitted", || self.journal.admit(&mut units, 8).is_ok());
                units.push(&number.to_le_bytes());
            }
            let bytes = units.bytes();
            let end = self.journal.append(&mut units);
            let other = self.log.lock().expect("no panic").insert(end.0 - bytes, numbers);
            assert_eq!(other, None);
            if fastrand::u8(..) < 20 {
                wait_for(&self.journal, end);
            }
        }
    }

    /// The server: it takes snapshots, now and then or because it has to, while the disk fails.
    fn disturb(&self, faults: &Faults) {
        let is_over = || self.is_over.load(Ordering::Relaxed);
        let mut last = self.journal.end().0;
        while !is_over() {
            wait_until("there is something to do", || {
                let end = self.journal.end().0;
                is_over() || self.journal.wants_snapshot() || end > last + DISTURBANCE_BYTES
            });
            last = self.journal.end().0;
            match fastrand::u8(0..4) {
                0 => faults.fail_syncs(1),
                1 => faults.fail_writes(1),
                2 => faults.set_longest_write(Some(fastrand::usize(1..50))),
                _ => faults.set_longest_write(None),
            }
            if self.journal.wants_snapshot() || fastrand::bool() {
                self.snapshot();
            }
        }
        // The appending threads have ended, but perhaps not everything they did is written.
        faults.fail_syncs(0);
        faults.fail_writes(0);
        wait_until("the faults end", || {
            if self.journal.wants_snapshot() {
                self.snapshot();
            }
            self.journal.failure().is_none()
        });
    }

    fn snapshot(&self) {
        if let Ok(writer) = self.journal.begin_snapshot() {
            // The disk may fail; another one is begun then.
            let _ = complete(writer, []);
        }
    }

    /// A follower from a random batch on, to the end.
    fn follow(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let positions: Vec<u64> = self.log.lock().expect("no panic").keys().copied().collect();
            let from =
                if positions.is_empty() { 0 } else { *fastrand::choice(&positions).expect("some") };
            // The position may have been dropped already.
            let Ok(mut follower) = self.journal.follow(Position(from), NO_LIMIT) else { continue };
            for _ in 0..fastrand::u32(..300) {
                let before = follower.position();
                let batch = follower.next_batch(Duration::from_millis(1)).expect("it is kept");
                let Some(batch) = batch else { continue };
                assert_eq!(batch.position, before);
                self.check(&batch);
            }
        }
    }

    /// The batch is what was appended at its position.
    fn check(&self, batch: &Batch<'_>) {
        let found: Vec<u64> = batch.units.clone().map(number).collect();
        let appended = || self.log.lock().expect("no panic").get(&batch.position.0).cloned();
        // The thread that has appended it notes it a moment later.
        wait_until("it was appended", || appended().is_some());
        assert_eq!(Some(found), appended(), "position {:?}", batch.position);
    }

    /// Copies everything, to a folder of another policy and with faults of its own.
    fn copy(&self, mut follower: Follower, copy: &Journal) {
        let mut units = Units::new();
        // Appending threads have ended before this says so.
        while !self.is_over.load(Ordering::Acquire) || follower.behind() > 0 {
            let batch = follower.next_batch(Duration::from_millis(1)).expect("it is kept");
            if let Some(batch) = batch {
                copy_batch(copy, &mut units, &batch);
            }
        }
    }
}

fn copy_batch(copy: &Journal, units: &mut Units, batch: &Batch<'_>) {
    wait_until("the copy has room", || match copy.prepare_copy(units, batch) {
        Ok(()) => true,
        Err(CopyError::Refused(_)) => false,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(copy.append_copy(units), batch.end());
}

#[test]
fn followers_and_copies_see_the_same_log() {
    let policies = [Policy::Always, Policy::EverySecond, Policy::Never];
    for round in 0..usual_or_long(3, 20) {
        let (policy, other) = (policies[round % 3], policies[(round + 1) % 3]);
        let (original, faults) = options(policy);
        let (journal, ..) = open(&original).expect("a new folder");
        let (copied, _) = options(other);
        let (copy, ..) = open(&copied).expect("a new folder");
        copy.set_follower(true);
        let life = Life { journal, log: Mutex::default(), is_over: AtomicBool::new(false) };
        let whole = life.journal.follow(Position(0), NO_LIMIT).expect("the first position");
        std::thread::scope(|scope| {
            let workers = [1, 2, 3].map(|worker| {
                let life = &life;
                scope.spawn(move || life.append(worker, usual_or_long(150, 1_000)))
            });
            let server = scope.spawn(|| life.disturb(&faults));
            let followers = [(); 2].map(|()| scope.spawn(|| life.follow()));
            let copier = scope.spawn(|| life.copy(whole, &copy));
            for worker in workers {
                worker.join().expect("it appends");
            }
            life.is_over.store(true, Ordering::Release);
            server.join().expect("it ends the faults");
            for follower in followers {
                follower.join().expect("it follows");
            }
            copier.join().expect("it copies");
        });
        assert_eq!(copy.end(), life.journal.end());
        drop(copy);
        let log = life.log.into_inner().expect("no panic");
        let expected: Vec<u64> = log.into_values().flatten().collect();
        assert_eq!(reopened(&copied), expected, "{policy:?}, copied under {other:?}");
    }
}

#[test]
fn a_copy_takes_only_the_batch_that_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (copy, ..) = open(&options).expect("a new folder");
    copy.set_follower(true);
    let items = [8, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
    let mut units = Units::new();
    let at = |position| Batch {
        position: Position(position),
        units: Items::parse(&items, 1).expect("one unit"),
    };
    let (position, end) = (Position(1), Position(0));
    let gap = copy.prepare_copy(&mut units, &at(1));
    assert_eq!(gap, Err(CopyError::Gap { position, end }));
    copy_batch(&copy, &mut units, &at(0));
    let empty = Batch { position: copy.end(), units: Items::default() };
    copy_batch(&copy, &mut units, &empty);
    let end = empty.end();
    drop(copy);
    let (copy, State(numbers), _) = open(&options).expect("it opens again");
    assert_eq!((numbers, copy.end()), (vec![5], end), "nothing is added at a clean end");
}

#[test]
fn a_copy_on_a_full_disk_waits_for_room() {
    let (options, faults) = options(Policy::Always);
    let options = Options { preallocate_bytes: 0, ..options };
    let (copy, ..) = open(&options).expect("a new folder");
    copy.set_follower(true);
    faults.set_room(Some(0));
    let unit = vec![0; 1 << 20];
    let mut source = Units::new();
    source.push(&unit);
    let batch = Batch { position: Position(0), units: source.items() };
    let mut units = Units::new();
    let refused = copy.prepare_copy(&mut units, &batch).expect_err("there is no room");
    assert_eq!(refused.to_string(), "No space left on device");
    assert_eq!(copy.end(), Position(0));
    faults.set_room(None);
    copy_batch(&copy, &mut units, &batch);
    copy.sync().expect("there is room");
}

#[test]
fn a_log_with_a_lineage_ends_where_its_followers_have_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let history = journal.begin_history(3).expect("the disk works");
    let mut units = Units::new();
    let end = crate::state::append(&journal, &mut units, 0);
    let mut follower = journal.follow(Position(0), NO_LIMIT).expect("the first position");
    assert!(follower.next_batch(PATIENCE).expect("it is readable").is_some());
    drop(journal);
    let (journal, ..) = open(&options).expect("it opens again");
    assert_eq!((journal.end(), journal.lineage().current()), (end, Some(history)));
    let next = journal.begin_history(4).expect("the disk works");
    assert_eq!((next.start, next.term), (end, 4));
    assert!(journal.lineage().covers(history.id, follower.position()));
}

#[test]
fn a_lineage_that_is_stored_is_not_stored_again() {
    let (options, faults) = options(Policy::EverySecond);
    let (journal, ..) = open(&options).expect("a new folder");
    journal.begin_history(3).expect("the disk works");
    let first = journal.lineage();
    let mut second = first.clone();
    second.begin(4, Position(0));
    faults.fail_renames(1);
    journal.adopt_lineage(&first).expect("the file has it");
    journal.adopt_lineage(&second).expect_err("the disk fails");
    assert_eq!(journal.lineage(), first);
    // The file may have either now.
    faults.fail_renames(1);
    journal.adopt_lineage(&first).expect_err("the disk fails");
    journal.adopt_lineage(&first).expect("the disk works");
    drop(journal);
    let (journal, ..) = open(&options).expect("it opens again");
    faults.fail_renames(1);
    journal.adopt_lineage(&first).expect_err("the file may have more than was read");
}

#[test]
fn a_damaged_lineage_counts_as_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    journal.begin_history(3).expect("the disk works");
    drop(journal);
    std::fs::write(folder.path().join("lineage"), "freeport-kv-lineage 9\n").expect("it is ours");
    let (journal, _, recovered) = open(&options).expect("the state does not depend on it");
    assert_eq!(journal.lineage(), Lineage::default());
    assert!(recovered.lost_lineage.expect("it is reported").contains("last line"));
}
