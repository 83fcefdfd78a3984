// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every pass preserves the interpreter's results, checked with random programs: items on each
//! channel, state, answers, and all counters, including firings and accesses out of range.

use freeport_ir::generate::{Generated, Limits, generate};
use freeport_ir::interp::{Interpreter, Options, Outcome};
use freeport_ir::oracle::Execution;
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{InstanceId, Program, verify};

const SEEDS: u64 = 300;
/// Firing limit; a generated program needs far fewer.
const BUDGET: u64 = 10_000;

fn execute(program: &Program, input: &Generated) -> Execution {
    let mut run = Interpreter::new(program, &Options::default()).expect("a sound program");
    for (endpoint, items) in &input.feed {
        for item in items {
            run.feed_item(*endpoint, item.clone()).expect("an item of the right width");
        }
    }
    let outcome = run.run(BUDGET).expect("records have no framing to break");
    assert!(!matches!(outcome, Outcome::Budget), "the program does not end");
    for signal in &input.signals {
        run.signal(InstanceId(0), signal.clone()).expect("the element takes signals");
    }
    run.execution()
}

fn check(set: &PassSet, what: &str) {
    for seed in 0..SEEDS {
        let input = generate(seed, &Limits::default());
        assert_eq!(verify(&input.program), Ok(()), "seed {seed}");
        let want = execute(&input.program, &input);
        let mut program = input.program.clone();
        passes::run(&mut program, set);
        assert_eq!(verify(&program), Ok(()), "seed {seed}, passes {what}");
        assert_eq!(execute(&program, &input), want, "seed {seed}, passes {what}");
    }
}

#[test]
fn generated_programs_do_something() {
    let mut did = [0; 4];
    for seed in 0..SEEDS {
        let input = generate(seed, &Limits::default());
        let execution = execute(&input.program, &input);
        let counters = &execution.counters[0];
        let outputs = &execution.histories[input.feed.len()..];
        did[0] += u64::from(outputs.iter().any(|history| !history.is_empty()));
        did[1] += u64::from(counters.out_of_range > 0);
        did[2] += u64::from(!counters.traps.is_empty());
        did[3] += u64::from(execution.answers[0].iter().any(|answer| !answer.is_zero()));
    }
    assert!(did.iter().all(|count| *count > SEEDS / 20), "{did:?}");
}

#[test]
fn generated_programs_have_branches_to_convert() {
    let set = PassSet::only(&["inlining", "ssa", "if_conversion"]).expect("names of the list");
    let converted = (0..SEEDS).filter(|seed| {
        let mut program = generate(*seed, &Limits::default()).program;
        let report = passes::run(&mut program, &set);
        report.of("if_conversion").counts.contains_key("branches")
    });
    let converted = converted.count() as u64;
    assert!(converted > SEEDS / 20, "{converted}");
}

#[test]
fn each_pass_alone_preserves_execution() {
    for name in passes::NAMES {
        check(&PassSet::only(&[name]).expect("a name of the list"), name);
    }
}

#[test]
fn all_passes_preserve_execution() {
    check(&PassSet::default(), "all");
    check(&PassSet::for_cpu(), "all for the CPU");
}
