// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A log is followed while it is appended to: over new segments, removed files, and its limits.

use crate::state::{append, complete, names, number, open, wait_for};
use freeport_kv_journal::{
    FollowError, Follower, Journal, Options, Policy, Position, SnapshotReader, Units,
};
use freeport_testbed::wait::PATIENCE;
use std::time::Duration;
use tempfile::TempDir;

const NO_LIMIT: u64 = u64::MAX;
/// Bytes of a batch with one number.
const BATCH_BYTES: u64 = 40 + 4 + 8;

fn journal(change: impl FnOnce(&mut Options)) -> (TempDir, Options, Journal) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(folder.path());
    change(&mut options);
    let (journal, ..) = open(&options).expect("a new folder");
    (folder, options, journal)
}

fn append_all(journal: &Journal, numbers: impl IntoIterator<Item = u64>) -> Position {
    let mut units = Units::new();
    for number in numbers {
        append(journal, &mut units, number);
    }
    journal.end()
}

/// The next numbers, which have to come.
fn read(follower: &mut Follower, count: usize) -> Vec<u64> {
    let mut numbers = vec![];
    while numbers.len() < count {
        let batch = follower.next_batch(PATIENCE).expect("it is readable").expect("it comes");
        numbers.extend(batch.units.map(number));
    }
    numbers
}

fn entries(mut snapshot: SnapshotReader) -> Vec<u64> {
    let mut numbers = vec![];
    while let Some(block) = snapshot.next_block().expect("it is readable") {
        numbers.extend(block.map(number));
    }
    numbers
}

fn has_more(follower: &mut Follower) -> Result<bool, FollowError> {
    follower.next_batch(Duration::ZERO).map(|batch| batch.is_some())
}

/// A snapshot of no entries, with numbers appended while it is written.
fn snapshot(journal: &Journal, meanwhile: impl IntoIterator<Item = u64>) {
    let writer = journal.begin_snapshot().expect("the disk works");
    append_all(journal, meanwhile);
    complete(writer, []).expect("the disk works");
}

#[test]
fn batches_have_their_positions_and_units() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        let (_folder, _, journal) = journal(|options| options.policy = policy);
        let mut units = Units::new();
        units.push(&7u64.to_le_bytes());
        units.push(&8u64.to_le_bytes());
        let end = journal.append(&mut units);
        let mut follower = journal.follow(Position(0), NO_LIMIT).expect("the first position");
        let batch = follower.next_batch(PATIENCE).expect("it is readable").expect("it comes");
        assert_eq!((batch.position, batch.end()), (Position(0), end));
        assert_eq!(
            (batch.units.len(), batch.units.map(number).collect::<Vec<_>>()),
            (2, vec![7, 8])
        );
        assert_eq!((follower.position(), follower.behind()), (end, 0));
        assert_eq!(has_more(&mut follower), Ok(false));
        append_all(&journal, [9]);
        assert_eq!(read(&mut follower, 1), [9]);
    }
}

#[test]
fn a_waiting_follower_is_woken() {
    for policy in [Policy::Always, Policy::Never] {
        let (_folder, _, journal) = journal(|options| options.policy = policy);
        let mut follower = journal.follow(Position(0), NO_LIMIT).expect("the first position");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read(&mut follower, 1_000));
            let end = append_all(&journal, 0..1_000);
            wait_for(&journal, end);
            assert!(reader.join().expect("it reads").into_iter().eq(0..1_000));
        });
    }
}

#[test]
fn only_positions_of_batches_can_be_followed() {
    let (_folder, options, journal) = journal(|_| ());
    let end = append_all(&journal, 0..10);
    for at in 0..=10 {
        let from = Position(at * BATCH_BYTES);
        let mut follower = journal.follow(from, NO_LIMIT).expect("a batch or the end");
        assert!(read(&mut follower, 10 - at as usize).into_iter().eq(at..10));
    }
    let beyond = Position(end.0 + 1);
    let error = journal.follow(beyond, NO_LIMIT).err();
    assert_eq!(error, Some(FollowError::Missing { position: beyond, first: Position(0), end }));
    let error = journal.follow(Position(BATCH_BYTES + 1), NO_LIMIT).err();
    assert!(matches!(error, Some(FollowError::Damaged { .. })), "{error:?}");
    drop(journal);

    let (journal, ..) = open(&options).expect("it opens again");
    let from = Position(3 * BATCH_BYTES);
    let mut follower = journal.follow(from, NO_LIMIT).expect("recovered batches can be followed");
    assert!(read(&mut follower, 7).into_iter().eq(3..10));
}

