// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of each kind that a program parses, cut at every length, have the same outcome on the
//! simulated card as in the interpreter; the kernel does not accept lengths below 14 bytes, but
//! these two do.

use crate::network;
use crate::scenarios;
use freeport_card::Sim;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_xdp::Interpreter;
use freeport_xdp::scenario::{Lengths, compare_lengths};

#[test]
fn packets_of_every_length_fare_alike_on_the_card_and_in_the_interpreter() {
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..network::environment() };
    let lengths = match scenarios::is_long() {
        true => Lengths { all: Sim::LENGTHS, dense_to: usize::MAX, one_of: 1 },
        false => Lengths { all: Sim::LENGTHS, dense_to: 130, one_of: 64 },
    };
    let (mut packets, mut failures) = (0, vec![]);
    for case in scenarios::taken() {
        let interpreter = Interpreter::load(&case.object, environment.clone());
        let mut interpreter = interpreter.expect("it can run");
        let mut sim = case.sim(&environment);
        let (reference, subject) = (&mut interpreter, &mut sim);
        let seed = scenarios::seed();
        match compare_lengths(&case.scenario, seed, &lengths, reference, subject) {
            Ok(count) => {
                packets += count;
                println!("{}: {count} packets, no difference", case.scenario.name);
            }
            Err(difference) => failures.push(format!("{}: {difference}", case.scenario.name)),
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(packets > 0);
}
