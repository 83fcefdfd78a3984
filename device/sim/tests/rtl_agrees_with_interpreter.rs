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
use freeport_xdp::{Interpreter, compile};
use std::collections::BTreeMap;
use std::path::Path;

/// Scenarios whose programs or maps the card does not have, and what it says of them.
const REFUSED: [(&str, &str); 0] = [];

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
