// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs of the library that are replaced while packets are inside: their output and their state
//! must be the same as without a replacement.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::flit::PAYLOAD_BYTES;
use freeport_ir::{Bits, InstanceId, OnFull, Program, interp};
use freeport_port::trace::{Sizes, Trace, TraceFrame};
use freeport_port::{Generator, Sink};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, Ports, RunEnd};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::replace::{ReplaceOptions, Replacement, replace};
use freeport_testbed::cache::Cache;
use freeport_tests::repository;
use freeport_tests::tables::Tuple;
use std::sync::Arc;
use std::time::Instant;

fn compile(text: &str) -> Arc<Program> {
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("replaced.cnp", text, &library);
    Arc::new(compiled.unwrap_or_else(|failure| panic!("{failure}")).program)
}

/// Graphs from `from_tor` to `to_tor`, with elements that have state of all kinds.
const GRAPHS: [&str; 3] = [
    "Count :: before\nMacSwap :: swap\nCount :: behind\n\
     from_tor -> before -> swap -> behind -> to_tor\n",
    "Parse :: parse\nCuckooHash<64> :: exact\nLpmTree<32, 32> :: prefixes\n\
     PacketBuffer<1> :: buffer\nRateLimiter<64> :: limiter\n\
     from_tor -> parse [out] ->{depth = 64} [in] buffer -> to_tor\n\
     parse [match] -> exact -> prefixes -> limiter -> [verdict] buffer\n",
    "Tee<2> :: tee\nCount :: left\nPktLogger :: gone\n\
     from_tor -> tee [1] -> left -> to_tor\ntee [2] -> gone\n",
];

/// Loads programs on devices.
struct Bench {
    cache: Cache,
}

impl Bench {
    fn load(&self, program: &Arc<Program>, is_native: bool) -> Box<dyn Device> {
        if is_native {
            let cache = self.cache.path().to_owned();
            let options = freeport_native::Options {
                optimization: 1,
                cache: Some(cache),
                ..Default::default()
            };
            return Box::new(CpuDevice::load(program.clone(), &options).expect("it builds"));
        }
        let options = interp::Options::default();
        Box::new(InterpreterDevice::load(program.clone(), &options).expect("it is whole"))
    }
}

/// Makes a graph with prefixes pass all packets.
fn open(device: &mut dyn Device) {
    let mut instances = device.program().graph.instances.iter();
    if let Some(at) = instances.position(|it| it.name == "prefixes") {
        let rule = [(32, 0), (8, 0), (32, 0), (16, 1)].map(|(width, it)| Bits::from_u64(width, it));
        let done = device.call_method(InstanceId::new(at), "insert", &rule).expect("it takes it");
        assert!(done.is_some_and(|status| status.is_zero()));
    }
}

/// Runs until all packets have left, with little room per run; between runs, `between` may replace
/// the graph. Returns the output.
fn run(
    device: &mut Box<dyn Device>,
    trace: &[TraceFrame],
    rooms: &mut dyn FnMut() -> u64,
    between: &mut dyn FnMut(&mut Box<dyn Device>),
) -> Vec<Vec<u8>> {
    let mut source = Generator::once(trace).expect("good frames");
    let mut sink = Sink::keeping().with_room(0);
    loop {
        sink.make_room(rooms());
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        match device.run(&mut ports).expect("nothing fails").end {
            RunEnd::Ended => break,
            RunEnd::OutputFull => between(device),
            other => panic!("{other:?}"),
        }
    }
    sink.kept().iter().map(|frame| frame.bytes.clone()).collect()
}

fn swap(device: &mut Box<dyn Device>, mut new: Box<dyn Device>) -> Replacement {
    let reported = replace(&mut **device, &mut *new, &ReplaceOptions::default());
    *device = new;
    reported.expect("nothing is lost")
}

