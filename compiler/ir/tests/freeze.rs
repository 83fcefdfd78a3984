// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The freeze test of the representation: three XDP programs as a lifter would write them, and an
//! element that reads, changes and writes a memory in every firing, both as control flow and
//! scheduled to one flit per clock. All run on real packets and agree with independent models.

use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::schedule::{Pipeline, Run, RunOptions, parse_pipeline, print_pipeline, run};
use freeport_ir::text::{parse, print};
use freeport_ir::{Bits, Program, flit, verify};

const DROP: &str = include_str!("freeze/drop.ir");
const MAC_SWAP: &str = include_str!("freeze/mac_swap.ir");
const FIREWALL: &str = include_str!("freeze/firewall.ir");
const HISTOGRAM: &str = include_str!("freeze/histogram.ir");
const HISTOGRAM_PIPELINE: &str = include_str!("freeze/histogram.pipeline");

fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&program).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(parse(&print(&program)).as_ref(), Ok(&program));
    program
}

/// A running program, with its endpoints by name.
struct Bench<'p> {
    interpreter: Interpreter<'p>,
}

impl<'p> Bench<'p> {
    fn new(program: &'p Program) -> Self {
        let interpreter = Interpreter::new(program, &Options::default());
        Self { interpreter: interpreter.expect("a verified program") }
    }

    fn feed(&mut self, endpoint: &str, packet: &[u8]) {
        let endpoint = self.interpreter.endpoint(endpoint).expect("an endpoint");
        self.interpreter.feed_packet(endpoint, packet).expect("an endpoint into the graph");
    }

    fn run(&mut self) {
        self.interpreter.run(u64::MAX).expect("nothing to replay");
    }

    fn packets(&mut self, endpoint: &str) -> Vec<Vec<u8>> {
        let endpoint = self.interpreter.endpoint(endpoint).expect("an endpoint");
        self.interpreter.take_packets(endpoint).expect("an endpoint out of the graph")
    }

    fn variable(&self, instance: &str, name: &str, index: u64) -> u64 {
        let instance = self.interpreter.instance(instance).expect("an instance");
        let value = self.interpreter.read_variable(instance, name, index);
        value.expect("a visible variable").to_u64()
    }
}

/// Headers of an Ethernet frame that the firewall reads.
#[derive(Clone, Debug)]
struct Frame {
    ethernet_type: u16,
    header_words: u8,
    fragment: u16,
    protocol: u8,
    source: ([u8; 4], u16),
    target: ([u8; 4], u16),
    payload: usize,
}

impl Frame {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7];
        bytes.extend(self.ethernet_type.to_be_bytes());
        let options = usize::from(self.header_words.max(5) - 5) * 4;
        let transport = if self.protocol == 6 { 20 } else { 8 };
        let total = (20 + options + transport + self.payload) as u16;
        bytes.extend([0x40 | self.header_words, 0]);
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 1]);
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([64, self.protocol, 0, 0]);
        bytes.extend(self.source.0);
        bytes.extend(self.target.0);
        bytes.extend(vec![1; options]);
        bytes.extend(self.source.1.to_be_bytes());
        bytes.extend(self.target.1.to_be_bytes());
        bytes.extend(vec![0x5a; transport - 4 + self.payload]);
        bytes
    }
}

#[test]
fn drop_lets_nothing_through_and_counts_it() {
    let program = program(DROP);
    let mut bench = Bench::new(&program);
    for length in [1, 14, 60, 1514, 0] {
        bench.feed("rx", &vec![7; length]);
    }
    bench.run();
    assert_eq!(bench.packets("pass"), [[0u8; 0]; 0]);
    assert_eq!(bench.packets("tx"), [[0u8; 0]; 0]);
    assert_eq!(bench.variable("drop", "dropped", 0), 5);
}

#[test]
fn mac_swap_sends_back_whole_frames_only() {
    let program = program(MAC_SWAP);
    let mut bench = Bench::new(&program);
    let mut want = vec![];
    for length in [0, 1, 13, 14, 15, 60, 1514] {
        let packet: Vec<u8> = (0..length).map(|at| at as u8).collect();
        bench.feed("rx", &packet);
        if length >= 14 {
            want.push([&packet[6..12], &packet[..6], &packet[12..]].concat());
        }
    }
    bench.run();
    assert_eq!(bench.packets("tx"), want);
    assert_eq!(bench.packets("pass"), [[0u8; 0]; 0]);
    let swap = bench.interpreter.instance("swap").expect("it is there");
    assert_eq!(bench.interpreter.counters(swap).out_of_range, 0, "bounds are checked first");
}

