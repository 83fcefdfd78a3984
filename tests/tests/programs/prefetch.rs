// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prefetching memory before a firing changes the times of firings and nothing else: recordings
//! with it replay in the interpreter. A measurement, which does not run by default, prints the
//! rates with and without prefetching.

use crate::replay::{self, Driver, Traffic};
use freeport_clicknp::{Options, compile_text};
use freeport_ir::{Bits, InstanceId, Program};
use freeport_native::{Buffer, EndpointIo, Frame, Graph, Image, RunStatus};
use std::path::Path;
use std::time::Instant;

const EXACT: &str = include_str!("prefetch/exact.cnp");
const FLOWS: &str = include_str!("prefetch/flows.cnp");
const VERDICTS: &str = include_str!("prefetch/verdicts.cnp");

/// Ways to connect the elements of `VERDICTS`.
const JOINED: &str = "Split :: split\nLearn :: learn\nJoin :: join\nfrom_memory -> split\n\
                      split[1] -> learn -> [1]join\nsplit[2] -> [2]join -> to_memory\n";
const TWICE: &str = "Split :: split\nLearn :: learn\nLearn :: again\nJoin :: join\n\
                     from_memory -> split\nsplit[1] -> learn -> again ->{depth = 3} [1]join\n\
                     split[2] -> [2]join -> to_memory\n";
const LOSSY: &str = "Split :: split\nLearn :: learn\nfrom_memory -> split\n\
                     split[1] ->{depth = 12, lossy} learn -> to_memory\nsplit[2] -> to_host\n";
const FED: &str = "Learn :: learn\nfrom_memory -> learn -> to_memory\n";

fn program(elements: &str, graph: &str) -> Program {
    let options = Options { library: vec![freeport_tests::repository().join("elements")] };
    match compile_text("prefetch.cnp", &format!("{elements}{graph}"), &options) {
        Ok(compiled) => compiled.program,
        Err(failure) => panic!("{}", failure.render()),
    }
}

fn image(program: &Program, options: freeport_native::Options) -> Image {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefetch");
    replay::image(program, &freeport_native::Options { cache: Some(cache), ..options })
}

/// Returns the names of the channels that are not fused, with their capacity in items.
fn rings(image: &Image) -> Vec<(&str, u32)> {
    let channels = image.manifest.channels.iter();
    let rings = channels.filter(|it| !it.is_fused && it.endpoint.is_none() && it.reader.is_some());
    rings.map(|it| (it.name.as_str(), it.room)).collect()
}

/// Runs a graph of `VERDICTS` on random records in random pieces, and replays it; returns how each
/// run ended.
fn replayed(graph: &str) -> Vec<(Driver, RunStatus)> {
    replayed_after(graph, &[])
}

/// As [`replayed`], after a run on 300 records with room only at the endpoints of these names.
fn replayed_after(graph: &str, open: &[&str]) -> Vec<(Driver, RunStatus)> {
    let program = program(VERDICTS, graph);
    let image = image(&program, replay::options(Path::new("")));
    let rounds = (0..8).map(|seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = [100, 1_000][seed as usize % 2];
        let record = |_| Bits::from_u64(64, random.u64(..) & 0xffff_0003_0000_00ff);
        let records: Vec<Bits> = (0..count).map(record).collect();
        let mut input = vec![Traffic::default(); program.graph.endpoints.len()];
        let from = program.graph.endpoints.iter().position(|it| it.name == "from_memory");
        input[from.expect("it is fed")].records = records;
        let mut driver = Driver::new(&image, input);
        if !open.is_empty() {
            let endpoints = program.graph.endpoints.iter();
            let room = endpoints.map(|it| if open.contains(&&*it.name) { 300 } else { 0 });
            let room: Vec<usize> = room.collect();
            driver.run(&vec![300; room.len()], &room);
        }
        let status = driver.run_in_pieces(&mut random, 20);
        let (oracles, execution) = driver.graph.take_recording();
        let out = replay::check(&program, oracles, &execution);
        assert_eq!(driver.out, out, "what the host got is what entered the last channels");
        (driver, status)
    });
    rounds.collect()
}

#[test]
fn verdicts_of_a_table_join_what_waits_for_them() {
    for graph in [JOINED, TWICE] {
        for (driver, status) in replayed(graph) {
            assert_eq!(status, RunStatus::Idle);
            let firings = driver.graph.counters().instances[0].firings;
            let out: usize = driver.out.iter().map(|it| it.records.len()).sum();
            assert_eq!(out as u64, firings);
        }
    }
}

#[test]
fn records_of_the_host_are_looked_at_ahead() {
    for (driver, status) in replayed(FED) {
        assert_eq!(status, RunStatus::Idle);
        let counters = driver.graph.counters();
        assert!(counters.instances[0].out_of_range > 0, "kinds reach beyond the entries");
    }
}

