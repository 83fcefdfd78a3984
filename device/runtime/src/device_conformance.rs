// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conformance suite for devices, which each kind of device runs.

use crate::device::{Device, DeviceError, Ports, RunEnd};
use crate::programs::swapped;
use freeport_ir::oracle::ChannelCounters;
use freeport_ir::{Bits, InstanceId, Item, SIGNAL_BITS, SIGNAL_PARAM_BIT};
use freeport_port::trace::{Sizes, Trace, TraceFrame};
use freeport_port::{Generator, Sink};

const SWAP: InstanceId = InstanceId(0);

/// Checks a device that has [`mac_swap`](crate::programs::mac_swap) loaded, of flits or of packets.
pub fn check<D: Device>(make: impl Fn() -> D) {
    every_frame_arrives_once_in_order(make());
    a_full_output_loses_nothing(make());
    counters_tell_what_happened(make());
    signals_and_variables_reach_the_instance(make());
    tables_belong_to_the_host_too(make());
    what_does_not_exist_is_refused(make());
    ports_that_do_not_fit_are_refused(make());
}

/// Checks a device that has
/// [`mac_swap_with_breakpoint`](crate::programs::mac_swap_with_breakpoint) loaded.
pub fn check_breakpoints<D: Device>(make: impl Fn() -> D) {
    it_rests_at_breakpoints_and_goes_on(make());
    breakpoints_can_be_switched_off(make());
}

fn trace(frames: usize) -> Vec<TraceFrame> {
    let sizes = Sizes::Uniform(54..=9_000);
    let mut trace = Trace { frames, sizes, truncated_permille: 100, ..Trace::default() }.generate();
    trace.extend([1, 31, 32, 33, 64, 9_216].map(|length| TraceFrame::of(vec![7; length])));
    trace
}

fn expected(trace: &[TraceFrame]) -> Vec<Vec<u8>> {
    trace.iter().map(|frame| swapped(&frame.bytes)).collect()
}

fn every_frame_arrives_once_in_order<D: Device>(mut device: D) {
    let trace = trace(600);
    let mut source = Generator::once(&trace).expect("good");
    let mut sink = Sink::checking(expected(&trace));
    let mut ports =
        Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
    let run = device.run(&mut ports).expect("nothing fails");
    let count = trace.len() as u64;
    assert_eq!((run.received, run.sent, run.end), (count, count, RunEnd::Ended));
    assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
}

fn a_full_output_loses_nothing<D: Device>(mut device: D) {
    let trace = trace(600);
    let mut source = Generator::once(&trace).expect("good");
    let mut sink = Sink::checking(expected(&trace)).with_room(0);
    for runs in 1.. {
        sink.make_room(37);
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        let run = device.run(&mut ports).expect("nothing fails");
        assert!(run.sent <= 37);
        if run.end == RunEnd::Ended {
            break;
        }
        assert_eq!(run.end, RunEnd::OutputFull);
        assert!(runs < 100, "it gets on by 37 frames a run");
    }
    assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
}

fn counters_tell_what_happened<D: Device>(mut device: D) {
    let trace: Vec<_> = [64, 1_500, 60].map(|length| TraceFrame::of(vec![1; length])).into();
    let mut source = Generator::once(&trace).expect("good");
    let mut sink = Sink::counting();
    let mut ports =
        Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
    device.run(&mut ports).expect("nothing fails");
    let counters = device.counters();
    let items = match device.program().graph.endpoints[0].item {
        Item::Flit => 2 + 47 + 2,
        _ => 3,
    };
    assert_eq!(counters.instances[0].firings, items);
    for channel in &counters.channels {
        let expected = ChannelCounters { items, packets: 3, bytes: 1_624, stalls: 0, dropped: 0 };
        assert_eq!(*channel, expected);
    }
    assert_eq!(counters.fills.len(), counters.channels.len());
    for fill in &counters.fills {
        assert!(fill.waiting == 0 && fill.peak <= fill.room && fill.room > 0, "{fill:?}");
    }
    for endpoint in &counters.endpoints {
        assert_eq!((endpoint.frames, endpoint.bytes, endpoint.dropped), (3, 1_624, 0));
    }
    // Without a port at the output, frames are dropped and counted.
    let mut source = Generator::once(&trace).expect("good");
    device.run(&mut Ports::new().with_input("from_tor", &mut source)).expect("nothing fails");
    assert_eq!(device.counters().endpoints[1].dropped, 3);
}

