// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of several workers as a device.

use super::*;
use crate::device::{Device, Ports, RunEnd};
use crate::device_conformance;
use crate::port::{Generator, Sink};
use crate::programs::{mac_swap, mac_swap_of_packets, mac_swap_with_breakpoint, swapped};
use crate::trace::TraceFrame;
use freeport_ir::{Program, verify};
use freeport_native::Options;
use std::sync::Arc;
use std::time::Duration;

fn options(cache: &tempfile::TempDir) -> Options {
    Options { cache: cache.path().to_path_buf(), ..Options::default() }
}

#[test]
fn a_program_on_another_worker_conforms() {
    let cache = tempfile::tempdir().expect("a folder");
    for program in [mac_swap(), mac_swap_of_packets()] {
        let program = Arc::new(program);
        let load = || WorkersDevice::load(program.clone(), &[1], &[], &options(&cache), 0);
        device_conformance::check(|| load().expect("clang-19 is needed"));
    }
    let program = Arc::new(mac_swap_with_breakpoint());
    let load = || WorkersDevice::load(program.clone(), &[1], &[], &options(&cache), 0);
    device_conformance::check_breakpoints(|| load().expect("clang-19 is needed"));
}

#[test]
fn each_part_is_a_whole_program_and_every_channel_counts_once() {
    for program in [mac_swap(), mac_swap_of_packets(), chain(4)] {
        let count = program.graph.instances.len();
        for numbers in 0..3_usize.pow(count as u32) {
            let workers: Vec<usize> =
                (0..count).map(|at| numbers / 3_usize.pow(at as u32) % 3).collect();
            let Partition { parts, .. } = Partition::new(&program, &workers).expect("nobody calls");
            for part in &parts {
                verify(&part.program).unwrap_or_else(|error| panic!("{workers:?}: {error:?}"));
            }
            let counted = parts.iter().flat_map(|part| part.channels.iter().flatten());
            let mut counted: Vec<usize> = counted.map(|id| id.index()).collect();
            counted.sort_unstable();
            assert!(counted.into_iter().eq(0..program.graph.channels.len()), "{workers:?}");
            assert_eq!(parts[0].worker, 0);
        }
    }
}

/// That many of the same element in a line.
fn chain(count: usize) -> Program {
    use freeport_ir::{InstanceId, PortId, Sink, Source};
    let mut program = mac_swap();
    let instance = program.graph.instances[0].clone();
    let (first, last) = (program.graph.channels[0].clone(), program.graph.channels[1].clone());
    program.graph.instances.clear();
    program.graph.channels = vec![first];
    let port = PortId::new(0);
    for at in 0..count {
        let mut instance = instance.clone();
        instance.name = format!("swap{at}");
        program.graph.instances.push(instance);
        let mut channel = last.clone();
        channel.source = Source::Port(InstanceId::new(at), port);
        if at + 1 < count {
            channel.sink = Sink::Port(InstanceId::new(at + 1), port);
        }
        program.graph.channels.push(channel);
    }
    program
}

#[test]
fn a_line_over_four_workers_keeps_order_and_loses_nothing_at_full_rings() {
    let cache = tempfile::tempdir().expect("a folder");
    let program = Arc::new(chain(4));
    let mut device = WorkersDevice::load(program, &[1, 2, 0, 3], &[], &options(&cache), 0)
        .expect("clang-19 is needed");
    let frame = |at: usize| TraceFrame::of((0..60 + at % 1400).map(|k| (k ^ at) as u8).collect());
    let trace: Vec<TraceFrame> = (0..8_000).map(frame).collect();
    let expected = trace.iter().map(|frame| frame.bytes.clone()).collect();
    let mut source = Generator::once(&trace).expect("good");
    let mut sink = Sink::checking(expected).with_room(0);
    loop {
        sink.make_room(1_000);
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        match device.run(&mut ports).expect("nothing fails").end {
            RunEnd::Ended => break,
            end => assert_eq!(end, RunEnd::OutputFull),
        }
    }
    assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
    let counters = device.counters();
    let firings = counters.instances.iter().map(|it| it.firings).collect::<Vec<_>>();
    assert!(firings.iter().all(|it| *it == firings[0] && *it > 8_000), "{firings:?}");
    let endpoints = counters.endpoints.iter().map(|it| (it.frames, it.dropped));
    assert_eq!(endpoints.collect::<Vec<_>>(), [(8_000, 0), (8_000, 0)]);
}

/// A pause is for a caller under endless load: who is told of one without any frame may take that
/// for the end, so none comes just because others still work.
#[test]
fn a_run_does_not_pause_while_frames_are_on_their_way() {
    let cache = tempfile::tempdir().expect("a folder");
    let program = Arc::new(chain(3));
    let mut device = WorkersDevice::load(program, &[1, 2, 3], &[], &options(&cache), 0)
        .expect("clang-19 is needed");
    let never = std::sync::atomic::AtomicBool::new(false);
    for round in 0..30 {
        let trace: Vec<TraceFrame> = (0..20).map(|at| TraceFrame::of(vec![at; 60])).collect();
        let mut source = Generator::once(&trace).expect("good");
        let mut sink = Sink::counting();
        loop {
            let ports =
                Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
            let run = device.run(&mut ports.with_pause(1, &never)).expect("nothing fails");
            if run.end == RunEnd::Ended {
                break;
            }
            assert!(run.end == RunEnd::Paused && run.received + run.sent > 0, "{run:?}");
        }
        assert_eq!(sink.frame_count(), 20, "round {round}");
    }
}

#[test]
fn swapped_frames_come_back_after_a_rest() {
    let cache = tempfile::tempdir().expect("a folder");
    let program = Arc::new(mac_swap());
    let mut device =
        WorkersDevice::load(program, &[1], &[0], &options(&cache), 0).expect("clang-19 is needed");
    for round in 0..20 {
        // Longer than a worker looks around before it sleeps.
        std::thread::sleep(Duration::from_millis(3));
        let frame = TraceFrame::of(vec![round; 60]);
        let mut source = Generator::once(std::slice::from_ref(&frame)).expect("good");
        let mut sink = Sink::checking(vec![swapped(&frame.bytes)]);
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        assert_eq!(device.run(&mut ports).expect("nothing fails").end, RunEnd::Ended);
        assert!(sink.is_as_expected());
    }
}
