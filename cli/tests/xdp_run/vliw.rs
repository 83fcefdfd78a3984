// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs on the model of the small processor, alone and compared with the interpreter.

use super::place::{Place, read, slices, traffic};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Target, Vliw};
use serde_json::{Value, json};

/// The expected summary of numbers, one for each packet.
fn figures(mut each: Vec<u64>) -> Value {
    each.sort_unstable();
    let count = each.len();
    json!({
        "mean": each.iter().sum::<u64>() as f64 / count as f64,
        "p50": each[count.div_ceil(2) - 1],
        "p99": each[(count * 99).div_ceil(100) - 1],
        "max": each[count - 1],
    })
}

#[test]
fn rows_are_those_that_the_model_executed() {
    let place = Place::with_program("xdp2");
    let packets = traffic(300);
    let trace = place.capture(slices(&packets));
    let object = Object::open(&place.object).unwrap();
    for lanes in [2, 4] {
        let mut options = Options::default();
        options.machine.lanes = lanes;
        let mut vliw = Vliw::load(&object, &options, Environment::default()).unwrap();
        let (mut rows, mut operations, mut jumps) = (vec![], vec![], vec![]);
        for bytes in &packets {
            let arrival = Arrival { bytes, ingress_ifindex: 1, rx_queue_index: 0 };
            vliw.run("send_back", &arrival).unwrap();
            let statistics = vliw.statistics().unwrap();
            rows.push(statistics.rows);
            operations.push(statistics.operations);
            jumps.push(statistics.jumps);
        }
        let expected = json!({
            "rows": figures(rows),
            "operations": figures(operations),
            "jumps_taken": figures(jumps),
        });
        // Numbers are parsed from JSON, as the output is.
        let expected: Value = serde_json::from_str(&expected.to_string()).unwrap();
        let lanes_text = lanes.to_string();
        let reported = place.json(&trace, &["--on", "vliw", "--lanes", &lanes_text]);
        assert_eq!(reported["executed_on_model"], expected);
        let rows = vliw.image(0).unwrap().rows.len();
        let image = json!({ "lanes": lanes, "rows": rows, "rows_without_profile": null });
        assert_eq!((&reported["image"], &reported["on"]), (&image, &json!("vliw")));
        assert_eq!(reported["executed_instructions"], Value::Null, "those are the interpreter's");
    }
    // The default is four lanes.
    let options = ["--on", "vliw"];
    let four = place.json(&trace, &[&options[..], &["--lanes", "4"]].concat());
    assert_eq!(place.json(&trace, &options), four);
    let text = place.run(&trace, &options);
    assert!(text.starts_with("program `send_back` on the model of the processor: 300 pack"));
    let label =
        "as a model of the instruction set counts; no time and no cycles:\n  rows:        mean";
    assert!(text.contains(label), "{text}");
}

#[test]
fn packets_and_maps_are_as_in_the_interpreter() {
    let place = Place::with_program("simple_firewall");
    let packets = traffic(400);
    let trace = place.capture(slices(&packets));
    let more = ["--ifindex", "2", "--repeat", "2", "--dump", "flows", "--map"];
    let inside = ["inside key 0 0 0 0 value 2 0 0 0", "--map", "ways key 0 0 0 0 value 3 0 0 0"];
    let run = |on: &[&str], file: &str| {
        let file = place.file(file);
        let write = ["--write", file.to_str().unwrap(), "--on"];
        let reported = place.json(&trace, &[&more[..], &inside, &write, on].concat());
        (reported, read(&file))
    };
    let (interpreter, written) = run(&["interpreter"], "interpreter.pcap");
    assert!(!written.is_empty() && interpreter["maps"]["flows"][0].is_object());
    for on in [&["vliw"][..], &["vliw", "--profile"], &["interpreter,vliw", "--profile"]] {
        let (vliw, same) = run(on, "vliw.pcap");
        for key in ["packets", "bytes", "verdicts", "redirects", "maps", "aborts", "error"] {
            assert_eq!(vliw[key], interpreter[key], "{on:?} {key}");
        }
        assert_eq!(same, written, "{on:?}");
    }
}