#[test]
fn a_lossy_channel_drops_only_when_its_reader_is_held() {
    let mut dropped = 0;
    for (driver, status) in replayed_after(LOSSY, &["to_host"]) {
        assert_eq!(status, RunStatus::Idle);
        let counters = driver.graph.counters();
        let lossy = counters.channels.iter().map(|channel| channel.dropped).sum::<u64>();
        assert_eq!(counters.instances[0].firings, counters.instances[1].firings + lossy);
        dropped += lossy;
    }
    assert!(dropped > 0, "the host has no room behind the table at first");
    let program = program(VERDICTS, LOSSY);
    let image = image(&program, freeport_native::Options::default());
    let mut graph = Graph::load(&image).expect("a library just built");
    let records = vec![7; 8 * 5_000];
    let (mut one, mut other) = (vec![0; records.len()], vec![0; records.len()]);
    let mut io = program.graph.endpoints.iter().map(|endpoint| match endpoint.name.as_str() {
        "from_memory" => EndpointIo::records_in(&records),
        "to_memory" => EndpointIo::records_out(std::mem::take(&mut one).leak()),
        _ => EndpointIo::records_out(std::mem::take(&mut other).leak()),
    });
    let status = graph.run(&mut io.by_ref().collect::<Vec<_>>()).expect("an io for each endpoint");
    assert_eq!(status, RunStatus::Idle);
    let drops: u64 = graph.counters().channels.iter().map(|channel| channel.dropped).sum();
    assert_eq!(drops, 0, "there is room for all, and the reader gets its turn in time");
}

/// Counts by key in tables of each kind whose entry's address follows from the key.
const TABLES: &str = "\
program tables
element Step {
  in in: bits<64>
  out out: bits<64>
  handler {
    entry:
      %x = take in
      put out, %x
      done
  }
}
element Look {
  in in: bits<64>
  out out: bits<64>
  table hosts: hash bits<32> -> bits<64> [4096]
  table recent: lru bits<16> -> bits<32> [3000]
  table slots: array bits<24> -> bits<32> [8192]
  table routes: lpm bits<64> -> bits<32> [2048]
  handler {
    entry:
      %x = take in
      %one = const 1:64
      %unit = const 1:32
      %hosts = handle hosts
      %recent = handle recent
      %slots = handle slots
      %routes = handle routes
      %host = trunc %x to 32
      %half = trunc %x to 16
      %slot = extract %x[20 +: 24]
      %length = extract %x[40 +: 5]
      %bits = zext %length to 32
      %route = concat %bits, %host
      %a = lookup %hosts, %host
      %b = lookup %recent, %half
      %c = lookup %slots, %slot
      %d = lookup %routes, %route
      %n = ref_load %a, 64
      %m = ref_load %b, 32
      %k = ref_load %c, 32
      %l = ref_load %d, 32
      %km = add %k, %m
      %kml = add %km, %l
      %low = add %kml, %unit
      %more = add %n, %one
      %y = insert %x[32], %low
      put out, %y
      %r = update %hosts, %host, %more
      %s = update %recent, %half, %low
      %t = update %slots, %slot, %low
      %u = update %routes, %route, %low
      done
  }
}
graph {
  instance step: Step
  instance look: Look
  endpoint from_memory: into bits<64>
  endpoint to_memory: out_of bits<64>
  from_memory -> step.in
  step.out -> look.in
  look.out -> to_memory
}
";

#[test]
fn places_of_keys_in_tables_are_asked_for() {
    let program = freeport_ir::text::parse(TABLES).unwrap_or_else(|error| panic!("{error}"));
    let options = replay::options(Path::new(""));
    let text = freeport_native::emit(&program, &options).expect("native code can do it");
    let asked = (0..4).all(|table| text.contains(&format!("    table_prefetch_1_{table}(state, ")));
    assert!(asked, "each table's place is told by the item");
    let image = image(&program, options);
    assert_eq!(rings(&image), [("step.out -> look.in", 63)]);
    let reported = image.manifest.channels.iter().find(|it| it.name == "step.out -> look.in");
    assert_eq!(reported.expect("a channel").asked, ["hosts", "recent", "slots", "routes"]);
    let mut random = fastrand::Rng::with_seed(5);
    let record = |_| Bits::from_u64(64, random.u64(..) & 0x1f00_0fff_03ff);
    let records = (0..3_000).map(record).collect();
    let input = vec![Traffic { records, packets: vec![] }, Traffic::default()];
    let mut driver = Driver::new(&image, input);
    let status = driver.run_in_pieces(&mut random, 20);
    assert_eq!(status, RunStatus::Idle);
    let (oracles, execution) = driver.graph.take_recording();
    assert_eq!(driver.out, replay::check(&program, oracles, &execution));
}

