// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs in native code compared with the interpreter, with and without passes.

use crate::replay::{Driver, Traffic, check, image, options};
use freeport_ir::Program;
use freeport_ir::generate::{Generated, Limits, generate};
use freeport_ir::passes::PassSet;
use freeport_native::{Options, RunStatus};
use freeport_testbed::cache::Cache;

/// Number of seeds; each costs a run of the C compiler.
const SEEDS: u64 = 24;

fn input(generated: &Generated) -> Vec<Traffic> {
    let mut input = vec![Traffic::default(); generated.program.graph.endpoints.len()];
    for (endpoint, records) in &generated.feed {
        input[endpoint.index()].records.clone_from(records);
    }
    input
}

/// Runs a program and replays it; returns whether anything left and was counted.
fn agrees(generated: &Generated, options: &Options, seed: u64) -> [bool; 3] {
    let program: &Program = &generated.program;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut driver = Driver::new(&image(program, options), input(generated));
    let status = driver.run_in_pieces(&mut random, 5);
    assert!(matches!(status, RunStatus::Idle | RunStatus::Stalled(_)), "{status:?}");
    for signal in &generated.signals {
        driver.graph.signal(freeport_ir::InstanceId(0), signal.clone()).expect("it takes them");
    }
    let (oracles, execution) = driver.graph.take_recording();
    driver.check_entered(program, &execution);
    let out = check(program, oracles, &execution);
    assert_eq!(driver.out, out);
    let counters = &execution.counters[0];
    let came_out = out.iter().any(|end| !end.records.is_empty());
    [came_out, counters.out_of_range > 0, !counters.traps.is_empty()]
}

#[test]
fn random_programs_agree_with_the_interpreter() {
    let cache = Cache::of("native");
    let limits = Limits::default();
    let mut did = [0; 3];
    for seed in 0..SEEDS {
        let generated = generate(seed, &limits);
        let passes = if seed % 2 == 0 { PassSet::for_cpu() } else { PassSet::none() };
        let options = Options { passes, ..options(cache.path()) };
        let done = agrees(&generated, &options, seed);
        did.iter_mut().zip(done).for_each(|(count, did)| *count += u64::from(did));
    }
    assert!(did.iter().all(|count| *count > 0), "{did:?}");
}
