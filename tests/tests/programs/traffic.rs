// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generated traffic and its measurement: frames against the parsers of an independent stack, rates
//! and distributions on the interpreter's clock, which is the same in every run, and counts and
//! percentiles against Rust code for the same packets.

use fastrand::Rng;
use freeport_ir::Bits;
use freeport_ir::interp::{Interpreter, Options};
use freeport_testbed::cache::Cache;
use freeport_tests::oracle::seed;
use freeport_tests::running::{Running, program};
use smoltcp::wire::{EthernetFrame, IpAddress, IpProtocol, Ipv4Packet, TcpPacket, UdpPacket};
use std::collections::{BTreeMap, HashMap};

const GENERATOR: &str = "Generate<64> :: generator\ngenerator -> to_tor\n";
const LATENCY: &str = "Latency<64> :: latency\nDiscard :: others\nfrom_tor -> latency -> others\n";

/// Contents of a stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    time: u64,
    flow: u32,
    sequence: u32,
}

impl Stamp {
    fn of(payload: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().unwrap());
        assert_eq!(payload[16..18], [0x46, 0x73]);
        let time = u64::from_le_bytes(payload[..8].try_into().unwrap());
        Self { time, flow: word(8), sequence: word(12) }
    }
}

/// Parses a frame with the independent stack, which checks its checksums; returns the sender and
/// the stamp.
fn parsed(frame: &[u8]) -> ((IpAddress, u16), Stamp) {
    let ethernet = EthernetFrame::new_checked(frame).unwrap();
    let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
    assert!(ip.verify_checksum());
    assert_eq!(usize::from(ip.total_len()), frame.len() - 14);
    let (source, target) = (ip.src_addr().into(), ip.dst_addr().into());
    let (port, payload) = if ip.next_header() == IpProtocol::Udp {
        let udp = UdpPacket::new_checked(ip.payload()).unwrap();
        assert!(udp.checksum() != 0 && udp.verify_checksum(&source, &target));
        (udp.src_port(), udp.payload())
    } else {
        let tcp = TcpPacket::new_checked(ip.payload()).unwrap();
        assert!(tcp.verify_checksum(&source, &target));
        (tcp.src_port(), tcp.payload())
    };
    assert!(payload[18..].iter().all(|byte| *byte == 0));
    ((source, port), Stamp::of(payload))
}

#[test]
fn every_frame_is_right_and_every_flow_its_own() {
    let cache = Cache::of("native");
    let first = seed(1);
    let mut native = Running::native(&program(GENERATOR), cache.path());
    let mut random = Rng::with_seed(first);
    let mut sequences: HashMap<u32, u32> = HashMap::new();
    for round in 0..20 {
        let tcp = random.bool();
        let (least, most) = (random.u64(0..1_600), random.u64(0..9_300));
        let ports = random.u64(1..9);
        native.set(&[
            ("generator.flows.length_count", 0),
            ("generator.flows.least_length", least),
            ("generator.flows.most_length", most),
            ("generator.flows.least_packets", random.u64(1..4)),
            ("generator.flows.most_packets", random.u64(1..40)),
            ("generator.frames.protocol", if tcp { 6 } else { 17 }),
            ("generator.frames.sources", 8),
            ("generator.frames.source_ports", ports),
            ("generator.frames.service", random.u64(0..256)),
        ]);
        native.call("generator.flows.send(300)");
        let frames = native.sent();
        assert_eq!(frames.len(), 300, "seed {first}");
        let shortest = if tcp { 72 } else { 60 };
        let lengths = least.max(shortest)..=most.max(least).clamp(shortest, 9_216);
        for frame in &frames {
            assert!(lengths.contains(&(frame.len() as u64)), "round {round} of seed {first}");
            let ((address, port), stamp) = parsed(frame);
            assert_eq!(u64::from(port), 10_000 + u64::from(stamp.flow) % ports);
            let host = 1 + u64::from(stamp.flow) / ports % 8;
            assert_eq!(address, IpAddress::v4(10, 0, 0, host as u8));
            let next = sequences.entry(stamp.flow).or_default();
            assert_eq!(stamp.sequence, *next, "seed {first}");
            *next += 1;
        }
    }
    assert!(sequences.len() > 60 && native.get("generator.flows.started") > 200);
}

