// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps that are set before and printed after a run, clocks and random numbers.

use super::place::{Place, skipped, slices};
use serde_json::{Value, json};
use std::fs;

/// A frame of a UDP flow between two hosts.
fn datagram(source: u8, target: u8) -> Vec<u8> {
    let mut frame = [&[2; 12][..], &[8, 0], &[0x45, 0, 0, 28, 0, 0, 0, 0, 9, 17, 0, 0]].concat();
    frame.extend([10, 0, 0, source, 10, 0, 0, target, 0, 5, 0, 5, 0, 8, 0, 0]);
    frame
}

const INSIDE: &str = "inside key 0 0 0 0 value 2 0 0 0";
const WAYS: &str = "# where packets leave\n\
    map update name ways key hex 00 00 00 00 value hex 07 00 00 00\n\n\
    map update name ways key 1 0 0 0 value 8 0 0 0 any # inside\n";

#[test]
fn maps_are_set_kept_between_packets_and_dumped() {
    let place = Place::with_program("simple_firewall");
    let other = [2_u8; 60];
    let packets = [datagram(1, 2), datagram(3, 4), other.to_vec(), datagram(2, 1)];
    let trace = place.capture(slices(&packets));
    let file = place.file("maps.txt");
    fs::write(&file, WAYS).unwrap();
    let file = file.to_str().unwrap();
    let options = ["--map", INSIDE, "--map-file", file, "--dump", "flows", "--ifindex"];
    let text = place.run(&trace, &[&options[..], &["2"]].concat());
    // Sorted hosts, and ports as the processor reads them from network order.
    let flows = "\nmap flows\n\
        key: {low: 16777226, high: 33554442, low_port: 1280, high_port: 1280, protocol: 17}  \
        value: {packets: 2, bytes: 84}\n\
        key: {low: 50331658, high: 67108874, low_port: 1280, high_port: 1280, protocol: 17}  \
        value: {packets: 1, bytes: 42}\n\
        Found 2 elements\n";
    assert!(text.ends_with(flows), "{text}");
    let redirected = "XDP_REDIRECT            3\n                        3  to map ways[0]: 7\n";
    assert!(text.contains(redirected), "{text}");
    // Nothing is passed from outside.
    let reported = place.json(&trace, &[&options[..], &["3"]].concat());
    assert_eq!(
        (&reported["verdicts"]["XDP_DROP"], &reported["maps"]["flows"]),
        (&json!(4), &json!([]))
    );
    // Twice: flows from outside are known the second time.
    let options = [&options[..], &["2", "--repeat", "2"]].concat();
    let reported = place.json(&trace, &options);
    assert_eq!(
        (&reported["packets"], &reported["verdicts"]["XDP_REDIRECT"]),
        (&json!(8), &json!(6))
    );
    let redirect = json!([{ "map": "ways", "key": 0, "target": 7, "packets": 6 }]);
    assert_eq!(reported["redirects"], redirect);
    let first = &reported["maps"]["flows"][0];
    assert_eq!((&first["key"][3], &first["value"][0]), (&json!("0x01"), &json!("0x04")));
    assert_eq!(first["formatted"]["value"], json!({ "packets": 4, "bytes": 168 }));
}

#[test]
fn time_is_that_of_packets_and_chance_is_repeated() {
    let place = Place::with_text(
        "struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 9);\n\
         __type(value, __u64); } seen SEC(\".maps\");\n\
         SEC(\"xdp\") int note(struct xdp_md *context __attribute__((unused))) {\n\
         __u64 now = bpf_ktime_get_ns(), chance = bpf_get_prandom_u32();\n\
         bpf_map_push_elem(&seen, &now, 0); bpf_map_push_elem(&seen, &chance, 0);\n\
         return XDP_PASS; }\n",
    );
    let trace = place.capture([&[0_u8; 60][..], &[0; 60]]);
    let seen = |more: &[&str]| {
        let reported = place.json(&trace, &[more, &["--dump", "seen"]].concat());
        let word = |item: &Value| {
            let bytes = item["value"].as_array().unwrap().iter();
            let digits = bytes.rev().map(|it| it.as_str().unwrap()[2..].to_owned());
            u64::from_str_radix(&digits.collect::<String>(), 16).unwrap()
        };
        reported["maps"]["seen"].as_array().unwrap().iter().map(word).collect::<Vec<_>>()
    };
    let first = seen(&[]);
    assert_eq!((first.len(), first[0], first[2]), (4, 1_000, 2_000));
    assert_eq!(seen(&["--clock", "capture", "--seed", "1"]), first);
    let other = seen(&["--clock", "77", "--seed", "2"]);
    assert_eq!((other[0], other[2]), (77, 77));
    assert_ne!((other[1], other[3]), (first[1], first[3]));
}

/// A tail call to a program in a map, and a lookup in a map of a map of maps.
const NESTED: &str = "struct inner { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1);\n\
    __type(key, __u32); __type(value, __u32); } table SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 2);\n\
    __type(key, __u32); __array(values, struct inner); } tables SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 2);\n\
    __uint(key_size, 4); __uint(value_size, 4); } programs SEC(\".maps\");\n\
    SEC(\"xdp\") int first(struct xdp_md *context) {\n\
    bpf_tail_call(context, &programs, 1); return XDP_DROP; }\n\
    SEC(\"xdp\") int second(struct xdp_md *context __attribute__((unused))) {\n\
    __u32 one = 1, zero = 0; void *inside = bpf_map_lookup_elem(&tables, &one);\n\
    __u32 *value = inside ? bpf_map_lookup_elem(inside, &zero) : 0;\n\
    return value ? *value : XDP_PASS; }\n";

#[test]
fn programs_and_maps_are_put_into_maps_by_name() {
    let place = Place::with_text(NESTED);
    let trace = place.capture([&[0_u8; 60][..]]);
    let program = "map update name programs key 1 0 0 0 value name second";
    let table = "tables key 1 0 0 0 value name table";
    let value = "table key 0 0 0 0 value 3 0 0 0";
    let on = if skipped() { "interpreter" } else { "both" };
    let verdicts = |settings: &[&str]| {
        let mut options = vec!["--program", "first", "--on", on];
        settings.iter().for_each(|setting| options.extend(["--map", setting]));
        place.json(&trace, &options)["verdicts"].clone()
    };
    assert_eq!(verdicts(&[])["XDP_DROP"], json!(1));
    assert_eq!(verdicts(&[program])["XDP_PASS"], json!(1));
    assert_eq!(verdicts(&[program, table, value])["XDP_TX"], json!(1));
    let error =
        place.complaint(&trace, &["--program", "first", "--map", "table key 0 0 0 0 value name x"]);
    assert!(error.contains("map `table`: its values are neither maps nor programs"), "{error}");
}
