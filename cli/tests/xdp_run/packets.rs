// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in the interpreter: reports and written captures.

use super::place::{Place, read, slices, traffic};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_xdp::{Arrival, Interpreter, Target};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Protocol and payload of a frame after at most two VLAN tags, if it is long enough.
fn network(frame: &[u8]) -> Option<(u16, &[u8])> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut at = 12;
    for _ in 0..2 {
        if matches!(word(at)?, 0x8100 | 0x88a8) {
            word(at + 4)?;
            at += 4;
        }
    }
    Some((word(at)?, &frame[at + 2..]))
}

/// Whether `xdp2.bpf.c` sends a frame back: it has a complete IPv4 or IPv6 header.
fn is_sent_back(frame: &[u8]) -> bool {
    match network(frame) {
        Some((0x0800, rest)) => rest.len() >= 20,
        Some((0x86dd, rest)) => rest.len() >= 40,
        _ => false,
    }
}

#[test]
fn packets_are_counted_by_verdict_and_those_that_go_on_are_written() {
    let place = Place::with_program("xdp2");
    let packets = traffic(1_000);
    let trace = place.capture(slices(&packets));
    let sent: Vec<&Vec<u8>> = packets.iter().filter(|packet| is_sent_back(packet)).collect();
    assert!((300..900).contains(&sent.len()), "{}", sent.len());
    let (out, dropped) = (place.file("out.pcap"), place.file("drop.pcapng"));
    let text = place.run(
        &trace,
        &["--write", out.to_str().unwrap(), "--write", &format!("drop={}", dropped.display())],
    );
    let bytes: usize = packets.iter().map(Vec::len).sum();
    let title = format!("program `send_back` in the interpreter: 1000 packets, {bytes} bytes\n");
    assert!(text.starts_with(&title), "{text}");
    for (verdict, count) in [("DROP", 1_000 - sent.len()), ("TX", sent.len()), ("ABORTED", 0)] {
        let line = format!("{:<12} {count:>12}", format!("XDP_{verdict}"));
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let turned = |packet: &&Vec<u8>| [&packet[6..12], &packet[..6], &packet[12..]].concat();
    assert_eq!(read(&out), sent.iter().map(turned).collect::<Vec<_>>());
    let left: Vec<Vec<u8>> = packets.iter().filter(|it| !is_sent_back(it)).cloned().collect();
    assert_eq!(read(&dropped), left);
}

#[test]
fn instructions_are_those_that_the_interpreter_executed() {
    let place = Place::with_program("xdp1");
    let packets = traffic(300);
    let trace = place.capture(slices(&packets));
    let object = Object::open(&place.object).unwrap();
    let mut interpreter = Interpreter::load(&object, Environment::default()).unwrap();
    let mut executed: Vec<u64> = packets
        .iter()
        .map(|bytes| {
            let arrival = Arrival { bytes, ingress_ifindex: 1, rx_queue_index: 0 };
            interpreter.run("drop", &arrival).unwrap();
            interpreter.last().unwrap().instructions
        })
        .collect();
    executed.sort_unstable();
    let expected = json!({
        "mean": executed.iter().sum::<u64>() as f64 / 300.0,
        "p50": executed[149],
        "p99": executed[296],
        "max": executed[299],
    });
    assert!(executed[0] < executed[299]);
    let reported = place.json(&trace, &[]);
    assert_eq!(reported["executed_instructions"], expected);
    assert_eq!(reported["verdicts"]["XDP_DROP"], json!(300));
}

/// Reads a byte that exists only in packets above 40 bytes; the kernel would reject the program.
const CARELESS: &str = "SEC(\"xdp\") int careless(struct xdp_md *context) {\n\
    volatile char *data = (void *)(long)context->data;\n\
    return data[40] ? XDP_PASS : XDP_DROP; }\n";

#[test]
fn a_program_that_is_ended_is_told_with_its_line_and_the_others_go_on() {
    let place = Place::with_text(CARELESS);
    let trace = place.capture([&[7_u8; 60][..], &[7; 40], &[7; 41], &[7; 9]]);
    let text = place.run(&trace, &[]);
    assert!(text.contains("XDP_ABORTED             2\n"), "{text}");
    assert!(text.contains("XDP_PASS                2\n"), "{text}");
    let reason = "2 packets, first 2: program `careless`, instruction ";
    let at = text.find(reason).unwrap_or_else(|| panic!("{text}"));
    let rest = &text[at..];
    assert!(rest.contains(".bpf.c:6): a read of 1 bytes at "), "{text}");
    assert!(rest.contains("outside the packet (at 40 of 40 bytes)\n    return data[40]"), "{text}");
    let reported = place.json(&trace, &[]);
    let abort = &reported["aborts"][0];
    assert_eq!(
        (&abort["packets"], &abort["first"], &abort["line"]),
        (&json!(2), &json!(2), &json!(6))
    );
}

#[test]
fn what_a_program_prints_is_shown_with_its_packet() {
    let place = Place::with_text(
        "SEC(\"xdp\") int told(struct xdp_md *context) {\n\
         int length = context->data_end - context->data;\n\
         if (length > 50) bpf_printk(\"%d bytes\", length);\n\
         return XDP_PASS; }\n",
    );
    let trace = place.capture([&[0_u8; 50][..], &[0; 51], &[0; 60]]);
    let printed = |more: &[&str]| {
        let output = place.command(&trace, more).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(printed(&["--printk"]), "packet 2: 51 bytes\npacket 3: 60 bytes\n");
    assert_eq!(printed(&[]), "");
}

const TWO: &str = "SEC(\"xdp\") int one(struct xdp_md *c __attribute__((unused))) \
    { return XDP_PASS; }\n\
    SEC(\"xdp\") int other(struct xdp_md *c __attribute__((unused))) { return 9; }\n\
    SEC(\"xdp/devmap\") int leaving(struct xdp_md *c __attribute__((unused))) \
    { return XDP_DROP; }\n";

#[test]
fn of_several_programs_one_is_named() {
    let place = Place::with_text(TWO);
    let trace = place.capture([&[0_u8; 60][..]]);
    let error = place.complaint(&trace, &[]);
    assert!(error.contains("choose one with --program; there are: one, other, leaving"), "{error}");
    let error = place.complaint(&trace, &["--program", "none"]);
    assert!(error.contains("no XDP program `none`; there are: one, other, leaving"), "{error}");
    let text = place.run(&trace, &["--program", "other"]);
    assert!(text.contains("9                       1  no verdict\n"), "{text}");
    assert_eq!(place.json(&trace, &["--program", "leaving"])["verdicts"]["XDP_DROP"], json!(1));
    let error = place.complaint(&trace, &["--program", "leaving", "--on", "kernel"]);
    assert!(error.contains("does not run xdp/devmap programs such as `leaving`"), "{error}");
}

/// Indented lines of a document, from the first one with these words.
fn shown(document: &str, words: &str) -> String {
    let lines = document.lines().skip_while(|line| !line.contains(words));
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
}

#[test]
fn the_documented_run_prints_what_is_shown() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = fs::read_to_string(repository.join("docs/reference/xdp.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pcap");
    let command = shown(&document, "freeport xdp run programs/").replace("\\\n", " ");
    let command = command.replace("out.pcap", file.to_str().unwrap());
    let command = command.replacen("freeport", env!("CARGO_BIN_EXE_freeport"), 1);
    let output =
        Command::new("sh").arg("-c").arg(command).current_dir(&repository).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = shown(&document, "program `filter` in the interpreter");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), expected.trim());
    assert_eq!(read(&file), read(&repository.join("examples/traces/sample.pcap")));
}