/// Returns whether counts fit equally likely bins: chi-square is below its 99.9th percentile.
fn is_even(counts: &[u64]) -> bool {
    let count: u64 = counts.iter().sum();
    let expected = count as f64 / counts.len() as f64;
    let square = |count: &u64| (*count as f64 - expected).powi(2) / expected;
    // Wilson and Hilferty's approximation of the percentile.
    let freedom = (counts.len() - 1) as f64;
    let part = 2.0 / (9.0 * freedom);
    counts.iter().map(square).sum::<f64>() < freedom * (1.0 - part + 3.09 * part.sqrt()).powi(3)
}

/// Returns the bin of a time between starts, among `bins` equally likely ones.
fn bin(gaps: u64, gap: f64, mean: f64, bins: usize) -> usize {
    let below = match gaps {
        1 => gap / (2.0 * mean),
        _ => 1.0 - (-gap / mean).exp(),
    };
    ((below * bins as f64) as usize).min(bins - 1)
}

#[test]
fn times_between_starts_are_distributed_as_they_are_said_to_be() {
    let text = "import \"traffic/draws.cnp\"
        .element Draw (uint gaps -> ulong gap) {
            .handler {
                set_output_port(gap, drawn_gap(read_input_port(gaps), 1000000000000, random()));
            }
        }
        Draw :: draw
        from_host -> draw -> to_host";
    let program = program(text);
    const DRAWS: usize = 20_000;
    for gaps in 0..3 {
        let options = Options { random_seed: 7, ..<_>::default() };
        let mut machine = Interpreter::new(&*program, &options).unwrap();
        let [input, output] = ["from_host", "to_host"].map(|name| machine.endpoint(name).unwrap());
        for _ in 0..DRAWS {
            machine.feed_item(input, Bits::from_u64(32, gaps)).unwrap();
        }
        machine.run(u64::MAX).unwrap();
        let drawn = machine.take_items(output).unwrap();
        let drawn: Vec<f64> = drawn.iter().map(|gap| gap.to_u64() as f64 / 1e12).collect();
        assert_eq!(drawn.len(), DRAWS);
        let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
        assert!((mean - 1.0).abs() < 0.02, "a mean of {mean} by {gaps}");
        if gaps == 0 {
            assert!(drawn.iter().all(|gap| *gap == 1.0));
            continue;
        }
        let mut counts = [0; 100];
        drawn.iter().for_each(|gap| counts[bin(gaps, *gap, 1.0, 100)] += 1);
        assert!(is_even(&counts), "{gaps}: {counts:?}");
        // The other distribution is distinguished.
        let mut counts = [0; 100];
        drawn.iter().for_each(|gap| counts[bin(3 - gaps, *gap, 1.0, 100)] += 1);
        assert!(!is_even(&counts));
    }
}

/// Returns the times at which packets were generated with these settings, on the interpreter.
fn departures(settings: &[(&str, u64)], calls: &[&str], count: u64) -> Vec<u64> {
    let mut running = Running::interpreted(&program(GENERATOR));
    running.set(settings);
    calls.iter().for_each(|call| assert_eq!(running.call(call), 1));
    running.call(&format!("generator.flows.send({count})"));
    let frames = running.sent();
    assert_eq!(frames.len() as u64, count);
    frames.iter().map(|frame| parsed(frame).1.time).collect()
}

