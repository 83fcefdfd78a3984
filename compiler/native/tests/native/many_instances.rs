// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs of many instances: the code grows only with their differences, and behaves the same.

use crate::replay::{Driver, Traffic, check, image, options};
use freeport_ir::Program;
use freeport_ir::text::parse;
use freeport_native::{Options, RunStatus, emit};
use std::fmt::Write;
use std::path::Path;

/// Returns a chain of `count` instances that cycle through `kinds`.
fn chain(elements: &str, item: &str, kinds: &[&str], count: usize) -> Program {
    let mut text = format!(
        "{elements}\ngraph {{\n  endpoint from_tor: into {item}\n\
         \x20 endpoint to_tor: out_of {item}\n"
    );
    let mut from = "from_tor".to_owned();
    let mut edges = String::new();
    for (at, kind) in (0..count).zip(kinds.iter().cycle()) {
        writeln!(text, "  instance i{at}: {kind}").expect("memory for the text");
        writeln!(edges, "  {from} -> i{at}.in").expect("memory for the text");
        from = format!("i{at}.out");
    }
    let text = format!("{text}{edges}  {from} -> to_tor\n}}\n");
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn flits(count: usize) -> Program {
    chain(include_str!("programs/flits.ir"), "flit", &["MacSwap", "Count"], count)
}

fn packets(count: usize) -> Program {
    chain(include_str!("programs/packets.ir"), "packet<64>", &["Touch", "Look"], count)
}

/// Returns the first lines of the functions of a program's code.
fn functions(program: &Program, options: &Options) -> Vec<String> {
    let text = emit(program, options).unwrap_or_else(|error| panic!("{error}"));
    let begins = |line: &str| {
        let mut words = ["INLINE ", "OUT_OF_LINE ", "static "].iter();
        words.any(|word| line.starts_with(word)) && line.contains('(') && !line.contains(" = ")
    };
    text.lines().filter(|line| begins(line)).map(str::to_owned).collect()
}

#[test]
fn functions_grow_with_what_differs_and_not_with_instances() {
    let options = Options::default();
    for program in [flits, packets] {
        let count = |instances, options| functions(&program(instances), options).len();
        assert_eq!(count(64, &options), count(512, &options));
        let not_shared = Options { many_instances: usize::MAX, ..options.clone() };
        assert!(count(512, &not_shared) > 512 + count(512, &options));
    }
}

#[test]
fn a_small_graph_has_a_function_for_each_instance() {
    let functions = functions(&flits(12), &Options::default());
    let steps = functions.iter().filter(|it| it.contains(" step_"));
    assert_eq!(steps.count(), 12, "{functions:#?}");
}

#[test]
fn long_chains_agree_with_the_interpreter() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    for program in [flits(75), packets(75)] {
        let image = image(&program, &options(&cache));
        for seed in 0..4 {
            let mut random = fastrand::Rng::with_seed(seed);
            let packet = |random: &mut fastrand::Rng| {
                (0..random.usize(1..=200)).map(|_| random.u8(..)).collect()
            };
            let packets = (0..30).map(|_| packet(&mut random)).collect();
            let input = vec![Traffic { packets, records: vec![] }, Traffic::default()];
            let mut driver = Driver::new(&image, input);
            assert_eq!(driver.run_in_pieces(&mut random, 20), RunStatus::Idle);
            assert_eq!(driver.out[1].packets.len(), 30);
            let counters = driver.graph.counters();
            assert!(counters.channels.iter().all(|channel| channel.packets == 30));
            let (oracles, execution) = driver.graph.take_recording();
            assert_eq!(driver.out, check(&program, oracles, &execution), "seed {seed}");
        }
    }
}

/// The worker removes the items left in the last channels of shared functions.
#[test]
fn chains_that_end_alike_agree_with_the_interpreter() {
    let ways = 8;
    let mut text = format!("{}\ngraph {{\n", include_str!("programs/flits.ir"));
    let mut edges = String::new();
    for at in 0..ways {
        writeln!(text, "  endpoint in{at}: into flit\n  endpoint out{at}: out_of flit")
            .expect("memory for the text");
    }
    for at in 0..ways {
        writeln!(text, "  instance a{at}: MacSwap\n  instance b{at}: Count")
            .expect("memory for the text");
        writeln!(edges, "  in{at} -> a{at}.in\n  a{at}.out -> b{at}.in\n  b{at}.out -> out{at}")
            .expect("memory for the text");
    }
    let text = format!("{text}{edges}}}\n");
    let program = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let image = image(&program, &Options { many_instances: 0, ..options(&cache) });
    let mut random = fastrand::Rng::with_seed(5);
    let packets = |at: usize| (0..20).map(|of| vec![at as u8; 1 + 7 * of]).collect();
    let input = (0..2 * ways).map(|at| match at % 2 {
        0 => Traffic { packets: packets(at), records: vec![] },
        _ => Traffic::default(),
    });
    let mut driver = Driver::new(&image, input.collect());
    assert_eq!(driver.run_in_pieces(&mut random, 20), RunStatus::Idle);
    let (oracles, execution) = driver.graph.take_recording();
    assert_eq!(driver.out, check(&program, oracles, &execution));
    assert!(driver.out.iter().skip(1).step_by(2).all(|out| out.packets.len() == 20));
}
