// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs compiled for the likely paths of a first run still behave as in the interpreter: on the
//! packets of the profile, and on others.

use crate::network;
use crate::objects;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_testbed::is_long;
use freeport_vliw::Options;
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::traffic::Traffic;
use freeport_xdp::{Interpreter, Profiles, Vliw};

fn environment() -> Environment {
    Environment { clock: Clock::Set(1_000_000_007), ..network::environment() }
}

/// Records the paths that packets of a seed take.
fn profiles(object: &Object, scenario: &Scenario, seed: u64, packets: u64) -> Profiles {
    let mut interpreter = Interpreter::load(object, environment()).expect("it can run");
    (scenario.set_up)(&mut interpreter).expect("its maps take what is put in");
    let mut profiles = Profiles::new(object);
    let mut traffic = Traffic::new(seed, scenario.kinds);
    for _ in 0..packets {
        let packet = traffic.next_packet();
        let run = interpreter.run_observed(scenario.program, &packet.arrival(), &mut profiles);
        traffic.observe(&run.expect("it is there"));
    }
    profiles
}

#[test]
fn every_program_fares_alike_when_compiled_with_a_profile() {
    let packets = if is_long() { 20_000 } else { 150 };
    let (mut failures, mut others) = (vec![], 0);
    for scenario in Scenario::all() {
        let object = &objects::object(scenario.source);
        let profiles = profiles(object, &scenario, 1, packets);
        for lanes in [1, 2, 4, 8] {
            let mut options = Options::default();
            options.machine.lanes = lanes;
            let plain = Vliw::load(object, &options, environment()).expect("it can run");
            for seed in [1, 2] {
                let mut interpreter = Interpreter::load(object, environment()).expect("it can run");
                let processor = Vliw::load_profiled(object, &options, &profiles, environment());
                let mut processor = processor.expect("it can run");
                let is_other =
                    (0..object.programs.len()).any(|at| processor.image(at) != plain.image(at));
                others += usize::from(is_other);
                let result = compare(&scenario, seed, packets, &mut interpreter, &mut processor);
                if let Err(difference) = result {
                    failures.push(format!("{}, {lanes} lanes: {difference}", scenario.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(others > 100, "profiles change {others} images");
}

#[test]
fn what_was_not_executed_has_no_profile() {
    let object = objects::object("xdp1");
    let none = Profiles::new(&object);
    assert!(none.of(0).is_none());
    let image = |vliw: Vliw| vliw.image(0).cloned();
    let options = Options::default();
    let plain = Vliw::load(&object, &options, environment()).expect("it can run");
    let profiled = Vliw::load_profiled(&object, &options, &none, environment());
    assert_eq!(image(profiled.expect("it can run")), image(plain));
    let scenarios = Scenario::all();
    let scenario = scenarios.iter().find(|it| it.source == "xdp1").expect("there is one");
    assert!(profiles(&object, scenario, 1, 1).of(0).is_some_and(|profile| profile.count(0) == 1));
}
