// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of replacing a graph, between all kinds of devices.

use super::*;
use crate::cpu::CpuDevice;
use crate::device::{Ports, RunEnd};
use crate::interpreter::InterpreterDevice;
use crate::layout::Layout;
use crate::programs::{mac_swap, mac_swap_of_packets, swapped};
use freeport_ir::{Bits, InstanceId, Program, TableKind, interp};
use freeport_port::trace::{Trace, TraceFrame};
use freeport_port::{Generator, Sink};
use freeport_testbed::cache::Cache;
use std::sync::Arc;

const SWAP: InstanceId = InstanceId(0);

/// Loads programs into devices of every kind.
struct Loader {
    cache: Cache,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Native,
    Interpreter,
}

const PAIRS: [(Kind, Kind); 4] = [
    (Kind::Native, Kind::Native),
    (Kind::Native, Kind::Interpreter),
    (Kind::Interpreter, Kind::Native),
    (Kind::Interpreter, Kind::Interpreter),
];

impl Loader {
    fn new() -> Self {
        Self { cache: Cache::of("native") }
    }

    fn load(&self, kind: Kind, program: &Program) -> Box<dyn Device> {
        let shared = Arc::new(program.clone());
        match kind {
            Kind::Native => {
                let cache = self.cache.path().to_path_buf();
                let options = freeport_native::Options { cache: Some(cache), ..Default::default() };
                Box::new(CpuDevice::load(shared, &options).expect("clang-19 is needed"))
            }
            Kind::Interpreter => {
                let options = interp::Options::default();
                Box::new(InterpreterDevice::load(shared, &options).expect("a good program"))
            }
        }
    }
}

fn replaced(
    old: &mut Box<dyn Device>,
    mut new: Box<dyn Device>,
    options: &ReplaceOptions<'_>,
) -> Result<Replacement, ReplaceError> {
    let reported = replace(&mut **old, &mut *new, options)?;
    *old = new;
    Ok(reported)
}

fn bits(width: u32, value: u64) -> Bits {
    Bits::from_u64(width, value)
}

fn set_up(device: &mut dyn Device) {
    device.write_variable(SWAP, "count", 0, &bits(64, 1 << 40)).expect("it is there");
    device.write_variable(SWAP, "marks", 2, &bits(16, 77)).expect("it is there");
    for at in [5, 6, 7] {
        device.table_update(SWAP, "hosts", &bits(48, at), &bits(16, at)).expect("it is there");
    }
    let route = bits(64, 0x0a01_0000_u64.swap_bytes() >> 32 << 32 | 16);
    assert!(device.table_update(SWAP, "routes", &route, &bits(32, 9)).expect("it is there"));
}

#[test]
fn variables_and_tables_are_kept_with_the_order_of_their_uses() {
    let loader = Loader::new();
    for (from, to) in PAIRS {
        let mut device = loader.load(from, &mac_swap());
        set_up(&mut *device);
        let routes = device.table_entries(SWAP, "routes").expect("it is there");
        let new = loader.load(to, &mac_swap());
        let reported =
            replaced(&mut device, new, &ReplaceOptions::default()).expect("nothing is lost");
        assert_eq!(reported.variables, ["swap.count", "swap.marks"], "{from:?} to {to:?}");
        let table = |path: &str, entries| KeptTable { path: path.into(), entries, lost: 0 };
        assert_eq!(reported.tables, [table("swap.hosts", 2), table("swap.routes", 1)]);
        assert_eq!((reported.new.len(), reported.not_kept.len()), (0, 0));
        let read = |name, at| device.read_variable(SWAP, name, at).expect("there").to_u64();
        assert_eq!(read("count", 0), 1 << 40);
        assert_eq!([0, 1, 2, 3].map(|at| read("marks", at)), [1, 2, 77, 0]);
        assert_eq!(device.table_entries(SWAP, "routes").expect("there"), routes);
        // The least recently used one of two is evicted.
        device.table_update(SWAP, "hosts", &bits(48, 8), &bits(16, 8)).expect("it is there");
        let hosts = device.table_entries(SWAP, "hosts").expect("it is there");
        let keys: Vec<u64> = hosts.iter().map(|(key, _)| key.to_u64()).collect();
        assert_eq!(keys, [7, 8], "{from:?} to {to:?}");
    }
}

