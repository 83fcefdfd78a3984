// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiled programs on the model of the small processor behave as in the interpreter, and their
//! images break no rule: the programs of `programs/xdp` on the packets of their scenarios, and
//! random ones that the kernel's verifier accepts. Passes are all on, all off, each off by itself
//! and off at random, for one lane and for several.

use crate::network;
use crate::objects;
use fastrand::Rng;
use freeport_ebpf::instruction::disassemble;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_testbed::{is_long, number, seed};
use freeport_vliw::{Options, PASSES};
use freeport_xdp::random_program::{PACKET_BYTES, object_of};
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::{Arrival, Contents, Departure, Interpreter, Target, Vliw, random_program};

/// Returns options without some passes for a number of lanes, with their name.
fn without(passes: &[&str], lanes: u8) -> (String, Options) {
    let mut options = Options::default();
    options.machine.lanes = lanes;
    for pass in passes {
        *options.pass_mut(pass).expect("it is one of them") = false;
    }
    (format!("{lanes} lanes without {passes:?}"), options)
}

/// Returns the options that are tried with each program.
fn variants() -> Vec<(String, Options)> {
    let mut variants: Vec<_> = [1, 2, 3, 4, 8].map(|lanes| without(&[], lanes)).into();
    variants.extend([1, 4].map(|lanes| without(&PASSES, lanes)));
    variants.extend(PASSES.map(|pass| without(&[pass], 4)));
    variants
}

fn targets(object: &Object, options: &Options, environment: Environment) -> (Interpreter, Vliw) {
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..environment };
    let interpreter = Interpreter::load(object, environment.clone()).expect("it can run");
    (interpreter, Vliw::load(object, options, environment).expect("it can run"))
}

#[test]
fn every_program_fares_alike_on_the_processor_and_in_the_interpreter() {
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut failures = vec![];
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let object = &objects::object(scenario.source);
        for (name, options) in variants() {
            let packets = match is_long() {
                true if options == Options::default() => 100_000,
                true => 20_000,
                false => 150,
            };
            let (mut interpreter, mut processor) =
                targets(object, &options, network::environment());
            let (reference, subject) = (&mut interpreter, &mut processor);
            if let Err(difference) = compare(&scenario, seed(), packets, reference, subject) {
                failures.push(format!("{}, {name}: {difference}", scenario.name));
                continue;
            }
            let redirects = [processor.last(), interpreter.last()]
                .map(|outcome| outcome.expect("packets came").redirect);
            assert_eq!(redirects[0], redirects[1], "{}, {name}", scenario.name);
            assert_eq!(processor.take_trace(), interpreter.take_trace(), "{}", scenario.name);
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn random_programs_fare_alike_on_the_processor_and_in_the_interpreter() {
    let programs = number("FREEPORT_PROGRAMS");
    let programs: u64 = programs.unwrap_or(if is_long() { 30_000 } else { 300 });
    for seed in seed()..seed() + programs {
        let mut random = Rng::with_seed(seed);
        let length = random.usize(70..160);
        let program = random_program(&mut random, length);
        let mut off = PASSES.to_vec();
        let chance = random.choice([0, 1, 4]).unwrap_or(0);
        off.retain(|_| random.u32(0..8) < chance);
        let (name, options) = without(&off, random.u8(1..=8));
        let object = object_of(&program);
        let (mut interpreter, mut processor) = targets(&object, &options, Environment::default());
        let rows = processor.image(0).map_or(String::new(), ToString::to_string);
        for length in [PACKET_BYTES, PACKET_BYTES + 7, 300, PACKET_BYTES - 1] {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let arrival = Arrival { bytes: &bytes, ingress_ifindex: 1, rx_queue_index: 0 };
            let expected = ran(&mut interpreter, &arrival);
            let found = ran(&mut processor, &arrival);
            assert!(
                found == expected,
                "FREEPORT_SEED={seed} FREEPORT_PROGRAMS=1, {name}\n{found:?}\nand not \
                 {expected:?}\n{}\n{rows}",
                disassemble(&program)
            );
        }
    }
}

/// Runs a program on a packet; returns the outcome, and the contents of the map.
fn ran(target: &mut dyn Target, arrival: &Arrival<'_>) -> Result<(Departure, Contents), String> {
    let departure = target.run("random", arrival).map_err(|error| error.to_string())?;
    Ok((departure, target.contents("value").map_err(|error| error.to_string())?))
}
