// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp explain` on the programs of the repository: every instruction is accounted for,
//! and every cycle of the card.

use super::{MAPS, at, complaint, freeport};
use serde_json::{Value, json};
use std::path::Path;

fn reported(program: &str, more: &[&str]) -> String {
    super::reported(freeport("explain", program, more))
}

fn reported_as_json(program: &str, more: &[&str]) -> Value {
    serde_json::from_str(&reported(program, &[more, &["--json"]].concat())).unwrap()
}

fn with_packets<'a>(trace: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["--trace", trace.to_str().unwrap()], &MAPS[..], more].concat()
}

#[test]
fn every_instruction_is_in_a_row_or_has_a_reason_why_not() {
    let all = reported_as_json("simple_firewall.bpf.c", &[]);
    assert_eq!((&all["program"], &all["card"]), (&json!("filter"), &Value::Null));
    let rows = all["rows"].as_array().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let (mut removed, mut joined) = (0, 0);
    for instruction in all["instructions"].as_array().unwrap() {
        let slot = &instruction["slot"];
        match instruction["fate"].as_str().unwrap() {
            "placed" => {
                for place in instruction["places"].as_array().unwrap() {
                    let row = place["row"].as_u64().unwrap();
                    let operations = rows[row as usize]["operations"].as_array().unwrap();
                    let operation = operations.iter().find(|it| it["lane"] == place["lane"]);
                    let slots = operation.unwrap()["slots"].as_array().unwrap();
                    assert!(slots.contains(slot), "{instruction}");
                    seen.insert((row, place["lane"].as_u64().unwrap()));
                }
                joined += usize::from(!instruction["one_with"].as_array().unwrap().is_empty());
            }
            "removed" => removed += usize::from(!instruction["pass"].is_null()),
            other => panic!("{other}: {instruction}"),
        }
    }
    let operations: usize =
        rows.iter().map(|row| row["operations"].as_array().unwrap().len()).sum();
    assert_eq!(seen.len(), operations, "an operation is of no instruction");
    assert!(removed > 20 && joined > 0, "{removed} are removed, {joined} joined");
}

#[test]
fn source_instruction_and_row_stand_side_by_side() {
    let text = reported("simple_firewall.bpf.c", &[]);
    assert!(text.starts_with("program `filter`: 141 instructions, "), "{text}");
    let table: Vec<&str> = text.lines().filter(|line| line.contains(" | ")).collect();
    let bar = table[0].chars().position(|it| it == '|').unwrap();
    assert!(table.iter().all(|line| line.chars().nth(bar) == Some('|')), "{text}");
    let line = table.iter().find(|line| line.contains("simple_firewall.bpf.c:")).unwrap();
    let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
    assert!(cells[1].split_once(": ").is_some_and(|(slot, _)| slot.parse::<u32>().is_ok()));
    assert!(text.contains("removed by dead") && text.contains(" lane 0"), "{text}");
    assert!(!text.contains("cycles/packet"), "{text}");
}

#[test]
fn cycles_of_rows_and_what_is_named_beside_them_are_all_cycles() {
    let trace = at("examples/traces/sample.pcap");
    for profile in [&[][..], &["--profile"]] {
        let all = reported_as_json("simple_firewall.bpf.c", &with_packets(&trace, profile));
        let card = &all["card"];
        let number = |of: &Value| of.as_u64().unwrap();
        assert_eq!((number(&card["packets"]), &card["kind"]), (100, &json!("simulated")));
        let of_row =
            |row: &Value| -> u64 { row["cycles"].as_object().unwrap().values().map(number).sum() };
        let rows: u64 = all["rows"].as_array().unwrap().iter().map(of_row).sum();
        let besides = number(&card["begin_cycles"]) + number(&card["idle_cycles"]);
        assert_eq!(rows + besides, number(&card["cycles"]), "{card}");
        assert!(rows > 100 * 10, "{card}");
        // The same packets without an observer: the mean from the first verdict to the last.
        let without: &[&str] = if profile.is_empty() { &["--without-profile"] } else { &[] };
        let more = with_packets(&trace, &[&["--json"], without].concat());
        let output = freeport("estimate", "simple_firewall.bpf.c", &more);
        let estimate: Value = serde_json::from_str(&super::reported(output)).unwrap();
        let cycles = estimate["cycles"]["mean"].as_f64().unwrap() * 99.0;
        let first = number(&card["cycles"]) as f64 - cycles;
        assert!((1.0..200.0).contains(&first), "the first packet takes {first} cycles");
    }
}

#[test]
fn hot_rows_are_marked_and_drawn() {
    let trace = at("examples/traces/sample.pcap");
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("filter.svg");
    let more = ["--svg", picture.to_str().unwrap()];
    let text = reported("simple_firewall.bpf.c", &with_packets(&trace, &more));
    let together = text.lines().find(|line| line.trim().starts_with("together")).unwrap();
    assert!(together.ends_with("100.0 %"), "{together}");
    assert!(text.contains("cycles for 100 packets without a gap\n") && text.contains(" ##"));
    let svg = std::fs::read_to_string(&picture).unwrap();
    let bands = svg.matches("<g class=\"heat\">").count();
    assert!(bands > 5 && svg.contains("fill-opacity=\"0.700\""), "{bands} bands");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let trace = at("examples/traces/sample.pcap");
    let trace = trace.to_str().unwrap();
    for (program, more, reason) in [
        ("fib_forward.bpf.c", &["--trace", trace][..], "the card does not support helper 69"),
        ("simple_firewall.bpf.c", &["--program", "none"], "there is no XDP program `none`"),
        ("simple_firewall.bpf.c", &["--profile"], "--trace <CAPTURE>"),
        ("simple_firewall.bpf.c", &["--trace", "none.pcap"], "none.pcap"),
        ("simple_firewall.bpf.c", &["--svg", "/none/a.svg"], "/none/a.svg: cannot be written"),
    ] {
        let error = complaint(freeport("explain", program, more));
        assert!(error.contains(reason), "{reason}: {error}");
    }
}
