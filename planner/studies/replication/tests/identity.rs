// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that were lost, cut, damaged or exchanged while their places were dead: writers get an
//! error, and nothing is acknowledged and dropped.

use crate::cluster::{Cluster, Plain, all_places, small};
use freeport_study_replication::chunk::{Chunk, HEADER_BYTES};
use freeport_study_replication::log::Log;
use freeport_study_replication::{Alternative, Options, Policy};
use freeport_study_verbs::Place;

/// Returns places that have more chunks than the host keeps to send again.
fn with_long_logs(seed: u64) -> Cluster<Plain> {
    let policies = [Policy::Always(Alternative::A3), Policy::Auto];
    let mut cluster = Cluster::new(small(), &policies, 3, seed);
    cluster.run(30_000);
    for place in hosts(&cluster.options) {
        let log = Log::read(&cluster.log(place), 0);
        assert!(log.last > 2 * small().log_slots as u64, "{place} has {} chunks", log.last);
    }
    cluster
}

/// Places with a file.
fn hosts(options: &Options) -> impl Iterator<Item = Place> {
    all_places(options).into_iter().filter(|place| *place != Place::Soc)
}

/// Returns the first chunks of a log.
fn first(log: &[u8], chunks: u64) -> Vec<u8> {
    let mut end = 0;
    for _ in 0..chunks {
        end += Chunk::read(&log[end..], usize::MAX).expect("it has more chunks").1;
    }
    log[..end].to_vec()
}

/// Exchanges the file of a place, and returns why writers cannot continue.
fn refusal(cluster: &mut Cluster<Plain>, place: Place, contents: Vec<u8>) -> String {
    let before = hosts(&cluster.options).filter(|other| *other != place);
    let whole = |log: Vec<u8>| first(&log, Log::read(&log, 0).last);
    let logs = before.map(|other| (other, whole(cluster.log(other))));
    let logs: Vec<(Place, Vec<u8>)> = logs.collect();
    cluster.exchange(place, contents);
    let reason = cluster.end().expect_err("a log is lost");
    assert!(cluster.found.missing.borrow().is_empty(), "something was acknowledged");
    for (other, log) in logs {
        assert!(cluster.log(other).starts_with(&log), "{other} has lost chunks");
    }
    reason
}

#[test]
fn a_host_that_has_lost_its_log_is_refused() {
    let mut cluster = with_long_logs(1);
    let reason = refusal(&mut cluster, Place::Host, vec![]);
    assert!(reason.contains("of peer-0 differs") && reason.contains("copy"), "{reason}");
}

#[test]
fn a_host_with_a_shorter_log_is_refused() {
    let mut cluster = with_long_logs(2);
    let log = cluster.log(Place::Host);
    let last = Log::read(&log, 0).last;
    let reason = refusal(&mut cluster, Place::Host, first(&log, last / 2));
    assert!(reason.contains("of peer-0 differs"), "{reason}");
}

/// It says so whichever backup it is, though nobody keeps the chunks that it needs.
#[test]
fn a_backup_that_has_lost_its_log_is_reported() {
    for number in 0..small().backups {
        let mut cluster = with_long_logs(3);
        let reason = refusal(&mut cluster, Place::Peer(number), vec![]);
        let expected = format!("peer-{number} has 0 chunks, and has held ");
        assert!(reason.contains(&expected), "{reason}");
    }
}

/// The others live on while a backup begins anew without its log.
#[test]
fn a_lost_log_is_reported_to_living_places() {
    for number in 0..small().backups {
        let mut cluster = with_long_logs(4);
        let place = Place::Peer(number);
        cluster.kill(place);
        cluster.empty(place);
        let reason = cluster.end().expect_err("a log is lost");
        assert!(reason.contains(&format!("peer-{number} has 0 chunks")), "{reason}");
    }
}

/// Chunks that the host and the backups keep are sent again.
#[test]
fn a_backup_that_lacks_a_few_chunks_gets_them() {
    for number in 0..small().backups {
        let mut cluster = with_long_logs(5);
        let log = cluster.log(Place::Peer(number));
        let last = Log::read(&log, 0).last;
        cluster.exchange(Place::Peer(number), first(&log, last - 3));
        cluster.end().unwrap();
    }
}

#[test]
fn the_log_of_another_file_system_is_refused() {
    for number in 0..small().backups {
        let other = with_long_logs(7).log(Place::Peer(number));
        let mut cluster = with_long_logs(6);
        let reason = refusal(&mut cluster, Place::Peer(number), other);
        assert!(reason.contains(&format!("of peer-{number} differs")), "{reason}");
    }
}

/// A damage in front of whole chunks is no torn end: the file stays as it is.
#[test]
fn damage_in_front_of_whole_chunks_is_reported() {
    let mut cluster = with_long_logs(8);
    for place in hosts(&small()) {
        let log = cluster.log(place);
        let begin = first(&log, 9).len();
        // In the header, and in the body.
        for at in [begin, begin + 20, begin + 50] {
            let mut damaged = log.clone();
            damaged[at] ^= 1;
            cluster.exchange(place, damaged.clone());
            let reason = cluster.end().expect_err("it is damaged");
            let expected = format!("{place}: the file is damaged at byte {begin}");
            assert!(reason.contains(&expected), "{reason}");
            assert_eq!(cluster.log(place), damaged);
            cluster.found.failed.borrow_mut().clear();
        }
        // The end of the log is whole, so something before it is missing.
        let cut = [&log[..begin + 50], &log[begin + 60..]].concat();
        cluster.exchange(place, cut);
        let reason = cluster.end().expect_err("it is damaged");
        assert!(reason.contains("with a whole chunk behind it"), "{reason}");
        cluster.exchange(place, log);
        cluster.found.failed.borrow_mut().clear();
    }
}

/// Data of a torn chunk that are themselves a log are no chunks behind it, unless the file ends
/// with one: then either may be true, and nothing is cut.
#[test]
fn a_torn_chunk_is_cut_whatever_its_data_are() {
    let inner = Chunk::new(7, 0, &[1; 100]);
    let chunk = Chunk::new(1, 0, &[inner.bytes(), inner.bytes(), &[0; 9]].concat());
    let inner_ends = [1, 2].map(|count| HEADER_BYTES + count * inner.bytes().len());
    for end in (1..chunk.bytes().len()).step_by(9).chain(inner_ends) {
        let is_end_of_inner = inner_ends.contains(&end);
        let mut cluster = Cluster::<Plain>::new(small(), &[Policy::Auto], 1, 1);
        all_places(&small()).into_iter().for_each(|place| cluster.empty(place));
        cluster.exchange(Place::Host, chunk.bytes()[..end].to_vec());
        assert_eq!(cluster.found.failed.borrow().is_empty(), !is_end_of_inner, "{end}");
        assert_eq!(cluster.log(Place::Host).is_empty(), !is_end_of_inner, "{end}");
    }
}
