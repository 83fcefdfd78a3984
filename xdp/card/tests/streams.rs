// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several packets are on the card at once: one arrives, one is processed, another one leaves. They
//! have the same outcome as in the interpreter, one by one, with state carried along.

use crate::network;
use crate::scenarios;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_xdp::Interpreter;
use freeport_xdp::scenario::{Streams, compare_streams};
use std::time::Instant;

/// Packets that wait in front of the card.
const AT_ONCE: u64 = 50;

/// Returns pairs of the number of cycles of 256 in which the buses pause, and a number of packets.
/// Without pauses packets meet on the card; with many pauses a packet is sometimes alone on it.
fn runs() -> [(u8, u64); 2] {
    if scenarios::is_long() { [(0, 100_000), (128, 10_000)] } else { [(0, 150), (128, 100)] }
}

#[test]
fn packets_behind_each_other_fare_as_alone() {
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..network::environment() };
    let mut failures = vec![];
    for case in scenarios::taken() {
        for (pauses, packets) in runs() {
            let begin = Instant::now();
            let interpreter = Interpreter::load(&case.object, environment.clone());
            let mut interpreter = interpreter.expect("it can run");
            let mut sim = case.sim(&environment);
            sim.nic_mut().set_pauses(scenarios::seed(), pauses, pauses);
            let streams = Streams { packets, at_once: AT_ONCE, maps_every: 5_000 };
            let (reference, subject) = (&mut interpreter, &mut sim);
            let (scenario, seed) = (&case.scenario, scenarios::seed() + 1);
            let what = format!("{}, pauses {pauses}", scenario.name);
            match compare_streams(scenario, seed, streams, reference, subject) {
                Ok(verdicts) => {
                    let seconds = begin.elapsed().as_secs_f64();
                    println!("{what}: {packets} packets in {seconds:.1} s, {verdicts:?}");
                }
                Err(difference) => failures.push(format!("{what}: {difference}")),
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
