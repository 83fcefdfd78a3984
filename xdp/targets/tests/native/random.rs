// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs that the kernel's verifier accepts: the verdict, the packet, and the map's
//! value, which receives all registers and the stack, equal those of the kernel.

use super::{is_long, options, seed};
use fastrand::Rng;
use freeport_ebpf::instruction::{Instruction, disassemble};
use freeport_testbed::number;
use freeport_testbed::skip;
use freeport_xdp::random_program::{PACKET_BYTES, VALUE_BYTES, Verified, object_of};
use freeport_xdp::{Arrival, Contents, Error, Kernel, Native, RawProgram, Target};

#[test]
fn random_programs_fare_alike_as_compiled_code_and_in_the_kernel() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let given = number("FREEPORT_PROGRAMS");
    let programs: u64 = given.unwrap_or(if is_long() { 5_000 } else { 40 });
    // Seeds different from those of the other targets.
    let first = seed() + 2_000_000;
    let verified = Verified::each(first..first + programs, compare);
    let verified = verified.expect("the kernel takes their map");
    assert!(verified.is_most(), "refused: {:?}", verified.refusals);
}

fn compare(seed: u64, program: &[Instruction], kernel: &RawProgram, random: &mut Rng) {
    let mut native = match Native::load(&object_of(program), "random", &options()) {
        Ok(native) => native,
        Err(error) => panic!("seed {seed} is to be lifted: {error}\n{}", disassemble(program)),
    };
    // One packet is too short, so that the program exits at its check.
    for length in [PACKET_BYTES, PACKET_BYTES + 7, 300, PACKET_BYTES - 1] {
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let expected = kernel.run(&bytes).expect("the kernel takes packets of this length");
        let found = ran(&mut native, &bytes);
        assert!(
            found.as_ref().is_ok_and(|found| *found == expected),
            "seed {seed}, {length} bytes\ncompiled code {found:02x?}\nkernel {expected:02x?}\n{}",
            disassemble(program)
        );
    }
    assert_eq!(native.out_of_range(), 0, "seed {seed}");
}

/// Runs a program on a packet with a zeroed value; returns verdict, packet and value.
fn ran(target: &mut dyn Target, bytes: &[u8]) -> Result<(u32, Vec<u8>, Vec<u8>), Error> {
    target.update("value", &[0; 4], &[0; VALUE_BYTES])?;
    let departure =
        target.run("random", &Arrival { bytes, ingress_ifindex: 1, rx_queue_index: 0 })?;
    let value = match target.contents("value")? {
        Contents::Entries(entries) => entries.into_values().next().unwrap_or_default(),
        _ => vec![],
    };
    Ok((departure.verdict, departure.bytes, value))
}
