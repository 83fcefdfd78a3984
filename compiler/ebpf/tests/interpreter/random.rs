// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs: every program that can be loaded terminates, and a regular exit does not depend
//! on earlier runs.

use crate::program::{object, packet};
use crate::wild::{maps, program};
use fastrand::Rng;
use freeport_ebpf::interpreter::{Clock, Environment, Machine};

/// Number of programs.
const PROGRAMS: u64 = 4_000;
/// Register 0, whether the program was aborted, the packet, and the contents of the maps.
type Result = (u64, bool, Vec<u8>, Vec<Vec<(Vec<u8>, Vec<u8>)>>);

fn ran(machine: &mut Machine) -> Result {
    let mut packet = packet(60);
    let outcome = machine.run(0, &mut packet);
    assert!(outcome.instructions <= 2_000);
    let entries = (0..11).map(|map| machine.map_at(map).expect("there are eleven").entries());
    let entries = entries.collect();
    (outcome.value, outcome.aborted.is_some(), packet.bytes().to_vec(), entries)
}

#[test]
fn programs_at_random_end_and_repeat_themselves() {
    let environment =
        Environment { clock: Clock::Set(5), instructions_max: 2_000, ..Environment::default() };
    let (mut loaded, mut ended) = (0, 0);
    for seed in 0..PROGRAMS {
        let program = program(&mut Rng::with_seed(seed));
        let object = object(vec![program], maps());
        let load = || Machine::load(&object, environment.clone());
        let Ok(mut first) = load() else { continue };
        loaded += 1;
        let result = ran(&mut first);
        ended += u64::from(!result.1);
        // A second run has other map contents; a fresh machine has the same.
        ran(&mut first);
        let Ok(mut second) = load() else { panic!("seed {seed}: it was loaded before") };
        assert_eq!(ran(&mut second), result, "seed {seed}");
    }
    assert!(loaded > PROGRAMS / 8, "only {loaded} could be loaded");
    assert!(ended > loaded / 20, "only {ended} of {loaded} came to their own end");
}
