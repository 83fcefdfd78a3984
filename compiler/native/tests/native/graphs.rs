// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs in native code compared with the interpreter: every recording replays to the same
//! execution, however input and output room were divided.

use crate::replay::{self, Driver, Traffic, check, image, options};
use freeport_ir::interp::{Interpreter, Options as InterpreterOptions, Outcome};
use freeport_ir::oracle::Occupancy;
use freeport_ir::text::parse;
use freeport_ir::{Bits, EndpointId, Program, SIGNAL_BITS};
use freeport_native::{Image, Options, RunStatus};
use std::path::{Path, PathBuf};

const ROUNDS: u64 = 12;

fn flits(graph: &str) -> Program {
    let text = format!("{}{graph}", include_str!("programs/flits.ir"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn built(program: &Program) -> Image {
    image(program, &options(&cache()))
}

/// Builds a program in the way of a large graph.
fn built_as_large(program: &Program) -> Image {
    image(program, &Options { many_instances: 0, ..options(&cache()) })
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("native")
}

/// Runs a program randomly several times and replays each run; returns the final state of each.
fn replay_rounds(
    program: &Program,
    input: impl Fn(&mut fastrand::Rng) -> Vec<Traffic>,
) -> Vec<(Driver, RunStatus)> {
    let images = [built(program), built_as_large(program)];
    (0..ROUNDS)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let image = &images[seed as usize % images.len()];
            let mut driver = Driver::new(image, input(&mut random));
            let status = driver.run_in_pieces(&mut random, 20);
            let (oracles, execution) = driver.graph.take_recording();
            driver.check_entered(program, &execution);
            let out = check(program, oracles, &execution);
            assert_eq!(driver.out, out, "what the host got is what entered the last channels");
            (driver, status)
        })
        .collect()
}

#[test]
fn a_chain_is_fused_and_agrees() {
    let program = flits(include_str!("programs/chain.ir"));
    let input = |random: &mut fastrand::Rng| vec![packets(random, 40), Traffic::default()];
    for (driver, status) in replay_rounds(&program, input) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[1].packets.len(), 40);
        let counters = driver.graph.counters();
        assert_eq!(counters.channels[0].packets, 40);
        let bytes: usize = driver.out[1].packets.iter().map(Vec::len).sum();
        assert_eq!(counters.channels[3].bytes, bytes as u64);
        assert!(counters.instances[1].out_of_range > 0, "indexes of 5 bits into 16 elements");
    }
}

#[test]
fn joins_choose_and_the_choice_replays() {
    let program = flits(include_str!("programs/tee_join.ir"));
    let input = |random: &mut fastrand::Rng| {
        vec![packets(random, 30), packets(random, 30), Traffic::default()]
    };
    for (driver, status) in replay_rounds(&program, input) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[2].packets.len(), 90);
    }
}

#[test]
fn a_deadlock_is_told_by_its_channels_and_masks() {
    // The join waits for the rest of a packet that the tee cannot send: the other branch is full.
    let text = include_str!("programs/tee_join.ir").replace("depth 20", "depth 2");
    let program = flits(&text);
    let input = |_: &mut fastrand::Rng| {
        let packets = vec![vec![7; 300]];
        vec![Traffic { packets, records: vec![] }, Traffic::default(), Traffic::default()]
    };
    for (_, status) in replay_rounds(&program, input) {
        let RunStatus::Stalled(stall) = status else { panic!("it cannot go on: {status:?}") };
        let reported = stall.to_string();
        assert!(
            reported.contains("tee waits for room in tee.right -> join.b (2 of 2)"),
            "{reported}"
        );
        assert!(
            reported.contains("join waits for an item in swap.out -> join.a (0 of 16)"),
            "{reported}"
        );
        let mut interpreter =
            Interpreter::new(&program, &InterpreterOptions::default()).expect("a good program");
        let input = interpreter.endpoint("from_tor").expect("it is there");
        interpreter.feed_packet(input, &[7; 300]).expect("it fits");
        assert_eq!(interpreter.run(u64::MAX), Ok(Outcome::Stalled(stall)), "the same report");
    }
}

#[test]
fn a_firing_that_waits_for_room_is_one_stall_however_often_it_is_tried() {
    let program = flits(include_str!("programs/chain.ir"));
    let packets = vec![vec![7; 3_200]];
    let input = vec![Traffic { packets, records: vec![] }, Traffic::default()];
    let mut driver = Driver::new(&built(&program), input);
    let stalls = |driver: &Driver| {
        let channels = driver.graph.counters().channels;
        channels.iter().map(|channel| channel.stalls).collect::<Vec<_>>()
    };
    for _ in 0..5 {
        driver.run(&[1, 0], &[0, 0]);
    }
    let held = stalls(&driver);
    assert!(held[0] == 0 && held[1..].iter().all(|count| *count == 1), "{held:?}");
    let fills = driver.graph.counters().fills;
    let is_full = |fill: &Occupancy| fill.waiting == fill.room && fill.peak == fill.room;
    assert!(fills[0].waiting == 0 && fills[1..].iter().all(is_full), "{fills:?}");
    while driver.run(&[1, 0], &[0, 1]) != RunStatus::Idle {}
    assert_eq!(driver.out[1].packets.len(), 1);
    assert_eq!(stalls(&driver)[3], 1, "there was room for the rest");
    let left = driver.graph.counters().fills;
    assert!(left.iter().all(|fill| fill.waiting == 0), "{left:?}");
    let peaks = |fills: &[Occupancy]| fills.iter().map(|fill| fill.peak).collect::<Vec<_>>();
    assert_eq!(peaks(&left), peaks(&fills), "a peak stays");
}