#[test]
fn what_cannot_be_kept_is_told() {
    let loader = Loader::new();
    for (from, to) in PAIRS {
        let mut device = loader.load(from, &mac_swap());
        set_up(&mut *device);
        let mut other = mac_swap();
        let element = &mut other.elements[0];
        element.state[1].depth = 5;
        element.state.push(freeport_ir::Object { name: "more".into(), ..element.state[0].clone() });
        element.tables[0].capacity = 1;
        element.tables[1].kind = TableKind::Hash;
        let new = loader.load(to, &other);
        let reported = replaced(&mut device, new, &ReplaceOptions::default()).expect("no packets");
        let hosts = KeptTable { path: "swap.hosts".into(), entries: 1, lost: 1 };
        assert_eq!(reported.tables, [hosts], "{from:?} to {to:?}");
        assert_eq!(reported.variables, ["swap.count"]);
        assert_eq!(reported.new, ["swap.marks", "swap.more", "swap.routes"]);
        let reason = |was: &str, is: &str| Reason::OtherType { was: was.into(), is: is.into() };
        let marks = reason("4 elements of 16 bits", "5 elements of 16 bits");
        let routes = reason("a lpm table of 32 bits under 64", "a hash table of 32 bits under 64");
        let not_kept = [("swap.marks", marks), ("swap.routes", routes)];
        let not_kept = not_kept.map(|(path, reason)| NotKept { path: path.into(), reason });
        assert_eq!(reported.not_kept, not_kept);
        assert!(reported.to_string().contains("swap.hosts is too small now: 1 entries are lost"));
        assert_eq!(reported.json()["tables"][0]["lost"], 1);
        let hosts = device.table_entries(SWAP, "hosts").expect("it is there");
        assert_eq!(hosts, [(bits(48, 7), bits(16, 7))], "the last used one stays");
        let marks = device.read_variable(SWAP, "marks", 0).expect("it is there");
        assert_eq!(marks.to_u64(), 1, "the initial value");
    }
}

#[test]
fn a_renamed_instance_and_another_meaning_are_not_kept() {
    let loader = Loader::new();
    let mut device = loader.load(Kind::Interpreter, &mac_swap());
    let layouts = |layout| {
        let mut layouts = Layouts::default();
        layouts.variables.insert(("MacSwap".into(), "count".into()), layout);
        layouts
    };
    let (old, new) = (layouts(Layout::Unsigned(64)), layouts(Layout::Signed(64)));
    let options = ReplaceOptions { layouts: Some((&old, &new)), ..ReplaceOptions::default() };
    let next = loader.load(Kind::Interpreter, &mac_swap());
    let reported = replaced(&mut device, next, &options).expect("no packets");
    let reasons = reported.not_kept.iter().map(|it| (it.path.as_str(), &it.reason));
    assert_eq!(reasons.collect::<Vec<_>>(), [("swap.count", &Reason::OtherLayout)]);
    assert_eq!(reported.variables, ["swap.marks"]);

    let mut renamed = mac_swap();
    renamed.graph.instances[0].name = "exchange".into();
    let next = loader.load(Kind::Interpreter, &renamed);
    let reported = replaced(&mut device, next, &ReplaceOptions::default()).expect("no packets");
    assert!(reported.variables.is_empty() && reported.tables.is_empty());
    assert_eq!((reported.not_kept.len(), reported.new.len()), (4, 4));
    assert!(reported.not_kept.iter().all(|it| it.reason == Reason::NoInstance));
}

