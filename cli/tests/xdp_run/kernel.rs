// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs in the kernel, and compared with other targets.

use super::place::{Place, skipped, slices, traffic};
use freeport_ebpf::interpreter::verdict;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;

#[test]
fn the_kernel_and_the_interpreter_agree_packet_by_packet() {
    if skipped() {
        return;
    }
    for name in ["xdp2", "parser_chain", "length_histogram"] {
        let place = Place::with_program(name);
        let mut packets = traffic(200);
        packets.insert(2, vec![1; 13]);
        packets.push(vec![1; 3_521]);
        let trace = place.capture(slices(&packets));
        let options = |on| match name {
            "parser_chain" => vec!["--program", "parse_ethernet", "--on", on],
            _ => vec!["--on", on],
        };
        let both = place.json(&trace, &options("both"));
        assert_eq!(both["refused"], json!({ "packets": 2, "first": [3, 202] }), "{name}");
        assert_eq!((&both["packets"], &both["error"]), (&json!(200), &Value::Null), "{name}");
        let kernel = place.json(&trace, &options("kernel"));
        assert_eq!(kernel["verdicts"], both["verdicts"], "{name}");
        assert_eq!(kernel["executed_instructions"], Value::Null, "the kernel does not count");
        let text = place.run(&trace, &options("kernel"));
        let refused =
            "2 packets were not run, since the kernel supports 14 to 3520 bytes: 3, 202\n";
        assert!(text.contains(refused), "{text}");
        let interpreter = place.json(&trace, &options("interpreter"));
        assert_eq!(interpreter["packets"], json!(202), "{name}");
    }
}

/// Its result depends on time: it is 0 on a clock that is set to 0.
const UNSTEADY: &str = "__u64 last;\n\
    SEC(\"xdp\") int uneven(struct xdp_md *context) {\n\
    char *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;\n\
    __u64 now = bpf_ktime_get_ns();\n\
    if (data + 40 > end) return XDP_DROP;\n\
    if (data[20]) last = now;\n\
    if (data[21]) data[30] = now != 0;\n\
    return data[22] && now ? XDP_TX : XDP_PASS; }\n";

#[test]
fn a_difference_is_shown_with_its_packet() {
    if skipped() {
        return;
    }
    let place = Place::with_text(UNSTEADY);
    let frame = |different: usize| {
        let mut frame = [0_u8; 60];
        frame[different] = 1;
        frame
    };
    let options = ["--on", "both", "--clock", "0"];
    // The bytes and the verdict of a packet.
    let trace = place.capture([&frame(50)[..], &frame(21), &frame(22)]);
    let error = place.complaint(&trace, &options);
    let expected = "in.pcap: packet 2, 60 bytes by device 1, queue 0, has different outcomes\n\
        kernel:      XDP_PASS, 60 bytes\n\
        interpreter: XDP_PASS, 60 bytes\n\
        the packet differs in these lines:\n";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("  0010  kernel       00 00 00 00 00 01 00"), "{error}");
    let trace = place.capture([&frame(50)[..], &frame(22)]);
    let output = place.failure(&trace, &[&options[..], &["--json"]].concat());
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    let difference = &reported["difference"];
    assert_eq!((&reported["packets"], &difference["packet"]), (&json!(1), &json!(2)));
    assert_eq!(difference["kernel"]["verdict"], json!("XDP_TX"));
    assert_eq!(difference["interpreter"]["verdict"], json!("XDP_PASS"));
    // Contents of a map, unless it is excepted.
    let trace = place.capture([&frame(50)[..], &frame(20), &frame(50)]);
    let error = place.complaint(&trace, &options);
    let expected =
        "after packet 2; they were equal after packet 1: map .bss: key 00000000: kernel ";
    assert!(error.contains(expected), "{error}");
    let error = place.complaint(&trace, &[&options[..], &["--maps-every", "9"]].concat());
    assert!(error.contains("at the end: map .bss: key 00000000: kernel "), "{error}");
    place.run(&trace, &[&options[..], &["--except", ".bss:0..8"]].concat());
    let error = place.complaint(&trace, &[&options[..], &["--except", ".bs"]].concat());
    assert!(error.contains("there is no map `.bs`; there are: .bss"), "{error}");
}

/// Numbers of `linux/capability.h`: CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF.
const CAPABILITIES: [libc::c_ulong; 4] = [12, 21, 38, 39];

#[test]
fn who_may_not_use_the_kernel_is_told_what_is_missing() {
    let place = Place::with_program("xdp1");
    let trace = place.capture([&[0_u8; 60][..]]);
    let mut command = place.command(&trace, &["--on", "both"]);
    let drop_capabilities = || {
        for capability in CAPABILITIES {
            // It fails if the process does not have the capability.
            // SAFETY: no memory is passed.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec, only system calls are made; nothing is allocated.
    unsafe { command.pre_exec(drop_capabilities) };
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("program.o: the kernel refuses bpf(2): "), "{error}");
    assert!(error.contains("CAP_BPF and CAP_NET_ADMIN, or root: try it with sudo"), "{error}");
    assert!(error.contains("--on interpreter"), "{error}");
    let reported = place.json(&trace, &[]);
    assert_eq!(reported["verdicts"][verdict::name(verdict::DROP).unwrap()], json!(1));
}

#[test]
fn a_program_that_is_ended_in_the_interpreter_only_is_a_difference() {
    if skipped() {
        return;
    }
    let place = Place::with_program("xdp2");
    let trace = place.capture([&[8_u8; 60][..]]);
    let error = place.complaint(&trace, &["--on", "both", "--limit", "3"]);
    let expected = "interpreter: XDP_ABORTED, 60 bytes; aborted: program `send_back`, instruction ";
    assert!(error.contains("kernel:      XDP_DROP, 60 bytes\n"), "{error}");
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("more than 3 instructions were executed"), "{error}");
}
