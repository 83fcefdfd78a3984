// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rounds of a trial: clients write to a cluster, a fault comes and is mended, and the clients
//! compare what is there with what they know.

use std::ops::Add;
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::fault::{Fault, Scene};
use super::fleet::{Fleet, Shape};
use super::process::Program;
use super::progress::{Progress, advance, wait_for};
use super::writing::{Counts, Writer};

/// Clients of each shard.
const CLIENTS: usize = 2;
/// Time for which a node is believed to be there, if a trial waits for its end.
const SHORT: Duration = Duration::from_secs(2);
/// The same, in other trials.
const LONG: Duration = Duration::from_secs(10);

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
    // On a loaded machine, nodes keep a lease that need not end.
    let lease = if trial.faults.iter().all(|it| it.is_harmless()) { LONG } else { SHORT };
    let mut fleet = Fleet::new(trial.program, trial.shape, lease);
    let has_functions = trial.program.has_functions();
    let mut writers: Vec<Writer> = (0..CLIENTS * trial.shape.shards)
        .map(|number| {
            let part = (number % trial.shape.shards, trial.shape.shards);
            Writer::new(number, part, has_functions, trial.pretends, trial.seed)
        })
        .collect();
    for round in 0..trial.rounds {
        let fault = trial.faults[round as usize % trial.faults.len()];
        let place = |error| format!("seed {}, round {round}, {fault:?}: {error}", trial.seed);
        let lost = sum(&writers).lost;
        wait_for("the cluster is whole", &[], || fleet.is_whole()).map_err(place)?;
        let shards = fleet.shards();
        let terms = fleet.terms(&shards);
        run_round(&mut fleet, fault, &mut writers, &mut random).map_err(place)?;
        let lost = sum(&writers).lost - lost;
        // On a loaded machine a lease may end, and a replica be elected that lacks some.
        let begun = fleet.terms(&shards).into_iter().zip(terms);
        let begun = begun.map(|(now, before)| now.saturating_sub(before));
        let has_elected = has_elected(fault, begun);
        if fault.is_harmless() && !has_elected && lost > 0 {
            return Err(place(format!("{lost} acknowledged requests are lost")));
        }
    }
    Ok(sum(&writers))
}

/// Whether shards have begun more terms than a fault does, by the number that each has begun.
fn has_elected(fault: Fault, begun: impl Iterator<Item = u64>) -> bool {
    let begun: Vec<u64> = begun.filter(|terms| *terms > 0).collect();
    let concerned = usize::from(fault.terms() > 0);
    begun.len() > concerned || begun.iter().any(|terms| *terms > fault.terms())
}

#[test]
fn elections_beside_a_fault_are_found() {
    for (fault, begun, expected) in [
        (Fault::Move, [0, 0], false),
        (Fault::Move, [0, 1], true),
        (Fault::HandOver, [2, 0], false),
        (Fault::HandOver, [1, 1], true),
        (Fault::HandOver, [0, 3], true),
    ] {
        assert_eq!(has_elected(fault, begun.into_iter()), expected, "{fault:?} {begun:?}");
    }
}

fn sum(writers: &[Writer]) -> Counts {
    writers.iter().map(|writer| writer.counts).fold(Counts::default(), Counts::add)
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
    let slot = writers[random.usize(..writers.len())].slot();
    thread::scope(|scope| {
        let start = |(writer, progress): (_, _)| {
            let routes = &routes;
            scope.spawn(move || Writer::write(writer, routes, progress))
        };
        let clients: Vec<_> = writers.iter_mut().zip(&progress).map(start).collect();
        let mended = advance(&progress, random.u64(1..30))
            .and_then(|()| Scene { fleet, progress: &progress, slot, random }.happen(fault))
            .and_then(|()| wait_for("it is whole again", &progress, || fleet.is_whole()));
        let end = if mended.is_ok() { Progress::finish } else { Progress::abandon };
        progress.iter().for_each(end);
        let ends = clients.into_iter().map(|client| client.join().expect("no client panics"));
        // The error of a client says more.
        ends.collect::<Result<Vec<()>, String>>().and(mended)
    })?;
    writers.iter_mut().try_for_each(|writer| writer.check(&routes))
}
