// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A folder gets the state of another server. A crash before any operation, and a failure of any
//! operation, leave the old state or the new one, with its own lineage or none.

use crate::crashed::{self, Bounds};
use crate::state::{State, append, complete, names, number, open, reopened};
use freeport_kv_journal::faulty::FaultyDisk;
use freeport_kv_journal::memory::{Fate, MemoryDisk};
use freeport_kv_journal::{
    Batch, CopyError, Entries, FollowError, Items, Journal, Lineage, Options, Policy, Position,
    SnapshotError, Units,
};
use freeport_testbed::effort::usual_or_long;
use freeport_testbed::wait::{PATIENCE, wait_until};
use std::sync::Arc;
use std::time::Duration;

const NO_LIMIT: u64 = u64::MAX;

/// The lineage of a log with one history.
fn lineage(term: u64) -> Lineage {
    let mut lineage = Lineage::default();
    lineage.begin(term, Position(0));
    lineage
}

fn install(
    journal: &Journal,
    numbers: impl IntoIterator<Item = u64>,
    position: Position,
    lineage: &Lineage,
) -> Result<(), SnapshotError> {
    let mut installer = journal.install()?;
    let mut block = Units::new();
    for number in numbers {
        block.push(&number.to_le_bytes());
    }
    installer.entries(&block.items())?;
    installer.finish(position, lineage).map(drop)
}

fn copy(journal: &Journal, units: &mut Units, items: &Items<'_>) -> Result<(), CopyError> {
    let batch = Batch { position: journal.end(), units: items.clone() };
    journal.prepare_copy(units, &batch)?;
    journal.append_copy(units);
    Ok(())
}

#[test]
fn a_follower_gets_the_whole_state_and_continues() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let options =
            folders.each_ref().map(|folder| Options { policy, ..Options::new(folder.path()) });
        let (leader, ..) = open(&options[0]).expect("a new folder");
        let (other, ..) = open(&options[1]).expect("a new folder");
        let mut units = Units::new();
        leader.begin_history(1).expect("the disk works");
        for number in 0..5 {
            append(&leader, &mut units, number);
        }
        let writer = leader.begin_snapshot().expect("the disk works");
        append(&leader, &mut units, 5);
        complete(writer, 0..5).expect("the disk works");
        for number in 1_000..1_100 {
            append(&other, &mut units, number);
        }
        let mut held = other.follow(Position(0), NO_LIMIT).expect("the first position");

        other.set_follower(true);
        let (mut snapshot, mut follower) = leader.read_snapshot(NO_LIMIT).expect("it is readable");
        let mut installer = other.install().expect("the disk works");
        while let Some(block) = snapshot.next_block().expect("it is readable") {
            installer.entries(&block).expect("the disk works");
        }
        assert_eq!(other.begin_snapshot().err(), Some(SnapshotError::Busy));
        let completed = installer.finish(follower.position(), &leader.lineage());
        assert_eq!(completed.expect("the disk works").entries, 5);
        assert_eq!((other.end(), other.released()), (follower.position(), follower.position()));
        let error = loop {
            // Batches that it had seen before may come.
            match held.next_batch(PATIENCE) {
                Ok(batch) => drop(batch.expect("it does not wait any longer")),
                Err(error) => break error,
            }
        };
        assert_eq!(error, FollowError::Closed);
        assert_eq!(names(folders[1].path()).len(), 5, "lineage, lock, log, manifest, snapshot");

        append(&leader, &mut units, 6);
        while follower.behind() > 0 {
            let batch = follower.next_batch(PATIENCE).expect("it is readable").expect("it comes");
            other.prepare_copy(&mut units, &batch).expect("the disk works");
            assert_eq!(other.append_copy(&mut units), batch.end());
        }
        other.sync().expect("the disk works");
        assert_eq!(other.durable(), leader.end());
        drop(other);
        let (other, State(numbers), _) = open(&options[1]).expect("it opens again");
        assert!(numbers.into_iter().eq(0..7));
        let history = other.lineage().at(other.end()).expect("it has that of the leader");
        assert!(leader.lineage().covers(history.id, other.end()));
    }
}

