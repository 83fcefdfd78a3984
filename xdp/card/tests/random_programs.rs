// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs that the kernel's verifier accepts have the same outcome on the simulated card
//! as in the interpreter. Compiler passes are turned off at random, to get rows that the compiler
//! would not otherwise make of these instructions.

use crate::scenarios;
use crate::scenarios::number;
use fastrand::Rng;
use freeport_card::Sim;
use freeport_ebpf::instruction::disassemble;
use freeport_ebpf::interpreter::Environment;
use freeport_vliw::{PASSES, compile};
use freeport_xdp::random_program::{PACKET_BYTES, object_of};
use freeport_xdp::{Arrival, Contents, Departure, Interpreter, Target, random_program};

#[test]
fn random_programs_fare_alike_on_the_card_and_in_the_interpreter() {
    let programs = if scenarios::is_long() { 5_000 } else { 100 };
    let programs = number("FREEPORT_PROGRAMS").unwrap_or(programs);
    let first = scenarios::seed();
    for seed in first..first + programs {
        let mut random = Rng::with_seed(seed);
        let length = random.usize(70..160);
        let program = random_program(&mut random, length);
        let mut options = scenarios::options();
        let chance = random.choice([0, 1, 4]).unwrap_or(0);
        for pass in PASSES {
            if random.u32(0..8) < chance {
                *options.pass_mut(pass).expect("it is one of them") = false;
            }
        }
        let object = object_of(&program);
        let environment = Environment::default();
        let mut interpreter = Interpreter::load(&object, environment.clone()).expect("it can run");
        let mut sim = Sim::load(&object, &options, &environment).expect("it fits");
        sim.nic_mut().set_pauses(seed, random.u8(..200), random.u8(..200));
        for length in [PACKET_BYTES, PACKET_BYTES + 7, 300, PACKET_BYTES - 1] {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let arrival = Arrival { bytes: &bytes, ingress_ifindex: 1, rx_queue_index: 0 };
            let expected = ran(&mut interpreter, &arrival);
            let found = ran(&mut sim, &arrival);
            assert!(
                found == expected,
                "FREEPORT_SEED={seed} FREEPORT_PROGRAMS=1, {length} bytes\n{found:?}\n{:?}\nand \
                 not {expected:?}\n{}\n{}",
                sim.last(),
                disassemble(&program),
                compile(&object.programs[0], &object.maps, &options).expect("it was compiled")
            );
        }
    }
}

/// Runs a program on a packet; returns the outcome, and the contents of the map.
fn ran(target: &mut dyn Target, arrival: &Arrival<'_>) -> Result<(Departure, Contents), String> {
    let departure = target.run("random", arrival).map_err(|error| error.to_string())?;
    Ok((departure, target.contents("value").map_err(|error| error.to_string())?))
}
