// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that merge channels and distribute over them: which ready input is chosen, that no
//! packet is lost whichever channel is blocked, and that related packets stay in order.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_golden::native::Native;
use freeport_golden::run::{Machine, Reference};
use freeport_ir::interp::{Interpreter, Options as Running};
use freeport_ir::oracle::{ChannelOracle, InstanceOracle, Oracles};
use freeport_ir::{Bits, Item, Program, flit};
use freeport_native::Image;
use freeport_port::packet::flow_hash::copy_of;
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_tests::both::Both;
use freeport_tests::oracle::seed;
use freeport_tests::repository;
use std::collections::BTreeMap;

/// Number of inputs of an element that merges channels.
const INPUTS: usize = 4;
const JOINED: &str = "from_tor -> [1] dut\nfrom_nic -> [2] dut\nfrom_host -> [3] dut
    from_memory -> [4] dut\ndut -> to_tor\n";
const FROM: [&str; INPUTS] = ["from_tor", "from_nic", "from_host", "from_memory"];
const TO: [&str; 4] = ["to_tor", "to_nic", "to_host", "to_memory"];

fn compile(text: &str) -> Program {
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("plumbing.cnp", text, &library);
    compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}")).program
}

fn build(program: &Program) -> (Image, Cache) {
    let cache = Cache::of("native");
    let options = freeport_native::Options {
        optimization: 1,
        cache: Some(cache.path().to_owned()),
        ..freeport_native::Options::default()
    };
    (freeport_native::build(program, &options).unwrap(), cache)
}

/// Policy by which a firing chooses among ready inputs.
enum Choice {
    /// Round-robin.
    Turns,
    /// The first ready input.
    First,
}

impl Choice {
    fn of(&self, ready: u64, last: Option<usize>) -> usize {
        let from = match (self, last) {
            (Choice::Turns, Some(last)) => last + 1,
            _ => 0,
        };
        let inputs = (from..from + INPUTS).map(|input| input % INPUTS);
        inputs.into_iter().find(|input| ready >> input & 1 != 0).expect("one is ready")
    }
}

/// Feeds packets of at most `size` bytes at four inputs, replays firings with random sets of ready
/// inputs that still have packets, and checks that the packets leave as chosen. Returns the
/// choices, each with the bitmap of ready inputs.
fn check_choices(text: &str, choice: &Choice, size: usize, random: &mut Rng) -> Vec<(u64, usize)> {
    let program = compile(&format!("{text}{JOINED}"));
    let item = program.graph.endpoints[0].item;
    let flits = |packet: &Vec<u8>| match item {
        Item::Flit => flit::cut(packet).len(),
        _ => 1,
    };
    let packets: Vec<Vec<Vec<u8>>> = (0..INPUTS)
        .map(|input| {
            let packet = |number: u16| {
                let mut bytes = vec![input as u8; random.usize(3..=size)];
                bytes[1..3].copy_from_slice(&number.to_le_bytes());
                bytes
            };
            (0..200).map(packet).collect()
        })
        .collect();
    let (mut left, mut ready, mut expected) = ([0; INPUTS], vec![], vec![]);
    let (mut choices, mut last) = (vec![], None);
    loop {
        let waits = |input: &usize| left[*input] < packets[*input].len();
        let all: u64 = (0..INPUTS).filter(waits).map(|input| 1 << input).sum();
        if all == 0 {
            break;
        }
        let some = all & random.u64(..);
        let some = if some == 0 || random.bool() { all } else { some };
        let chosen = choice.of(some, last);
        last = Some(chosen);
        choices.push((some, chosen));
        let packet = &packets[chosen][left[chosen]];
        left[chosen] += 1;
        ready.push(some);
        // Until its last flit, no other input is taken.
        ready.extend((1..flits(packet)).map(|_| 1 << chosen));
        expected.push(packet.clone());
    }
    let instances = vec![InstanceOracle { ready, ..InstanceOracle::default() }];
    let channels = vec![ChannelOracle::default(); program.graph.channels.len()];
    let oracles = Oracles { instances, channels };
    let mut replay = Interpreter::replay(&program, oracles, &Running::default()).unwrap();
    for (name, packets) in FROM.iter().zip(&packets) {
        let from = replay.endpoint(name).unwrap();
        for packet in packets {
            match item {
                Item::Bits(width) => replay.feed_item(from, Bits::from_le_bytes(width, packet)),
                _ => replay.feed_packet(from, packet),
            }
            .unwrap();
        }
    }
    replay.run(u64::MAX).unwrap_or_else(|error| panic!("{text}{error}"));
    let to = replay.endpoint("to_tor").unwrap();
    let found: Vec<_> = match item {
        Item::Bits(_) => replay.take_items(to).unwrap().iter().map(Bits::to_le_bytes).collect(),
        _ => replay.take_packets(to).unwrap(),
    };
    assert!(found == expected, "{text}");
    choices
}