#[test]
fn a_dropped_installation_leaves_the_old_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new(folder.path());
    let (journal, ..) = open(&options).expect("a new folder");
    let mut units = Units::new();
    append(&journal, &mut units, 0);
    let snapshot = journal.begin_snapshot().expect("the disk works");
    let mut installer = journal.install().expect("the snapshot is cancelled");
    let mut entries = Entries::new();
    entries.push(&[0; 8]);
    assert_eq!(snapshot.write(&mut entries), Err(SnapshotError::Cancelled));
    units.push(&9u64.to_le_bytes());
    installer.entries(&units.items()).expect("the disk works");
    units.clear();
    drop(installer);
    append(&journal, &mut units, 1);
    let far = install(&journal, [], Position(u64::MAX), &Lineage::default());
    assert!(far.is_err(), "a position that no log has");
    drop(journal);
    assert_eq!(reopened(&options), [0, 1]);
}

#[test]
fn a_sync_of_the_old_log_says_nothing_about_the_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = FaultyDisk::default();
    let faults = disk.faults().clone();
    let sync_interval = Duration::from_millis(2);
    let options = Options { disk: Arc::new(disk), sync_interval, ..Options::new(folder.path()) };
    let (journal, ..) = open(&options).expect("a new folder");
    let mut units = Units::new();
    faults.hold_sync();
    for number in 0..100 {
        append(&journal, &mut units, number);
    }
    wait_until("a sync has begun", || faults.is_sync_held());
    journal.set_follower(true);
    install(&journal, [7], Position(0), &lineage(2)).expect("other syncs work");
    let mut items = Units::new();
    items.push(&8u64.to_le_bytes());
    copy(&journal, &mut units, &items.items()).expect("it continues at the new position");
    faults.release_sync();
    wait_until("all is durable", || journal.durable() == journal.end());
    drop(journal);
    assert_eq!(reopened(&options), [7, 8]);
}

/// States that a folder passes through, one after the other, each with the lineage of its log.
struct Life {
    states: Vec<(Vec<u64>, Lineage)>,
}

/// A server that runs through its states.
struct Server<'a> {
    disk: &'a MemoryDisk,
    life: &'a Life,
    journal: Journal,
    units: Units,
    bounds: Bounds,
}

impl Server<'_> {
    /// The next state begins, and may be there after a crash.
    fn begin(&mut self) -> &(Vec<u64>, Lineage) {
        self.bounds.last += 1;
        self.bounds.note(self.disk);
        &self.life.states[self.bounds.last as usize]
    }

    fn append(&mut self) {
        let number = *self.begin().0.last().expect("it has the new number");
        let mut items = Units::new();
        items.push(&number.to_le_bytes());
        wait_until("it is appended", || {
            self.repair();
            copy(&self.journal, &mut self.units, &items.items()).is_ok()
        });
        let end = self.journal.end();
        wait_until("it is released", || {
            self.repair();
            self.journal.released() >= end
        });
        self.bounds.released = self.bounds.last;
        self.bounds.note(self.disk);
    }

    fn sync(&mut self) {
        wait_until("all is durable", || {
            self.repair();
            self.journal.sync().is_ok()
        });
        self.bounds.durable = self.bounds.last;
        self.bounds.note(self.disk);
    }

    fn install(&mut self, position: u64) {
        let (numbers, lineage) = self.begin().clone();
        wait_until("it is installed", || {
            let installed =
                install(&self.journal, numbers.iter().copied(), Position(position), &lineage);
            installed.is_ok()
        });
        assert_eq!(self.journal.released(), Position(position));
        let last = self.bounds.last;
        self.bounds = Bounds { durable: last, released: last, last };
        self.bounds.note(self.disk);
    }

    fn repair(&self) {
        if self.journal.wants_snapshot()
            && let Ok(writer) = self.journal.begin_snapshot()
        {
            let numbers = &self.life.states[self.bounds.last as usize].0;
            // If it fails, another one is begun.
            let _ = complete(writer, numbers.iter().copied());
        }
    }
}

