// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs as compiled code do what they do in the interpreter: those of `programs/xdp` that can be
//! lifted, on the packets of their scenarios, with the same verdicts, bytes, devices and maps.

#[path = "network/environment.rs"]
mod network;

use freeport_ebpf::interpreter::{Environment, Redirect};
use freeport_ebpf::object::Object;
use freeport_native::Options;
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::{Interpreter, Native, compile};
use std::collections::BTreeMap;
use std::path::Path;

/// Scenarios that have no counterpart, and the words of what has none.
const NOT_LIFTED: [(&str, &str); 10] = [
    ("parser_chain", "metadata"),
    ("metadata", "metadata"),
    ("counters", "bpf_for_each_map_elem"),
    ("sampler", "ring buffers"),
    ("tenants", "a map inside map"),
    ("spread", "several devices"),
    ("fib_forward", "bpf_fib_lookup"),
    ("request_filter", "bpf_strncmp"),
    ("port_pool", "bpf_map_pop_elem"),
    ("deliver", "xskmap"),
];

#[test]
fn every_program_fares_alike_as_compiled_code_and_in_the_interpreter() {
    let only = std::env::var("FREEPORT_CASES").ok();
    let packets = if std::env::var_os("FREEPORT_LONG").is_some() { 100_000 } else { 1_000 };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lifted");
    let options = Options { cache, ..Options::default() };
    let (mut objects, mut failures, mut refusals) = (BTreeMap::new(), vec![], vec![]);
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let object = objects.entry(scenario.source).or_insert_with(|| {
            let object = compile(&folder.join(format!("{}.bpf.c", scenario.source)));
            let object = object.expect("clang-19 and libbpf-dev are there");
            Object::parse(&object).expect("clang makes such objects")
        });
        let mut native = match Native::load(object, scenario.program, &options) {
            Ok(native) => native,
            Err(error) => {
                refusals.push((scenario.name, error.to_string()));
                continue;
            }
        };
        let environment = Environment { ..network::environment() };
        let mut interpreter = Interpreter::load(object, environment).expect("it can run");
        let (reference, subject) = (&mut interpreter, &mut native);
        if let Err(difference) = compare(&scenario, 1, packets, reference, subject) {
            failures.push(format!("{}: {difference}", scenario.name));
            continue;
        }
        let device = interpreter.last().and_then(|outcome| match outcome.redirect {
            Some(Redirect::Device { ifindex }) => Some(ifindex),
            Some(Redirect::Map { target, .. }) => Some(target),
            _ => None,
        });
        assert_eq!(native.redirected_to(), device, "{}", scenario.name);
        assert_eq!(native.out_of_range(), 0, "{}", scenario.name);
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    for (name, why) in &refusals {
        let expected = NOT_LIFTED.iter().find(|(expected, _)| expected == name);
        let (_, words) = expected.unwrap_or_else(|| panic!("{name} is to be lifted: {why}"));
        assert!(why.contains(words), "{name}: {why}");
    }
    assert!(only.is_some() || refusals.len() == NOT_LIFTED.len(), "{refusals:?}");
}
