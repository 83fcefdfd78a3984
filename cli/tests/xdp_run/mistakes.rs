// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Error messages about options and files.

use super::place::Place;
use serde_json::{Value, json};
use std::fs;

const INSIDE: &str = "inside key 0 0 0 0 value 2 0 0 0";

#[test]
fn errors_name_what_is_wrong() {
    let place = Place::with_program("simple_firewall");
    let trace = place.capture([&[0_u8; 60][..], &[0; 70]]);
    for (options, reason) in [
        (["--map", "insid key 0 0 0 0 value 2 0 0 0"], "map `insid`: there is none; there are: "),
        (
            ["--map", "inside key 0 0 value 2 0 0 0"],
            "`inside`: its key has 4 bytes, and 2 are given",
        ),
        (["--map", "ways key 9 0 0 0 value 2 0 0 0"], "updating ways: E2BIG"),
        (["--except", "flows"], "--except and --maps-every need two targets"),
        (["--maps-every", "5"], "--except and --maps-every need two targets"),
        (["--lanes", "2"], "--lanes is for --on vliw"),
        (["--dump", "flow"], "program.o: there is no map `flow`; there are: "),
        (["--map-file", "/proc/nonexistent/maps"], "/proc/nonexistent/maps: No such file"),
        (["--write", "/proc/nonexistent/out.pcap"], "/proc/nonexistent/out.pcap: No such file"),
        (["--write", trace.to_str().unwrap()], "in.pcap: this is the capture that is read"),
    ] {
        let error = place.complaint(&trace, &options);
        assert!(error.contains(reason), "{error}");
    }
    let file = place.file("maps.txt");
    fs::write(&file, format!("{INSIDE}\ninside key 0 0 0 0 value x\n")).unwrap();
    let error = place.complaint(&trace, &["--map-file", file.to_str().unwrap()]);
    assert!(
        error.contains("maps.txt: line 2: `x` is not a valid byte of the value; write "),
        "{error}"
    );
    let error = place.complaint(&place.object, &[]);
    assert!(error.contains("program.o: is not a capture, neither pcap nor pcapng"), "{error}");
    let error = place.complaint(&place.file("none.pcap"), &[]);
    assert!(error.contains("none.pcap: No such file"), "{error}");
    let classifier = Place::with_text("SEC(\"tc\") int other(void *c) { return c != 0; }\n");
    let error = classifier.complaint(&trace, &[]);
    assert!(error.contains("program.o: there is no XDP program in it"), "{error}");
}

#[test]
fn what_came_before_the_break_of_a_capture_is_told() {
    let place = Place::with_program("xdp1");
    let trace = place.capture([&[0_u8; 60][..], &[0; 70], &[0; 80]]);
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 5]).unwrap();
    let output = place.failure(&trace, &["--json", "--dump", "protocols"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("in.pcap: record 3: the file ends inside it"), "{error}");
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&reported["packets"], &reported["bytes"]), (&json!(2), &json!(130)));
    assert_eq!(reported["maps"]["protocols"][0]["formatted"], json!({ "key": 0, "value": 2 }));
    assert!(error.contains(reported["error"].as_str().unwrap()), "{error} {reported}");
}

#[test]
fn only_ethernet_is_taken() {
    let place = Place::with_program("xdp1");
    let trace = place.capture([&[0_u8; 60][..]]);
    let mut bytes = fs::read(&trace).unwrap();
    bytes[20] = 113;
    fs::write(&trace, bytes).unwrap();
    let error = place.complaint(&trace, &[]);
    assert!(error.contains("in.pcap: its frames are of link type 113, not Ethernet"), "{error}");
    // In pcapng each packet has an interface: the second packet is of another link type.
    let block = |kind: u32, words: &[u32]| {
        let length = 12 + 4 * words.len() as u32;
        let all = [&[kind, length], words, &[length]].concat();
        all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let blocks = [
        block(0x0a0d_0d0a, &[0x1a2b_3c4d, 1, !0, !0]),
        block(1, &[1, 0]),
        block(1, &[113, 0]),
        block(6, &[0, 0, 1, 20, 20, 0, 0, 0, 0, 0]),
        block(6, &[1, 0, 2, 20, 20, 0, 0, 0, 0, 0]),
    ];
    let trace = place.file("two.pcapng");
    fs::write(&trace, blocks.concat()).unwrap();
    let error = place.complaint(&trace, &[]);
    assert!(error.contains("two.pcapng: packet 2 is of link type 113, not Ethernet"), "{error}");
}

#[test]
fn a_program_that_cannot_run_here_is_refused_alone() {
    let place = Place::with_text(
        "SEC(\"xdp\") int asks(void *c) { return (c != 0) & bpf_get_current_pid_tgid(); }\n\
         SEC(\"xdp\") int passes(void *c) { return c ? XDP_PASS : XDP_DROP; }\n",
    );
    let trace = place.capture([&[0_u8; 60][..]]);
    let error = place.complaint(&trace, &["--program", "asks"]);
    assert!(error.contains("in the interpreter: program `asks`, instruction "), "{error}");
    let reported = place.json(&trace, &["--program", "passes"]);
    assert_eq!(reported["verdicts"]["XDP_PASS"], json!(1), "{reported}");
}
