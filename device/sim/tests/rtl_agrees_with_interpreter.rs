// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiled programs on the simulated card do what they do in the interpreter: those of
//! `programs/xdp` on the packets of their scenarios. What the card does not take is listed.

#[path = "../../xdp/tests/network/environment.rs"]
mod network;

use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_sim::Sim;
use freeport_vliw::Options;
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::traffic::Traffic;
use freeport_xdp::{Arrival, Interpreter, Target, compile};
use std::collections::BTreeMap;
use std::path::Path;

/// Scenarios whose programs or maps the card does not have, and what it says of them.
const REFUSED: [(&str, &str); 3] = [
    (
        "counters",
        "program `account`, instruction 52: the card walks over arrays only \
         (bpf_for_each_map_elem), and calls a function only if it is known which",
    ),
    (
        "sampler",
        "program `watch`, instruction 168: the card has no helper 130 (bpf_ringbuf_output)",
    ),
    (
        "fib_forward",
        "program `forward`, instruction 113: the card has no helper 69 (bpf_fib_lookup)",
    ),
];

fn is_long() -> bool {
    std::env::var_os("FREEPORT_LONG").is_some()
}

fn seed() -> u64 {
    std::env::var("FREEPORT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn environment() -> Environment {
    Environment { clock: Clock::Set(1_000_000_007), ..network::environment() }
}

#[test]
fn every_program_fares_alike_on_the_card_and_in_the_interpreter() {
    let packets = if is_long() { 5_000 } else { 100 };
    let only = std::env::var("FREEPORT_CASES").ok();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
    let (mut objects, mut failures, mut refused) = (BTreeMap::new(), vec![], vec![]);
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let object = objects.entry(scenario.source).or_insert_with(|| {
            let object = compile(&folder.join(format!("{}.bpf.c", scenario.source)));
            let object = object.expect("clang-19 and libbpf-dev are there");
            Object::parse(&object).expect("clang makes such objects")
        });
        let mut interpreter = Interpreter::load(object, environment()).expect("it can run");
        let mut sim = Sim::load(object, &Options::default(), &environment()).expect("it fits");
        // What the scenario needs: its program, and all maps, which are compared.
        let program = sim.takes(scenario.program).map_err(|error| error.to_string());
        let maps = sim.layout().maps.iter().filter_map(|map| map.as_ref().err());
        let reasons: Vec<String> = program.err().into_iter().chain(maps.cloned()).collect();
        if let Some(reason) = reasons.first() {
            let reason = reason.lines().next().unwrap_or_default();
            refused.push((scenario.name, reason.to_owned()));
            continue;
        }
        let result = compare(&scenario, seed(), packets, &mut interpreter, &mut sim);
        if let Err(difference) = result {
            failures.push(format!("{}: {difference}; {:?}", scenario.name, sim.last()));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    if only.is_none() {
        let refused: Vec<_> =
            refused.iter().map(|(name, reason)| (*name, reason.as_str())).collect();
        assert_eq!(refused, REFUSED, "{refused:#?}");
    }
}

/// Several packets are in the card at once: one comes, one is in work, another one leaves.
#[test]
fn packets_behind_each_other_fare_as_alone() {
    let count = if is_long() { 3_000 } else { 60 };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
    let mut failures = vec![];
    for scenario in Scenario::all() {
        if REFUSED.iter().any(|(name, _)| *name == scenario.name) {
            continue;
        }
        let object = compile(&folder.join(format!("{}.bpf.c", scenario.source)));
        let object = Object::parse(&object.expect("clang-19 is there")).expect("it makes such");
        for pauses in [0, 128] {
            let mut interpreter = Interpreter::load(&object, environment()).expect("it can run");
            let mut sim = Sim::load(&object, &Options::default(), &environment()).expect("it fits");
            sim.nic_mut().set_pauses(seed(), pauses, pauses);
            (scenario.set_up)(&mut interpreter).expect("it can be set up");
            (scenario.set_up)(&mut sim).expect("it can be set up");
            let mut traffic = Traffic::new(seed() + 1, scenario.kinds);
            let mut packets = vec![];
            let mut expected = vec![];
            for _ in 0..count {
                let packet = traffic.next_packet();
                let arrival = packet.arrival();
                let departure = interpreter.run(scenario.program, &arrival).expect("it runs");
                traffic.observe(&departure);
                let (device, queue) = (arrival.ingress_ifindex, arrival.rx_queue_index);
                packets.push((arrival.bytes.to_vec(), device, queue));
                expected.push(departure);
            }
            let arrivals = packets.iter().map(|(bytes, ingress_ifindex, rx_queue_index)| {
                let (ingress_ifindex, rx_queue_index) = (*ingress_ifindex, *rx_queue_index);
                Arrival { bytes, ingress_ifindex, rx_queue_index }
            });
            let arrivals: Vec<_> = arrivals.collect();
            let found = match sim.run_together(scenario.program, &arrivals) {
                Ok(found) => found,
                Err(error) => {
                    failures.push(format!("{}, pauses {pauses}: {error}", scenario.name));
                    continue;
                }
            };
            let differing = found.iter().zip(&expected).position(|(one, other)| one != other);
            if let Some(at) = differing {
                let (found, expected) = (&found[at], &expected[at]);
                failures.push(format!(
                    "{}, pauses {pauses}, packet {at}: {found:?} and not {expected:?}",
                    scenario.name
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