#[test]
fn flows_start_by_their_distribution() {
    let settings = |gaps| {
        [
            ("generator.flows.gaps", gaps),
            ("generator.flows.gap", 300),
            ("generator.flows.least_packets", 1),
            ("generator.flows.most_packets", 1),
        ]
    };
    for gaps in [1, 2] {
        let times = departures(&settings(gaps), &[], 2_000);
        let mut counts = [0; 10];
        let gap_of = |pair: &[u64]| (pair[1] - pair[0]) as f64;
        times.windows(2).map(gap_of).for_each(|gap| counts[bin(gaps, gap, 300.0, 10)] += 1);
        assert!(is_even(&counts), "{gaps}: {counts:?}");
    }
}

#[test]
fn a_shaper_keeps_its_rate_whatever_the_lengths() {
    // Packets 250 ns apart.
    let times = departures(&[], &["generator.pace.packets_per_second(4000000)"], 2_000);
    let passed = (times[1_999] - times[0]) as f64;
    assert!((passed / (1_999.0 * 250.0) - 1.0).abs() < 0.01, "{passed}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] < 300), "none is late");

    // 10 Gb/s of lengths from a range: 400 bytes and 24 are 339.2 ns.
    let settings = [("generator.flows.least_length", 200), ("generator.flows.most_length", 600)];
    let times = departures(&settings, &["generator.pace.bits_per_second(10000000000)"], 2_000);
    let passed = (times[1_999] - times[0]) as f64;
    assert!((passed / (1_999.0 * 339.2) - 1.0).abs() < 0.01, "{passed}");
}

#[test]
fn what_a_pause_left_undone_follows_at_once_up_to_the_burst() {
    let mut running = Running::interpreted(&program(GENERATOR));
    running.set(&[("generator.pace.burst", 2_500)]);
    running.call("generator.pace.packets_per_second(4000000)");
    running.call("generator.flows.send(40)");
    running.sent();
    // As if the last packet had been sent long ago.
    running.set(&[("generator.pace.due", 1)]);
    running.call("generator.flows.send(100)");
    let times: Vec<u64> = running.sent().iter().map(|frame| parsed(frame).1.time).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let at_once = gaps.iter().take_while(|gap| **gap < 50).count();
    assert!((9..=11).contains(&at_once), "{at_once} of 250 ns each in a burst of 2,500: {gaps:?}");
}

/// Returns a stamped frame of a flow.
fn stamped(flow: u32, sequence: u32, time: u64) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
    frame[23] = 17;
    frame[42..50].copy_from_slice(&time.to_le_bytes());
    frame[50..54].copy_from_slice(&flow.to_le_bytes());
    frame[54..58].copy_from_slice(&sequence.to_le_bytes());
    frame[58..60].copy_from_slice(&[0x46, 0x73]);
    frame
}

/// Counts based on all packets received so far, where the element knows the last 64.
#[derive(Default)]
struct Counted {
    next: BTreeMap<u32, u32>,
    came: BTreeMap<u32, Vec<u32>>,
    lost: u64,
    reordered: u64,
    duplicated: u64,
    late: u64,
}

impl Counted {
    fn add(&mut self, flow: u32, sequence: u32) {
        let next = self.next.entry(flow).or_default();
        let came = self.came.entry(flow).or_default();
        if sequence >= *next {
            self.lost += u64::from(sequence - *next);
            *next = sequence + 1;
        } else if *next - 1 - sequence >= 64 {
            self.late += 1;
            return;
        } else if came.contains(&sequence) {
            self.duplicated += 1;
        } else {
            self.reordered += 1;
            self.lost -= 1;
        }
        came.push(sequence);
    }
}