/// An independent model of the firewall, over bytes: flows in the order of their last use.
#[derive(Default)]
struct Model {
    flows: Vec<([u8; 13], u64)>,
    passed: u64,
    dropped: u64,
}

impl Model {
    const CAPACITY: usize = 64;

    /// Returns whether a packet passes.
    fn packet(&mut self, packet: &[u8], is_inside: bool) -> bool {
        let passes = key_of(packet, is_inside).is_some_and(|key| self.flow(key, is_inside));
        if passes {
            self.passed += 1;
        } else {
            self.dropped += 1;
        }
        passes
    }

    fn flow(&mut self, key: [u8; 13], is_inside: bool) -> bool {
        let count = match self.flows.iter().position(|(each, _)| *each == key) {
            Some(at) => self.flows.remove(at).1 + 1,
            None if is_inside => 1,
            None => return false,
        };
        if self.flows.len() == Self::CAPACITY {
            self.flows.remove(0);
        }
        self.flows.push((key, count));
        true
    }
}

/// Returns the five-tuple of a packet as seen from outside.
fn key_of(packet: &[u8], is_inside: bool) -> Option<[u8; 13]> {
    let ip = packet.get(14..).filter(|ip| ip.len() >= 20)?;
    let header = usize::from(ip[0] & 15) * 4;
    let is_later = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0;
    if packet[12..14] != [8, 0] || ip[0] >> 4 != 4 || header < 20 || is_later {
        return None;
    }
    let transport = ip.get(header..)?;
    let least = match ip[9] {
        6 => 20,
        17 => 8,
        _ => return None,
    };
    if transport.len() < least {
        return None;
    }
    let (source, target) = ((&ip[12..16], &transport[..2]), (&ip[16..20], &transport[2..4]));
    let (source, target) = if is_inside { (target, source) } else { (source, target) };
    let key = [source.0, target.0, source.1, target.1, &[ip[9]]].concat();
    Some(key.try_into().expect("4 + 4 + 2 + 2 + 1 bytes"))
}

/// Returns a packet of one of a few hundred flows; sometimes one that the firewall cannot parse.
fn random_packet(random: &mut fastrand::Rng, is_inside: bool) -> Vec<u8> {
    let flow = random.u8(..);
    let (inner, outer) = (([10, 0, 0, flow % 16], 1000), ([8, 8, 8, flow / 16], 80));
    let (source, target) = if is_inside { (inner, outer) } else { (outer, inner) };
    let mut frame = Frame {
        ethernet_type: 0x0800,
        header_words: [5, 5, 5, 6, 15][random.usize(0..5)],
        fragment: 0x4000,
        protocol: if flow.is_multiple_of(3) { 17 } else { 6 },
        source,
        target,
        payload: random.usize(0..200),
    };
    match random.u8(0..40) {
        0 => frame.ethernet_type = 0x86dd,
        1 => frame.header_words = random.u8(0..5),
        2 => frame.fragment = random.u16(..),
        3 => frame.protocol = random.u8(..),
        _ => {}
    }
    let mut bytes = frame.bytes();
    match random.u8(0..40) {
        0 => bytes.truncate(random.usize(0..60)),
        1 => bytes[14] = random.u8(..),
        _ => {}
    }
    bytes
}

#[test]
fn the_firewall_decides_as_its_model_does() {
    let program = program(FIREWALL);
    let mut bench = Bench::new(&program);
    let mut model = Model::default();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut passed_in, mut began) = (0, 0);
    for _ in 0..10_000 {
        let is_inside = random.u8(0..10) < 4;
        let packet = random_packet(&mut random, is_inside);
        let before = model.flows.len();
        let passes = model.packet(&packet, is_inside);
        began += usize::from(model.flows.len() > before);
        passed_in += usize::from(passes && !is_inside);
        bench.feed(if is_inside { "from_inside" } else { "from_outside" }, &packet);
        bench.run();
        let want = if passes { vec![packet] } else { vec![] };
        let (through, other) = match is_inside {
            true => ("to_outside", "to_inside"),
            false => ("to_inside", "to_outside"),
        };
        assert_eq!(bench.packets(through), want);
        assert_eq!(bench.packets(other), [[0u8; 0]; 0]);
    }
    assert_eq!(began, Model::CAPACITY, "the table was filled");
    assert!(passed_in > 500 && model.dropped > 1_000, "both verdicts are common");
    assert_eq!(bench.variable("firewall", "passed", 0), model.passed);
    assert_eq!(bench.variable("firewall", "dropped", 0), model.dropped);
    check_flows(&mut bench, &model);
    let firewall = bench.interpreter.instance("firewall").expect("it is there");
    let counters = bench.interpreter.counters(firewall);
    assert_eq!((counters.firings, counters.out_of_range, counters.empty_reads), (10_000, 0, 0));
}

