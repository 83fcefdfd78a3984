// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every program of `programs/xdp` in the kernel and in the interpreter: the same packets, with
//! state carried along, must lead to the same verdict, bytes and metadata, and to the same map
//! contents.
//!
//! The kernel's test facility does not report the destination of a redirected packet.

use crate::network;
use crate::objects::compiled;
use freeport_ebpf::object::Object;
use freeport_testbed::skip;
use freeport_testbed::{is_long, seed};
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::{Arrival, Interpreter, Kernel, Target};

fn packets() -> u64 {
    if is_long() { 100_000 } else { 1_000 }
}

/// The kernel does not accept such packets, so the programs themselves must check for them.
#[test]
fn no_program_reads_beyond_packets_that_are_shorter_than_a_header() {
    for scenario in Scenario::all() {
        let object = Object::parse(&compiled(scenario.source)).expect("clang makes such objects");
        let interpreter = Interpreter::load(&object, network::environment());
        let mut interpreter = interpreter.expect("the programs can run here");
        (scenario.set_up)(&mut interpreter).expect("its maps take what is put in");
        for length in 0..14 {
            let bytes = &[8; 14][..length];
            let arrival = Arrival { bytes, ingress_ifindex: 2, rx_queue_index: 0 };
            let departure = interpreter.run(scenario.program, &arrival).expect("it is there");
            let aborted = interpreter.last().and_then(|outcome| outcome.aborted.as_ref());
            assert_eq!(aborted, None, "{} on {length} bytes", scenario.name);
            assert_eq!(departure.bytes, bytes, "{} changes what it cannot read", scenario.name);
        }
    }
}

#[test]
fn every_program_fares_alike_in_the_kernel_and_in_the_interpreter() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    network::enter().expect("who may load programs may make a network");
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut failures = vec![];
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        if let Err(failure) = check(&scenario, &compiled(scenario.source)) {
            failures.push(format!("{}: {failure}", scenario.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(scenario: &Scenario, object: &[u8]) -> Result<(), String> {
    let seed = seed();
    let mut kernel = Kernel::load(object).map_err(|error| error.to_string())?;
    let parsed = Object::parse(object).map_err(|error| error.to_string())?;
    let interpreter = Interpreter::load(&parsed, network::environment());
    let mut interpreter = interpreter.map_err(|error| error.to_string())?;
    let verdicts = compare(scenario, seed, packets(), &mut kernel, &mut interpreter);
    let verdicts = verdicts.map_err(|error| match interpreter.last() {
        Some(last) => format!("{error}\nthe interpreter's last packet: {last:?}"),
        None => error.to_string(),
    })?;
    let missing: Vec<_> =
        scenario.verdicts.iter().filter(|it| !verdicts.contains_key(it)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("no verdict {missing:?} in {verdicts:?}")) }
}
