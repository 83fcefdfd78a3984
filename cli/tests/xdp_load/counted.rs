// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters: rates, counters for Prometheus, runs in the kernel, and per-processor values of a map.

use super::place::{Net, address, word};
use crate::hosts::may_make_hosts;
use freeport_bench::network::{echo, until};
use freeport_testbed::skip;
use freeport_xdp::Kernel;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn rates_and_counters_for_prometheus() {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let words = ["--on", "interpreter", "--port", "gen:64@2000", "--metrics", "0"];
    let loaded = net.load(&net.object("xdp2"), &words);
    let watched = net.reported(&["xdp", "stats", "--watch", "0.5", "--times", "2"]);
    let line = watched.lines().find(|line| line.starts_with("gen:64@2000: ")).unwrap();
    assert!(
        line.contains("received packets ") && line.contains("verdicts XDP_TX bytes "),
        "{line}"
    );
    let said = loaded.said();
    let (_, at) = said.split_once("counters are at http://").unwrap();
    let (at, _) = at.split_once("/metrics").unwrap();
    let mut stream = net.middle.within(|| Ok(TcpStream::connect(at)?)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut reported = String::new();
    stream.read_to_string(&mut reported).unwrap();
    for line in [
        "freeport_xdp_packets_total{port=\"gen:64@2000\",way=\"received\"} ",
        "freeport_xdp_verdict_bytes_total{port=\"gen:64@2000\",verdict=\"XDP_TX\"} ",
        "freeport_xdp_target_total{of=\"interpreter\",figure=\"instructions executed\"} ",
    ] {
        let value = reported.lines().find_map(|it| it.strip_prefix(line)).unwrap_or_else(|| {
            panic!("{line}: {reported}");
        });
        assert!(value.parse::<u64>().unwrap() > 0, "{line}{value}");
    }
    loaded.stop();
}

/// Returns the verdict in a map for all packets, and counts them there.
const TOLD: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    struct rule { __u32 verdict, packets; };\n\
    struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4);\n\
    __type(key, __u32); __type(value, struct rule); } rules SEC(\".maps\");\n\
    SEC(\"xdp\") int told(struct xdp_md *context) {\n\
    __u32 zero = 0; struct rule *rule = bpf_map_lookup_elem(&rules, &zero);\n\
    if (!rule) return XDP_TX;\n\
    rule->packets++;\n\
    return context ? rule->verdict : XDP_PASS; }\n\
    char program_license[] SEC(\"license\") = \"GPL\";\n";

#[test]
fn maps_are_read_and_changed_while_packets_flow() {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let object = net.object(TOLD);
    for on in ["interpreter", "sim"] {
        let rule = |verdict| format!("rules key {} value {} 0 0 0 0", word(0), word(verdict));
        let loaded = net.load(&object, &["--on", on, "--port", "gen:64@500", "--map", &rule(1)]);
        let count = |verdict: &str| loaded.verdict(0, verdict);
        let grows = |verdict: &str| {
            let before = count(verdict);
            until("a verdict comes", || (count(verdict) > before + 10).then_some(())).unwrap();
        };
        grows("XDP_DROP");
        assert_eq!((count("XDP_PASS"), count("XDP_TX")), (0, 0), "{on}");
        loaded.map(&format!("update {}", rule(2)));
        grows("XDP_PASS");
        let rules = loaded.map_json("dump rules");
        let value = &rules[0]["formatted"]["value"];
        assert_eq!(value["verdict"], 2, "{on}: {rules}");
        assert!(value["packets"].as_u64().unwrap() > 10, "{on}: {rules}");
        let dropped = count("XDP_DROP");
        loaded.map(&format!("delete rules key {}", word(0)));
        grows("XDP_TX");
        let passed = count("XDP_PASS");
        grows("XDP_TX");
        assert_eq!((count("XDP_DROP"), count("XDP_PASS")), (dropped, passed), "{on}");
        loaded.stop();
    }
}

#[test]
fn the_kernel_counts_runs_and_has_values_for_each_processor() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let loaded = net.load(&net.object("xdp1"), &["--on", "kernel", "--port", "m0", "--count-runs"]);
    let wait = Duration::from_millis(50);
    let echoes = echo::ping(&net.sides[0], address(4), 3, 56, wait).unwrap();
    assert_eq!((echoes.sent, echoes.round_trips.len()), (3, 0));
    let stats = loaded.stats();
    assert_eq!(stats["target"]["runs"], 3, "{stats}");
    assert!(stats["target"]["run_time_in_ns"].as_u64().unwrap() > 0, "{stats}");
    assert_eq!(stats["ports"][0]["received"]["packets"], 3, "{stats}");
    assert!(stats["ports"][0]["verdicts"].is_null(), "{stats}");
    // ICMP is protocol 1.
    let maps = loaded.map_json("dump protocols");
    let parts = maps.as_array().unwrap();
    let of_part = |part: &serde_json::Value| part["map"][1]["formatted"]["value"].as_u64().unwrap();
    assert_eq!(parts.iter().map(of_part).sum::<u64>(), 3, "{maps}");
    let numbered = parts.iter().enumerate().all(|(at, part)| part["cpu"] == at);
    assert!(numbered, "{maps}");
    let reported = loaded.map("dump protocols");
    assert!(reported.starts_with("CPU 0\nkey: 0  value: 0\n"), "{reported}");
    // An update sets the values of all processors.
    loaded.map(&format!("update protocols key {} value 7 0 0 0 0 0 0 0", word(1)));
    let maps = loaded.map_json("dump protocols");
    assert!(maps.as_array().unwrap().iter().all(|part| of_part(part) == 7), "{maps}");
    loaded.stop();
}
