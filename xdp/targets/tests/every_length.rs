// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of each kind that a program parses, cut at every length: the kernel and the interpreter
//! agree from 14 bytes on, the interpreter and the model of the small processor from 0 on.

use crate::network;
use crate::objects::compiled;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_testbed::skip;
use freeport_testbed::{seed, usual_or_long};
use freeport_vliw::Options;
use freeport_xdp::scenario::{Lengths, Scenario, compare_lengths};
use freeport_xdp::{Interpreter, Kernel, Target, Vliw};
use std::ops::RangeInclusive;

/// Returns all lengths in long runs, else the short ones, where headers end, and a sample of the
/// others.
fn lengths(all: RangeInclusive<usize>) -> Lengths {
    let (dense_to, one_of) = usual_or_long((200, 16), (usize::MAX, 1));
    Lengths { all, dense_to, one_of }
}

/// Runs each scenario on both targets, and fails with all differences.
fn compare_all(
    all: RangeInclusive<usize>,
    targets: impl Fn(&[u8], &Object) -> (Box<dyn Target>, Box<dyn Target>),
) {
    let only = std::env::var("FREEPORT_CASES").ok();
    let (mut packets, mut failures) = (0, vec![]);
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let bytes = compiled(scenario.source);
        let object = Object::parse(&bytes).expect("clang makes such objects");
        let (mut reference, mut subject) = targets(&bytes, &object);
        let lengths = lengths(all.clone());
        let (reference, subject) = (reference.as_mut(), subject.as_mut());
        match compare_lengths(&scenario, seed(), &lengths, reference, subject) {
            Ok(count) => {
                packets += count;
                println!("{}: {count} packets, no difference", scenario.name);
            }
            Err(difference) => failures.push(format!("{}: {difference}", scenario.name)),
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(packets > 0);
}

#[test]
fn packets_of_every_length_fare_alike_in_the_kernel_and_in_the_interpreter() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    network::enter().expect("who may load programs may make a network");
    compare_all(Kernel::LENGTHS, |bytes, object| {
        let kernel = Kernel::load(bytes).expect("the verifier takes it");
        let interpreter = Interpreter::load(object, network::environment()).expect("it can run");
        (Box::new(kernel), Box::new(interpreter))
    });
}

#[test]
fn packets_of_every_length_fare_alike_in_the_interpreter_and_on_the_processor() {
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..network::environment() };
    compare_all(0..=*Kernel::LENGTHS.end(), |_, object| {
        let interpreter = Interpreter::load(object, environment.clone()).expect("it can run");
        let processor = Vliw::load(object, &Options::default(), environment.clone());
        (Box::new(interpreter), Box::new(processor.expect("it can run")))
    });
}
