// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The model of the small processor as a target: images with one instruction in a row, and an empty
//! row between two, behave as in the interpreter and break no rule. The programs are those of
//! `programs/xdp` and random ones that the kernel's verifier accepts.

use crate::naive;
use crate::network;
use crate::objects;
use fastrand::Rng;
use freeport_ebpf::instruction::disassemble;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::{Object, Program};
use freeport_testbed::{is_long, seed};
use freeport_vliw::image::Image;
use freeport_xdp::random_program::{PACKET_BYTES, object_of};
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::{Arrival, Error, Interpreter, Target, Vliw, random_program};

/// Rows for each instruction, so that its result and its stores are visible to the next one in any
/// lane.
const SPACING: usize = 2;

fn image(program: &Program) -> Result<Image, String> {
    let slots: Vec<usize> = program.functions.iter().map(|function| function.slot).collect();
    Ok(naive::naive(&program.instructions, &slots, SPACING))
}

fn targets(object: &Object, environment: Environment) -> (Interpreter, Vliw) {
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..environment };
    let images = object.programs.iter().map(image).collect();
    let interpreter = Interpreter::load(object, environment.clone()).expect("it can run");
    (interpreter, Vliw::with_images(object, images, environment).expect("it can run"))
}

#[test]
fn every_program_fares_alike_on_the_model_and_in_the_interpreter() {
    let packets = if is_long() { 20_000 } else { 200 };
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut failures = vec![];
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let object = &objects::object(scenario.source);
        let (mut interpreter, mut model) = targets(object, network::environment());
        let compared = compare(&scenario, seed(), packets, &mut interpreter, &mut model);
        if let Err(difference) = compared {
            failures.push(format!("{}: {difference}", scenario.name));
            continue;
        }
        assert_eq!(model.take_trace(), interpreter.take_trace(), "{}", scenario.name);
        let [found, expected] = [model.last(), interpreter.last()].map(|last| last.cloned());
        let [found, expected] = [found, expected].map(|last| last.expect("packets came"));
        assert_eq!(found.redirect, expected.redirect, "{}", scenario.name);
        let statistics = model.statistics().expect("packets came");
        assert_eq!(statistics.operations, expected.instructions, "{}", scenario.name);
        assert_eq!(statistics.rows, found.instructions, "{}", scenario.name);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn random_programs_fare_alike_on_the_model_and_in_the_interpreter() {
    for seed in seed()..seed() + 300 {
        let mut random = Rng::with_seed(seed);
        let length = random.usize(70..160);
        let program = random_program(&mut random, length);
        let (mut interpreter, mut model) = targets(&object_of(&program), Environment::default());
        for length in [PACKET_BYTES, PACKET_BYTES + 7, 300, PACKET_BYTES - 1] {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let arrival = Arrival { bytes: &bytes, ingress_ifindex: 1, rx_queue_index: 0 };
            let expected = interpreter.run("random", &arrival).expect("it is there");
            let found = model.run("random", &arrival).map_err(|error| error.to_string());
            let text = || format!("FREEPORT_SEED={seed}\n{}", disassemble(&program));
            assert_eq!(found, Ok(expected), "{}", text());
            let left = [interpreter.contents("value"), model.contents("value")];
            let [expected, found] = left.map(|left| left.expect("it is there"));
            assert_eq!(found, expected, "{}", text());
        }
    }
}

#[test]
fn a_program_without_an_image_is_refused_with_the_reason() {
    let object = object_of(&[]);
    let refused =
        Vliw::with_images(&object, vec![Err("it is too long".into())], Environment::default());
    let found = refused.expect("its maps can be made").takes("random");
    assert!(matches!(found, Err(Error::Unsupported(reason)) if reason == "it is too long"));
    let none = Vliw::with_images(&object, vec![], Environment::default());
    assert!(none.expect("its maps can be made").takes("random").is_err());
}

#[test]
fn a_fault_of_an_image_is_no_verdict() {
    let program = random_program(&mut Rng::with_seed(1), 80);
    let object = object_of(&program);
    // Without empty rows the first jump reads a result that another lane has just computed.
    let mut image = naive::naive(&program, &[0], 1);
    for row in image.rows.iter_mut().step_by(2) {
        row.lanes.swap(0, 1);
    }
    let model = Vliw::with_images(&object, vec![Ok(image)], Environment::default());
    let mut model = model.expect("its maps can be made");
    let arrival = Arrival { bytes: &[0; 64], ingress_ifindex: 1, rx_queue_index: 0 };
    assert!(matches!(model.run("random", &arrival), Err(Error::Fault(_))));
    assert!(model.last().is_none() && model.statistics().is_none());
}
