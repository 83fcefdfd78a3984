// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Location of output frames: in the memory of input frames wherever that is possible, and with the
//! right bytes in any case.

use crate::replay::{Driver, Traffic, check, image, options};
use freeport_ir::interp::Interpreter;
use freeport_ir::text::parse;
use freeport_ir::{EndpointId, Program};
use freeport_native::{Options, RunStatus};

const FRAMES: usize = 60;

fn program(graph: &str) -> Program {
    let text = format!("{}{graph}", include_str!("programs/flits.ir"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn line(elements: &[&str]) -> Program {
    let mut graph = String::from("\ngraph {\n");
    let mut edges = String::new();
    let mut from = "from_tor".to_owned();
    for (at, element) in elements.iter().enumerate() {
        graph += &format!("  instance i{at}: {element}\n");
        edges += &format!("  {from} -> i{at}.in\n");
        from = format!("i{at}.out");
    }
    graph += "  endpoint from_tor: into flit\n  endpoint to_tor: out_of flit\n";
    program(&format!("{graph}{edges}  {from} -> to_tor\n}}\n"))
}

/// Returns frames from a single byte to several flits, at and around flit boundaries.
fn traffic() -> Traffic {
    let mut random = fastrand::Rng::with_seed(5);
    let lengths = [1, 31, 32, 33, 60, 64, 65, 95, 96, 1_500, 2_049, 9_100];
    let packet = |at: usize| {
        let length = lengths[at % lengths.len()];
        (0..length).map(|_| random.u8(..)).collect::<Vec<u8>>()
    };
    Traffic { packets: (0..FRAMES).map(packet).collect(), records: vec![] }
}

/// Returns the interpreter's output for the traffic, by endpoint; all input is at the first
/// endpoint.
fn expected(program: &Program) -> (Vec<Vec<Vec<u8>>>, Interpreter<'_>) {
    let mut run = Interpreter::new(program, &Default::default()).expect("a sound program");
    let mut out = vec![vec![]; program.graph.endpoints.len()];
    for packet in &traffic().packets {
        run.feed_packet(EndpointId(0), packet).expect("an endpoint of flits");
        run.run(u64::MAX).expect("a run to the end");
        for (at, out) in out.iter_mut().enumerate().skip(1) {
            out.extend(run.take_packets(EndpointId::new(at)).expect("an endpoint of flits"));
        }
    }
    (out, run)
}

/// Builds once for speed and once for recording, which must both agree with the interpreter; runs
/// all of the traffic at once and returns how many frames left by reference.
#[track_caller]
fn by_reference(program: &Program) -> usize {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let (expected, interpreter) = expected(program);
    let ends = expected.len();
    let mut input = vec![Traffic::default(); ends];
    input[0] = traffic();
    let fast = Options { cache: Some(cache.clone()), ..Options::default() };
    let mut counts = [fast, options(&cache)].map(|options| {
        let mut driver = Driver::new(&image(program, &options), input.clone());
        while driver.run(&vec![FRAMES; ends], &vec![2 * FRAMES; ends]) != RunStatus::Idle {}
        for (at, (out, expected)) in driver.out.iter().zip(&expected).enumerate() {
            assert_eq!(out.packets.len(), expected.len(), "{} at {at}", program.name);
            for (number, (out, expected)) in out.packets.iter().zip(expected).enumerate() {
                assert!(out == expected, "{} at {at}: packet {number}", program.name);
            }
        }
        let counters = driver.graph.counters();
        assert_eq!(counters.instances, interpreter.execution().counters);
        let items = counters.channels.iter().map(|it| it.items);
        let histories = interpreter.execution().histories;
        assert!(items.eq(histories.iter().map(|it| it.len() as u64)), "{}", program.name);
        let (oracles, execution) = driver.graph.take_recording();
        if options.record {
            assert!(check(program, oracles, &execution) == driver.out);
        } else {
            assert_eq!(execution.state, interpreter.execution().state);
        }
        driver.by_reference
    });
    assert_eq!(counts[0], counts[1], "recording changes nothing");
    let mut random = fastrand::Rng::with_seed(6);
    let mut driver = Driver::new(&image(program, &options(&cache)), input);
    assert_eq!(driver.run_in_pieces(&mut random, 30), RunStatus::Idle);
    for (out, expected) in driver.out.iter().zip(&expected) {
        assert!(out.packets == *expected, "{}: in pieces", program.name);
    }
    let (_, execution) = driver.graph.take_recording();
    driver.check_entered(program, &execution);
    std::mem::take(&mut counts[0])
}

#[test]
fn a_line_of_elements_leaves_every_frame_where_it_came_in() {
    assert_eq!(by_reference(&line(&[])), FRAMES);
    assert_eq!(by_reference(&line(&["MacSwap"])), FRAMES);
    assert_eq!(by_reference(&line(&["MacSwap", "Count", "MacSwap"])), FRAMES);
}

#[test]
fn flits_that_are_held_still_find_memory_that_was_read() {
    assert_eq!(by_reference(&line(&["Hold"])), FRAMES);
    // After other elements it is late, so that it has to share the frames of a few firings.
    for elements in [&["MacSwap", "Hold"][..], &["Hold", "Hold", "MacSwap"]] {
        let count = by_reference(&line(elements));
        assert!((5..FRAMES).contains(&count), "{elements:?}: {count}");
    }
}

#[test]
fn frames_that_grow_go_on_in_buffers() {
    // Only frames of 32 bytes stay: they come with 40 bytes of tail room.
    assert_eq!(by_reference(&line(&["Grow"])), FRAMES / 12);
    by_reference(&line(&["Grow", "Grow", "MacSwap"]));
}

#[test]
fn dropped_frames_leave_their_memory_to_nobody() {
    let count = by_reference(&line(&["Drop"]));
    assert!((10..FRAMES - 10).contains(&count), "{count}");
}

#[test]
fn of_several_copies_one_lies_in_place() {
    let endpoints = "  endpoint from_tor: into flit\n  endpoint to_tor: out_of flit\n  \
                     endpoint to_nic: out_of flit\n  from_tor -> first.in\n";
    let tee = format!(
        "\ngraph {{\n  instance first: Tee\n  instance swap: MacSwap\n{endpoints}  \
         first.left -> to_tor\n  first.right -> swap.in\n  swap.out -> to_nic\n}}\n"
    );
    assert_eq!(by_reference(&program(&tee)), FRAMES);
    let route = format!(
        "\ngraph {{\n  instance first: Route\n  instance swap: MacSwap\n{endpoints}  \
         first.left -> swap.in\n  first.right -> to_nic\n  swap.out -> to_tor\n}}\n"
    );
    assert_eq!(by_reference(&program(&route)), FRAMES);
}

#[test]
fn a_frame_that_begins_in_one_run_ends_in_a_buffer_of_another() {
    let program = line(&["Count"]);
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let image = image(&program, &options(&cache));
    let mut driver = Driver::new(&image, vec![traffic(), Traffic::default()]);
    // Less than a frame's worth of flits on two channels.
    driver.graph.set_recording_limit(40 * 64);
    while driver.run(&[FRAMES; 2], &[FRAMES; 2]) == RunStatus::RecordFull {
        driver.graph.take_recording();
    }
    assert!(driver.out[1].packets == traffic().packets);
    assert!((FRAMES / 3..FRAMES).contains(&driver.by_reference), "{}", driver.by_reference);
}
