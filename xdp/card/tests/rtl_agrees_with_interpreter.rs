// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiled programs on the simulated card have the same outcome as in the interpreter: those of
//! `programs/xdp` on the packets of their scenarios. Programs that the card refuses are listed.

use crate::network;
use crate::scenarios;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_xdp::Interpreter;
use freeport_xdp::scenario::compare;

/// Scenarios whose programs or maps the card refuses, with the reason that it gives.
const REFUSED: [(&str, &str); 3] = [
    (
        "counters",
        "program `account`, instruction 52: the card only iterates over arrays \
         (bpf_for_each_map_elem), with a function that is known",
    ),
    (
        "sampler",
        "program `watch`, instruction 168: the card does not support helper 130 \
         (bpf_ringbuf_output)",
    ),
    (
        "fib_forward",
        "program `forward`, instruction 113: the card does not support helper 69 (bpf_fib_lookup)",
    ),
];

fn environment() -> Environment {
    Environment { clock: Clock::Set(1_000_000_007), ..network::environment() }
}

#[test]
fn every_program_fares_alike_on_the_card_and_in_the_interpreter() {
    let packets = if scenarios::is_long() { 5_000 } else { 100 };
    let (mut failures, mut refused) = (vec![], vec![]);
    for case in scenarios::cases() {
        if let Some(reason) = case.refusals().first() {
            let reason = reason.lines().next().unwrap_or_default();
            refused.push((case.scenario.name, reason.to_owned()));
            continue;
        }
        let mut interpreter = Interpreter::load(&case.object, environment()).expect("it can run");
        let mut sim = case.sim(&environment());
        let (reference, subject) = (&mut interpreter, &mut sim);
        let result = compare(&case.scenario, scenarios::seed(), packets, reference, subject);
        if let Err(difference) = result {
            failures.push(format!("{}: {difference}; {:?}", case.scenario.name, sim.last()));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    if std::env::var_os("FREEPORT_CASES").is_none() {
        let refused: Vec<_> =
            refused.iter().map(|(name, reason)| (*name, reason.as_str())).collect();
        assert_eq!(refused, REFUSED, "{refused:#?}");
    }
}