impl Life {
    fn new() -> Life {
        let own = lineage(1);
        let mut states = vec![(vec![], Lineage::default())];
        let mut add =
            |numbers: Vec<u64>, lineage: &Lineage| states.push((numbers, lineage.clone()));
        (1..4).for_each(|count| add((0..count).collect(), &own));
        let (first, second) = (lineage(2), lineage(3));
        (3..6).for_each(|count| add((100..100 + count).collect(), &first));
        (2..4).for_each(|count| add((200..200 + count).collect(), &second));
        Life { states }
    }

    fn live(&self, disk: &MemoryDisk, policy: Policy) {
        let opened = open(&crashed::options(disk, policy));
        let (journal, ..) =
            opened.or_else(|_| open(&crashed::options(disk, policy))).expect("the fault has ended");
        journal.set_follower(true);
        let (units, bounds) = (Units::new(), Bounds::default());
        let mut server = Server { disk, life: self, journal, units, bounds };
        let own = &self.states[1].1;
        wait_until("the lineage is adopted", || server.journal.adopt_lineage(own).is_ok());
        server.append();
        server.append();
        server.sync();
        server.append();
        server.install(5_000);
        server.append();
        server.append();
        // Positions may become lower.
        server.install(64);
        server.append();
        server.sync();
    }

    /// Checks what is found after a crash.
    fn check(&self, disk: &MemoryDisk, policy: Policy, least: u64, most: u64, what: &str) {
        let (journal, State(found), _) =
            open(&crashed::options(disk, policy)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let at = self.states.iter().position(|(numbers, _)| *numbers == found);
        let at = at.unwrap_or_else(|| panic!("{what}: {found:?}")) as u64;
        assert!((least..=most).contains(&at), "{what}: state {at}, and not {least} to {most}");
        let lineage = journal.lineage();
        // The first states are those of one log, whose lineage came before its first number.
        let own = &self.states[at.max(1) as usize].1;
        assert!(lineage == Lineage::default() || lineage == *own, "{what}: {lineage}");
        // A follower finds the same.
        let mut follower = journal.read_snapshot(NO_LIMIT).expect("it is readable");
        let mut numbers = vec![];
        while let Some(block) = follower.0.next_block().expect("it is readable") {
            numbers.extend(block.map(number));
        }
        while let Some(batch) = follower.1.next_batch(Duration::ZERO).expect("it is readable") {
            numbers.extend(batch.units.map(number));
        }
        assert_eq!(numbers, found, "{what}");
    }

    fn crash_everywhere(&self, disk: &MemoryDisk, policy: Policy, fates: &[Fate], first: usize) {
        for at in first..=disk.operations() {
            for &fate in fates {
                let (crashed, note) = disk.crashed(at, fate);
                let Bounds { durable, released, last } = Bounds::of(note);
                let least = if fate == Fate::All { released } else { durable };
                for (names, crashed) in crashed.iter().enumerate() {
                    let what = format!("{policy:?}, operation {at}, {fate:?}, {names} names");
                    self.check(crashed, policy, least, last, &what);
                    // Opening may have changed something.
                    self.check(crashed, policy, least, last, &what);
                }
            }
        }
    }
}

#[test]
fn a_crash_before_any_operation_leaves_one_of_the_states() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        let (disk, life) = (MemoryDisk::default(), Life::new());
        life.live(&disk, policy);
        life.crash_everywhere(&disk, policy, &Fate::ALL, 0);
    }
}

#[test]
fn any_operation_may_fail_before_a_crash() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let disk = MemoryDisk::default();
        Life::new().live(&disk, policy);
        for failing in 0..disk.operations() {
            let (disk, life) = (MemoryDisk::default(), Life::new());
            disk.fail_operation(failing);
            life.live(&disk, policy);
            // Crashes before the fault are those of the other test.
            let fates = usual_or_long(&[Fate::All, Fate::None][..], &Fate::ALL[..]);
            life.crash_everywhere(&disk, policy, fates, failing);
        }
    }
}
