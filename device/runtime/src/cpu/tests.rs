// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the processor as a device.

use super::*;
use crate::device_conformance;
use crate::programs::{mac_swap, mac_swap_of_packets, mac_swap_with_breakpoint, swapped};
use freeport_port::trace::TraceFrame;
use freeport_port::{Generator, Sink};
use freeport_testbed::cache::Cache;

#[test]
fn it_conforms() {
    let cache = Cache::of("native");
    let options = Options { cache: Some(cache.path().to_path_buf()), ..Options::default() };
    for program in [mac_swap(), mac_swap_of_packets()] {
        let image = freeport_native::build(&program, &options).expect("clang-19 is needed");
        let load = || CpuDevice::of_image(&program, &image, 0).expect("it loads");
        device_conformance::check(load);
    }
}

#[test]
fn it_stops_at_breakpoints() {
    let cache = Cache::of("native");
    let options = Options { cache: Some(cache.path().to_path_buf()), ..Options::default() };
    let program = mac_swap_with_breakpoint();
    let image = freeport_native::build(&program, &options).expect("clang-19 is needed");
    device_conformance::check_breakpoints(|| {
        CpuDevice::of_image(&program, &image, 0).expect("it loads")
    });
}

#[test]
fn a_packet_without_bytes_is_dropped_and_counted() {
    let cache = Cache::of("native");
    let options = Options { cache: Some(cache.path().to_path_buf()), ..Options::default() };
    let program = mac_swap_of_packets();
    let mut device = CpuDevice::load(&program, &options).expect("clang-19 is needed");
    let frames: Vec<Vec<u8>> =
        (0..40).map(|at: u8| vec![if at.is_multiple_of(3) { 0xff } else { at }; 60]).collect();
    let left = frames.iter().filter(|frame| frame[0] != 0xff).map(Vec::as_slice);
    let mut sink = Sink::checking(left.map(swapped).collect()).with_room(0);
    let trace: Vec<TraceFrame> = frames.iter().cloned().map(TraceFrame::of).collect();
    let mut source = Generator::once(&trace).expect("good");
    for room in [5, 100] {
        sink.make_room(room);
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        device.run(&mut ports).expect("nothing fails");
    }
    assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
    let counters = device.counters().endpoints[1];
    assert_eq!((counters.frames, counters.dropped), (26, 14));
}
