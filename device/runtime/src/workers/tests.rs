// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of several workers as a device.

use super::*;
use crate::device::{Device, Ports, RunEnd};
use crate::device_conformance;
use crate::programs::{mac_swap, mac_swap_of_packets, mac_swap_with_breakpoint, swapped};
use freeport_ir::{Program, verify};
use freeport_native::Options;
use freeport_port::trace::TraceFrame;
use freeport_port::{Generator, Sink};
use freeport_testbed::cache::Cache;
use std::sync::Arc;
use std::time::Duration;

fn options(cache: &Cache) -> Options {
    Options { cache: Some(cache.path().to_path_buf()), ..Options::default() }
}

#[test]
fn a_program_on_another_worker_conforms() {
    let cache = Cache::of("native");
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
            let Partition { parts, .. } =
                Partition::new(&program, &workers).expect("no call crosses the parts");
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

/// Makes a line of `count` instances of the same element.
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
    let cache = Cache::of("native");
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

/// A pause is for a caller under endless load. A caller may take a pause without any frame for the
/// end, so a run does not pause just because other workers are still busy.
#[test]
fn a_run_does_not_pause_while_frames_are_on_their_way() {
    let cache = Cache::of("native");
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
    let cache = Cache::of("native");
    let program = Arc::new(mac_swap());
    let mut device =
        WorkersDevice::load(program, &[1], &[0], &options(&cache), 0).expect("clang-19 is needed");
    for round in 0..20 {
        // Longer than a worker polls before it sleeps.
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

/// Makes a UDP frame of flow `flow`, number `number` of it, in one of its two directions.
fn frame_of(flow: u16, number: u32, is_back: bool) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    let ends = [([10, 0, 0, 1], 1_000 + flow), ([10, 0, 0, 2], 53)];
    let (from, to) = if is_back { (1, 0) } else { (0, 1) };
    frame.extend(ends[from].0);
    frame.extend(ends[to].0);
    frame.extend(ends[from].1.to_be_bytes());
    frame.extend(ends[to].1.to_be_bytes());
    frame.extend([0, 26, 0, 0]);
    frame.extend(flow.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(60 + usize::from(flow) * 11, 0);
    frame
}

#[test]
fn one_copy_conforms() {
    let cache = Cache::of("native");
    for program in [mac_swap(), mac_swap_of_packets()] {
        let program = Arc::new(program);
        let load = || Replicas::load(program.clone(), 1, &[], &options(&cache), 0);
        device_conformance::check(|| load().expect("clang-19 is needed"));
    }
}

#[test]
fn flows_are_spread_over_copies_and_stay_in_order() {
    let cache = Cache::of("native");
    let mut random = fastrand::Rng::with_seed(3);
    let mut numbers = vec![0_u32; 90];
    let frames: Vec<Vec<u8>> = (0..6_000)
        .map(|_| {
            let flow = random.usize(..numbers.len());
            numbers[flow] += 1;
            frame_of(flow as u16, numbers[flow], random.bool())
        })
        .collect();
    let trace: Vec<TraceFrame> = frames.iter().cloned().map(TraceFrame::of).collect();
    for program in [mac_swap(), mac_swap_of_packets()] {
        let program = Arc::new(program);
        let mut device =
            Replicas::load(program, 3, &[], &options(&cache), 0).expect("clang-19 is needed");
        let mut source = Generator::once(&trace).expect("good");
        let mut sink = Sink::keeping().with_room(0);
        loop {
            sink.make_room(700);
            let mut ports =
                Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
            match device.run(&mut ports).expect("nothing fails").end {
                RunEnd::Ended => break,
                end => assert_eq!(end, RunEnd::OutputFull),
            }
        }
        let flow_of = |frame: &[u8]| [frame[42], frame[43]];
        let by_flow = |frames: Vec<Vec<u8>>| {
            let mut flows = std::collections::BTreeMap::<_, Vec<Vec<u8>>>::new();
            frames.into_iter().for_each(|it| flows.entry(flow_of(&it)).or_default().push(it));
            flows
        };
        let expected = by_flow(frames.iter().map(|frame| swapped(frame)).collect());
        let got = by_flow(sink.kept().iter().map(|frame| frame.bytes.clone()).collect());
        assert_eq!(got, expected, "each flow is whole and in order");
        let counters = device.counters();
        let firings: Vec<u64> = counters.instances.iter().map(|it| it.firings).collect();
        assert_eq!(firings[0], firings[1..].iter().sum::<u64>());
        assert!(firings[1..].iter().all(|it| *it > firings[0] / 6), "{firings:?}");
        assert_eq!(counters.endpoints[0].frames, 6_000);
        assert_eq!((counters.endpoints[1].frames, counters.endpoints[1].dropped), (6_000, 0));
    }
}

#[test]
fn the_host_acts_on_all_copies_or_on_one() {
    use freeport_ir::{Bits, InstanceId};
    let cache = Cache::of("native");
    let program = Arc::new(mac_swap());
    let mut device =
        Replicas::load(program, 2, &[], &options(&cache), 0).expect("clang-19 is needed");
    let names = device.program().graph.instances.iter().map(|it| it.name.clone());
    assert_eq!(names.collect::<Vec<_>>(), ["swap", "swap@0", "swap@1"]);
    let [all, first, second] = [0, 1, 2].map(InstanceId::new);
    let number = |value| Bits::from_u64(64, value);
    let add = |device: &mut Replicas, id, by| device.call_method(id, "add", &[number(by)]);
    assert_eq!(add(&mut device, all, 5).expect("both had 0"), Some(number(0)));
    assert_eq!(device.read_variable(all, "count", 0).expect("both have 5"), number(5));
    assert_eq!(add(&mut device, second, 2).expect("it is there"), Some(number(5)));
    let error = device.read_variable(all, "count", 0).expect_err("they differ");
    assert!(error.to_string().contains("swap has a different count in each copy"), "{error}");
    assert_eq!(device.read_variable(first, "count", 0).expect("there"), number(5));
    assert_eq!(device.read_variable(second, "count", 0).expect("there"), number(7));
    assert!(add(&mut device, all, 1).is_err(), "the results differ, and both are told so");
    device.write_variable(all, "count", 0, &number(1)).expect("it is there");
    assert_eq!(device.read_variable(second, "count", 0).expect("there"), number(1));
    let (key, value) = (|at| Bits::from_u64(48, at), |at| Bits::from_u64(16, at));
    assert!(device.table_update(first, "hosts", &key(1), &value(1)).expect("it fits"));
    assert!(device.table_update(second, "hosts", &key(2), &value(2)).expect("it fits"));
    let entries = device.table_entries(all, "hosts").expect("it is there");
    assert_eq!(entries, [(key(1), value(1)), (key(2), value(2))]);
    assert_eq!(device.table_lookup(all, "hosts", &key(2)).expect("there"), Some(value(2)));
    assert!(device.table_delete(all, "hosts", &key(2)).expect("it is in one of them"));
    assert!(!device.table_delete(all, "hosts", &key(2)).expect("it is gone"));
}
