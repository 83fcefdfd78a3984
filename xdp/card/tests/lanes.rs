// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles per packet on a card with a given number of lanes: the four cases of `freeport bench xdp`
//! on the card that this crate was built with. `scripts/test-lanes.sh` builds it with others.

use crate::scenarios;
use crate::scenarios::Case;
use freeport_card::{Nic, Sim};
use freeport_ebpf::interpreter::Environment;
use freeport_xdp::{Arrival, Interpreter, Profiles, Target};

const PACKETS: usize = 400;
/// Packets before those that are counted.
const WARM_UP: usize = 100;
/// Beats of a 64-byte frame on the bus, which is the minimum number of cycles for it.
const BEATS: f64 = 2.0;
/// Names of scenarios, and the verdict for the frame below.
const CASES: [(&str, u32); 4] =
    [("drop", 1), ("transmit", 3), ("redirect", 4), ("stateful_firewall", 4)];

#[test]
fn packets_take_as_long_as_the_lanes_say() {
    let lanes = Nic::new().expect("there is a card").identity().expect("it answers").lanes;
    let built = option_env!("FREEPORT_LANES").unwrap_or("4");
    assert_eq!(lanes.to_string(), built, "the card has the lanes that it was built with");
    let cases = scenarios::cases();
    for (name, verdict) in CASES {
        let Some(case) = cases.iter().find(|case| case.scenario.name == name) else { continue };
        let (cycles, rows) = cycles_of(case, verdict);
        println!("{lanes} lanes, {name}: {cycles:.2} cycles a packet, {rows} rows");
        assert!(cycles >= BEATS, "{name}");
        assert!(name != "drop" || cycles == BEATS, "the bus alone bounds dropping");
    }
}

/// Returns the cycles between verdicts for packets back to back, and the number of rows.
fn cycles_of(case: &Case, verdict: u32) -> (f64, usize) {
    let (frame, environment) = (frame(), Environment::default());
    let arrival = Arrival { bytes: &frame, ingress_ifindex: 1, rx_queue_index: 0 };
    let (object, program) = (&case.object, case.scenario.program);
    let mut interpreter = Interpreter::load(object, environment.clone()).expect("it can run");
    (case.scenario.set_up)(&mut interpreter).expect("it can be set up");
    let mut profiles = Profiles::new(object);
    for _ in 0..WARM_UP {
        interpreter.run_observed(program, &arrival, &mut profiles).expect("it runs");
    }
    let images = object.programs.iter().enumerate().map(|(number, program)| {
        let image = profiles.compile(number, program, &object.maps, &scenarios::options());
        image.map_err(|unsupported| unsupported.to_string())
    });
    let sim = Sim::with_images(object, images.collect(), &environment);
    let mut sim = sim.expect("it fits");
    (case.scenario.set_up)(&mut sim).expect("it can be set up");
    assert_eq!(sim.run(program, &arrival).expect("it runs").verdict, verdict, "{program}");
    let stamps = sim.run_stream(program, &vec![arrival; WARM_UP + PACKETS]).expect("it runs");
    let (first, last) = (stamps[WARM_UP - 1].done, stamps[WARM_UP + PACKETS - 1].done);
    ((last - first) as f64 / PACKETS as f64, sim.rows())
}

/// Creates a UDP packet over IPv4 from the inside.
fn frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
    frame.extend([0x30, 0x39, 0, 53, 0, 30, 0, 0]);
    frame.resize(64, 0);
    frame
}
