// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs on the simulated card, and on the model of its processor, have the same outcome as in
//! the kernel, without the interpreter in between.

use crate::network;
use crate::scenarios;
use freeport_testbed::skip;
use freeport_xdp::scenario::{Streams, compare_streams};
use freeport_xdp::{Kernel, Target, Vliw};

#[test]
fn every_program_fares_alike_in_the_kernel_on_the_model_and_on_the_card() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    network::enter().expect("who may load programs may make a network");
    let packets = if scenarios::is_long() { 100_000 } else { 200 };
    let mut failures = vec![];
    for case in scenarios::taken() {
        let environment = network::environment();
        let vliw = Vliw::load(&case.object, &scenarios::options(), environment.clone());
        let mut vliw = vliw.expect("what the card takes the model takes");
        let mut sim = case.sim(&environment);
        let subjects: [(&str, &mut dyn Target); 2] = [("model", &mut vliw), ("card", &mut sim)];
        for (name, subject) in subjects {
            let mut kernel = Kernel::load(&case.bytes).expect("the verifier takes it");
            let streams = Streams { packets, at_once: 50, maps_every: 10_000 };
            let scenario = &case.scenario;
            let result =
                compare_streams(scenario, scenarios::seed(), streams, &mut kernel, subject);
            match result {
                Ok(verdicts) => println!("{}, {name}: {verdicts:?}", scenario.name),
                Err(difference) => {
                    failures.push(format!("{}, {name}: {difference}", scenario.name))
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
