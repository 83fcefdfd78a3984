// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of all kinds and shapes in native code compared with the interpreter: many operations on
//! few keys, references that outlive their entries, and host actions in between.

use crate::replay::{Driver, Traffic, check, image, options};
use fastrand::Rng;
use freeport_ir::text::parse;
use freeport_ir::{Bits, Program};
use freeport_native::{Error, Graph, RunStatus};
use freeport_testbed::cache::Cache;
use std::fmt::Write;

/// An element with one table, and the number of different keys it is fed.
struct Shape {
    kind: &'static str,
    key_bits: u32,
    value_bits: u32,
    capacity: u64,
    keys: u64,
}

const fn shape(kind: &'static str, bits: (u32, u32), capacity: u64, keys: u64) -> Shape {
    Shape { kind, key_bits: bits.0, value_bits: bits.1, capacity, keys }
}

/// Entries that share a line, two lines, or take many; tables that fill, thrash, or have room.
const SHAPES: [Shape; 9] = [
    shape("hash", (16, 64), 300, 400),
    shape("hash", (104, 96), 500, 600),
    shape("hash", (300, 640), 40, 50),
    shape("lru", (32, 64), 1, 3),
    shape("lru", (104, 128), 200, 260),
    shape("lru", (12, 512), 64, 80),
    shape("lpm", (64, 64), 150, 200),
    shape("lpm", (164, 72), 90, 100),
    shape("array", (9, 64), 256, 300),
];

impl Shape {
    fn item_bits(&self) -> u32 {
        8 + self.key_bits + self.value_bits
    }

    /// Operation 0 updates, 1 deletes, 2 counts in the value, 3 makes a reference stale and stores
    /// through it. The element outputs the results.
    fn element(&self, at: usize) -> String {
        let Shape { kind, key_bits, value_bits, capacity, .. } = self;
        let (item, value_at) = (self.item_bits(), 8 + key_bits);
        format!(
            "element E{at} {{
  in in: bits<{item}>
  out out: bits<66>
  table t: {kind} bits<{key_bits}> -> bits<{value_bits}> [{capacity}]
  handler {{
    entry:
      %item = take in
      %op = extract %item[0 +: 2]
      %key = extract %item[8 +: {key_bits}]
      %value = extract %item[{value_at} +: {value_bits}]
      %t = handle t
      %zero = const 0:64
      %nothing = null ref<table>
      switch %op {{ 0x0 -> set, 0x1 -> remove, 0x2 -> count, else -> outlive }}
    set:
      %done = update %t, %key, %value
      jump tell(%done, %zero)
    remove:
      %gone = delete %t, %key
      jump tell(%gone, %zero)
    count:
      %found = lookup %t, %key
      jump use(%found)
    outlive:
      %held = lookup %t, %key
      %was = delete %t, %key
      %other_bits = not %key
      %other = update %t, %other_bits, %value
      %either = select %other, %held, %nothing
      jump use(%either)
    use(%place: ref<table>):
      %is_there = is_valid %place
      %old = ref_load %place, 64
      %one = const 1:64
      %new = add %old, %one
      %back = const 0xff:8
      %after = const 1:8
      %further = ref_offset %place, %after
      %same = ref_offset %further, %back
      ref_store %same, %new
      jump tell(%is_there, %old)
    tell(%bit: bits<1>, %word: bits<64>):
      %pad = const 0:1
      %told = concat %bit, %pad, %word
      put out, %told
      done
  }}
}}
"
        )
    }

    fn key(&self, random: &mut Rng) -> Bits {
        let number = random.u64(..self.keys);
        if self.kind != "lpm" {
            // The key's number is spread over its bits, so that every part matters.
            let spread = Bits::from_u64(self.key_bits, number);
            return match self.kind {
                "array" => spread,
                _ => spread.insert(self.key_bits - 10, &Bits::from_u64(10, number)),
            };
        }
        // A tree of nested prefixes.
        let data_bits = self.key_bits - 32;
        let length = match random.u32(0..20) {
            0 => data_bits + 1,
            1 | 2 => data_bits - random.u32(0..3),
            _ => random.u32(0..=data_bits.min(20)),
        };
        let data = Bits::from_u64(data_bits, number & 0xff | (number & 3) << 12);
        Bits::from_u64(self.key_bits, u64::from(length)).insert(32, &data)
    }

    fn item(&self, random: &mut Rng) -> Bits {
        let op = [0, 0, 0, 0, 1, 2, 2, 2, 3][random.usize(0..9)];
        let value = Bits::from_u64(self.value_bits, random.u64(..));
        let item = Bits::from_u64(self.item_bits(), op).insert(8, &self.key(random));
        item.insert(8 + self.key_bits, &value)
    }
}

