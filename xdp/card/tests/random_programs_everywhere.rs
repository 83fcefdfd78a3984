// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs that the kernel's verifier accepts have the same outcome everywhere: in the
//! kernel, in the interpreter, on the model of the small processor, and on the simulated card.
//! Verdict, packet and the map's value, which receives all registers and the stack, equal those of
//! the kernel.

use crate::scenarios;
use crate::scenarios::number;
use fastrand::Rng;
use freeport_ebpf::instruction::{Instruction, disassemble};
use freeport_ebpf::interpreter::Environment;
use freeport_testbed::skip;
use freeport_xdp::random_program::{PACKET_BYTES, VALUE_BYTES, Verified, object_of};
use freeport_xdp::{Arrival, Contents, Error, Interpreter, Kernel, RawProgram, Target, Vliw};

/// Verdict, packet, and value.
type Left = (u32, Vec<u8>, Vec<u8>);

#[test]
fn random_programs_fare_alike_on_all_targets() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let programs = if scenarios::is_long() { 5_000 } else { 60 };
    let programs = number("FREEPORT_PROGRAMS").unwrap_or(programs);
    // Seeds different from those of the tests of two targets.
    let first = number("FREEPORT_PROGRAM").unwrap_or(scenarios::seed() + 1_000_000);
    let verified = Verified::each(first..first + programs, compare);
    let verified = verified.expect("the kernel takes their map");
    let refused = verified.refusals.len();
    println!("{} programs on four targets, {refused} refused by the verifier", verified.taken);
    assert!(verified.is_most(), "refused: {:?}", verified.refusals);
}

fn compare(seed: u64, program: &[Instruction], kernel: &RawProgram, random: &mut Rng) {
    let (object, environment) = (object_of(program), Environment::default());
    let options = scenarios::options();
    let interpreter = Interpreter::load(&object, environment.clone()).expect("it can run");
    let model = Vliw::load(&object, &options, environment.clone()).expect("it can run");
    let card = freeport_card::Sim::load(&object, &options, &environment).expect("it fits");
    let mut targets: [(&str, Box<dyn Target>); 3] = [
        ("interpreter", Box::new(interpreter)),
        ("model", Box::new(model)),
        ("card", Box::new(card)),
    ];
    // One packet is too short, so that the program exits at its check.
    for length in [PACKET_BYTES, PACKET_BYTES + 7, 300, PACKET_BYTES - 1] {
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let expected = kernel.run(&bytes).expect("the kernel takes packets of this length");
        for (name, target) in &mut targets {
            let found = ran(target.as_mut(), &bytes);
            assert!(
                found.as_ref() == Ok(&expected),
                "FREEPORT_PROGRAM={seed} FREEPORT_PROGRAMS=1, {length} bytes\n{name} {found:02x?}\n\
                 kernel {expected:02x?}\n{}",
                disassemble(program)
            );
        }
    }
}

/// Runs a program on a packet with a zeroed value; returns verdict, packet and value.
fn ran(target: &mut dyn Target, bytes: &[u8]) -> Result<Left, String> {
    let said = |error: Error| error.to_string();
    target.update("value", &[0; 4], &[0; VALUE_BYTES]).map_err(said)?;
    let arrival = Arrival { bytes, ingress_ifindex: 1, rx_queue_index: 0 };
    let departure = target.run("random", &arrival).map_err(said)?;
    let Contents::Entries(entries) = target.contents("value").map_err(said)? else {
        return Err("an array has entries".into());
    };
    let value = entries.into_values().next().unwrap_or_default();
    Ok((departure.verdict, departure.bytes, value))
}
