// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schedules for likely paths, with any control flow: a program with a profile compiles, obeys the
//! rules and ends as in the interpreter.

use crate::program::{object, packet};
use crate::wild;
use fastrand::Rng;
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::{Instruction, assemble, disassemble};
use freeport_ebpf::interpreter::{Clock, Environment, Machine};
use freeport_ebpf::object::MapDefinition;
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::{Options, Profile, compile_profiled};

/// Number of programs.
const PROGRAMS: u64 = 3_000;

/// Compiles a program for the paths of some packets; returns the verdicts of the model and the
/// interpreter for these packets, or `None` if the program cannot be loaded.
fn both(program: &[Instruction], maps: Vec<MapDefinition>, lanes: u8) -> Option<[Vec<u32>; 2]> {
    let environment =
        Environment { clock: Clock::Set(5), instructions_max: 2_000, ..Environment::default() };
    let object = object(vec![program.to_vec()], maps);
    let load = || Machine::load(&object, environment.clone());
    let mut profile = Profile::new(0);
    let mut machine = load().ok()?;
    let lengths = [60, 200, 60];
    let expected = lengths.map(|length| {
        let outcome = machine.run_observed(0, &mut packet(length), &mut profile);
        (outcome.aborted.is_none(), outcome.verdict)
    });
    let program = &object.programs[0];
    let analysis = Analysis::of(program, &object.maps).ok()?;
    let mut options = Options::default();
    options.machine.lanes = lanes;
    let image = compile_profiled(program, &analysis, &profile, &options).ok()?;
    let model = Model::new(vec![Some(image)], Mode::Plain);
    let mut machine = load().ok()?;
    let (mut all, mut found) = (vec![], vec![]);
    for (length, (is_own_end, verdict)) in lengths.into_iter().zip(expected) {
        let ran = model.run(&mut machine, 0, &mut packet(length)).expect("nothing is looked for");
        // An aborted program may have had fewer effects before, which later packets observe.
        if !is_own_end {
            break;
        }
        all.push(verdict);
        found.push(ran.outcome.verdict);
    }
    Some([all, found])
}

#[test]
fn a_jump_to_the_next_instruction_is_none() {
    let jumps = |condition: &str| {
        format!(
            "r4 = *(u32 *)(r1 + 16)\nr0 = 2\nif r4 {condition} 5 goto +0\n\
             if r4 == 0 goto +1\nr0 = 1\nexit\n"
        )
    };
    for condition in [">", "==", "s<", "&"] {
        let program = assemble(&jumps(condition)).expect("it is right");
        for lanes in [1, 2, 4, 8] {
            let [expected, found] = both(&program, vec![], lanes).expect("it compiles");
            assert_eq!((expected.as_slice(), expected == found), (&[2, 2, 2][..], true));
        }
    }
}

#[test]
fn whatever_jumps_there_are_a_profile_changes_nothing_but_the_schedule() {
    let (mut compiled, mut ended) = (0, 0);
    for seed in 0..PROGRAMS {
        let program = wild::program(&mut Rng::with_seed(seed));
        let lanes = [1, 2, 4, 8][seed as usize % 4];
        let Some([expected, found]) = both(&program, wild::maps(), lanes) else { continue };
        assert_eq!(expected, found, "seed {seed}\n{}", disassemble(&program));
        compiled += 1;
        ended += usize::from(!expected.is_empty());
    }
    assert!(compiled > PROGRAMS / 10, "only {compiled} were compiled");
    assert!(ended > 10, "only {ended} came to their own end");
}
