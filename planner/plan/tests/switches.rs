// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The queueing model beside the simulation: rates, times and switch points.

use crate::{alternative, function, profile};
use freeport_plan::queue::{Class, Demand, closed};
use freeport_plan::simulation::{Run, simulate};
use freeport_plan::switch::{Switch, exhaustive, refined, simulated, switch_point};
use freeport_plan::{Cost, Function};

const SEED: u64 = 1;

/// Compares the model's division, and one that a few simulations near it find, with an exhaustive
/// search. The model may lose a share of the best throughput.
fn check(
    function: &Function,
    names: [&str; 2],
    (clients, step): (u32, usize),
    run: &Run,
    loss_max: f64,
) {
    let profile = profile("bluefield2");
    let [first, second] = names.map(|name| alternative(function, name));
    let [one, other] = [&first, &second].map(|it| Cost::of(&profile, it));
    let switch = switch_point(&one, &other, clients, run.in_flight);
    let both = [&first, &second];
    let reached = simulated(&profile, both, clients, switch.first, run);
    let all = (0..=clients).step_by(step);
    let best = exhaustive(&profile, both, clients, all, run);
    let is_near = |found: Switch, loss| found.rate >= (1.0 - loss) * best.rate;
    let case = format!("{names:?}, {clients} clients, {run:?}: {best:?} at best");
    assert!(is_near(reached, loss_max), "{case}, {reached:?}");
    let refined = refined(&profile, both, clients, switch.first, run);
    assert!(is_near(refined, 0.05), "{case}, {refined:?}");
    assert!(refined.rate >= reached.rate, "{case}, {refined:?}");
}

#[test]
fn the_switch_point_of_gets_is_that_of_an_exhaustive_search() {
    let function = function("key-value");
    for (clients, step) in [(1, 1), (4, 1), (16, 1), (64, 4), (132, 6)] {
        for in_flight in [1, 8] {
            let run = Run { in_flight, calls: 3000, seed: SEED };
            check(&function, ["A5", "A4"], (clients, step), &run, 0.05);
        }
    }
}

#[test]
fn the_switch_point_of_replication_is_that_of_an_exhaustive_search() {
    for ratio in [0.5, 1.0] {
        let function = function("replication").with_ratio(ratio);
        for clients in [1, 4, 8, 12, 16] {
            let step = if clients > 4 { 2 } else { 1 };
            let run = Run { in_flight: 1, calls: 300, seed: SEED };
            // Calls in step with the eight cores of the processor: the model does not know them.
            check(&function, ["A2", "A3"], (clients, step), &run, 0.08);
        }
    }
}

#[test]
#[ignore = "long: many client counts and almost all divisions"]
fn all_switch_points_are_those_of_an_exhaustive_search() {
    let gets = function("key-value");
    for clients in (1..=132).step_by(10) {
        for in_flight in [1, 8] {
            let run = Run { in_flight, calls: 3000, seed: SEED };
            check(&gets, ["A5", "A4"], (clients, 2), &run, 0.05);
        }
    }
    for ratio in [0.3, 0.5, 0.8, 1.0] {
        for clients in 1..=16 {
            let run = Run { in_flight: 1, calls: 600, seed: SEED };
            let function = function("replication").with_ratio(ratio);
            check(&function, ["A2", "A3"], (clients, 1), &run, 0.1);
        }
    }
}

#[test]
fn one_queue_has_the_rate_of_its_resource() {
    let demand = |busy, stay| Demand { name: "a", busy, stay, is_whole: true };
    let class = |calls, demand| Class { calls, latency: 10.0, demands: vec![demand] };
    let rate = |calls, demand| closed(&[class(calls, demand)])[0].rate;
    assert!((rate(1.0, demand(2.0, 2.0)) - 0.1).abs() < 1e-6);
    let full = rate(1000.0, demand(2.0, 2.0));
    assert!((0.49..=0.500_001).contains(&full), "{full}");
    // Eight servers do not make four calls wait.
    assert!((rate(4.0, demand(1.0, 8.0)) - 0.4).abs() < 1e-6);
    let [one, other] = [class(50.0, demand(2.0, 2.0)), class(0.0, demand(2.0, 2.0))];
    let calls = closed(&[one, other]);
    assert_eq!(calls[1].rate, 0.0);
}

/// Rates of the simulation stay below the bound of the costs, and few calls take their idle time.
#[test]
fn simulations_agree_with_costs() {
    let profile = profile("bluefield2");
    for (name, calls) in [("key-value", 4000), ("replication", 400)] {
        let function = function(name);
        for alternative in function.resolved() {
            let cost = Cost::of(&profile, &alternative);
            let run = |clients: u32, in_flight, calls| {
                let run = Run { in_flight, calls, seed: SEED };
                simulate(&profile, &[(&alternative, clients)], &run)
            };
            let alone = run(1, 1, calls / 4).flows[0].latency;
            let difference = (alone / cost.latency - 1.0).abs();
            assert!(difference < 0.05, "{name} {}: {alone} {cost:?}", alternative.name);
            let clients = if name == "key-value" { 132 } else { 32 };
            let full = run(clients, function.in_flight, calls);
            let bound = cost.limit().rate;
            assert!(full.rate < 1.03 * bound, "{name} {}: {full:?}", alternative.name);
            assert!(full.rate > 0.75 * bound, "{name} {}: {full:?}", alternative.name);
        }
    }
}

#[test]
fn equal_seeds_give_equal_simulations() {
    let profile = profile("bluefield2");
    let cached = alternative(&function("key-value"), "A5");
    let of = |seed| {
        let run = Run { in_flight: 2, calls: 500, seed };
        simulate(&profile, &[(&cached, 8)], &run)
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