#[test]
fn rings_around_a_large_table_are_deep_and_others_are_not() {
    let rings_of = |graph: &str, prefetch: bool| {
        let options = freeport_native::Options { prefetch, ..replay::options(Path::new("")) };
        let image = image(&program(VERDICTS, graph), options);
        rings(&image).iter().map(|(name, room)| format!("{name} {room}")).collect::<Vec<_>>()
    };
    let joined = ["split.ask -> learn.in 63", "split.rest -> join.rest 63"];
    let with = rings_of(JOINED, true);
    assert!(joined.iter().all(|it| with.contains(&it.to_string())), "{with:?}");
    assert!(with.contains(&"learn.out -> join.verdict 63".to_owned()), "{with:?}");
    let without = rings_of(JOINED, false);
    assert_eq!(without, ["learn.out -> join.verdict 16", "split.rest -> join.rest 16"]);
    assert_eq!(rings_of(LOSSY, true), ["split.ask -> learn.in 12"]);
    assert!(rings_of(LOSSY, false).is_empty());
}

/// Sends records through a graph repeatedly; returns the rate per second.
fn rate(graph: &mut Graph, records: &[u8], record_bytes: usize, laps: usize) -> f64 {
    let batch = 4_096 * record_bytes;
    let mut room = vec![0; batch];
    let mut best = f64::MAX;
    for _ in 0..laps {
        let start = Instant::now();
        for chunk in records.chunks(batch) {
            let mut io = [EndpointIo::records_in(chunk), EndpointIo::records_out(&mut room)];
            let status = graph.run(&mut io).expect("an io for each endpoint");
            assert_eq!(status, RunStatus::Idle);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    (records.len() / record_bytes) as f64 / best
}

#[test]
#[ignore = "a measurement, of a minute"]
fn measure_rates_with_and_without() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut words = |count: usize| (0..count).map(|_| random.u32(..)).collect::<Vec<u32>>();
    let tuples: Vec<Vec<u32>> = (0..128 << 10).map(|_| words(4)).collect();
    let flows: Vec<Vec<u32>> = (0..1 << 20).map(|_| words(3)).collect();
    let mut random = fastrand::Rng::with_seed(2);
    let bytes = |words: &[u32]| words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let mut pick = |from: &[Vec<u32>], pad: &[u32], count: usize| -> Vec<u8> {
        let pick = |_| bytes(&[&from[random.usize(..from.len())][..], pad].concat());
        (0..count).flat_map(pick).collect()
    };
    let matches = pick(&tuples, &[0, 0], 1 << 20);
    let keys = pick(&flows, &[0], 1 << 21);
    for (name, elements, graph, records, record_bytes) in [
        ("two counters", EXACT, "Count :: a\nCount :: b\nfrom_memory -> a -> b", &matches, 24),
        ("exact match", EXACT, "Exact :: table\nfrom_memory -> table", &matches, 24),
        (
            "count, exact match",
            EXACT,
            "Count :: a\nExact :: table\nfrom_memory -> a -> table",
            &matches,
            24,
        ),
        (
            "count, exact match, count",
            EXACT,
            "Count :: a\nExact :: table\nCount :: b\nfrom_memory -> a -> table -> b",
            &matches,
            24,
        ),
        ("cuckoo hash", "", "CuckooHash :: table\nfrom_memory -> table", &matches, 24),
        (
            "cuckoo hash, twice",
            "",
            "CuckooHash :: table\nCuckooHash :: b\nfrom_memory -> table -> b",
            &matches,
            24,
        ),
        ("pass, kinds", FLOWS, "Pass :: a\nKinds :: table\nfrom_memory -> a -> table", &keys, 16),
        (
            "pass, kinds, pass",
            FLOWS,
            "Pass :: a\nKinds :: table\nPass :: b\nfrom_memory -> a -> table -> b",
            &keys,
            16,
        ),
        ("flows", FLOWS, "Flows :: table\nfrom_memory -> table", &keys, 16),
        ("pass, flows", FLOWS, "Pass :: a\nFlows :: table\nfrom_memory -> a -> table", &keys, 16),
    ] {
        let program = program(elements, &format!("{graph} -> to_memory\n"));
        for prefetch in [false, true] {
            let image =
                image(&program, freeport_native::Options { prefetch, ..Default::default() });
            let mut graph = Graph::load(&image).expect("a library just built");
            if let Some(table) = graph.instance("table").filter(|_| elements != FLOWS) {
                for (at, tuple) in tuples.iter().enumerate() {
                    let tuple = Bits::from_le_bytes(128, &bytes(tuple));
                    let (priority, action) = (Bits::from_u64(16, 1), Bits::from_u64(32, at as u64));
                    let arguments = [tuple, action, priority];
                    graph.call_method(table, "insert", &arguments).expect("it has the method");
                }
            }
            let rate = rate(&mut graph, records, record_bytes, 5) / 1e6;
            println!("{name}, asked ahead {prefetch}: {rate:.1} M/s, {:.1} ns", 1e3 / rate);
        }
    }
}

/// The library's firewall, with a rule that passes every packet.
const FIREWALL: &str = "Parse :: parse\nCuckooHash :: table\nPacketBuffer<1> :: buffer\n\
                        from_tor -> parse [out] -> [in] buffer -> to_tor\n\
                        parse [match] -> table -> [verdict] buffer\n";

#[test]
fn packets_wait_for_their_verdicts() {
    let program = program("", &FIREWALL.replace("CuckooHash", "CuckooHash<8192>"));
    let image = image(&program, replay::options(Path::new("")));
    let deep = ["parse.match -> table.in", "parse.out -> buffer.in", "table.out -> buffer.verdict"];
    let mut rings = rings(&image);
    rings.sort_unstable();
    assert_eq!(rings, deep.map(|name| (name, 63)));
    let mut random = fastrand::Rng::with_seed(9);
    let packets = (0..500).map(|_| packet(random.u32(0..64)).to_vec()).collect();
    let input = vec![Traffic { packets, records: vec![] }, Traffic::default()];
    let mut driver = Driver::new(&image, input);
    let table = driver.graph.instance("table").expect("an instance of the program");
    for source in 0..32 {
        insert(&mut driver.graph, table, source);
    }
    assert_eq!(driver.run_in_pieces(&mut random, 20), RunStatus::Idle);
    let (oracles, execution) = driver.graph.take_recording();
    assert_eq!(driver.out, replay::check(&program, oracles, &execution));
    let passed = driver.out[1].packets.len();
    assert!((150..350).contains(&passed), "half of the sources have a rule: {passed}");
}

/// Adds a rule that passes the result of `packet` for a source.
fn insert(graph: &mut Graph, table: InstanceId, source: u32) {
    let tuple = Bits::from_u64(128, 0x0a00_0001 << 32 | u64::from(source))
        .insert(64, &Bits::from_u64(40, 17 << 32 | 53 << 16 | 1024));
    let arguments = [tuple, Bits::from_u64(32, 0), Bits::from_u64(16, 1)];
    graph.call_method(table, "insert", &arguments).expect("it has the method");
}

/// A UDP packet of 64 bytes from `source` to port 53 of 10.0.0.1.
fn packet(source: u32) -> [u8; 64] {
    let mut packet = [0; 64];
    packet[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17]);
    packet[26..30].copy_from_slice(&source.to_be_bytes());
    packet[30..34].copy_from_slice(&[10, 0, 0, 1]);
    packet[34..40].copy_from_slice(&[4, 0, 0, 53, 0, 30]);
    packet
}