#[test]
fn whoever_is_ready_all_the_time_has_every_turn() {
    let mut random = Rng::with_seed(seed(31));
    for (text, size) in
        [("Mux<4> :: dut\n", 200), ("Mux<4, uint24> :: dut\n", 3), ("MuxFlits<4> :: dut\n", 200)]
    {
        let choices = check_choices(text, &Choice::Turns, size, &mut random);
        // The guarantee, independent of the algorithm: an input waits for no more than all others.
        for round in choices.windows(INPUTS) {
            let always = round.iter().fold(u64::MAX, |all, (ready, _)| all & ready);
            let served: u64 = round.iter().fold(0, |all, (_, chosen)| all | 1 << chosen);
            assert_eq!(always & !served, 0, "{round:?}");
        }
    }
}

#[test]
fn who_is_urgent_never_waits() {
    let mut random = Rng::with_seed(seed(32));
    for (text, size) in [("Priority<4> :: dut\n", 200), ("Priority<4, uint24> :: dut\n", 3)] {
        let choices = check_choices(text, &Choice::First, size, &mut random);
        for (ready, chosen) in choices {
            assert_eq!(ready & ((1 << chosen) - 1), 0);
        }
    }
}

#[test]
fn sixty_four_ways_part_and_meet() {
    let ways = (1..=64).map(|way| format!("split [{way}] -> [{way}] dut\n"));
    let ways: String = ways.collect();
    let text = "RoundRobin<64, uint> :: split\nMux<64, uint> :: dut\n\
                from_tor -> split\ndut -> to_tor\n";
    let numbers: Vec<Vec<u8>> = (0..1_000u32).map(|it| it.to_le_bytes().to_vec()).collect();
    let program = compile(&format!("{text}{ways}"));
    let mut reference = Reference::new(&program, 3).unwrap();
    let mut found = pass(&mut reference, &numbers);
    found.sort_by_key(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    assert_eq!(found, numbers);
}

fn pass(machine: &mut dyn Machine, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    packets.iter().for_each(|packet| machine.feed("from_tor", packet).unwrap());
    machine.settle().unwrap();
    machine.take("to_tor").unwrap()
}

/// Returns a frame of one of several flows, in either direction: IPv4 or IPv6, tagged or not, whole
/// or a fragment, with room for a number at the end.
fn frame(random: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    for _ in 0..[0, 0, 0, 1, 2, 3][random.usize(..6)] {
        bytes.extend([[0x81, 0, 0, 5], [0x88, 0xa8, 0, 6]][random.usize(..2)]);
    }
    let (mut source, mut target) = (random.u8(..3), 9);
    let (mut from, mut to) = (random.u16(1_000..1_005), 80);
    if random.bool() {
        (source, target, from, to) = (target, source, to, from);
    }
    let protocol = [6, 17, 17, 1][random.usize(..4)];
    match random.u8(..8) {
        0 => bytes.extend([0x08, 0x06]),
        1 | 2 => {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
            bytes.extend([[0; 15], [source; 15]].concat().iter().skip(14));
            bytes.extend([[0; 15], [target; 15]].concat().iter().skip(14));
        }
        _ => {
            let words = random.u8(5..8);
            let fragment = [0, 0x40, 0x20][random.usize(..3)];
            bytes.extend([8, 0, 0x40 | words, 0, 0, 60, 0, 1, fragment, 0, 64, protocol, 0, 0]);
            bytes.extend([10, 0, 0, source, 10, 0, 0, target]);
            bytes.extend((5..words).flat_map(|_| [1; 4]));
        }
    }
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.extend([0; 16]);
    bytes
}

#[test]
fn flows_are_spread_as_a_device_does_and_nothing_is_read_beyond_them() {
    let mut random = Rng::with_seed(seed(33));
    let mut frames = vec![];
    for _ in 0..if is_long() { 1_000 } else { 60 } {
        let whole = frame(&mut random);
        frames.extend((1..=whole.len()).map(|length| whole[..length].to_vec()));
        let mut changed = frame(&mut random);
        let at = random.usize(12..changed.len().min(40));
        changed[at] ^= 1 << random.u8(..8);
        frames.push(changed);
    }
    for outputs in [1, 3, 4] {
        let ends = (0..outputs).map(|at| format!("dut [{}] -> {}\n", at + 1, TO[at]));
        let text =
            format!("Spread<{outputs}> :: dut\nfrom_tor -> dut\n{}", ends.collect::<String>());
        let program = compile(&text);
        let mut expected = vec![vec![]; outputs];
        frames.iter().for_each(|frame| expected[copy_of(frame, outputs)].push(frame.clone()));
        assert!(expected.iter().all(|frames| !frames.is_empty()));
        let mut interpreter = Interpreter::new(&program, &Running::default()).unwrap();
        let from = interpreter.endpoint("from_tor").unwrap();
        frames.iter().for_each(|frame| interpreter.feed_packet(from, frame).unwrap());
        interpreter.run(u64::MAX).unwrap();
        let dut = interpreter.instance("dut").unwrap();
        assert_eq!(interpreter.counters(dut).out_of_range, 0);
        let (image, _cache) = build(&program);
        let mut native = Native::new(&image, 1).unwrap();
        frames.iter().for_each(|frame| native.feed("from_tor", frame).unwrap());
        native.settle().unwrap();
        for (name, expected) in TO.iter().zip(&expected) {
            let to = interpreter.endpoint(name).unwrap();
            assert!(interpreter.take_packets(to).unwrap() == *expected, "{name} of {outputs}");
            assert!(native.take(name).unwrap() == *expected, "{name} of {outputs}");
        }
    }
}

/// Groups frames by flow, as a device identifies it, in order.
fn by_flow(frames: &[Vec<u8>]) -> BTreeMap<usize, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        flows.entry(copy_of(frame, 1 << 16)).or_default().push(frame.clone());
    }
    flows
}