#[test]
fn a_graph_replaced_by_itself_anywhere_goes_on_as_if_nothing_had_been() {
    let bench = Bench { cache: Cache::of("native") };
    let mut replacements = 0;
    for (at, text) in GRAPHS.iter().enumerate() {
        let program = compile(text);
        for seed in 0..6 {
            let trace = Trace { frames: 120, seed, ..Trace::default() }.generate();
            let mut plain = bench.load(&program, seed % 2 == 0);
            open(&mut *plain);
            let expected = run(&mut plain, &trace, &mut || 1 << 20, &mut |_| {});
            let mut random = Rng::with_seed(seed);
            let mut rooms = Rng::with_seed(seed ^ 77);
            let mut device = bench.load(&program, seed % 2 == 0);
            open(&mut *device);
            let mut between = |device: &mut Box<dyn Device>| {
                if random.u8(..3) == 0 {
                    // Half of the seeds switch between the kinds of device.
                    let is_native = if seed < 2 { seed == 0 } else { random.bool() };
                    let reported = swap(device, bench.load(&program, is_native));
                    assert!(reported.not_kept.is_empty() && reported.new.is_empty(), "{reported}");
                    replacements += 1;
                }
            };
            let out = run(&mut device, &trace, &mut || rooms.u64(..30), &mut between);
            assert!(expected.len() > 50, "graph {at} passes {}", expected.len());
            assert_eq!(out.len(), expected.len(), "graph {at}, seed {seed}");
            assert!(out == expected, "graph {at}, seed {seed}");
            let (counted, wanted) = (device.counters(), plain.counters());
            let items = |of: &freeport_runtime::device::DeviceCounters| {
                of.channels.iter().map(|it| (it.items, it.packets)).collect::<Vec<_>>()
            };
            assert_eq!(items(&counted), items(&wanted), "graph {at}, seed {seed}");
            assert_eq!(counted.endpoints, wanted.endpoints, "graph {at}, seed {seed}");
        }
    }
    assert!(replacements > 20, "{replacements}");
}

/// Returns the tuple and the arguments of a rule that passes packets of number `at`.
fn rule(at: u32) -> (Tuple, Vec<Bits>) {
    let tuple = Tuple {
        source: 0x0a00_0000 + at,
        target: 0x0b00_0001,
        source_port: 7,
        target_port: 80,
        protocol: 17,
    };
    (tuple, vec![tuple.bits(), Bits::from_u64(32, 0), Bits::from_u64(16, 9)])
}

#[test]
fn a_firewall_with_many_rules_gets_one_element_more_while_packets_are_inside() {
    const RULES: u32 = 100_000;
    const TEXT: &str = "Parse :: parse\nCuckooHash<131072> :: exact\nPacketBuffer<1> :: buffer\n\
        from_tor -> parse [out] ->{depth = 64} [in] buffer -> to_tor\n\
        parse [match] -> exact -> [verdict] buffer\n";
    let longer = TEXT.replace("from_tor -> parse", "from_tor -> extra [out] -> parse");
    let longer = format!("CheckIpv4 :: extra\nDiscard :: bad\n{longer}extra [bad] -> bad\n");
    let (program, longer) = (compile(TEXT), compile(&longer));
    let bench = Bench { cache: Cache::of("native") };
    let mut device = bench.load(&program, true);
    let exact = |device: &dyn Device| {
        let mut instances = device.program().graph.instances.iter();
        InstanceId::new(instances.position(|it| it.name == "exact").expect("it is there"))
    };
    let id = exact(&*device);
    let mut stored = 0;
    for at in 0..RULES {
        let done = device.call_method(id, "insert", &rule(at).1).expect("it takes these");
        stored += u32::from(done.is_some_and(|status| status.is_zero()));
    }
    assert!(stored > RULES / 10 * 9, "{stored}");
    let mut random = Rng::with_seed(3);
    let frames: Vec<TraceFrame> = (0..2_000)
        .map(|_| {
            let (tuple, _) = rule(random.u32(..RULES * 2));
            let source = std::net::Ipv4Addr::from(tuple.source);
            let text = format!("udp {source}:7 > 11.0.0.1:80 len {}", random.u32(64..400));
            let named = std::collections::BTreeMap::new();
            TraceFrame::of(freeport_golden::packet::build(&text, &named).expect("good"))
        })
        .collect();
    let expected = run(&mut device, &frames, &mut || 1 << 20, &mut |_| {});
    assert!((500..1_500).contains(&expected.len()), "some pass: {}", expected.len());
    let mut took = None;
    let mut between = |device: &mut Box<dyn Device>| {
        if took.is_none() {
            let new = bench.load(&longer, true);
            let start = Instant::now();
            let reported = swap(device, new);
            took = Some(start.elapsed());
            assert!(reported.frames_carried() > 0 && reported.not_kept.is_empty(), "{reported}");
            assert!(
                reported
                    .new
                    .iter()
                    .all(|path| path.starts_with("extra.") || path.starts_with("bad.")),
                "{reported}"
            );
        }
    };
    let out = run(&mut device, &frames, &mut || 37, &mut between);
    assert!(out == expected, "{} of {} packets", out.len(), expected.len());
    println!("a table of {stored} rules was taken over in {took:?}");
}