/// Replaces the graph repeatedly while its output port is full most of the time.
#[test]
fn packets_go_through_replacements_in_order_and_are_counted_once() {
    let loader = Loader::new();
    for program in [mac_swap(), mac_swap_of_packets()] {
        let trace = Trace { frames: 500, ..Trace::default() }.generate();
        let expected = trace.iter().map(|frame| swapped(&frame.bytes)).collect();
        let mut source = Generator::once(&trace).expect("good");
        let mut sink = Sink::checking(expected).with_room(0);
        let mut device = loader.load(Kind::Native, &program);
        let mut carried = 0;
        for round in 0.. {
            sink.make_room([3, 40, 0, 170][round % 4]);
            let mut ports =
                Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
            let run = device.run(&mut ports).expect("nothing fails");
            if run.end == RunEnd::Ended {
                break;
            }
            assert_eq!(run.end, RunEnd::OutputFull);
            assert!(round < 100, "it gets on");
            let next = loader.load(PAIRS[round % 4].1, &program);
            let options = ReplaceOptions::default();
            carried += replaced(&mut device, next, &options).expect("kept").frames_carried();
        }
        assert!(carried > 0, "frames waited at some replacement");
        assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
        let counters = device.counters();
        assert_eq!(counters.endpoints.iter().map(|it| it.frames).collect::<Vec<_>>(), [500, 500]);
        let items = counters.channels.iter().map(|it| it.items);
        let [firings, entered, left] = [counters.instances[0].firings]
            .into_iter()
            .chain(items)
            .collect::<Vec<_>>()
            .try_into()
            .expect("an instance and two channels");
        assert_eq!((firings, entered), (left, left));
        let count = device.read_variable(SWAP, "count", 0).expect("it is there");
        assert_eq!(count.to_u64(), 500, "the counts of the elements carry over");
    }
}

#[test]
fn frames_whose_endpoint_goes_are_lost_only_by_force() {
    let loader = Loader::new();
    for (from, to) in PAIRS {
        let mut device = loader.load(from, &mac_swap());
        let trace: Vec<TraceFrame> = (0..9).map(|at| TraceFrame::of(vec![at; 60])).collect();
        let mut source = Generator::once(&trace).expect("good");
        let mut sink = Sink::keeping().with_room(4);
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        let run = device.run(&mut ports).expect("nothing fails");
        assert_eq!((run.sent, run.end), (4, RunEnd::OutputFull));
        let mut other = mac_swap();
        other.graph.endpoints[1].name = "to_nic".into();
        assert!(ports.check(&other).is_err() && ports.check(&mac_swap()).is_ok());
        let new = loader.load(to, &other);
        let error = replaced(&mut device, new, &ReplaceOptions::default()).expect_err("lost");
        let received = run.received;
        let message = format!("there is no room for {} frames at to_tor", received - 4);
        assert!(error.to_string().contains(&message), "{error}");
        // The old one continues as if nothing had happened.
        sink.make_room(2);
        let mut ports = Ports::new().with_output("to_tor", &mut sink);
        assert_eq!(device.run(&mut ports).expect("nothing fails").sent, 2.min(received - 4));
        let new = loader.load(to, &other);
        let force = ReplaceOptions { force: true, ..ReplaceOptions::default() };
        let reported = replaced(&mut device, new, &force).expect("by force");
        assert_eq!(reported.frames_lost(), (received - 4).saturating_sub(2), "{from:?} to {to:?}");
        let firsts: Vec<u8> = sink.kept().iter().map(|frame| frame.bytes[6]).collect();
        assert_eq!(firsts, (0..firsts.len() as u8).collect::<Vec<_>>());
    }
}

/// The variable is so large that its pages are moved.
#[test]
fn a_large_variable_is_moved_again_and_again() {
    const ELEMENTS: u64 = 5 << 20;
    let loader = Loader::new();
    let mut program = mac_swap();
    program.elements[0].state[1] =
        freeport_ir::Object { depth: ELEMENTS, ..program.elements[0].state[1].clone() };
    let state = &mut program.elements[0].state;
    state[1].elem_bits = 64;
    state[1].init = vec![bits(64, 1)];
    let mut device = loader.load(Kind::Native, &program);
    let places = [0, 1, ELEMENTS / 3, ELEMENTS - 1];
    for at in places {
        device.write_variable(SWAP, "marks", at, &bits(64, !at)).expect("it is there");
    }
    for to in [Kind::Native, Kind::Native, Kind::Interpreter, Kind::Native] {
        let next = loader.load(to, &program);
        replaced(&mut device, next, &ReplaceOptions::default()).expect("no packets");
        for at in places {
            let read = device.read_variable(SWAP, "marks", at).expect("it is there");
            assert_eq!(read, bits(64, !at), "{at}");
        }
        assert_eq!(device.read_variable(SWAP, "marks", 77).expect("there"), bits(64, 0));
    }
}