#[test]
fn losses_and_disorder_are_counted_as_they_are() {
    let first = seed(1);
    let mut random = Rng::with_seed(first);
    let cache = Cache::of("native");
    let mut frames = vec![];
    let mut wanted = Counted::default();
    let mut nexts = [0u32; 5];
    for _ in 0..3_000 {
        let flow = random.usize(..5);
        let next = &mut nexts[flow];
        let sequence = match random.u32(0..10) {
            0 => *next + random.u32(1..5),
            1 => next.saturating_sub(random.u32(1..10)),
            2 => next.saturating_sub(random.u32(1..120)),
            3 if random.u32(0..20) == 0 => *next + random.u32(60..70),
            _ => *next,
        };
        *next = (*next).max(sequence + 1);
        wanted.add(flow as u32, sequence);
        frames.push(stamped(flow as u32, sequence, 0));
    }
    let all = [wanted.lost, wanted.reordered, wanted.duplicated, wanted.late];
    assert!(all.iter().all(|count| *count > 20), "seed {first}: {all:?}");
    for mut running in
        [Running::interpreted(&program(LATENCY)), Running::native(&program(LATENCY), cache.path())]
    {
        running.receive(&frames);
        assert_eq!(running.get("latency.received"), 3_000);
        let names = ["lost", "reordered", "duplicated", "late"];
        let found = names.map(|name| running.get(&format!("latency.{name}")));
        assert_eq!(found, all, "seed {first}");
    }
}

#[test]
fn percentiles_are_those_of_the_times_to_one_part_in_32() {
    let first = seed(1);
    let mut random = Rng::with_seed(first);
    let text = "import \"traffic/histogram.cnp\"
        .element Measure (ulong in -> ulong bucket) {
            .state { ulong count; ulong times[BUCKETS]; }
            .handler {
                uint at = bucket_of(read_input_port(in));
                times[at]++;
                count++;
                set_output_port(bucket, at);
            }
            .method ulong percentile(uint permille) { return value_at(times, count, permille); }
        }
        Measure :: measure
        from_host -> measure -> to_host";
    let program = program(text);
    let mut machine = Interpreter::new(&*program, &<_>::default()).unwrap();
    let input = machine.endpoint("from_host").unwrap();
    let measure = machine.instance("measure").unwrap();
    let percentile = |machine: &mut Interpreter<'_>, permille: u64| {
        let arguments = vec![Bits::from_u64(32, permille)];
        machine.call_method(measure, "percentile", arguments).unwrap().unwrap().to_u64()
    };
    assert_eq!(percentile(&mut machine, 500), 0);
    let mut values: Vec<u64> = (0..70).chain((0..40).map(|bit| (1 << bit) - 1)).collect();
    values.extend((0..500).map(|_| random.u64(..) >> random.u32(24..63)));
    for value in &values {
        machine.feed_item(input, Bits::from_u64(64, *value)).unwrap();
    }
    machine.run(u64::MAX).unwrap();
    values.sort_unstable();
    for permille in [0, 1, 10, 250, 500, 900, 990, 999, 1000, 5000] {
        let rank = (values.len() * permille.min(1_000)).div_ceil(1_000).max(1);
        let exact = values[rank - 1];
        let found = percentile(&mut machine, permille as u64);
        assert!(found >= exact && found - exact <= exact / 32, "{permille}: {found} for {exact}");
    }
}

#[test]
fn a_loop_back_is_calibrated_away() {
    let text = "Generate<64> :: generator\nLatency<64> :: latency\nDiscard :: others\n\
                generator -> latency -> others";
    let mut running = Running::interpreted(&program(text));
    running.call("generator.flows.send(20)");
    running.run(None, None);
    assert_eq!((running.get("latency.received"), running.get("latency.early")), (20, 0));
    // A firing takes a nanosecond.
    assert!(running.get("latency.least") > 0);
    let offset = running.call("latency.calibrate()");
    assert!(offset > 0 && offset == running.get("latency.offset"));
    assert_eq!((running.get("latency.received"), running.call("latency.mean()")), (0, 0));
    running.call("generator.flows.send(20)");
    running.run(None, None);
    assert_eq!((running.get("latency.received"), running.get("latency.lost")), (20, 0));
    assert_eq!((running.call("latency.percentile(500)"), running.get("latency.least")), (0, 0));
}
