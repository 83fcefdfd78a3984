// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp trace` traces packets of a capture on each target, and `--wave` writes signals.

use super::{MAPS, at, complaint};
use serde_json::{Value, json};
use std::process::Output;

fn freeport(what: &str, more: &[&str]) -> Output {
    let trace = at("examples/traces/sample.pcap");
    let packets = [&["--trace", trace.to_str().unwrap()], &MAPS[..], more].concat();
    super::freeport(what, "simple_firewall.bpf.c", &packets)
}

fn reported(more: &[&str]) -> String {
    super::reported(freeport("trace", more))
}

fn steps(more: &[&str]) -> Vec<Value> {
    let text = reported(&[more, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Maximum number of instructions, rows or cycles that `freeport xdp run` counts for a packet.
fn most(on: &str, pointer: &str) -> u64 {
    let output = freeport("run", &["--on", on, "--json"]);
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = reported.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {reported}"));
    found.as_u64().unwrap()
}

#[test]
fn each_instruction_is_told_with_what_it_changed() {
    let all = steps(&["--packet", "1", "--packet", "3"]);
    let of =
        |packet: u64| all.iter().filter(|it| it["packet"] == json!(packet)).collect::<Vec<_>>();
    let (first, third) = (of(1), of(3));
    assert_eq!(all.len(), first.len() + third.len());
    assert!(first.len() as u64 <= most("interpreter", "/executed_instructions/max"), "{all:?}");
    for steps in [&first, &third] {
        let numbers: Vec<u64> = steps.iter().map(|it| it["step"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(steps.last().unwrap()["instruction"], "exit");
    }
    let stores = first.iter().filter(|it| it["instruction"].as_str().unwrap().starts_with('*'));
    let changed: Vec<_> =
        stores.filter(|it| !it["memory"].as_array().unwrap().is_empty()).collect();
    assert!(!changed.is_empty());
    assert!(changed.iter().all(|it| it["registers"] == json!({})), "{changed:?}");
    let text = reported(&[]);
    assert!(text.starts_with("packet 1, ") && text.contains("\nsimple_firewall.bpf.c:"), "{text}");
    assert!(text.contains(" = packet+") || text.contains(" = packet+0"), "{text}");
    assert!(text.contains("packet 1: XDP_REDIRECT, "), "{text}");
}

#[test]
fn rows_and_cycles_of_a_packet_are_those_that_are_counted() {
    let rows = steps(&["--on", "vliw"]);
    assert!(rows.len() > 10 && rows.len() as u64 <= most("vliw", "/executed_on_model/rows/max"));
    let ended = rows.last().unwrap()["lanes"].as_array().unwrap().iter();
    let did: Vec<String> = ended.map(|lane| lane["did"].to_string()).collect();
    assert!(
        did.iter().any(|did| did.contains("returns 4") || did.contains("verdict 4")),
        "{did:?}"
    );
    let cycles = steps(&["--on", "sim"]);
    let happens =
        |step: &Value, what: &str| step["happens"].as_array().unwrap().iter().any(|it| it == what);
    assert!(happens(&cycles[0], "the packet begins"), "{:?}", cycles[0]);
    assert!(happens(cycles.last().unwrap(), "the packet is done"));
    let numbers: Vec<u64> = cycles.iter().map(|it| it["cycle"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no cycle is left out");
    // Each row that leaves execute is in commit in the next cycle.
    let commits: Vec<u64> = cycles.iter().filter_map(|it| it["commit"].as_u64()).collect();
    let executed: Vec<u64> = rows.iter().map(|it| it["row"].as_u64().unwrap()).collect();
    assert!(executed.starts_with(&commits), "{commits:?} and not {executed:?}");
    assert!(executed.len() - commits.len() <= 3, "the last ones end before commit");
    assert!(cycles.iter().any(|it| happens(it, "execute waits for a helper")));
}

#[test]
fn a_limit_leaves_steps_out_and_says_how_many() {
    let output = freeport("trace", &["--limit", "5", "--json"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 5);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("more steps are not printed (--limit)"), "{note}");
}

#[test]
fn signals_are_written_for_the_packets_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let clocks = |what: &str, more: &[&str]| {
        let file = folder.path().join(format!("{what}.vcd"));
        let wave = ["--on", "sim", "--wave", file.to_str().unwrap()];
        super::reported(freeport(what, &[&wave[..], more].concat()));
        let text = std::fs::read_to_string(&file).unwrap();
        let clock = text.lines().map(str::trim_start).find(|line| line.ends_with(" clk $end"));
        let mark = format!("1{}", clock.unwrap().split_whitespace().nth(3).unwrap());
        text.lines().filter(|line| **line == mark).count()
    };
    let cycles = steps(&["--on", "sim", "--packet", "2"]).len();
    let one = clocks("trace", &["--packet", "2"]);
    assert!((cycles..cycles + 200).contains(&one), "{one} clocks for {cycles} cycles");
    let all = clocks("run", &[]);
    assert!(all > 20 * one, "{all} clocks for a hundred packets, {one} for one");
}

#[test]
fn what_cannot_be_traced_is_said() {
    for (what, more, reason) in [
        ("trace", &["--on", "kernel"][..], "`bpf_printk`"),
        ("trace", &["--on", "other"], "expected interpreter, vliw or sim"),
        ("trace", &["--packet", "101"], "there is no packet 101; the last one is 100"),
        ("trace", &["--wave", "a.vcd"], "--wave is for --on sim"),
        ("run", &["--wave", "a.vcd"], "--wave is for --on sim"),
        ("trace", &["--on", "sim", "--wave", "/none/a.vcd"], "/none/a.vcd: cannot be written"),
    ] {
        let error = complaint(freeport(what, more));
        assert!(error.contains(reason), "{reason}: {error}");
    }
}