#[test]
fn a_follower_keeps_files_that_a_snapshot_removes() {
    let (_folder, options, journal) = journal(|options| options.backlog_bytes = 0);
    append_all(&journal, 0..10);
    let mut follower = journal.follow(Position(0), NO_LIMIT).expect("the first position");
    for round in 1..5 {
        snapshot(&journal, round * 10..round * 10 + 5);
        append_all(&journal, round * 10 + 5..round * 10 + 10);
    }
    let files = names(&options.folder).len();
    assert_eq!(files, 4, "lock, log, manifest, snapshot");
    assert!(read(&mut follower, 50).into_iter().eq(0..50));

    // Now nobody needs the old ones.
    snapshot(&journal, []);
    let (first, end) = (journal.first(), journal.end());
    assert_eq!(first, end);
    let error = journal.follow(Position(0), NO_LIMIT).err();
    assert_eq!(error, Some(FollowError::Missing { position: Position(0), first, end }));
    assert_eq!(has_more(&mut follower), Ok(false));
}

#[test]
fn a_backlog_is_kept_for_those_who_come_back() {
    let bytes = 25 * BATCH_BYTES;
    let (_folder, _, journal) = journal(|options| options.backlog_bytes = bytes);
    for round in 0..5 {
        append_all(&journal, round * 10..round * 10 + 10);
        snapshot(&journal, []);
    }
    // Two segments of ten fit.
    assert_eq!(journal.first(), Position(30 * BATCH_BYTES));
    let mut follower = journal.follow(Position(35 * BATCH_BYTES), NO_LIMIT).expect("it is there");
    assert!(read(&mut follower, 15).into_iter().eq(35..50));
}

#[test]
fn a_follower_that_is_too_slow_fails_and_keeps_nothing() {
    let (_folder, _, journal) = journal(|options| options.backlog_bytes = 0);
    let mut follower = journal.follow(Position(0), 3 * BATCH_BYTES).expect("the first position");
    append_all(&journal, 0..3);
    assert_eq!(read(&mut follower, 1), [0]);
    // The log has them anyway.
    append_all(&journal, 3..10);
    assert_eq!(read(&mut follower, 6), [1, 2, 3, 4, 5, 6]);
    // Now only the follower needs them.
    snapshot(&journal, 10..13);
    assert_eq!(journal.first(), Position(0));
    assert_eq!(read(&mut follower, 1), [7]);
    append_all(&journal, [13]);
    snapshot(&journal, []);
    assert_eq!(journal.first(), journal.end());
    assert_eq!(has_more(&mut follower), Err(FollowError::Behind { bytes: 6 * BATCH_BYTES }));
}

#[test]
fn the_whole_state_is_a_snapshot_and_the_log_behind_it() {
    let (_folder, _, journal) = journal(|_| ());
    append_all(&journal, 0..5);
    let (empty, mut follower) = journal.read_snapshot(NO_LIMIT).expect("it is readable");
    assert_eq!(empty.bytes(), 0);
    assert_eq!(entries(empty), []);
    assert!(read(&mut follower, 5).into_iter().eq(0..5));

    let writer = journal.begin_snapshot().expect("the disk works");
    append_all(&journal, 5..8);
    // The one that is being written is not used.
    let (early, mut follower) = journal.read_snapshot(NO_LIMIT).expect("it is readable");
    complete(writer, 0..5).expect("the disk works");
    assert_eq!(entries(early), []);
    assert!(read(&mut follower, 8).into_iter().eq(0..8));

    let (held, mut follower) = journal.read_snapshot(NO_LIMIT).expect("it is readable");
    assert!(held.bytes() > 0);
    let writer = journal.begin_snapshot().expect("the disk works");
    complete(writer, 100..200).expect("the disk works");
    append_all(&journal, [8]);
    assert!(entries(held).into_iter().eq(0..5), "a removed snapshot stays readable");
    assert_eq!(read(&mut follower, 4), [5, 6, 7, 8]);
}

#[test]
fn a_closed_journal_ends_its_followers() {
    let (_folder, _, journal) = journal(|_| ());
    append_all(&journal, 0..3);
    let mut follower = journal.follow(Position(0), NO_LIMIT).expect("the first position");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let numbers = read(&mut follower, 3);
            (numbers, follower.next_batch(PATIENCE).err())
        });
        // It may have read everything by now, or not.
        drop(journal);
        let (numbers, error) = reader.join().expect("it ends");
        assert_eq!((numbers, error), (vec![0, 1, 2], Some(FollowError::Closed)));
    });
}
