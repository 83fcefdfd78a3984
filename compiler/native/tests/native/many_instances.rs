// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs of many instances: the code grows with what differs among them, and does the same.

use crate::replay::{Driver, Traffic, check, image, options};
use freeport_ir::Program;
use freeport_ir::text::parse;
use freeport_native::{Options, RunStatus, emit};
use std::fmt::Write;
use std::path::Path;

/// A chain of `count` instances, `kinds` in turn.
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

/// The first lines of the functions of a program's code.
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