/// Packets of one side wait inside until packets of the other side bring their verdicts.
#[test]
fn packets_that_wait_inside_for_a_verdict_wait_in_the_new_graph() {
    const TEXT: &str = "CheckIpv4 :: check\nParse :: parse\nLpmTree<32, 32> :: prefixes\n\
        PacketBuffer<1> :: buffer\nDiscard :: gone\nDiscard :: bad\n\
        from_tor -> check [out] ->{depth = 64} [in] buffer -> to_tor\n\
        from_nic -> parse [out] -> gone\nparse [match] -> prefixes -> [verdict] buffer\n\
        check [bad] -> bad\n";
    let program = compile(TEXT);
    let bench = Bench { cache: Cache::of("native") };
    let trace = Trace { frames: 20, ..Trace::default() }.generate();
    for (from, to) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut device = bench.load(&program, from);
        open(&mut *device);
        let mut waiting = Generator::once(&trace).expect("good frames");
        let mut sink = Sink::keeping();
        let mut ports =
            Ports::new().with_input("from_tor", &mut waiting).with_output("to_tor", &mut sink);
        let run = device.run(&mut ports).expect("nothing fails");
        assert_eq!((run.received, run.sent), (20, 0), "they wait");
        let reported = swap(&mut device, bench.load(&program, to));
        let inside: u64 = reported.items.iter().map(|moved| moved.carried).sum();
        assert_eq!(inside + reported.frames_carried(), 20, "{reported}");
        let mut verdicts = Generator::once(&trace).expect("good frames");
        let mut ports =
            Ports::new().with_input("from_nic", &mut verdicts).with_output("to_tor", &mut sink);
        assert_eq!(device.run(&mut ports).expect("nothing fails").sent, 20, "{from} {to}");
        let out: Vec<&[u8]> = sink.kept().iter().map(|frame| &frame.bytes[..]).collect();
        let sent: Vec<&[u8]> = trace.iter().map(|frame| &frame.bytes[..]).collect();
        assert!(out == sent, "in order, {from} to {to}");
    }
}

/// Passes one flit for each flit that the other side sends.
const GATE: &str = "
.element Gate (flit in, flit credit -> flit out) await all {
    .handler {
        flit x = read_input_port(in);
        read_input_port(credit);
        set_output_port(out, x);
    }
}
Gate :: gate
from_nic -> [credit] gate
";

