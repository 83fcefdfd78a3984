// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp estimate`: cycles of the simulated card for the packets of a capture.

use freeport_port::{Arena, PcapReceiver, PcapTransmitter, Receive, Transmit};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn sample() -> PathBuf {
    at("examples/traces/sample.pcap")
}

fn estimate(program: &str, trace: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["xdp", "estimate"]).arg(at("programs/xdp").join(program));
    command.arg("--trace").arg(trace).args(more).output().unwrap()
}

fn reported(program: &str, trace: &Path, more: &[&str]) -> String {
    let output = estimate(program, trace, more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn reported_as_json(program: &str, trace: &Path, more: &[&str]) -> Value {
    serde_json::from_str(&reported(program, trace, &[more, &["--json"]].concat())).unwrap()
}

fn complaint(program: &str, trace: &Path, more: &[&str]) -> String {
    let output = estimate(program, trace, more);
    assert!(!output.status.success(), "{more:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Packets of a capture.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    let mut receiver = PcapReceiver::open(file).unwrap();
    let mut packets = vec![];
    while !receiver.is_ended() {
        let batch = receiver.receive(100).unwrap();
        packets.extend((0..batch.len()).map(|at| batch.bytes(at).to_vec()));
    }
    packets
}

/// A capture of these packets.
fn capture(file: &Path, packets: &[Vec<u8>]) {
    let mut arena = Arena::default();
    packets.iter().for_each(|bytes| arena.push(bytes, bytes.len(), 0).unwrap());
    let mut writer = PcapTransmitter::create(file).unwrap();
    writer.transmit(arena.frames()).unwrap();
    writer.finish().unwrap();
}

#[test]
fn cycles_are_at_least_those_of_the_beats() {
    let all = packets(&sample());
    let beats: usize = all.iter().map(|bytes| bytes.len().div_ceil(32)).sum();
    let beats = beats as f64 / all.len() as f64;
    for more in [&[][..], &["--without-profile"]] {
        let reported = reported_as_json("xdp1.bpf.c", &sample(), more);
        assert_eq!((&reported["kind"], &reported["refused"]), (&json!("simulated"), &json!(0)));
        assert_eq!(reported["packets"], json!(all.len()));
        assert_eq!(reported["verdicts"], json!({ "dropped": all.len() }));
        assert_eq!(reported["profile"], json!(more.is_empty()));
        let number = |pointer: &str| reported.pointer(pointer).unwrap().as_f64().unwrap();
        assert!((number("/bus/beats_per_packet") - beats).abs() < 1e-9, "{reported}");
        let cycles = number("/cycles/mean");
        assert!(cycles >= beats, "{reported}");
        assert!((number("/mpps_at_clock") - 156.25 / cycles).abs() < 1e-9, "{reported}");
        assert!(number("/spent_per_packet/rows") > 1.0, "{reported}");
        let latency = number("/latency/p50_cycles");
        assert!(latency > 0.0 && number("/latency/p99_cycles") >= latency, "{reported}");
        for (part, whole) in [("/rows", "/rows_of_card"), ("/map_bytes", "/map_bytes_of_card")] {
            assert!((1.0..=number(whole)).contains(&number(part)), "{reported}");
        }
    }
}

#[test]
fn a_clock_changes_times_and_not_cycles() {
    let slow = reported_as_json("xdp1.bpf.c", &sample(), &[]);
    let fast = reported_as_json("xdp1.bpf.c", &sample(), &["--clock-mhz", "312.5"]);
    assert_eq!(fast["cycles"], slow["cycles"]);
    let ns = |reported: &Value| reported["latency"]["p50_ns"].as_f64().unwrap();
    assert!((ns(&slow) - 2.0 * ns(&fast)).abs() < 1e-6, "{slow} {fast}");
    let text = reported("xdp1.bpf.c", &sample(), &["--clock-mhz", "312.5"]);
    assert!(text.contains(" Mpps: cycles at an assumed clock of 312.5 MHz\n"), "{text}");
    let error = complaint("xdp1.bpf.c", &sample(), &["--clock-mhz", "0"]);
    assert!(error.contains("the clock must be above 0 MHz"), "{error}");
}

#[test]
fn packets_that_the_card_does_not_take_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.pcap");
    let mut some = packets(&sample());
    some.truncate(20);
    some.insert(3, vec![0; 3_521]);
    some.insert(9, vec![0; 3_600]);
    capture(&file, &some);
    let counted = reported_as_json("xdp1.bpf.c", &file, &[]);
    assert_eq!((&counted["packets"], &counted["refused"]), (&json!(20), &json!(2)));
    let text = reported("xdp1.bpf.c", &file, &[]);
    let line = "\n2 packets are left out, since the card takes 1 to 3520 bytes\n";
    assert!(text.contains(line), "{text}");
    capture(&file, &some[..1]);
    let error = complaint("xdp1.bpf.c", &file, &[]);
    assert!(error.contains("1 packets have a length that the card supports"), "{error}");
}

#[test]
fn settings_of_maps_are_made_and_a_profile_may_be_left_out() {
    let more = ["--ifindex", "2", "--map", "inside key 0 0 0 0 value 2 0 0 0", "--map"];
    let more = [&more[..], &["ways key 0 0 0 0 value 3 0 0 0"]].concat();
    let profiled = reported_as_json("simple_firewall.bpf.c", &sample(), &more);
    let plain = [&more[..], &["--without-profile"]].concat();
    let plain = reported_as_json("simple_firewall.bpf.c", &sample(), &plain);
    for reported in [&profiled, &plain] {
        assert_eq!(reported["verdicts"], json!({ "redirected": 100 }));
    }
    assert_ne!(profiled["rows"], plain["rows"]);
}

#[test]
fn several_cores_are_faster_and_each_has_some_of_the_packets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.pcap");
    // One source port per flow.
    let flow = |number: u16| {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
        frame.extend((4_000 + number).to_be_bytes());
        frame.resize(60, 0);
        frame
    };
    capture(&file, &(0..400).map(|at| flow(at % 64)).collect::<Vec<_>>());
    let of = |cores: &str| reported_as_json("xdp2.bpf.c", &file, &["--cores", cores]);
    let [one, four] = [of("1"), of("4")];
    assert_eq!(one["packets_by_core"], json!([400]));
    let by_core = four["packets_by_core"].as_array().unwrap();
    let by_core: Vec<u64> = by_core.iter().map(|it| it.as_u64().unwrap()).collect();
    assert!(by_core.len() == 4 && by_core.iter().all(|packets| *packets > 0), "{by_core:?}");
    assert_eq!(by_core.iter().sum::<u64>(), 400);
    let mean = |reported: &Value| reported["cycles"]["mean"].as_f64().unwrap();
    assert!(mean(&four) < 0.6 * mean(&one), "{one} {four}");
    let text = reported("xdp2.bpf.c", &file, &["--cores", "4"]);
    assert!(text.contains("\n4 cores, of which one has "), "{text}");
    let error = complaint("xdp2.bpf.c", &file, &["--cores", "9"]);
    assert!(error.contains("9 is not in 1..="), "{error}");
}

#[test]
fn a_program_that_the_card_refuses_names_the_reason() {
    let error = complaint("fib_forward.bpf.c", &sample(), &[]);
    assert!(error.contains("the card does not support helper 69 (bpf_fib_lookup)"), "{error}");
    assert!(error.contains("--on interpreter` does"), "{error}");
}

/// All figures about causes of cycles in a text or an object.
fn spent(reported: &Value) -> f64 {
    let spent = reported["spent_per_packet"].as_object().unwrap();
    spent.values().map(|mean| mean.as_f64().unwrap()).sum()
}

#[test]
fn where_the_cycles_go_adds_up_and_no_profile_makes_it_slower() {
    for program in ["xdp1", "xdp2", "vlan", "dns_filter", "length_histogram"] {
        let source = format!("{program}.bpf.c");
        let [with, without] = [&[][..], &["--without-profile"]]
            .map(|more| reported_as_json(&source, &sample(), more));
        let mean = |reported: &Value| reported["cycles"]["mean"].as_f64().unwrap();
        assert!(mean(&with) <= mean(&without), "{program}: {with} {without}");
        for reported in [&with, &without] {
            assert!((spent(reported) - mean(reported)).abs() < 1e-6, "{program}: {reported}");
        }
        let is_left_out = !with["profile_left_out"].is_null();
        assert_eq!(with["profile"], json!(!is_left_out), "{with}");
        assert_eq!(without["profile_left_out"], Value::Null, "it was asked for");
    }
    let reported = reported_as_json("xdp1.bpf.c", &sample(), &["--cores", "2"]);
    let mean = reported["cycles"]["mean"].as_f64().unwrap();
    assert!((spent(&reported) - 2.0 * mean).abs() < 1e-6, "{reported}");
}

/// An object of a text, in a folder.
fn written(folder: &Path, text: &str) -> PathBuf {
    let source = folder.join("written.bpf.c");
    let start = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n";
    std::fs::write(&source, format!("{start}{text}")).unwrap();
    source
}

#[test]
fn a_jump_to_the_next_instruction_is_scheduled() {
    let folder = tempfile::tempdir().unwrap();
    let source = written(
        folder.path(),
        "SEC(\"xdp\") __attribute__((naked)) int next(struct xdp_md *packet) {\n\
         asm volatile(\"r4 = *(u32 *)(r1 + 16)\\n\" \"r0 = 2\\n\" \"if r4 > 5 goto +0\\n\"\n\
         \"if r4 == 0 goto 1f\\n\" \"r0 = 1\\n\" \"1: exit\\n\"); }\n",
    );
    let reported = reported_as_json(source.to_str().unwrap(), &sample(), &[]);
    assert_eq!(reported["verdicts"], json!({ "passed": 100 }));
}

#[test]
fn a_schedule_that_does_not_fit_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let step = |at: usize| {
        let (byte, than, other) = (at % 34, at * 37 % 251, at * 5 % 34);
        format!(
            "if (data[{byte}] > {than}) {{ x = x * {at} + 3; }} else {{ x ^= {at}; x += \
             data[{other}]; }}\n"
        )
    };
    let steps: String = (3..183).map(step).collect();
    let source = written(
        folder.path(),
        &format!(
            "SEC(\"xdp\") int many(struct xdp_md *packet) {{\n\
             unsigned char *data = (void *)(long)packet->data; __u64 x = 0;\n\
             if ((void *)(data + 34) > (void *)(long)packet->data_end) return XDP_DROP;\n\
             {steps}return x & 1 ? XDP_TX : XDP_PASS; }}\n"
        ),
    );
    let source = source.to_str().unwrap();
    let estimated = reported_as_json(source, &sample(), &[]);
    assert_eq!(estimated["profile"], json!(false), "{estimated}");
    let reason = estimated["profile_left_out"].as_str().unwrap();
    assert!(reason.contains("it does not fit: program `many`: it has "), "{reason}");
    let plain = reported_as_json(source, &sample(), &["--without-profile"]);
    assert_eq!(estimated["cycles"], plain["cycles"]);
    let text = reported(source, &sample(), &[]);
    let line = "\nthe schedule for the ways of these packets is left out: it does not fit: ";
    assert!(text.contains(line), "{text}");
    let explain = |how: &str| {
        let mut explain = Command::new(env!("CARGO_BIN_EXE_freeport"));
        explain.args(["xdp", "explain", source, "--profile", how, "--trace"]).arg(sample());
        let output = explain.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let explained: Value = serde_json::from_str(&explain("--json")).unwrap();
    assert_eq!(explained["profile"], json!(false), "{explained}");
    assert!(explained["profile_left_out"].as_str().unwrap().contains("it does not fit"));
    let svg = folder.path().join("many.svg").display().to_string();
    let text = explain(&format!("--svg={svg}"));
    assert!(text.contains(line), "{text}");
    let mut run = Command::new(env!("CARGO_BIN_EXE_freeport"));
    run.args(["xdp", "run", source, "--on", "sim", "--profile", "--trace"]).arg(sample());
    let output = run.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let reason = "the schedule with the profile does not fit, so the one without it is used: \
        program `many`";
    assert!(said.contains(reason), "{said}");
}