#[test]
fn breakpoints_hold_roots_and_what_is_fused_into_them() {
    let chain = include_str!("programs/chain.ir");
    // At the first flit of a packet in a root, and at every flit in the middle of a chain.
    let places =
        [("    swap:\n", 0), ("  handler {\n    entry:\n      %flit = take in\n      put", 1)];
    for ((place, holder), build) in
        places.into_iter().flat_map(|it| [(it, built as fn(&_) -> _), (it, built_as_large)])
    {
        let elements = include_str!("programs/flits.ir");
        assert!(elements.contains(place));
        let with_breakpoint = match holder {
            0 => elements.replace(place, &format!("{place}      breakpoint \"b\"\n")),
            _ => elements.replacen(place, &place.replace("put", "breakpoint \"b\"\n      put"), 1),
        };
        let program = parse(&format!("{with_breakpoint}{chain}")).expect("a program");
        let packets = vec![vec![7; 100], vec![8; 200]];
        let input = vec![Traffic { packets, records: vec![] }, Traffic::default()];
        let mut driver = Driver::new(&build(&program), input);
        driver.graph.set_breakpoints_enabled(true);
        let mut stops = [0; 3];
        while let RunStatus::Breakpoint(instance) = driver.run(&[9, 0], &[0, 9]) {
            let firings = |driver: &Driver| {
                let counters = driver.graph.counters().instances;
                counters.iter().map(|counters| counters.firings).collect::<Vec<_>>()
            };
            let before = firings(&driver);
            let again = driver.run(&[9, 0], &[0, 9]);
            assert!(matches!(again, RunStatus::Breakpoint(_)), "{again:?}");
            assert_eq!(firings(&driver)[instance.index()], before[instance.index()], "it rests");
            stops[instance.index()] += 1;
            driver.graph.resume(instance);
        }
        let flits = 4 + 7;
        assert_eq!(stops, if holder == 0 { [2, 0, 2] } else { [0, flits, 0] });
        assert_eq!(driver.out[1].packets.len(), 2);
        let (oracles, execution) = driver.graph.take_recording();
        assert_eq!(driver.out, check(&program, oracles, &execution));
        let (reported, lost) = driver.graph.take_probes();
        assert_eq!((reported.len() as u64, lost), (stops.iter().sum::<u64>(), 0));
    }
}

#[test]
fn lossy_edges_drop_whole_packets_and_count_them() {
    let program = flits(include_str!("programs/lossy.ir"));
    let input = |random: &mut fastrand::Rng| {
        vec![packets(random, 60), Traffic::default(), Traffic::default()]
    };
    let mut dropped = 0;
    for (driver, _) in replay_rounds(&program, input) {
        let counters = driver.graph.counters();
        let (kept, lossy) = (driver.out[2].packets.len(), &counters.channels[2]);
        assert_eq!(lossy.packets, kept as u64);
        assert_eq!(driver.out[1].packets.len(), 60, "the other branch loses nothing");
        assert_eq!(lossy.dropped > 0, kept < 60);
        dropped += lossy.dropped;
    }
    assert!(dropped > 0, "room is so short that something is dropped");
}

#[test]
fn loops_waits_suspensions_and_generators_agree() {
    let text = include_str!("programs/loop.ir");
    let program = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let input = |random: &mut fastrand::Rng| {
        let records = (0..50).map(|_| Bits::from_u64(20, random.u64(..))).collect();
        vec![Traffic { packets: vec![], records }, Traffic::default()]
    };
    for (mut driver, status) in replay_rounds(&program, input) {
        let RunStatus::Stalled(stall) = status else { panic!("10 records are left: {status:?}") };
        assert!(stall.to_string().contains("pair waits"), "{stall}");
        assert_eq!(driver.out[1].records.len(), 100);
        let (probes, lost) = driver.graph.take_probes();
        assert_eq!((probes.len(), lost), (50, 0));
        assert!(probes[0].text.starts_with("half ") && probes[0].text.ends_with('\n'));
    }
}

