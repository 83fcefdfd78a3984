// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rounds of a trial: clients write to a cluster, a fault comes and is mended, and the clients
//! compare what is there with what they know.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use freeport_testbed::wait::PATIENCE;

use super::fleet::{Fleet, Shape};
use super::process::{Node, Program};
use super::writing::{Counts, Progress, Writer};

/// Clients of each shard.
const CLIENTS: usize = 2;

/// A fault of a shard, and how it is mended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// `kill -9` of the primary. It comes back when its replica has taken its place.
    KillPrimary,
    /// `kill -9` of a replica.
    KillReplica,
    /// `kill -9` of all nodes of a shard.
    KillShard,
    /// The primary stands still until its replica has taken its place.
    PausePrimary,
    /// The replicas are killed. After some requests, which no replica has, the primary is killed,
    /// and the replicas come back.
    LoseNewest,
}

/// A cluster that has one fault after the other.
pub struct Trial {
    pub program: Program,
    pub shape: Shape,
    /// They take turns.
    pub faults: &'static [Fault],
    pub rounds: u64,
    pub seed: u64,
    /// Clients take every reply for confirmed by `WAIT`, to show that the comparison can fail.
    pub pretends: bool,
}

/// Runs all rounds.
///
/// # Errors
/// The cluster has lost a confirmed request, or has something that nobody wrote.
pub fn run(trial: &Trial) -> Result<Counts, String> {
    let mut random = Rng::with_seed(trial.seed);
    let mut fleet = Fleet::new(trial.program, trial.shape);
    let has_functions = trial.program.has_functions();
    let mut writers: Vec<Writer> = (0..CLIENTS * trial.shape.shards)
        .map(|number| {
            let part = (number % trial.shape.shards, trial.shape.shards);
            Writer::new(number, part, has_functions, trial.pretends, trial.seed)
        })
        .collect();
    for round in 0..trial.rounds {
        let fault = trial.faults[round as usize % trial.faults.len()];
        wait_for("the cluster is whole", &[], || fleet.is_whole())?;
        run_round(&mut fleet, fault, &mut writers, &mut random)
            .map_err(|error| format!("seed {}, round {round}, {fault:?}: {error}", trial.seed))?;
    }
    let counts = writers.iter().map(|writer| writer.counts);
    Ok(counts.fold(Counts::default(), |sum, one| sum + one))
}

/// Has all clients write while a fault happens and is mended.
fn run_round(
    fleet: &mut Fleet,
    fault: Fault,
    writers: &mut [Writer],
    random: &mut Rng,
) -> Result<(), String> {
    let routes = fleet.routes();
    let progress: Vec<Progress> = writers.iter().map(|_| Progress::default()).collect();
    thread::scope(|scope| {
        let start = |(writer, progress): (_, _)| {
            let routes = &routes;
            scope.spawn(move || Writer::write(writer, routes, progress))
        };
        let clients: Vec<_> = writers.iter_mut().zip(&progress).map(start).collect();
        let mended = advance(&progress, random.u64(1..30))
            .and_then(|()| happen(fleet, fault, &progress, random))
            .and_then(|()| wait_for("it is whole again", &progress, || fleet.is_whole()));
        let end = if mended.is_ok() { Progress::finish } else { Progress::abandon };
        progress.iter().for_each(end);
        let ends = clients.into_iter().map(|client| client.join().expect("no client panics"));
        // The error of a client says more.
        ends.collect::<Result<Vec<()>, String>>().and(mended)
    })?;
    writers.iter_mut().try_for_each(|writer| writer.check(&routes))
}

/// Has a fault happen to a shard, and mends it.
fn happen(
    fleet: &mut Fleet,
    fault: Fault,
    progress: &[Progress],
    random: &mut Rng,
) -> Result<(), String> {
    let shards = fleet.shards();
    let shard = &shards[random.usize(..shards.len())];
    let (primary, replicas) = (shard[0], &shard[1..]);
    let nodes = &mut fleet.nodes;
    thread::sleep(Duration::from_micros(random.u64(..3000)));
    match fault {
        Fault::KillPrimary => nodes[primary].kill(),
        Fault::KillReplica => replicas.iter().for_each(|replica| nodes[*replica].kill()),
        Fault::KillShard => shard.iter().for_each(|node| nodes[*node].kill()),
        Fault::PausePrimary => nodes[primary].pause(),
        Fault::LoseNewest => {
            replicas.iter().for_each(|replica| nodes[*replica].kill());
            advance(progress, 5)?;
            nodes[primary].kill();
            replicas.iter().for_each(|replica| nodes[*replica].start());
        }
    }
    match fault {
        Fault::KillShard => nodes.iter_mut().for_each(Node::start),
        _ => advance(progress, 2)?,
    }
    match fault {
        Fault::PausePrimary => nodes[primary].resume(),
        _ => nodes.iter_mut().for_each(Node::start),
    }
    advance(progress, 2)
}

/// Waits until each client has completed some rounds of requests more.
fn advance(progress: &[Progress], by: u64) -> Result<(), String> {
    let rounds = |one: &Progress| one.rounds.load(Ordering::Relaxed);
    let aims: Vec<u64> = progress.iter().map(|one| rounds(one) + by).collect();
    wait_for("all clients write", progress, || {
        progress.iter().zip(&aims).all(|(one, aim)| rounds(one) >= *aim)
    })
}

/// Waits for a condition while all clients write.
fn wait_for(
    what: &str,
    progress: &[Progress],
    mut is_so: impl FnMut() -> bool,
) -> Result<(), String> {
    let begin = Instant::now();
    while !is_so() {
        if progress.iter().any(|one| one.has_ended.load(Ordering::Relaxed)) {
            return Err("a client has ended by itself".into());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("not within {} s: {what}", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
