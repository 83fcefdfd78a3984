// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The watchdog of native code traps the same firings as the interpreter's, whatever the passes do
//! to the loops, and the graph continues.

use crate::replay::{Driver, Traffic, image, options};
use freeport_ir::interp::{Interpreter, Options as InterpreterOptions};
use freeport_ir::passes::PassSet;
use freeport_ir::text::parse;
use freeport_ir::{Bits, EndpointId, Program, TrapCode};
use freeport_native::{Options, RunStatus};
use freeport_testbed::cache::Cache;

/// Counts up to its input in two nested loops, of which the inner one iterates three times and is
/// in a called function.
fn program() -> Program {
    parse(include_str!("programs/spin.ir")).unwrap_or_else(|error| panic!("{error}"))
}

fn words(values: &[u64]) -> Vec<Bits> {
    values.iter().map(|value| Bits::from_u64(64, *value)).collect()
}

fn outcome(program: &Program, options: &Options, input: &[u64]) -> (Vec<Bits>, u64) {
    let traffic = Traffic { packets: vec![], records: words(input) };
    let mut driver = Driver::new(&image(program, options), vec![traffic, Traffic::default()]);
    let status = driver.run_in_pieces(&mut fastrand::Rng::with_seed(1), 3);
    assert_eq!(status, RunStatus::Idle);
    let traps = driver.graph.counters().instances[0].traps.clone();
    assert!(traps.keys().all(|code| *code == TrapCode::Watchdog));
    (driver.out[1].records.clone(), traps.values().sum())
}

#[test]
fn it_ends_the_same_firings_as_in_the_interpreter() {
    let program = program();
    let cache = Cache::of("native");
    // An outer iteration counts three times: itself, and two returns to the header of the inner
    // loop.
    let input = [5, 332, 333, 334, 335, u64::MAX, 7];
    for turn_limit in [1, 1_000, 1_004] {
        let host = InterpreterOptions { turn_limit, ..InterpreterOptions::default() };
        let mut interpreter = Interpreter::new(&program, &host).expect("a good program");
        for word in words(&input) {
            interpreter.feed_item(EndpointId::new(0), word).expect("an endpoint of words");
        }
        interpreter.run(u64::MAX).expect("nothing fails");
        let out = interpreter.take_items(EndpointId::new(1)).expect("an endpoint of words");
        let traps = &interpreter.counters(freeport_ir::InstanceId::new(0)).traps;
        let trapped = traps.get(&TrapCode::Watchdog).copied().unwrap_or_default();
        assert_eq!(out.len() as u64 + trapped, input.len() as u64);
        assert!(trapped > 0 && (turn_limit == 1 || !out.is_empty()));
        for passes in [PassSet::none(), PassSet::for_cpu()] {
            let options = Options { turn_limit, passes, ..options(cache.path()) };
            assert_eq!(outcome(&program, &options, &input), (out.clone(), trapped));
        }
    }
}

/// A loop that may iterate 2^40 times is ended in time, and the following items are processed.
#[test]
fn at_its_usual_limit_the_graph_goes_on_with_the_next_item() {
    let cache = Cache::of("native");
    let out = outcome(&program(), &options(cache.path()), &[3, u64::MAX, 1 << 41, 7]);
    assert_eq!(out, (words(&[9, 21]), 2));
}