#[test]
fn a_profile_takes_fewer_rows_for_what_is_likely() {
    let place = Place::with_program("simple_firewall");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/traces/sample.pcap");
    let more = ["--ifindex", "2", "--map", "inside key 0 0 0 0 value 2 0 0 0", "--map"];
    let more = [&more[..], &["ways key 0 0 0 0 value 3 0 0 0", "--on", "vliw"]].concat();
    let plain = place.json(trace.as_ref(), &more);
    let more = [&more[..], &["--profile"]].concat();
    let profiled = place.json(trace.as_ref(), &more);
    let mean = |reported: &Value| reported["executed_on_model"]["rows"]["mean"].as_f64().unwrap();
    assert!(mean(&profiled) < mean(&plain), "{profiled} {plain}");
    let image = &profiled["image"];
    assert_eq!(image["rows_without_profile"], plain["image"]["rows"]);
    assert_ne!(image["rows"], plain["image"]["rows"]);
    let rows = [&image["rows"], &plain["image"]["rows"]];
    let line =
        format!("image for 4 lanes: {} rows with the profile, {} without\n", rows[0], rows[1]);
    let text = place.run(trace.as_ref(), &more);
    assert!(text.contains(&line), "{text}");
}

/// Loops as often as a byte of the packet says, prints the byte, and reads a byte that exists only
/// in packets above 40 bytes; the kernel would reject the program.
const ROUNDS: &str = "SEC(\"xdp\") int rounds(struct xdp_md *context) {\n\
    volatile unsigned char *data = (void *)(long)context->data;\n\
    unsigned int sum = 0;\n\
    for (int round = data[0]; round > 0; round--) sum += data[round & 7];\n\
    bpf_printk(\"%d rounds\", data[0]);\n\
    return data[40] ? XDP_TX : sum > 9 ? XDP_PASS : XDP_DROP; }\n";

#[test]
fn a_program_prints_and_is_ended_as_in_the_interpreter() {
    let place = Place::with_text(ROUNDS);
    let (few, many) = ([2_u8; 60], [200_u8; 60]);
    let trace = place.capture([&few[..], &few[..40], &many]);
    let output = place.command(&trace, &["--on", "vliw", "--printk"]).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    // The compiler may choose whether the second one is aborted before or after it prints.
    for line in ["packet 1: 2 rounds\n", "packet 3: 200 rounds\n"] {
        assert!(printed.contains(line), "{printed}");
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let ended = "\naborted by the model\n1 packets, first 2: program `rounds`, ";
    assert!(text.contains(ended), "{text}");
    // The limit counts rows; packets with many iterations exceed it.
    let reported = place.json(&trace, &["--on", "vliw", "--limit", "100"]);
    assert_eq!(reported["verdicts"]["XDP_ABORTED"], json!(2));
    assert_eq!(reported["executed_on_model"]["rows"]["max"], json!(100));
    place.run(&trace, &["--on", "interpreter,vliw"]);
}

#[test]
fn a_difference_from_the_interpreter_is_shown() {
    let place = Place::with_text(ROUNDS);
    let trace = place.capture([&[200_u8; 60][..]]);
    // The number of instructions exceeds the limit, and the number of rows does not.
    let rows = place.json(&trace, &["--on", "vliw"])["executed_on_model"]["rows"]["max"].clone();
    let options = ["--on", "interpreter,vliw", "--limit", &rows.to_string()];
    let error = place.complaint(&trace, &options);
    assert!(
        error.contains("packet 1, 60 bytes by device 1, queue 0, has different outcomes"),
        "{error}"
    );
    assert!(
        error.contains("\ninterpreter: XDP_ABORTED, 60 bytes; aborted: program `rounds`"),
        "{error}"
    );
    assert!(error.contains("\nvliw:        XDP_TX, 60 bytes"), "{error}");
    let output = place.failure(&trace, &[&options[..], &["--json"]].concat());
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reported["difference"]["vliw"]["verdict"], json!("XDP_TX"));
    assert_eq!(reported["difference"]["interpreter"]["verdict"], json!("XDP_ABORTED"));
}