/// Checks that every flow of the model is present with its count, and no evicted one is.
fn check_flows(bench: &mut Bench, model: &Model) {
    let firewall = bench.interpreter.instance("firewall").expect("it is there");
    let mut packets = |key: &[u8]| {
        let key = Bits::from_le_bytes(104, key);
        let count = bench.interpreter.call_method(firewall, "packets", vec![key]);
        count.expect("a method").expect("it has a result").to_u64()
    };
    for (key, count) in &model.flows {
        assert_eq!(packets(key), *count, "{key:?}");
    }
    let mut known = 0;
    for flow in 0..=255u8 {
        let (inner, outer) = ([10, 0, 0, flow % 16], [8, 8, 8, flow / 16]);
        let protocol = if flow.is_multiple_of(3) { 17 } else { 6 };
        let ports = [0, 80, 3, 232];
        let key = [&outer[..], &inner[..], &ports[..], &[protocol]].concat();
        known += u64::from(packets(&key) > 0);
        let is_known = model.flows.iter().any(|(each, _)| each[..] == key);
        assert_eq!(packets(&key) > 0, is_known, "{key:?}");
    }
    assert!(known > 50, "most flows of the table are those of whole packets");
}

/// Returns at least 10,000 flits; `byte` gives byte 23 of each packet, and `length` its length.
fn flits(mut byte: impl FnMut(usize) -> u8, mut length: impl FnMut(usize) -> usize) -> Vec<Bits> {
    let mut flits = vec![];
    for at in 0.. {
        let mut packet = vec![0x11; length(at)];
        packet[23] = byte(at);
        flits.extend(flit::cut(&packet));
        if flits.len() >= 10_000 {
            break;
        }
    }
    flits
}

/// Runs the control-flow form on these flits; returns its output and the counts.
fn reference(program: &Program, flits: &[Bits]) -> (Vec<Bits>, Vec<u64>) {
    let mut bench = Bench::new(program);
    let rx = bench.interpreter.endpoint("rx").expect("an endpoint");
    for flit in flits {
        bench.interpreter.feed_item(rx, flit.clone()).expect("a flit");
    }
    bench.run();
    let tx = bench.interpreter.endpoint("tx").expect("an endpoint");
    let left = bench.interpreter.take_items(tx).expect("an endpoint out of the graph");
    (left, (0..256).map(|at| bench.variable("histogram", "counts", at)).collect())
}

fn clocked(program: &Program, pipeline: &Pipeline, flits: &[Bits]) -> Run {
    let mut always = |_, _| true;
    let clock_limit = flits.len() as u64 * 2;
    let options = RunOptions { clock_limit, reads_output: &mut always };
    let run = run(program, pipeline, vec![flits.to_vec()], options);
    run.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_read_modify_write_runs_at_one_flit_per_clock() {
    let program = program(HISTOGRAM);
    let pipeline = parse_pipeline(&program, HISTOGRAM_PIPELINE);
    let pipeline = pipeline.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(print_pipeline(&program, &pipeline), HISTOGRAM_PIPELINE);
    let mut random = fastrand::Rng::with_seed(23);
    let mut lengths = fastrand::Rng::with_seed(24);
    let traces = [
        ("repeated", flits(|_| 6, |_| 32)),
        ("alternating", flits(|at| [6, 17][at % 2], |_| 24)),
        ("random", flits(|_| random.u8(..), |_| 30)),
        ("few and mixed", flits(|at| (at % 3) as u8, |_| lengths.usize(24..200))),
    ];
    for (name, flits) in traces {
        let (left, counts) = reference(&program, &flits);
        assert_eq!(left, flits, "{name}");
        assert_eq!(counts.iter().sum::<u64>(), packets_of(&flits), "{name}");
        let run = clocked(&program, &pipeline, &flits);
        assert_eq!(run.outputs[0], left, "{name}");
        let state: Vec<u64> = run.state[0].iter().map(Bits::to_u64).collect();
        assert_eq!(state, counts, "{name}");
        let latency = u64::from(pipeline.stages());
        assert!(run.clocks <= flits.len() as u64 + latency, "{name}: {} clocks", run.clocks);
        assert_eq!(run.firings, flits.len() as u64, "{name}");
    }
}

fn packets_of(flits: &[Bits]) -> u64 {
    flits.iter().filter(|each| flit::Header::of(each).sop).count() as u64
}