#[test]
fn nothing_is_lost_and_flows_stay_in_order_whoever_is_held() {
    let mut random = Rng::with_seed(seed(34));
    let frames: Vec<_> = (0..if is_long() { 4_000u16 } else { 400 })
        .map(|number| [&frame(&mut random)[..], &number.to_be_bytes()].concat())
        .collect();
    let ways = "from_tor -> spread [1] ->{depth = 2} [1] dut\nspread [2] ->{depth = 9} [2] dut
        spread [3] -> [3] dut\ndut -> to_tor\n";
    for (spread, join, is_by_flow) in [
        ("Spread<3>", "Mux<3>", true),
        ("Spread<3>", "Priority<3>", true),
        ("RoundRobin<3>", "Mux<3>", false),
    ] {
        let program = compile(&format!("{spread} :: spread\n{join} :: dut\n{ways}"));
        let (image, _cache) = build(&program);
        for seed in 0..6 {
            let mut reference = Reference::new(&program, seed).unwrap();
            let mut native = Native::new(&image, seed).unwrap();
            let machines: [&mut dyn Machine; 2] = [&mut reference, &mut native];
            for machine in machines {
                let mut found = pass(machine, &frames);
                if is_by_flow {
                    assert!(by_flow(&found) == by_flow(&frames), "{spread}, {join}, seed {seed}");
                }
                let mut all = frames.clone();
                found.sort();
                all.sort();
                assert!(found == all, "{spread}, {join}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_packet_in_flits_that_no_packet_can_hold_is_dropped_and_counted() {
    let whole = Both::new("PacketOf :: dut\nfrom_tor -> dut -> to_tor\n");
    let packet = |length: usize| (0..length).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    let lengths = [60, 9_216, 9_217, 64, 9_248, 12_000, 33, 9_216];
    let packets = lengths.map(packet);
    let found = whole.run(&[], &[("from_tor", &packets)]);
    let fitting: Vec<_> = packets.iter().filter(|it| it.len() <= 9_216).cloned().collect();
    assert!(found.out["to_tor"] == fitting);
    assert_eq!([found.counters["sent"], found.counters["too_long"]], [5, 3]);
}

#[test]
fn samples_are_drawn_evenly_and_without_a_pattern() {
    let program =
        compile("Sample<10, 1> :: dut\nfrom_tor -> dut [1] -> to_tor\ndut [2] -> to_nic\n");
    let packets: Vec<_> = (0..20_000u32).map(|number| number.to_le_bytes().to_vec()).collect();
    let mut reference = Reference::new(&program, 0).unwrap();
    assert!(pass(&mut reference, &packets) == packets);
    let samples = reference.take("to_nic").unwrap();
    // Six times the standard deviation of 42.
    assert!(samples.len().abs_diff(2_000) < 250, "{}", samples.len());
    let numbers: Vec<u32> =
        samples.iter().map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect();
    let gaps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
    let mut lengths: BTreeMap<u32, usize> = BTreeMap::new();
    gaps.for_each(|gap| *lengths.entry(gap).or_default() += 1);
    // A tenth of the samples follow directly, and the longest of 2,000 gaps is far above the mean.
    assert!(lengths[&1].abs_diff(200) < 90, "{lengths:?}");
    assert!(lengths.keys().any(|gap| *gap > 40), "{lengths:?}");
}
