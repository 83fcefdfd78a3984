// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places die at random moments, and begin anew.

use crate::cluster::{Cluster, Kind, Plain, all_places, small};
use crate::faulty::{Full, Hasty, Late, Slow, Uncut};
use freeport_study_replication::log::Log;
use freeport_study_replication::{Alternative, Options, Policy};
use freeport_study_verbs::Place;

/// Kills places at random steps, and lets them begin anew at others.
fn kills<K: Kind>(
    options: Options,
    policies: &[Policy],
    seed: u64,
    kills: u32,
) -> Result<(), String> {
    let mut cluster = Cluster::<K>::new(options, policies, 3, seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let places = all_places(&options);
    for _ in 0..kills {
        cluster.run(random.u64(1..1200));
        let place = places[random.usize(0..places.len())];
        cluster.kill(place);
        // Others may die before it is back.
        for other in &places {
            if !cluster.is_alive(*other) && random.bool() {
                cluster.run(random.u64(0..400));
                cluster.begin(*other);
            }
        }
    }
    cluster.end().map_err(|reason| format!("seed {seed}: {reason}"))
}

/// Settings of a run: the smallest numbers of slots, and larger ones.
fn settings(seed: u64) -> Options {
    Options {
        backups: 1 + (seed % 3) as u16,
        log_slots: 2 + (seed / 7 % 9) as usize,
        receive_slots: 2 + (seed / 11 % 4) as usize,
        processor_queue: 2 + (seed / 13 % 4) as usize,
        ..small()
    }
}

/// Seeds that have found faults.
const KEPT: [u64; 1] = [10_125];

/// Policies of the clients of a run.
fn policies(seed: u64) -> Vec<Policy> {
    use Alternative::{A1, A2, A3};
    match seed % 5 {
        0 => vec![Policy::Always(A2), Policy::Always(A3)],
        1 => vec![Policy::Auto],
        2 => vec![Policy::Always(A1)],
        3 => vec![Policy::Always(A3)],
        _ => Policy::ALL.to_vec(),
    }
}

#[test]
fn two_hundred_kills_lose_nothing() {
    for seed in (0..20).chain(KEPT) {
        kills::<Plain>(settings(seed), &policies(seed), seed, 10).unwrap();
    }
}

/// Appends take most of the time, so that places die in the middle of them.
#[test]
fn kills_in_the_middle_of_appends_lose_nothing() {
    for seed in (0..20).chain(KEPT) {
        kills::<Slow>(settings(seed), &policies(seed), seed, 10).unwrap();
    }
}

#[test]
#[ignore = "long: ten thousand kills"]
fn ten_thousand_kills_lose_nothing() {
    for seed in 100..600 {
        kills::<Plain>(settings(seed), &policies(seed), seed, 10).unwrap();
        kills::<Slow>(settings(seed), &policies(seed), seed, 10).unwrap();
    }
}

/// The checks find places that acknowledge what the backup behind them may not hold.
#[test]
fn early_acknowledgements_are_found() {
    let found = |seed| kills::<Hasty>(small(), &policies(seed), seed, 10).err();
    let reasons: Vec<String> = (0..5).filter_map(found).collect();
    assert!(reasons.iter().any(|reason| reason.contains("peer-1 does not have")), "{reasons:?}");
}

/// The checks find places that do not cut a torn chunk from their file.
#[test]
fn torn_chunks_that_stay_are_found() {
    let found = |seed| kills::<Uncut>(small(), &policies(seed), seed, 10).err();
    assert!((0..20).any(|seed| found(seed).is_some()));
}

/// The checks find files that promise too early that data are there.
#[test]
fn late_appends_are_found() {
    let found = |seed| kills::<Late>(small(), &policies(seed), seed, 10).err();
    assert!((0..5).any(|seed| found(seed).is_some()));
}

/// If the host's file takes no more, all writers get the reason, and nothing more is acknowledged.
#[test]
fn a_file_that_is_full_ends_all_writers() {
    let mut cluster = Cluster::<Full>::new(small(), &Policy::ALL, 40, 1);
    let reason = cluster.end().expect_err("the file is full");
    assert!(reason.contains("host: it is full"), "{reason}");
    cluster.run(20_000);
    let failed = cluster.found.failed.borrow().len();
    assert!(failed > small().log_slots, "{failed}");
    assert_eq!(failed, cluster.found.writing.get() as usize, "no writer waits forever");
    let last = Log::read(&cluster.log(Place::Host), 0).last;
    let held = cluster.primary.as_ref().expect("it began").held();
    assert!(held > 0 && held <= last, "{held} of {last}");
}

/// Each place dies alone at many moments of the same run.
#[test]
fn every_place_may_die_at_any_step() {
    for place in all_places(&small()) {
        for step in (1..600).step_by(37) {
            let mut cluster = Cluster::<Plain>::new(small(), &Policy::ALL, 2, 1);
            cluster.run(step);
            cluster.kill(place);
            cluster.run(step % 50);
            cluster.begin(place);
            cluster.end().unwrap_or_else(|reason| panic!("{place}, step {step}: {reason}"));
        }
    }
}

/// While a backup is dead, nothing is acknowledged; without the processor, A3 takes over.
#[test]
fn a_dead_backup_stops_acknowledgements_and_a_dead_processor_does_not() {
    let mut cluster = Cluster::<Plain>::new(small(), &[Policy::Auto], 2, 1);
    cluster.kill(Place::Peer(1));
    cluster.run(5000);
    assert!(cluster.found.acknowledged.borrow().is_empty());
    cluster.begin(Place::Peer(1));
    cluster.kill(Place::Soc);
    cluster.run(20_000);
    assert_eq!(cluster.found.acknowledged.borrow().len(), 2);
    let counters = cluster.primary.as_ref().expect("it began").counters();
    assert!(counters.of(Alternative::A3).chunks > 4, "{counters:?}");
    cluster.end().unwrap();
}
