// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiled code does the same as the interpreter and the kernel: the programs of `programs/xdp`
//! that can be lifted, on the packets of their scenarios and on packets cut at every length, and
//! random programs that the kernel's verifier accepts.

mod random;

use crate::network;
use crate::objects::compiled;
use freeport_ebpf::instruction::assemble;
use freeport_ebpf::interpreter::Redirect;
use freeport_ebpf::object::Object;
use freeport_native::Options;
use freeport_testbed::skip;
use freeport_testbed::{is_long, seed};
use freeport_xdp::random_program::object_of;
use freeport_xdp::scenario::{Lengths, Scenario, compare, compare_lengths};
use freeport_xdp::{Arrival, Error, InUserSpace, Interpreter, Kernel, Native, Target};
use std::path::Path;

/// Scenarios that cannot be lifted, and words of the reason.
const NOT_LIFTED: [(&str, &str); 10] = [
    ("parser_chain", "metadata"),
    ("metadata", "metadata"),
    ("counters", "bpf_for_each_map_elem"),
    ("sampler", "ring-buffer records"),
    ("tenants", "a map inside map"),
    ("spread", "several devices"),
    ("fib_forward", "bpf_fib_lookup"),
    ("request_filter", "bpf_strncmp"),
    ("port_pool", "bpf_map_pop_elem"),
    ("deliver", "xskmap"),
];

/// Returns compiler options; the cache is separate from the user's.
fn options() -> Options {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lifted");
    Options { cache: Some(cache), optimization: 1, ..Options::default() }
}

/// A scenario with its object, as a file and parsed.
struct Case {
    scenario: Scenario,
    bytes: Vec<u8>,
    object: Object,
}

impl Case {
    fn native(&self) -> Result<Native, Error> {
        Native::load(&self.object, self.scenario.program, &options())
    }

    fn interpreter(&self) -> Interpreter {
        Interpreter::load(&self.object, network::environment()).expect("it can run")
    }
}

/// Returns all scenarios, or those whose name contains `FREEPORT_CASES`.
fn cases() -> Vec<Case> {
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut scenarios = Scenario::all();
    scenarios.retain(|it| only.as_ref().is_none_or(|only| it.name.contains(only.as_str())));
    let case = |scenario: Scenario| {
        let bytes = compiled(scenario.source);
        let object = Object::parse(&bytes).expect("clang makes such objects");
        Case { scenario, bytes, object }
    };
    scenarios.into_iter().map(case).collect()
}

/// Returns the cases that can be lifted, ready to run.
fn lifted() -> Vec<(Case, Native)> {
    let native = |case: Case| case.native().ok().map(|native| (case, native));
    cases().into_iter().filter_map(native).collect()
}

fn none_differs(failures: &[String]) {
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn what_is_not_lifted_is_told() {
    for case in cases() {
        let name = case.scenario.name;
        let expected = NOT_LIFTED.iter().find(|(expected, _)| *expected == name);
        match (case.native(), expected) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => panic!("{name} is lifted: take it off the list"),
            (Err(error), None) => panic!("{name} is to be lifted: {error}"),
            (Err(error), Some((_, words))) => {
                let text = error.to_string();
                assert!(text.contains(words), "{name}: {text}");
                assert!(text.contains("not liftable, because of instruction"), "{name}: {text}");
                assert!(text.contains(".bpf.c:"), "{name}: {text}");
            }
        }
    }
}

#[test]
fn every_program_fares_alike_as_compiled_code_and_in_the_interpreter() {
    let packets = if is_long() { 100_000 } else { 1_000 };
    let mut failures = vec![];
    for (case, mut native) in lifted() {
        let (name, mut interpreter) = (case.scenario.name, case.interpreter());
        let (reference, subject) = (&mut interpreter, &mut native);
        if let Err(difference) = compare(&case.scenario, seed(), packets, reference, subject) {
            failures.push(format!("{name}: {difference}"));
            continue;
        }
        let device = interpreter.last().and_then(|outcome| match outcome.redirect {
            Some(Redirect::Device { ifindex }) => Some(ifindex),
            Some(Redirect::Map { target, .. }) => Some(target),
            _ => None,
        });
        let redirected = native.last().and_then(|outcome| outcome.redirect);
        let expected = device.map(|ifindex| Redirect::Device { ifindex });
        assert_eq!(redirected, expected, "{name}");
        assert_eq!(native.out_of_range(), 0, "{name}");
    }
    none_differs(&failures);
}

#[test]
fn packets_of_every_length_fare_alike_as_compiled_code_and_in_the_interpreter() {
    let all = 0..=1_600;
    let lengths = match is_long() {
        true => Lengths { all, dense_to: usize::MAX, one_of: 1 },
        false => Lengths { all, dense_to: 200, one_of: 16 },
    };
    let mut failures = vec![];
    for (case, mut native) in lifted() {
        let (reference, scenario) = (&mut case.interpreter(), &case.scenario);
        let result = compare_lengths(scenario, seed(), &lengths, reference, &mut native);
        match result {
            Ok(packets) => assert!(packets > 100, "{}: {packets} packets", scenario.name),
            Err(difference) => failures.push(format!("{}: {difference}", scenario.name)),
        }
    }
    none_differs(&failures);
}

#[test]
fn every_program_fares_alike_as_compiled_code_and_in_the_kernel() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    network::enter().expect("who may load programs may make a network");
    let packets = if is_long() { 100_000 } else { 300 };
    let mut failures = vec![];
    for (case, mut native) in lifted() {
        let mut kernel = Kernel::load(&case.bytes).expect("the verifier takes it");
        let (reference, subject) = (&mut kernel, &mut native);
        if let Err(difference) = compare(&case.scenario, seed(), packets, reference, subject) {
            failures.push(format!("{}: {difference}", case.scenario.name));
        }
    }
    none_differs(&failures);
}

/// Untrusted programs, which no verifier has checked.
#[test]
fn what_is_not_known_to_be_in_the_packet_is_looked_for_there() {
    let text = "r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = *(u8 *)(r2 + 12)
        r4 &= 15
        r2 += r4
        *(u16 *)(r2 + 20) = 7
        r0 = 2
        exit";
    let object = object_of(&assemble(text).expect("the text is right"));
    let mut native = Native::load(&object, "random", &options()).expect("it is lifted");
    let mut interpreter = Interpreter::load(&object, network::environment()).expect("it can run");
    for length in 0..50 {
        let bytes: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(37)).collect();
        let arrival = Arrival { bytes: &bytes, ingress_ifindex: 1, rx_queue_index: 0 };
        let expected = interpreter.run("random", &arrival).expect("it is there");
        let found = native.run("random", &arrival).expect("it is there");
        assert_eq!(found, expected, "{length} bytes");
        assert_eq!(expected.verdict == 0, length < 22 + bytes.get(12).map_or(0, |it| it & 15));
    }
}

#[test]
fn a_loop_that_does_not_end_is_ended() {
    let text = "r0 = 1\nagain:\nr0 += 2\nif r0 != 0 goto again\nexit";
    let object = object_of(&assemble(text).expect("the text is right"));
    let mut native = Native::load(&object, "random", &options()).expect("it is lifted");
    let mut interpreter = Interpreter::load(&object, network::environment()).expect("it can run");
    let arrival = Arrival { bytes: &[5; 60], ingress_ifindex: 1, rx_queue_index: 0 };
    for _ in 0..2 {
        let expected = interpreter.run("random", &arrival).expect("it is there");
        let found = native.run("random", &arrival).expect("it is there");
        assert_eq!((found.verdict, &found), (0, &expected));
    }
}
