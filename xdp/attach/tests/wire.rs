// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A wire between ports in memory: where packets go, what is dropped and counted, and that queues
//! are bounded.

use freeport_attach::{Engine, Host, OnCard, OneByOne, Port, Running, Wire};
use freeport_card::Sim;
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_port::trace::{Sizes, Trace};
use freeport_port::{Generator, Sink};
use freeport_vliw::Options;
use freeport_xdp::{Interpreter, Target, compile};
use serde_json::Value;

/// The map `what` holds what the program does with all packets: a verdict, or a code beyond
/// verdicts.
const PROGRAM: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1);\n\
    __type(key, __u32); __type(value, __u32); } what SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_DEVMAP); __uint(max_entries, 4);\n\
    __type(key, __u32); __type(value, __u32); } devices SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_CPUMAP); __uint(max_entries, 4);\n\
    __type(key, __u32); __type(value, __u32); } processors SEC(\".maps\");\n\
    SEC(\"xdp\") int all(struct xdp_md *context) {\n\
    __u32 zero = 0, *value = bpf_map_lookup_elem(&what, &zero);\n\
    if (!value) return XDP_ABORTED;\n\
    if (*value == 14) return bpf_redirect_map(&devices, 1, XDP_ABORTED);\n\
    if (*value == 24) return bpf_redirect_map(&processors, 1, XDP_ABORTED);\n\
    if (*value >= 100) return bpf_redirect(*value, 0);\n\
    return context ? *value : XDP_PASS; }\n\
    char program_license[] SEC(\"license\") = \"GPL\";\n";
/// Redirects each packet to all devices of a map except its ingress device.
const BROADCAST: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    struct { __uint(type, BPF_MAP_TYPE_DEVMAP); __uint(max_entries, 4);\n\
    __type(key, __u32); __type(value, __u32); } devices SEC(\".maps\");\n\
    SEC(\"xdp\") int all(struct xdp_md *context) {\n\
    return bpf_redirect_map(&devices, context ? 0 : 1,\n\
    BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS); }\n\
    char program_license[] SEC(\"license\") = \"GPL\";\n";

const FRAMES: u64 = 40;
const BYTES: usize = 64;

fn object(text: &str) -> Object {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("all.bpf.c");
    std::fs::write(&source, text).expect("it is written");
    Object::parse(&compile(&source).expect("clang-19 is there")).expect("clang makes such objects")
}

fn frames(count: u64) -> Box<Generator> {
    let trace = Trace {
        seed: 1,
        frames: 8,
        flows: 8,
        sizes: Sizes::Fixed(BYTES),
        tcp_percent: 50,
        bad_checksum_permille: 0,
        truncated_permille: 0,
        gap_ns: 1_000,
    };
    let mut generator = Generator::once(&trace.generate()).expect("there are frames");
    generator.refill(count);
    Box::new(generator)
}

/// Creates the ports 100, 101 and 102; the first supplies frames and has a host side.
fn ports(count: u64, room: Option<u64>) -> Vec<Port> {
    let sink = || match room {
        Some(room) => Box::new(Sink::counting().with_room(room)),
        None => Box::new(Sink::counting()),
    };
    let port = |number: u32| Port {
        name: format!("p{number}"),
        ifindex: 100 + number,
        receive: frames(if number == 0 { count } else { 0 }),
        transmit: Some(sink()),
        host: (number == 0).then(|| Host { receive: frames(0), transmit: sink() }),
    };
    (0..3).map(port).collect()
}

/// Runs all frames and returns the statistics.
fn ran<E: Engine>(object: &Object, engine: E, count: u64, room: Option<u64>) -> Value {
    let mut wire = Wire::new(engine, ports(count, room)).expect("numbers differ");
    for _ in 0..200_000 {
        let is_moved = wire.round().expect("nothing fails");
        if !is_moved {
            break;
        }
    }
    if room.is_none() {
        wire.finish().expect("nothing fails");
    }
    wire.statistics(object).expect("it says").as_json()
}

fn set(target: &mut dyn Target, what: u32) {
    target.update("what", &[0; 4], &what.to_ne_bytes()).expect("it is there");
    target.update("devices", &1_u32.to_ne_bytes(), &102_u32.to_ne_bytes()).expect("it is there");
    target.update("processors", &1_u32.to_ne_bytes(), &[8, 0, 0, 0]).expect("it is there");
}

/// A case: the program's action, and the packets expected by each port, to the host, and dropped
/// with a reason.
type Case = (u32, [u64; 3], u64, Option<&'static str>);

const CASES: [Case; 9] = [
    (0, [0, 0, 0], 0, None),
    (1, [0, 0, 0], 0, None),
    (2, [0, 0, 0], FRAMES, None),
    (3, [FRAMES, 0, 0], 0, None),
    (9, [0, 0, 0], 0, None),
    (14, [0, 0, FRAMES], 0, None),
    (24, [0, 0, 0], FRAMES, None),
    (101, [0, FRAMES, 0], 0, None),
    (110, [0, 0, 0], 0, Some("redirected to device 110, which is not a port")),
];

fn check((what, sent, to_host, reason): Case, stats: &Value) {
    for (port, sent) in sent.into_iter().enumerate() {
        let found = &stats["ports"][port]["sent"];
        assert_eq!(found["packets"], sent, "{what}: {stats}");
        assert_eq!(found["bytes"], sent * BYTES as u64, "{what}: {stats}");
    }
    assert_eq!(stats["ports"][0]["to_host"]["packets"], to_host, "{what}: {stats}");
    let drops = stats["drops"].as_array().expect("a list");
    let drops: Vec<_> = drops.iter().map(|row| (row["reason"].as_str(), &row["packets"])).collect();
    match reason {
        Some(reason) => assert_eq!(drops, [(Some(reason), &Value::from(FRAMES))], "{what}"),
        None => assert!(drops.is_empty(), "{what}: {drops:?}"),
    }
    let verdicts = stats["ports"][0]["verdicts"].as_object().expect("an object");
    let all: u64 = verdicts.values().filter_map(|count| count["packets"].as_u64()).sum();
    assert_eq!(all, FRAMES, "{what}: {stats}");
    let name = match what {
        0 => "XDP_ABORTED",
        1 => "XDP_DROP",
        2 => "XDP_PASS",
        3 => "XDP_TX",
        9 => "no verdict",
        _ => "XDP_REDIRECT",
    };
    assert_eq!(verdicts[name]["packets"], FRAMES, "{what}: {stats}");
}

#[test]
fn packets_go_where_the_interpreter_says() {
    let object = object(PROGRAM);
    for case in CASES {
        let hosted = Interpreter::load(&object, Environment::default()).expect("it is taken");
        let mut engine = OneByOne::new("interpreter", &object, hosted, "all").expect("it runs");
        set(engine.target_mut(), case.0);
        check(case, &ran(&object, engine, FRAMES, None));
    }
}

#[test]
fn packets_go_where_the_card_says() {
    let object = object(PROGRAM);
    for case in CASES {
        let sim = Sim::load(&object, &Options::default(), &Environment::default());
        let mut engine = OnCard::new(&object, sim.expect("it fits"), "all").expect("it runs");
        set(engine.target_mut(), case.0);
        let stats = ran(&object, engine, FRAMES, None);
        check(case, &stats);
        assert_eq!(stats["target"]["packets"], FRAMES, "{stats}");
    }
}

#[test]
fn a_broadcast_goes_to_all_others() {
    let object = object(BROADCAST);
    let hosted = Interpreter::load(&object, Environment::default()).expect("it is taken");
    let mut engine = OneByOne::new("interpreter", &object, hosted, "all").expect("it runs");
    for (key, device) in [(0_u32, 100_u32), (1, 101), (3, 102)] {
        let target = engine.target_mut();
        target.update("devices", &key.to_ne_bytes(), &device.to_ne_bytes()).expect("a place");
    }
    let stats = ran(&object, engine, FRAMES, None);
    let sent = [0, 1, 2].map(|port: usize| &stats["ports"][port]["sent"]["packets"]);
    assert_eq!(sent, [0, FRAMES, FRAMES].map(Value::from).each_ref(), "{stats}");
}

#[test]
fn what_waits_for_a_full_port_is_bounded() {
    let object = object(PROGRAM);
    for (what, reason) in [(3, "network"), (2, "host")] {
        let hosted = Interpreter::load(&object, Environment::default()).expect("it is taken");
        let mut engine = OneByOne::new("interpreter", &object, hosted, "all").expect("it runs");
        set(engine.target_mut(), what);
        let (count, room) = (5_000, 10);
        let stats = ran(&object, engine, count, Some(room));
        let drop = &stats["drops"][0];
        assert_eq!(drop["reason"], format!("the queue to the {reason} was full"), "{stats}");
        assert_eq!(drop["packets"], count - room - 1_024, "{stats}");
    }
}

#[test]
fn numbers_of_ports_differ() {
    let object = object(PROGRAM);
    let hosted = Interpreter::load(&object, Environment::default()).expect("it is taken");
    let engine = OneByOne::new("interpreter", &object, hosted, "all").expect("it runs");
    let mut ports = ports(0, None);
    ports[2].ifindex = 101;
    let error = Wire::new(engine, ports).err().expect("two have 101").to_string();
    assert!(error.starts_with("p1 and p2 both have the number 101: give one"), "{error}");
}
