// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs as compiled code in user space, alone and compared with the interpreter.

use super::place::{Place, slices, traffic};
use serde_json::{Value, json};

#[test]
fn compiled_code_and_the_interpreter_agree_packet_by_packet() {
    for name in ["xdp2", "simple_firewall", "load_balancer"] {
        let place = Place::with_program(name);
        let trace = place.capture(slices(&traffic(200)));
        let both = place.json(&trace, &["--on", "native,interpreter"]);
        assert_eq!((&both["packets"], &both["error"]), (&json!(200), &Value::Null), "{name}");
        let native = place.json(&trace, &["--on", "native"]);
        assert_eq!(native["verdicts"], both["verdicts"], "{name}");
        assert_eq!(native["executed_instructions"], Value::Null, "they are not counted");
        assert_eq!(native["on"], json!("native"));
    }
}

#[test]
fn a_difference_is_found() {
    // The clock of the interpreter differs from that of the machine.
    let text = "SEC(\"xdp\") int late(struct xdp_md *context) {\n\
        (void)context; return bpf_ktime_get_ns() > 5 ? XDP_PASS : XDP_DROP; }\n";
    let place = Place::with_text(text);
    let trace = place.capture(slices(&traffic(3)));
    let reported = place.complaint(&trace, &["--on", "native,interpreter", "--clock", "1"]);
    assert!(reported.contains("packet 1"), "{reported}");
}

#[test]
fn what_cannot_be_compiled_says_why_and_where() {
    let place = Place::with_program("sampler");
    let trace = place.capture(slices(&traffic(3)));
    let reported = place.complaint(&trace, &["--on", "native"]);
    assert!(reported.contains("as compiled code"), "{reported}");
    assert!(reported.contains("not liftable, because of instruction"), "{reported}");
    assert!(reported.contains("sampler.bpf.c:"), "{reported}");
}

#[test]
fn packets_that_are_too_long_are_counted_and_maps_are_dumped() {
    let place = Place::with_program("xdp1");
    let mut packets = traffic(20);
    packets.push(vec![1; 5_000]);
    let trace = place.capture(slices(&packets));
    let reported = place.json(&trace, &["--on", "native", "--dump", "protocols"]);
    assert_eq!(reported["refused"], json!({ "packets": 1, "first": [21] }));
    let again = place.json(&trace, &["--dump", "protocols"]);
    assert!(reported["maps"] != Value::Null, "{reported}");
    let less = place.json(&trace, &["--on", "interpreter,native", "--dump", "protocols"]);
    assert_eq!(reported["maps"], less["maps"]);
    assert_eq!(again["packets"], json!(21), "the interpreter takes longer ones");
}
