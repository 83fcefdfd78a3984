// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The facts that the analysis of a program states hold when it runs: for every program of
//! `programs/xdp` on the packets of its scenarios, and for random programs. Each executed
//! instruction must be stated to be reachable, each register and each stack slot must hold a value
//! that the facts allow, each access must be where the facts place it, and no access that is proven
//! may be out of bounds.

use crate::network;
use crate::objects::object;
use freeport_ebpf::analysis::{Analysis, Space, Witness};
use freeport_ebpf::instruction::disassemble;
use freeport_ebpf::interpreter::{Environment, Machine, Packet};
use freeport_ebpf::object::Object;
use freeport_testbed::{is_long, seed};
use freeport_xdp::random_program::object_of;
use freeport_xdp::scenario::Scenario;
use freeport_xdp::traffic::Traffic;
use freeport_xdp::{Arrival, Interpreter, random_program};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns all programs of the folder, by the names of their sources.
fn objects() -> BTreeMap<String, Object> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let named = paths.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".bpf.c")?;
        Some((name.to_owned(), object(name)))
    });
    named.collect()
}

fn analyses(object: &Object) -> Vec<Option<Analysis>> {
    let analyse = |program| Analysis::of(program, &object.maps).expect("it was loaded");
    object.programs.iter().map(|program| Some(analyse(program))).collect()
}

#[test]
fn what_is_known_of_programs_is_so_when_they_run() {
    let only = std::env::var("FREEPORT_CASES").ok();
    let packets = if is_long() { 20_000 } else { 150 };
    let objects = objects();
    for scenario in Scenario::all() {
        if only.as_ref().is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let object = &objects[scenario.source];
        let analyses = analyses(object);
        let mut witness = Witness::new(object, &analyses);
        let interpreter = Interpreter::load(object, network::environment());
        let mut interpreter = interpreter.expect("the programs can run here");
        (scenario.set_up)(&mut interpreter).expect("its maps take what is put in");
        let mut traffic = Traffic::new(seed(), scenario.kinds);
        for _ in 0..packets {
            let packet = traffic.next_packet();
            let arrival = Arrival {
                bytes: &packet.bytes,
                ingress_ifindex: packet.ingress_ifindex,
                rx_queue_index: packet.rx_queue_index,
            };
            let run = interpreter.run_observed(scenario.program, &arrival, &mut witness);
            let departure = run.expect("it is there");
            let failure = witness.failure(interpreter.last().expect("it has run"));
            assert_eq!(failure, None, "{}: {:02x?}", scenario.name, packet.bytes);
            traffic.observe(&departure);
        }
        // A program that only drops packets accesses no memory.
        let is_minimal = scenario.source == "minimal";
        assert!(is_minimal || witness.accesses > packets, "{}", scenario.name);
    }
}

/// Accesses of all programs when this was written. A smaller number would mean that some code is no
/// longer reached.
const ACCESSES: usize = 2_553;

/// The analysis knows the memory and the range of offsets of each access, the maximum length of all
/// but six, and proves all but four to be in bounds.
#[test]
fn everything_that_programs_touch_has_a_type_and_nearly_all_is_proven() {
    let (mut untyped, mut unproven) = (BTreeMap::new(), BTreeMap::new());
    let mut all = 0;
    for (name, object) in objects() {
        for (program, analysis) in object.programs.iter().zip(analyses(&object)) {
            let analysis = analysis.expect("all are analysed");
            assert_eq!(analysis.given_up(), None, "{name}");
            let unknown = analysis.unknown_accesses().filter_map(|access| match access.space {
                Space::Unknown(unknown) => Some(analysis.explain(program, &unknown)),
                _ => None,
            });
            assert_eq!(unknown.collect::<Vec<_>>(), [""; 0], "{name}");
            let slots = 0..analysis.graph().slots();
            for access in slots.flat_map(|slot| analysis.accesses(slot)) {
                all += 1;
                if access.size.is_none() {
                    *untyped.entry((name.clone(), access.space.to_string())).or_insert(0) += 1;
                }
                if !access.is_proven {
                    *unproven.entry((name.clone(), access.space.to_string())).or_insert(0) += 1;
                }
            }
        }
    }
    // The lengths of the strings passed to `bpf_strncmp` are unknown, since data is not analysed.
    let texts = (("request_filter".to_owned(), "value of map 4".to_owned()), 4);
    // Only a lower bound is known for the length of a submitted record.
    let records = (("sampler".to_owned(), "record of map 2".to_owned()), 2);
    assert_eq!(untyped, BTreeMap::from([texts.clone(), records]));
    assert_eq!(unproven, BTreeMap::from([texts]));
    assert!(all >= ACCESSES, "{all}");
}

#[test]
fn what_is_known_of_random_programs_is_so_when_they_run() {
    let programs = if is_long() { 20_000 } else { 300 };
    for seed in seed()..seed() + programs {
        let mut random = fastrand::Rng::with_seed(seed);
        let length = random.usize(70..160);
        let instructions = random_program(&mut random, length);
        let object = object_of(&instructions);
        let analyses = analyses(&object);
        let mut witness = Witness::new(&object, &analyses);
        let mut machine = Machine::load(&object, Environment::default()).expect("it can run here");
        for length in [64, 71, 300, 63, 0] {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let mut packet = Packet::new(&bytes).expect("a short one");
            let outcome = machine.run_observed(0, &mut packet, &mut witness);
            if let Some(failure) = witness.failure(&outcome) {
                let text = disassemble(&object.programs[0].instructions);
                panic!("FREEPORT_SEED={seed}: {failure}\npacket {bytes:02x?}\n{text}");
            }
        }
        let analysis = analyses[0].as_ref().expect("it was analysed");
        let mut all = (0..analysis.graph().slots()).flat_map(|slot| analysis.accesses(slot));
        assert!(all.all(|access| access.is_proven), "seed {seed}: the verifier takes it");
    }
}