#[test]
fn what_the_host_does_is_recorded_and_replays() {
    let program = flits(include_str!("programs/chain.ir"));
    let image = built(&program);
    let mut random = fastrand::Rng::with_seed(3);
    let mut driver = Driver::new(&image, vec![packets(&mut random, 30), Traffic::default()]);
    let count = driver.graph.instance("count").expect("an instance of the program");
    let signal = Bits::from_u64(SIGNAL_BITS, 0x1234);
    driver.run(&[7, 0], &[0, 2]);
    let answer = driver.graph.signal(count, signal.clone()).expect("it takes signals");
    let seen = driver.graph.read_variable(count, "count", 0).expect("it is visible");
    assert_eq!(answer, signal.insert(64, &seen));
    assert!(seen.to_u64() > 5);
    driver.run(&[5, 0], &[0, 9]);
    let to = Bits::from_u64(64, 1_000_000);
    let before = driver.graph.call_method(count, "reset", std::slice::from_ref(&to));
    assert!(before.expect("a method").is_some_and(|before| before.to_u64() > seen.to_u64()));
    assert_eq!(driver.graph.read_variable(count, "count", 0).expect("visible"), to);
    let value = Bits::from_u64(32, 99);
    driver.graph.write_variable(count, "lengths", 3, value).expect("a visible variable");
    driver.run_in_pieces(&mut random, 10);
    let (oracles, execution) = driver.graph.take_recording();
    assert_eq!(oracles.instances[1].host.len(), 3);
    assert_eq!(execution.answers[1].len(), 2);
    check(&program, oracles, &execution);
    let graph = &mut driver.graph;
    assert!(graph.read_variable(count, "lengths", 16).is_err(), "the index is beyond");
    assert!(graph.read_variable(count, "length", 0).is_err(), "no such variable");
    let narrow = Bits::zero(31);
    assert!(graph.write_variable(count, "lengths", 0, narrow.clone()).is_err());
    assert!(graph.call_method(count, "reset", std::slice::from_ref(&narrow)).is_err());
    assert!(graph.signal(count, narrow).is_err());
    assert!(graph.run(&mut []).is_err(), "two endpoints are missing");
}

#[test]
fn a_full_recording_holds_the_graph_until_it_is_taken() {
    let program = flits(include_str!("programs/chain.ir"));
    let image = built(&program);
    let mut random = fastrand::Rng::with_seed(4);
    let mut driver = Driver::new(&image, vec![packets(&mut random, 30), Traffic::default()]);
    driver.graph.set_recording_limit(2_000);
    let mut histories = vec![vec![]; 4];
    let mut turns = 0;
    loop {
        let status = driver.run(&[usize::MAX; 2], &[50; 2]);
        let (_, execution) = driver.graph.take_recording();
        for (all, more) in histories.iter_mut().zip(execution.histories) {
            all.extend(more);
        }
        turns += 1;
        if status != RunStatus::RecordFull {
            assert_eq!(status, RunStatus::Idle);
            break;
        }
    }
    assert!(turns > 5, "{turns}");
    assert_eq!(driver.out[1].packets.len(), 30);
    let last: usize = histories[3].len();
    assert_eq!(last as u64, driver.graph.counters().channels[3].items);
}

#[test]
fn a_frame_longer_than_its_buffer_is_dropped_and_counted() {
    let program = flits(include_str!("programs/chain.ir"));
    let image = built(&program);
    let long = Traffic {
        packets: vec![vec![1; replay::FRAME_BYTES_MAX + 1], vec![2; 33], vec![]],
        records: vec![],
    };
    let mut driver = Driver::new(&image, vec![long, Traffic::default()]);
    assert_eq!(driver.run(&[9, 9], &[0, 2]), RunStatus::Idle);
    assert_eq!(driver.out[1].packets, [vec![2; 33]]);
    assert_eq!(driver.graph.counters().outputs[1].too_long, 1);
}

/// The build for speed records nothing to replay, so it is compared with a run of the interpreter.
#[test]
fn the_build_for_speed_gives_what_the_interpreter_gives() {
    let program = flits(include_str!("programs/chain.ir"));
    let options = Options { cache: Some(cache()), ..Options::default() };
    assert!(!options.record && !options.sanitize && options.optimization == 3);
    let as_large = Options { many_instances: 0, ..options.clone() };
    let images = [image(&program, &options), image(&program, &as_large)];
    for seed in 0..ROUNDS {
        let image = &images[seed as usize % images.len()];
        let mut random = fastrand::Rng::with_seed(seed);
        let input = packets(&mut random, 40);
        let mut run = Interpreter::new(&program, &Default::default()).expect("a sound program");
        for packet in &input.packets {
            run.feed_packet(EndpointId(0), packet).expect("an endpoint of flits");
        }
        run.run(u64::MAX).expect("a run to the end");
        let mut driver = Driver::new(image, vec![input, Traffic::default()]);
        assert_eq!(driver.run_in_pieces(&mut random, 20), RunStatus::Idle);
        let want = run.take_packets(EndpointId(1)).expect("an endpoint of flits");
        assert_eq!(driver.out[1].packets, want);
        let (_, execution) = driver.graph.take_recording();
        assert_eq!(execution.counters, run.execution().counters);
        assert_eq!(execution.state, run.execution().state);
    }
}

/// Returns packets of many lengths.
fn packets(random: &mut fastrand::Rng, count: usize) -> Traffic {
    let packet = |random: &mut fastrand::Rng| {
        let length = [random.usize(1..=200), random.usize(1..=3) * 32, 64][random.usize(0..3)];
        (0..length).map(|_| random.u8(..)).collect()
    };
    Traffic { packets: (0..count).map(|_| packet(random)).collect(), records: vec![] }
}