#[test]
fn a_graph_that_is_replaced_in_the_middle_of_a_packet_goes_on_with_its_next_flit() {
    let bench = Bench { cache: Cache::of("native") };
    let ways = [
        "from_tor -> [in] gate -> to_tor\n",
        "Count :: before\nCount :: behind\n\
         from_tor -> before ->{depth = 64} [in] gate -> behind -> to_tor\n",
    ];
    let mut random = Rng::with_seed(8);
    let mut in_the_middle = 0;
    for way in ways {
        let program = compile(&format!("{GATE}{way}"));
        for kinds in [[true, true], [true, false], [false, true], [false, false]] {
            let sizes = Sizes::Uniform(60..=600);
            let trace = Trace { frames: 12, sizes, ..Trace::default() }.generate();
            let ends = trace.iter().scan(0, |flits, frame| {
                *flits += frame.bytes.len().div_ceil(PAYLOAD_BYTES);
                Some(*flits)
            });
            let ends: Vec<usize> = ends.collect();
            let (mut source, mut sink) = (Generator::once(&trace).expect("good"), Sink::keeping());
            let mut device = bench.load(&program, kinds[0]);
            let (mut passed, mut turn) = (0, 0);
            while passed < ends[11] {
                let flits = random.usize(1..=20).min(ends[11] - passed);
                let mut credit = credit(flits);
                let mut ports = Ports::new()
                    .with_input("from_tor", &mut source)
                    .with_input("from_nic", &mut credit)
                    .with_output("to_tor", &mut sink);
                device.run(&mut ports).expect("nothing fails");
                passed += flits;
                let whole = ends.iter().filter(|end| **end <= passed).count();
                assert_eq!(sink.frame_count(), whole as u64, "{way}, {kinds:?}");
                in_the_middle += usize::from(!ends.contains(&passed));
                turn += 1;
                swap(&mut device, bench.load(&program, kinds[turn % 2]));
            }
            let out: Vec<&[u8]> = sink.kept().iter().map(|frame| &frame.bytes[..]).collect();
            let sent: Vec<&[u8]> = trace.iter().map(|frame| &frame.bytes[..]).collect();
            assert!(out == sent, "{way}, {kinds:?}");
        }
    }
    assert!(in_the_middle > 40, "{in_the_middle}");
}

/// Returns flits of zeros, which let as many flits pass a gate.
fn credit(flits: usize) -> Generator {
    Generator::once(&[TraceFrame::of(vec![0; flits * PAYLOAD_BYTES])]).expect("a frame")
}

#[test]
fn packets_that_a_lossy_channel_keeps_or_drops_stay_whole_through_replacements() {
    let bench = Bench { cache: Cache::of("native") };
    let text = "from_tor -> [in] gate ->{depth = 12, lossy} [in] late -> to_tor\n\
        Gate :: late\nfrom_host -> [credit] late\n";
    let program = compile(&format!("{GATE}{text}"));
    let mut random = Rng::with_seed(9);
    let (mut replaced, mut lost) = (0, 0);
    for kinds in [[true, true], [true, false], [false, true], [false, false]] {
        let sizes = Sizes::Uniform(60..=600);
        let trace = Trace { frames: 60, sizes, ..Trace::default() }.generate();
        let flits_of = |bytes: &[u8]| bytes.len().div_ceil(PAYLOAD_BYTES);
        let flits: usize = trace.iter().map(|frame| flits_of(&frame.bytes)).sum();
        let (mut source, mut sink) = (Generator::once(&trace).expect("good"), Sink::keeping());
        let mut device = bench.load(&program, kinds[0]);
        for turn in 1.. {
            // Fewer leave than arrive, so that the channel is full from time to time.
            let mut first = credit(random.usize(1..=14));
            let mut second = credit(random.usize(1..=11));
            let mut ports = Ports::new()
                .with_input("from_tor", &mut source)
                .with_input("from_nic", &mut first)
                .with_input("from_host", &mut second)
                .with_output("to_tor", &mut sink);
            device.run(&mut ports).expect("nothing fails");
            let counters = device.counters();
            let channels = &device.program().graph.channels;
            let lossy = channels.iter().position(|it| it.on_full == OnFull::DropCounted);
            let lossy = &counters.channels[lossy.expect("there is one")];
            let out: usize = sink.kept().iter().map(|frame| flits_of(&frame.bytes)).sum();
            if (lossy.items + lossy.dropped) as usize == flits && out == lossy.items as usize {
                lost += lossy.dropped;
                break;
            }
            assert!(turn < 1_000, "{kinds:?}: {lossy:?}, {out} of {flits} flits");
            swap(&mut device, bench.load(&program, kinds[turn % 2]));
            replaced += 1;
        }
        let mut sent = trace.iter().map(|frame| &frame.bytes);
        for frame in sink.kept() {
            assert!(sent.any(|bytes| *bytes == frame.bytes), "{kinds:?}: in order, and whole");
        }
    }
    assert!(replaced > 100 && lost > 100, "{replaced} times, {lost} flits");
}
