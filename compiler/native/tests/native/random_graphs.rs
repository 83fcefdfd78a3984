// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random graphs of elements that forward, change, duplicate and join packets, with shallow and
//! lossy channels: each is run in random pieces and replayed. Some deadlock, identically in both.

use crate::replay::{Driver, Traffic, check, image, options};
use freeport_ir::text::parse;
use freeport_native::{Options, RunStatus};
use freeport_testbed::cache::Cache;
use std::fmt::Write;
use std::path::Path;
use std::thread;

/// Number of seeds; each costs a run of the C compiler.
const SEEDS: u64 = 24;

/// Returns the text of a graph with two inputs, and its number of endpoints.
fn random_graph(random: &mut fastrand::Rng) -> (String, usize) {
    let mut ends = vec!["from_tor".to_owned(), "from_nic".to_owned()];
    let (mut instances, mut edges) = (String::new(), String::new());
    let mut join = |random: &mut fastrand::Rng, from: String, to: &str| {
        let depth = [1, 2, 5, 16][random.usize(0..4)];
        let drop = if random.u32(0..5) == 0 { " drop" } else { "" };
        writeln!(edges, "  {from} -> {to} depth {depth}{drop}").expect("memory for the text");
    };
    for at in 0..random.usize(2..9) {
        let from = ends.swap_remove(random.usize(0..ends.len()));
        let kind = match random.u32(0..10) {
            0 | 1 => "MacSwap",
            2 => "Count",
            3 | 4 if ends.len() < 5 => ["Tee", "Route"][random.usize(0..2)],
            5 => "Drop",
            6 => "Hold",
            7 => "Grow",
            _ if !ends.is_empty() => ["Join", "Alternate"][random.usize(0..2)],
            _ => "Count",
        };
        writeln!(instances, "  instance i{at}: {kind}").expect("memory for the text");
        match kind {
            "Tee" | "Route" => {
                join(random, from, &format!("i{at}.in"));
                ends.extend([format!("i{at}.left"), format!("i{at}.right")]);
            }
            "Join" | "Alternate" => {
                let other = ends.swap_remove(random.usize(0..ends.len()));
                join(random, from, &format!("i{at}.a"));
                join(random, other, &format!("i{at}.b"));
                ends.push(format!("i{at}.out"));
            }
            _ => {
                join(random, from, &format!("i{at}.in"));
                ends.push(format!("i{at}.out"));
            }
        }
    }
    let mut endpoints = String::from("  endpoint from_tor: into flit\n");
    endpoints += "  endpoint from_nic: into flit\n";
    let count = ends.len();
    for (at, end) in ends.into_iter().enumerate() {
        writeln!(endpoints, "  endpoint out{at}: out_of flit").expect("memory for the text");
        join(random, end, &format!("out{at}"));
    }
    (format!("\ngraph {{\n{instances}{endpoints}{edges}}}\n"), count + 2)
}

fn packets(random: &mut fastrand::Rng) -> Traffic {
    let packet =
        |random: &mut fastrand::Rng| (0..random.usize(1..=400)).map(|_| random.u8(..)).collect();
    Traffic { packets: (0..20).map(|_| packet(random)).collect(), records: vec![] }
}

#[test]
fn random_graphs_replay() {
    let cache = Cache::of("native");
    let cache = cache.path();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<Found> = thread::scope(|scope| {
        let part = |first| (first..SEEDS).step_by(threads).map(|seed| replay_graph(seed, cache));
        let begin = |first| scope.spawn(move || part(first).collect::<Vec<_>>());
        let at_work: Vec<_> = (0..threads as u64).map(begin).collect();
        at_work.into_iter().flat_map(|it| it.join().expect("each graph replays")).collect()
    });
    let sum = |count: fn(&Found) -> u64| found.iter().map(count).sum::<u64>();
    let (stalled, dropped) = (sum(|it| it.stalled), sum(|it| it.dropped));
    assert!(stalled > 0 && dropped > 0, "{stalled} deadlocks, {dropped} drops");
    let by_reference = sum(|it| it.by_reference);
    assert!(by_reference > 100, "{by_reference} frames lay in the memory of others");
}

/// Events seen in runs of a graph: deadlocks, dropped items, and frames in the memory of others.
#[derive(Clone, Default)]
struct Found {
    stalled: u64,
    dropped: u64,
    by_reference: u64,
}

fn replay_graph(seed: u64, cache: &Path) -> Found {
    let mut random = fastrand::Rng::with_seed(seed);
    let (graph, endpoints) = random_graph(&mut random);
    let text = format!("{}{graph}", include_str!("programs/flits.ir"));
    let program = parse(&text).unwrap_or_else(|error| panic!("{error}\n{graph}"));
    // Half of them are built like large graphs.
    let many_instances = if seed.is_multiple_of(2) { 0 } else { Options::default().many_instances };
    let image = image(&program, &Options { many_instances, ..options(cache) });
    let mut found = Found::default();
    for _ in 0..4 {
        let mut input = vec![Traffic::default(); endpoints];
        input[0] = packets(&mut random);
        input[1] = packets(&mut random);
        let mut driver = Driver::new(&image, input);
        let status = driver.run_in_pieces(&mut random, 15);
        found.stalled += u64::from(matches!(status, RunStatus::Stalled(_)));
        let channels = driver.graph.counters().channels;
        found.dropped += channels.iter().map(|channel| channel.dropped).sum::<u64>();
        found.by_reference += driver.by_reference as u64;
        let (oracles, execution) = driver.graph.take_recording();
        driver.check_entered(&program, &execution);
        let out = check(&program, oracles, &execution);
        assert_eq!(driver.out, out, "seed {seed}\n{graph}");
    }
    found
}