#[test]
#[ignore = "a measurement, of some seconds"]
fn measure_a_firewall_with_and_without() {
    let mut random = fastrand::Rng::with_seed(1);
    let sources: Vec<u32> = (0..128 << 10).map(|_| random.u32(..)).collect();
    for prefetch in [false, true] {
        let program = program("", FIREWALL);
        let image = image(&program, freeport_native::Options { prefetch, ..Default::default() });
        let mut graph = Graph::load(&image).expect("a library just built");
        let table = graph.instance("table").expect("an instance of the program");
        for source in &sources {
            insert(&mut graph, table, *source);
        }
        let mut memory: Vec<[u8; 64]> = sources.iter().map(|source| packet(*source)).collect();
        let mut room = vec![[0; 64]; 256];
        let mut best = f64::MAX;
        for _ in 0..9 {
            let mut spent = 0.0;
            for chunk in memory.chunks_mut(256) {
                let mut frames: Vec<_> = chunk.iter_mut().map(|it| Frame::new(it)).collect();
                let mut buffers: Vec<_> = room.iter_mut().map(|it| Buffer::new(it)).collect();
                let mut io =
                    [EndpointIo::frames_in(&mut frames), EndpointIo::frames_out(&mut buffers)];
                let start = Instant::now();
                let status = graph.run(&mut io).expect("an io for each endpoint");
                spent += start.elapsed().as_secs_f64();
                assert_eq!((status, io[1].done()), (RunStatus::Idle, 256));
            }
            best = best.min(spent);
        }
        let rate = memory.len() as f64 / best / 1e6;
        println!("firewall, asked ahead {prefetch}: {rate:.1} M/s, {:.1} ns", 1e3 / rate);
    }
}
