// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs whose helpers are replaced by functions behave like the originals, in the interpreter
//! and compiled, on the model: results, errors, memory that is written, and the helpers that
//! remain.

use fastrand::Rng;
use freeport_ebpf::analysis::Graph;
use freeport_ebpf::analysis::graph::Called;
use freeport_ebpf::instruction::assemble;
use freeport_ebpf::interpreter::{Environment, Machine, Packet};
use freeport_ebpf::object::{MapDefinition, MapKind, Object, Program};
use freeport_vliw::image::Image;
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::{Options, compile, with_local_helpers};

fn map(kind: MapKind) -> MapDefinition {
    let (key_size, value_size, max_entries) = (4, 8, 5);
    MapDefinition {
        name: "map".into(),
        kind,
        key_size,
        value_size,
        max_entries,
        ..Default::default()
    }
}

fn object(text: &str, kind: MapKind) -> Object {
    let instructions = assemble(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let program = Program { name: "main".into(), instructions, ..Program::default() };
    Object { programs: vec![program], maps: vec![map(kind)], ..Object::default() }
}

/// A program in its original form, and with functions for helpers.
struct Both {
    objects: [Object; 2],
    image: Image,
}

impl Both {
    fn new(object: Object) -> Self {
        let changed = with_local_helpers(&object);
        let image = compile(&changed.programs[0], &changed.maps, &Options::default());
        Self { objects: [object, changed], image: image.expect("it can be executed") }
    }

    /// Returns the helpers that are still called.
    fn helpers(&self) -> Vec<u32> {
        let graph = Graph::of(&self.objects[1].programs[0]).expect("it has a graph");
        let calls = graph.calls().iter().filter_map(|call| match call.callee {
            Called::Helper(helper) => Some(helper),
            _ => None,
        });
        calls.collect()
    }

    /// Returns register 0 and the packet at the end. The interpreter with both forms, and the
    /// model, must agree.
    fn outcome(&self, bytes: &[u8], what: &str) -> (i32, Vec<u8>) {
        let [original, changed] = self.objects.each_ref().map(|object| {
            let mut machine = Machine::load(object, Environment::default()).expect("it can run");
            let mut packet = Packet::new(bytes).expect("a short one");
            let run = machine.run(0, &mut packet);
            assert_eq!(run.aborted, None, "{what}");
            (run.value as i32, packet.bytes().to_vec())
        });
        assert_eq!(changed, original, "{what}");
        let object = &self.objects[1];
        let mut machine = Machine::load(object, Environment::default()).expect("it can run");
        let mut packet = Packet::new(bytes).expect("a short one");
        let model = Model::new(vec![Some(self.image.clone())], Mode::Strict);
        let run = model.run(&mut machine, 0, &mut packet);
        let outcome = run.unwrap_or_else(|fault| panic!("{what}: {fault}")).outcome;
        assert_eq!(outcome.aborted, None, "{what}");
        assert_eq!((outcome.value as i32, packet.bytes().to_vec()), original, "{what}, model");
        original
    }
}

/// Creates a program that loops; the function adds up its arguments, and ends the loop at `stop`.
fn looping(count: u64, stop: u64, flags: u64) -> Object {
    let text = format!(
        "*(u64 *)(r10 - 8) = 0
         r6 = 7
         r1 = 0x{count:x} ll
         r2 = function add
         r3 = r10
         r3 += -8
         r4 = 0x{flags:x} ll
         call 181
         r1 = *(u64 *)(r10 - 8)
         r1 *= 1000
         r0 += r1
         r0 += r6
         exit
         add:
         r6 = 99
         r0 = 0
         r3 = *(u64 *)(r2 + 0)
         r3 += r1
         *(u64 *)(r2 + 0) = r3
         if r1 != {stop} goto on
         r0 = 1
         on:
         exit"
    );
    object(&text, MapKind::Array)
}

#[test]
fn loops_are_as_long_as_the_helpers() {
    let end = |count, stop, flags| {
        let both = Both::new(looping(count, stop, flags));
        assert_eq!(both.helpers(), []);
        both.outcome(&[0; 16], &format!("{count} {stop} {flags}")).0
    };
    assert_eq!(end(0, 99, 0), 7);
    assert_eq!(end(4, 99, 0), 6_000 + 4 + 7);
    assert_eq!(end(10, 2, 0), 3_000 + 3 + 7, "the one that ends it counts");
    assert_eq!(end(1 << 32 | 3, 99, 0), 3_000 + 3 + 7, "the count has 32 bits");
    assert_eq!(end(3, 99, 1), -22 + 7);
    assert_eq!(end(1 << 23 | 1, 99, 0), -7 + 7);
    assert_eq!(end(1 << 24, 99, 1 << 40), -22 + 7, "flags are looked at first");
    assert_eq!(end(1 << 23, 5, 0), 15_000 + 6 + 7, "as many as there may be");
}

/// Creates a program that sets two entries of its map, then iterates over it and adds up keys and
/// values.
fn walking(kind: MapKind, stop: u32, flags: u64) -> Object {
    let text = format!(
        "r6 = 1
         again:
         *(u32 *)(r10 - 4) = r6
         r7 = r6
         r7 *= 100
         *(u64 *)(r10 - 16) = r7
         r1 = map[0]
         r2 = r10
         r2 += -4
         r3 = r10
         r3 += -16
         r4 = 0
         call 2
         r6 += 2
         if r6 <= 3 goto again
         *(u64 *)(r10 - 24) = 0
         r1 = map[0]
         r2 = function add
         r3 = r10
         r3 += -24
         r4 = 0x{flags:x} ll
         call 164
         r1 = *(u64 *)(r10 - 24)
         r1 *= 1000
         r0 += r1
         exit
         add:
         r0 = 0
         r5 = *(u64 *)(r3 + 0)
         r2 = *(u32 *)(r2 + 0)
         r5 += r2
         r1 = *(u64 *)(r4 + 0)
         r1 += r5
         *(u64 *)(r4 + 0) = r1
         *(u64 *)(r3 + 0) = r2
         if r2 != {stop} goto on
         r0 = 1
         on:
         exit"
    );
    object(&text, kind)
}

#[test]
fn walks_over_arrays_see_each_entry() {
    for kind in [MapKind::Array, MapKind::PerCpuArray] {
        let end = |stop, flags| {
            let both = Both::new(walking(kind, stop, flags));
            assert_eq!(both.helpers(), [2, 1]);
            both.outcome(&[0; 16], "walk").0
        };
        assert_eq!(end(9, 0), 410_000 + 5);
        assert_eq!(end(1, 0), 101_000 + 2);
        assert_eq!(end(9, 4), -22);
    }
}

#[test]
fn what_is_not_known_stays_a_helper() {
    let walk = Both::new(walking(MapKind::Hash, 9, 0));
    assert_eq!(walk.helpers(), [2, 164]);
    walk.outcome(&[0; 16], "a walk over a hash");
    // One of two functions.
    let text = "r6 = *(u32 *)(r1 + 0)
        r7 = *(u32 *)(r1 + 4)
        r1 = 3
        r2 = function one
        if r6 == r7 goto call
        r2 = function other
        call:
        r3 = 0
        r4 = 0
        call 181
        exit
        one:
        r0 = 0
        exit
        other:
        r0 = 1
        exit";
    let either = Both::new(object(text, MapKind::Array));
    assert_eq!(either.helpers(), [181]);
    assert_eq!(either.outcome(&[0; 16], "the other one").0, 1);
    assert_eq!(either.outcome(&[], "the one").0, 3);
    // Seven active functions leave no room for another between the last two.
    let nested: String =
        (1..7).map(|at| format!("call f{at}\nexit\nf{at}:\n")).collect::<Vec<_>>().concat();
    let deep = |calls: &str| {
        let end = "r1 = 3\nr2 = function last\nr3 = 0\nr4 = 0\ncall 181\nexit\nlast:\nr0 = 0\nexit";
        Both::new(object(&format!("{calls}{end}"), MapKind::Array))
    };
    assert_eq!(deep(&nested).helpers(), [181]);
    let nested = nested.replacen("call f1\nexit\nf1:\n", "", 1);
    assert_eq!(deep(&nested).helpers(), []);
    assert_eq!(deep(&nested).outcome(&[0; 16], "deep").0, 3);
}

/// Creates a program that copies packet bytes to its stack, calls a helper with them, and writes
/// the result to the start of the packet.
fn reading(helper: u32, rest: &str) -> Object {
    let copy: String = (0..96)
        .step_by(8)
        .map(|at| format!("r3 = *(u64 *)(r6 + {})\n*(u64 *)(r10 - {}) = r3\n", at + 8, 96 - at))
        .collect();
    let text = format!(
        "r6 = *(u32 *)(r1 + 0)
         r2 = *(u32 *)(r1 + 4)
         r3 = r6
         r3 += 104
         r0 = 77
         if r3 > r2 goto short
         {copy}
         r2 = *(u8 *)(r6 + 0)
         r1 = r10
         r1 += -96
         r4 = r10
         r4 += -112
         *(u64 *)(r10 - 112) = 5
         *(u64 *)(r10 - 104) = 0
         {rest}
         call {helper}
         r1 = *(u64 *)(r10 - 112)
         *(u64 *)(r6 + 0) = r1
         *(u64 *)(r6 + 8) = r0
         short:
         exit"
    );
    object(&text, MapKind::Array)
}

/// Creates a packet that begins with a length, followed by a text.
fn packet(length: usize, text: &[u8]) -> Vec<u8> {
    let mut packet = vec![length as u8, 0, 0, 0, 0, 0, 0, 0];
    packet.extend(text);
    packet.resize(104, 0);
    packet
}

#[test]
fn numbers_are_read_as_by_the_helpers() {
    let texts: Vec<&[u8]> = vec![
        b"42",
        b"-42 ",
        b" \t\n-42x",
        b"0x1fg",
        b"0X1F",
        b"017",
        b"08",
        b"0x",
        b"0xg",
        b"-",
        b"",
        b"  ",
        b"x",
        b"\xa07",
        b"-0",
        b"9223372036854775807",
        b"9223372036854775808",
        b"-9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551615",
        b"18446744073709551616",
        b"0xffffffffffffffff",
        b"0x10000000000000000",
        b"01777777777777777777777",
        b"02000000000000000000000",
        b"-99999999999999999999999",
        b"0000000000000000000000000000000000000000000000000000000000000000000000000001",
        b"  -000000000000000000000000000000000000000000000000000000000000000000123",
    ];
    let mut random = Rng::with_seed(7);
    let random_texts: Vec<Vec<u8>> = (0..60)
        .map(|_| {
            let length = random.usize(1..24);
            (0..length).map(|_| random.choice(*b" -0x19afF8\t").unwrap_or(b'0')).collect()
        })
        .collect();
    let texts: Vec<&[u8]> =
        texts.into_iter().chain(random_texts.iter().map(Vec::as_slice)).collect();
    let mut seen = std::collections::BTreeSet::new();
    for helper in [105, 106] {
        for base in [0_u64, 8, 10, 16, 2, 32, 42, 1 << 40] {
            let both = Both::new(reading(helper, &format!("r3 = 0x{base:x} ll")));
            assert_eq!(both.helpers(), []);
            for text in &texts {
                let what = format!("{helper}: {:?}, base {base}", text.escape_ascii().to_string());
                seen.insert(both.outcome(&packet(text.len(), text), &what).0);
            }
        }
    }
    assert!([-22, -34, 1, 2, 23].iter().all(|result| seen.contains(result)), "{seen:?}");
}

#[test]
fn texts_are_compared_as_by_the_helper() {
    let both = Both::new(reading(182, "r3 = r10\nr3 += -48"));
    assert_eq!(both.helpers(), []);
    let mut seen = std::collections::BTreeSet::new();
    let texts: [&[u8]; 9] =
        [b"", b"GET ", b"GET", b"GETX", b"get ", b"GET /", b"\xff", b"\x01", b"GEU "];
    for text in texts {
        for other in texts {
            for length in 0..8 {
                let mut packet = packet(length, text);
                packet[56..56 + other.len()].copy_from_slice(other);
                let what = format!("{} {} {length}", text.escape_ascii(), other.escape_ascii());
                seen.insert(both.outcome(&packet, &what).0);
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-1, 0, 1]);
}