fn signals_and_variables_reach_the_instance<D: Device>(mut device: D) {
    let number = |value| Bits::from_u64(64, value);
    let signal = Bits::zero(SIGNAL_BITS).insert(SIGNAL_PARAM_BIT, &number(5));
    let answer = |bits: Bits| bits.extract(SIGNAL_PARAM_BIT, 64).to_u64();
    assert_eq!(answer(device.signal(SWAP, &signal).expect("it takes signals")), 0);
    assert_eq!(answer(device.signal(SWAP, &signal).expect("it takes signals")), 5);
    assert_eq!(device.read_variable(SWAP, "count", 0).expect("it is there"), number(10));
    device.write_variable(SWAP, "count", 0, &number(1 << 40)).expect("it is there");
    let mut source = Generator::once(&[TraceFrame::of(vec![0; 60])]).expect("good");
    device.run(&mut Ports::new().with_input("from_tor", &mut source)).expect("nothing fails");
    assert_eq!(device.read_variable(SWAP, "count", 0).expect("there"), number((1 << 40) + 1));
    let mark = |value| Bits::from_u64(16, value);
    device.write_variable(SWAP, "marks", 3, &mark(9)).expect("it is there");
    let old = device.call_method(SWAP, "add", &[number(3)]).expect("it is there");
    assert_eq!(old, Some(number((1 << 40) + 1)));
    assert_eq!(device.read_variable(SWAP, "count", 0).expect("there"), number((1 << 40) + 4));
    let marks = [0, 1, 2, 3].map(|at| device.read_variable(SWAP, "marks", at).expect("there"));
    assert_eq!(marks, [1, 2, 0, 9].map(mark));
}

fn it_rests_at_breakpoints_and_goes_on<D: Device>(mut device: D) {
    device.set_breakpoints_enabled(true);
    let trace = Trace { frames: 3, ..Trace::default() }.generate();
    let mut source = Generator::once(&trace).expect("good");
    let mut sink = Sink::counting();
    for passed in 1..=3 {
        // However often it is run, it stays paused.
        for _ in 0..2 {
            let end = run_once(&mut device, &mut source, &mut sink);
            assert_eq!(end, RunEnd::Breakpoint(SWAP));
            let count = device.read_variable(SWAP, "count", 0).expect("it is there");
            assert_eq!(count.to_u64(), passed, "no packet begins after the one it rests at");
        }
        device.resume(SWAP);
    }
    assert_eq!(run_once(&mut device, &mut source, &mut sink), RunEnd::Ended);
    let reported = device.take_reported();
    assert_eq!((reported.lines.len(), reported.lost), (3, 0));
    assert!(reported.lines.iter().all(|(instance, text)| *instance == SWAP && text == "packet"));
    assert_eq!(sink.frame_count(), 3);
}

fn breakpoints_can_be_switched_off<D: Device>(mut device: D) {
    let trace = trace(20);
    let mut source = Generator::once(&trace).expect("good");
    let mut sink = Sink::checking(expected(&trace));
    device.set_breakpoints_enabled(true);
    assert_eq!(run_once(&mut device, &mut source, &mut sink), RunEnd::Breakpoint(SWAP));
    device.set_breakpoints_enabled(false);
    assert_eq!(run_once(&mut device, &mut source, &mut sink), RunEnd::Ended);
    assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
}

fn run_once<D: Device>(device: &mut D, source: &mut Generator, sink: &mut Sink) -> RunEnd {
    let mut ports = Ports::new().with_input("from_tor", source).with_output("to_tor", sink);
    device.run(&mut ports).expect("nothing fails").end
}

