// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A machine crashes before each operation of the disk, and each operation of the disk fails once.
//! The journal opens afterwards with a prefix of the units that has all of the durable ones.

use crate::crashed::{Bounds, options};
use crate::state::{complete, number, open};
use freeport_kv_journal::memory::{Fate, MemoryDisk};
use freeport_kv_journal::{Follower, Journal, Policy, Units};
use freeport_testbed::effort::usual_or_long;
use freeport_testbed::wait::{PATIENCE, wait_until};

/// A server: it appends numbers, and takes snapshots when it likes or has to.
struct Server<'a> {
    disk: &'a MemoryDisk,
    journal: Journal,
    units: Units,
    bounds: Bounds,
    policy: Policy,
    /// A follower, which sees every unit whatever happens to the files.
    follower: Follower,
    /// Number of units that it has seen.
    followed: u64,
}

impl Server<'_> {
    /// Opens the folder, as often as that fails because of the disk.
    fn start(disk: &MemoryDisk, policy: Policy, bounds: Bounds) -> Server<'_> {
        let (journal, state, _) = match open(&options(disk, policy)) {
            Ok(opened) => opened,
            Err(_) => open(&options(disk, policy)).expect("the fault has ended"),
        };
        let found = check(&state.0, bounds.released, bounds.last);
        // The units that were found are durable, because batches after it say so.
        let bounds = Bounds { durable: found, released: found, last: found };
        bounds.note(disk);
        let follower = journal.follow(journal.end(), u64::MAX).expect("the end is in the log");
        let units = Units::new();
        Server { disk, journal, units, bounds, policy, follower, followed: found }
    }

    fn append(&mut self, count: u64) {
        for _ in 0..count {
            wait_until("the write is admitted", || {
                self.repair();
                self.journal.admit(&mut self.units, 8).is_ok()
            });
            let number = self.bounds.last;
            self.bounds.last += 1;
            self.bounds.note(self.disk);
            self.units.push(&number.to_le_bytes());
            let position = self.journal.append(&mut self.units);
            wait_until("the reply is released", || {
                self.repair();
                self.journal.released() >= position
            });
            self.bounds.released = self.bounds.last;
            if self.policy == Policy::Always {
                self.bounds.durable = self.bounds.last;
            }
            self.bounds.note(self.disk);
            self.follow();
        }
    }

    /// Reads what was appended since.
    fn follow(&mut self) {
        while self.followed < self.bounds.last {
            let batch = self.follower.next_batch(PATIENCE).expect("it is readable");
            let units = batch.expect("it was written").units;
            assert!(units.map(number).eq([self.followed]), "unit {}", self.followed);
            self.followed += 1;
        }
    }

    fn sync(&mut self) {
        wait_until("all is durable", || {
            self.repair();
            self.journal.sync().is_ok()
        });
        self.bounds.durable = self.bounds.last;
        self.bounds.note(self.disk);
    }

    fn repair(&self) {
        if self.journal.wants_snapshot()
            && let Ok(writer) = self.journal.begin_snapshot()
        {
            // If it fails, another one is begun.
            let _ = complete(writer, 0..self.bounds.last);
        }
    }

    /// A snapshot, while more is appended. A fault of the disk may end it without a result.
    fn snapshot(&mut self, meanwhile: u64) {
        let writer = self.journal.begin_snapshot();
        let numbers = self.bounds.last;
        if let Ok(writer) = writer {
            // The server may not take another one in the meantime, so nothing may fail here.
            if self.journal.failure().is_none() {
                for _ in 0..meanwhile {
                    self.append_unless_failing();
                }
            }
            let _ = complete(writer, 0..numbers);
        }
        self.append(1);
    }

    fn append_unless_failing(&mut self) {
        if self.journal.admit(&mut self.units, 8).is_ok() {
            let number = self.bounds.last;
            self.bounds.last += 1;
            self.bounds.note(self.disk);
            self.units.push(&number.to_le_bytes());
            self.journal.append(&mut self.units);
        }
    }

    fn end(self) -> Bounds {
        self.bounds
    }
}

/// The units that were found are the first ones, and at least and at most as many. Returns their
/// number.
fn check(found: &[u64], least: u64, most: u64) -> u64 {
    let count = found.len() as u64;
    assert!(found.iter().copied().eq(0..count), "{found:?}");
    assert!((least..=most).contains(&count), "{count} units, and not {least} to {most}");
    count
}

/// The life of a folder: it is made, closed, opened again, and has snapshots.
fn live(disk: &MemoryDisk, policy: Policy) {
    let mut server = Server::start(disk, policy, Bounds::default());
    server.append(3);
    server.sync();
    server.append(2);
    server.snapshot(2);
    let bounds = server.end();
    let mut server = Server::start(disk, policy, bounds);
    server.append(2);
    if let Ok(writer) = server.journal.begin_snapshot() {
        server.append_unless_failing();
        writer.cancel();
    }
    server.append(1);
    server.snapshot(1);
    server.sync();
    server.end();
}

/// Crashes before each operation from `first` on, and opens what is left; if `again`, also crashes
/// while that is opened.
fn crash_everywhere(disk: &MemoryDisk, policy: Policy, fates: &[Fate], first: usize, again: bool) {
    for at in first..=disk.operations() {
        for &fate in fates {
            let (crashed, note) = disk.crashed(at, fate);
            let Bounds { durable, released, last } = Bounds::of(note);
            let least = if fate == Fate::All { released } else { durable };
            for (names, crashed) in crashed.iter().enumerate() {
                let what = format!("{policy:?}, operation {at}, {fate:?}, {names} names");
                let (journal, state, _) = open(&options(crashed, policy))
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = std::panic::catch_unwind(|| check(&state.0, least, last));
                let found = found.unwrap_or_else(|_| panic!("{what}"));
                if again {
                    // The units may have been shown to clients, so they have to stay.
                    let mut units = Units::new();
                    journal.admit(&mut units, 8).expect("there is room");
                    units.push(&found.to_le_bytes());
                    journal.append(&mut units);
                    drop(journal);
                    let bounds = Bounds { durable: found, released: found, last: found + 1 };
                    crash_while_opened(crashed, policy, least, bounds, &what);
                }
            }
        }
    }
}

fn crash_while_opened(disk: &MemoryDisk, policy: Policy, least: u64, bounds: Bounds, what: &str) {
    for at in 0..=disk.operations() {
        for fate in [Fate::All, Fate::None, Fate::OnlyLast] {
            for crashed in disk.crashed(at, fate).0 {
                let (_, state, _) = open(&options(&crashed, policy))
                    .unwrap_or_else(|error| panic!("{what}, then {at} {fate:?}: {error}"));
                check(&state.0, least, bounds.last);
            }
        }
    }
}

#[test]
fn a_crash_before_any_operation_loses_nothing_durable() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        let disk = MemoryDisk::default();
        live(&disk, policy);
        crash_everywhere(&disk, policy, &Fate::ALL, 0, policy == Policy::Always);
    }
}

#[test]
fn any_operation_may_fail_before_a_crash() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let disk = MemoryDisk::default();
        live(&disk, policy);
        for failing in 0..disk.operations() {
            let disk = MemoryDisk::default();
            disk.fail_operation(failing);
            live(&disk, policy);
            // Crashes before the fault are those of the other test.
            let fates = usual_or_long(&[Fate::All, Fate::None][..], &Fate::ALL[..]);
            crash_everywhere(&disk, policy, fates, failing, false);
        }
    }
}