/// Returns a program of all shapes, each between endpoints of its own.
fn program() -> Program {
    let (mut text, mut graph) = ("program tables\n".to_owned(), "graph {\n".to_owned());
    for (at, shape) in SHAPES.iter().enumerate() {
        text += &shape.element(at);
        let bits = shape.item_bits();
        write!(
            graph,
            "  instance e{at}: E{at}\n  endpoint from{at}: into bits<{bits}>\n  \
             endpoint to{at}: out_of bits<66>\n  from{at} -> e{at}.in\n  e{at}.out -> to{at}\n"
        )
        .expect("memory for the text");
    }
    parse(&(text + &graph + "}\n")).unwrap_or_else(|error| panic!("{error}"))
}

fn input(random: &mut Rng, count: usize) -> Vec<Traffic> {
    let mut input = vec![];
    for shape in &SHAPES {
        let records = (0..count).map(|_| shape.item(random)).collect();
        input.push(Traffic { records, packets: vec![] });
        input.push(Traffic::default());
    }
    input
}

#[test]
fn tables_do_what_the_interpreter_says() {
    let cache = Cache::of("native");
    let program = program();
    let image = image(&program, &options(cache.path()));
    let mut random = Rng::with_seed(7);
    let mut driver = Driver::new(&image, input(&mut random, 2_000));
    assert_eq!(driver.run_in_pieces(&mut random, 10), RunStatus::Idle);
    let (oracles, execution) = driver.graph.take_recording();
    assert_eq!(driver.out, check(&program, oracles, &execution));
    for (at, shape) in SHAPES.iter().enumerate() {
        let entries = execution.tables[at][0].len() as u64;
        let about = format!("{} of {entries} entries", shape.kind);
        let is_as_full = match shape.kind {
            "hash" => entries > shape.capacity / 2,
            "lpm" => entries > 20,
            _ => entries == shape.capacity,
        };
        assert!(is_as_full, "{about}");
        assert!(execution.counters[at].out_of_range > 50, "{about}");
    }
}

#[test]
fn what_the_host_does_to_tables_replays() {
    let cache = Cache::of("native");
    let program = program();
    let image = image(&program, &options(cache.path()));
    let mut random = Rng::with_seed(8);
    let mut driver = Driver::new(&image, input(&mut random, 60));
    for _ in 0..30 {
        driver.run(&[2; 2 * SHAPES.len()], &[3; 2 * SHAPES.len()]);
        for (at, shape) in SHAPES.iter().enumerate() {
            host_acts(&mut driver.graph, at, shape, &mut random);
        }
    }
    driver.run_in_pieces(&mut random, 2);
    let (oracles, execution) = driver.graph.take_recording();
    let acted = oracles.instances.iter().map(|it| it.host.len()).min();
    assert!(acted > Some(20), "{acted:?}");
    check(&program, oracles, &execution);
    let graph = &mut driver.graph;
    let instance = graph.instance("e0").expect("an instance of the program");
    assert!(graph.table_lookup(instance, "u", &Bits::zero(16)).is_err(), "no such table");
    assert!(graph.table_lookup(instance, "t", &Bits::zero(15)).is_err());
    assert!(graph.table_update(instance, "t", Bits::zero(16), Bits::zero(63)).is_err());
    assert!(graph.table_delete(instance, "t", Bits::zero(17)).is_err());
    assert!(graph.table_entries(instance, "u").is_err());
}

/// Updates an entry, looks it up, lists it, and sometimes deletes it again.
fn host_acts(graph: &mut Graph, at: usize, shape: &Shape, random: &mut Rng) {
    let instance = graph.instance(&format!("e{at}")).expect("an instance of the program");
    let key = shape.key(random);
    let value = Bits::from_u64(shape.value_bits, random.u64(..));
    let updated = graph.table_update(instance, "t", key.clone(), value.clone()).expect("it fits");
    let found = graph.table_lookup(instance, "t", &key).expect("it fits");
    if updated {
        assert_eq!(found, Some(value.clone()));
        let entries = graph.table_entries(instance, "t").expect("it is there");
        assert!(entries.iter().any(|(_, listed)| *listed == value));
    }
    if random.bool() {
        let deleted = graph.table_delete(instance, "t", key.clone()).expect("it fits");
        assert_eq!(deleted, updated && shape.kind != "array");
    }
}

#[test]
fn a_table_that_is_too_large_is_refused_with_its_place() {
    let cache = Cache::of("native");
    let text = shape("hash", (32, 64), 1 << 32, 1).element(0);
    let graph = "graph {\n  instance e: E0\n  endpoint from: into bits<104>\n  \
                 endpoint to: out_of bits<66>\n  from -> e.in\n  e.out -> to\n}\n";
    let program = parse(&format!("program large\n{text}{graph}")).expect("a sound program");
    match freeport_native::emit(&program, &options(cache.path())) {
        Err(error @ Error::Unsupported { .. }) => {
            let message = error.to_string();
            assert!(message.contains("a table of over 4 GiB, t"), "{message}");
        }
        other => panic!("{:?}", other.map(|text| text.len())),
    }
}