fn tables_belong_to_the_host_too<D: Device>(mut device: D) {
    let bits = |width, value| Bits::from_u64(width, value);
    let (key, value) = (|at| bits(48, at), |at| bits(16, at));
    for at in [1, 2] {
        assert!(device.table_update(SWAP, "hosts", &key(at), &value(at)).expect("it fits"));
    }
    // A lookup does not count as a use: the first entry is still evicted.
    let found = device.table_lookup(SWAP, "hosts", &key(1)).expect("it fits");
    assert_eq!(found, Some(value(1)));
    assert!(device.table_update(SWAP, "hosts", &key(3), &value(3)).expect("it fits"));
    let entries = device.table_entries(SWAP, "hosts").expect("it is there");
    assert_eq!(entries, [(key(2), value(2)), (key(3), value(3))]);
    assert!(device.table_delete(SWAP, "hosts", &key(2)).expect("it fits"));
    assert!(!device.table_delete(SWAP, "hosts", &key(2)).expect("it fits"));
    assert_eq!(device.table_lookup(SWAP, "hosts", &key(2)).expect("it fits"), None);
    assert!(device.table_lookup(SWAP, "nothing", &key(2)).is_err());
    assert!(device.table_entries(SWAP, "nothing").is_err());
    assert!(device.table_update(SWAP, "hosts", &key(2), &bits(17, 0)).is_err());
    assert!(device.table_delete(SWAP, "hosts", &bits(47, 0)).is_err());
}

fn what_does_not_exist_is_refused<D: Device>(mut device: D) {
    assert!(device.read_variable(SWAP, "nothing", 0).is_err());
    assert!(device.read_variable(SWAP, "marks", 4).is_err());
    assert!(device.write_variable(SWAP, "marks", u64::MAX, &Bits::zero(16)).is_err());
    assert!(device.write_variable(SWAP, "marks", 0, &Bits::zero(17)).is_err());
    assert!(device.signal(SWAP, &Bits::zero(64)).is_err());
    assert!(device.call_method(SWAP, "nothing", &[]).is_err());
    assert!(device.call_method(SWAP, "add", &[]).is_err());
    assert!(device.call_method(SWAP, "add", &[Bits::zero(63)]).is_err());
    let nobody = InstanceId::new(device.program().graph.instances.len());
    assert!(device.signal(nobody, &Bits::zero(SIGNAL_BITS)).is_err());
    assert!(device.call_method(nobody, "add", &[Bits::zero(64)]).is_err());
    assert!(device.read_variable(nobody, "marks", 0).is_err());
    assert!(device.write_variable(nobody, "marks", 0, &Bits::zero(16)).is_err());
    assert!(device.table_lookup(nobody, "hosts", &Bits::zero(48)).is_err());
    assert!(device.table_update(nobody, "hosts", &Bits::zero(48), &Bits::zero(16)).is_err());
    assert!(device.table_delete(nobody, "hosts", &Bits::zero(48)).is_err());
    assert!(device.table_entries(nobody, "hosts").is_err());
}

fn ports_that_do_not_fit_are_refused<D: Device>(mut device: D) {
    let trace = [TraceFrame::of(vec![0; 60])];
    let source = || Generator::once(&trace).expect("good");
    let mut refused = |mut ports: Ports<'_>, reason: &str| match device.run(&mut ports) {
        Err(DeviceError::Binding { reason: given, .. }) => {
            assert!(given.contains(reason), "{given}");
        }
        other => panic!("{other:?}"),
    };
    let (mut first, mut second) = (source(), source());
    refused(Ports::new().with_input("from_nic", &mut first), "from_tor, to_tor");
    refused(Ports::new().with_input("to_tor", &mut first), "out of the graph");
    let twice = Ports::new().with_input("from_tor", &mut first);
    refused(twice.with_input("from_tor", &mut second), "already");
    let mut sink = Sink::counting();
    refused(Ports::new().with_output("from_tor", &mut sink), "into the graph");
}
