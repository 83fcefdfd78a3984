// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs, with one instruction in a row: they end as in the interpreter, with the same
//! verdict or for the same reason, and leave the same packet and the same maps.

use super::naive::naive;
use crate::program::{object, packet};
use crate::wild;
use fastrand::Rng;
use freeport_ebpf::interpreter::{Clock, Environment, Machine, Outcome, Packet, Reason};
use freeport_vliw::model::{Mode, Model};

/// Number of programs.
const PROGRAMS: u64 = 4_000;

/// Packet, metadata and maps after a run.
type Left = (Vec<u8>, Vec<u8>, Vec<Vec<(Vec<u8>, Vec<u8>)>>);

fn left(machine: &Machine, packet: &Packet) -> Left {
    let maps = (0..).map_while(|map| machine.map_at(map)).map(|map| map.entries());
    (packet.bytes().to_vec(), packet.metadata().to_vec(), maps.collect())
}

/// Runs a program on two packets; the second run finds the maps as the first left them.
fn twice(
    machine: &mut Machine,
    mut run: impl FnMut(&mut Machine, &mut Packet) -> Outcome,
) -> Vec<(Outcome, Left)> {
    let lengths = [60, 200].into_iter();
    let each = lengths.map(|length| {
        let mut packet = packet(length);
        let outcome = run(machine, &mut packet);
        (outcome, left(machine, &packet))
    });
    each.collect()
}

/// Removes the place of aborts past the last instruction, where there is none to compare.
fn without_place(mut results: Vec<(Outcome, Left)>) -> Vec<(Outcome, Left)> {
    let aborts = results.iter_mut().filter_map(|(outcome, _)| outcome.aborted.as_mut());
    for abort in aborts.filter(|abort| abort.reason == Reason::PastTheEnd) {
        abort.slot = 0;
    }
    results
}

#[test]
fn what_no_verifier_takes_ends_as_in_the_interpreter() {
    let environment =
        Environment { clock: Clock::Set(5), instructions_max: 2_000, ..Environment::default() };
    let (mut loaded, mut ended, mut called) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        let program = wild::program(&mut Rng::with_seed(seed));
        let object = object(vec![program.clone()], wild::maps());
        let load = || Machine::load(&object, environment.clone());
        let Ok(mut machine) = load() else { continue };
        let expected = twice(&mut machine, |machine, packet| machine.run(0, packet));
        // Without empty rows between, a row has the number of its instruction.
        let model = Model::new(vec![Some(naive(&program, &[0], 1))], Mode::Plain);
        let found = twice(&mut load().expect("it was loaded before"), |machine, packet| {
            let ran = model.run(machine, 0, packet).expect("nothing is looked for");
            called += u64::from(!ran.statistics.helpers.is_empty());
            assert_eq!(ran.statistics.rows, ran.outcome.instructions);
            ran.outcome
        });
        let text = || freeport_ebpf::instruction::disassemble(&program);
        assert_eq!(
            without_place(found),
            without_place(expected.clone()),
            "seed {seed}\n{}",
            text()
        );
        loaded += 1;
        ended += u64::from(expected[0].0.aborted.is_none());
    }
    assert!(loaded > PROGRAMS / 8, "only {loaded} could be loaded");
    assert!(ended > loaded / 20, "only {ended} of {loaded} came to their own end");
    assert!(called > loaded / 20, "only {called} of {loaded} called a helper");
}
