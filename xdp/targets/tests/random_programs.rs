// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs that the kernel's verifier accepts behave the same in the kernel, translated to
//! machine code, and in the interpreter: result, packet, and all registers and the stack, which
//! they store in their map.

use fastrand::Rng;
use freeport_ebpf::instruction::{Instruction, disassemble};
use freeport_ebpf::interpreter::{Environment, Machine, Packet};
use freeport_testbed::skip;
use freeport_testbed::{is_long, number, seed};
use freeport_xdp::random_program::{PACKET_BYTES, Verified, object_of};
use freeport_xdp::{Kernel, RawProgram};

fn programs() -> u64 {
    let given = number("FREEPORT_PROGRAMS");
    given.unwrap_or(if is_long() { 30_000 } else { 300 })
}

fn first_seed() -> u64 {
    seed()
}

#[test]
fn random_programs_fare_alike_in_the_kernel_and_in_the_interpreter() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let seeds = first_seed()..first_seed() + programs();
    let verified = Verified::each(seeds, compare).expect("the kernel takes their map");
    assert!(verified.is_most(), "refused: {:?}", verified.refusals);
}

fn compare(seed: u64, program: &[Instruction], kernel: &RawProgram, random: &mut Rng) {
    // One packet is too short, so that the program exits at its check.
    for length in [PACKET_BYTES, PACKET_BYTES + 7, 300, PACKET_BYTES - 1] {
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let expected = kernel.run(&bytes).expect("the kernel takes packets of this length");
        let mut machine = Machine::load(&object_of(program), Environment::default())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", disassemble(program)));
        let mut packet = Packet::new(&bytes).expect("a short one");
        let outcome = machine.run(0, &mut packet);
        let value = machine.map("value").expect("it was given").lookup(&[0; 4]);
        let value = value.expect("an array has all its entries").to_vec();
        let is_whole = length >= PACKET_BYTES;
        assert_eq!(value.iter().any(|&byte| byte != 0), is_whole, "seed {seed} did not run");
        let found = (outcome.verdict, packet.bytes().to_vec(), value);
        assert!(
            outcome.aborted.is_none() && expected == found,
            "FREEPORT_SEED={seed} FREEPORT_PROGRAMS=1: packet {bytes:02x?}\n\
             kernel {expected:02x?}\ninterpreter {found:02x?} {outcome:?}\n{}",
            disassemble(program)
        );
    }
}
