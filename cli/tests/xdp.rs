// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp` on objects compiled by clang.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn show(object: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["xdp", "show"]).arg(object).args(more).output().unwrap()
}

fn shown(object: &Path, more: &[&str]) -> String {
    let output = show(object, more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn complaint(object: &Path, more: &[&str]) -> String {
    let output = show(object, more);
    assert!(!output.status.success(), "{more:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn firewall() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/xdp/simple_firewall.bpf.c")
}

#[test]
fn programs_and_maps_of_an_object_and_of_its_source_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("firewall.o");
    std::fs::write(&object, freeport_xdp::compile(&firewall()).unwrap()).unwrap();
    let text = shown(&object, &[]);
    assert_eq!(text, shown(&firewall(), &[]));
    assert!(text.contains("program filter: section xdp, xdp, "), "{text}");
    assert!(text.contains("\nmap flows: "), "{text}");
    let reported: Value = serde_json::from_str(&shown(&object, &["--json"])).unwrap();
    assert_eq!(reported["programs"][0]["refused"], json!([]));
    let maps = reported["maps"].as_array().unwrap();
    let inside = maps.iter().find(|map| map["name"] == "inside").unwrap();
    assert_eq!((&inside["key_bytes"], &inside["value_bytes"]), (&json!(4), &json!(4)));
}

#[test]
fn instructions_follow_their_source_lines() {
    let text = shown(&firewall(), &["--program", "filter", "--disassemble"]);
    assert!(text.contains("simple_firewall.bpf.c:"), "{text}");
    assert!(text.lines().any(|line| line.trim_end().ends_with("exit")), "{text}");
}

#[test]
fn what_the_interpreter_cannot_run_is_said_of_its_program_only() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("two.bpf.c");
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
        SEC(\"xdp\") int asks(struct xdp_md *context) { return bpf_get_current_pid_tgid() & 1; }\n\
        SEC(\"xdp\") int passes(struct xdp_md *context) { return XDP_PASS; }\n\
        SEC(\"tc\") int other(struct __sk_buff *context) { return 0; }\n";
    std::fs::write(&source, text.replace("*context)", "*context __attribute__((unused)))"))
        .unwrap();
    let reported: Value = serde_json::from_str(&shown(&source, &["--json"])).unwrap();
    let refused = |name: &str| {
        let programs = reported["programs"].as_array().unwrap();
        let found = programs.iter().find(|program| program["name"] == name).unwrap();
        found["refused"].as_array().unwrap().clone()
    };
    assert_eq!(refused("asks").len(), 1, "{reported}");
    assert!(refused("asks")[0].as_str().unwrap().contains("`asks`, instruction 0: "), "{reported}");
    assert!(refused("passes").is_empty(), "{reported}");
    assert_eq!(refused("other"), [json!("it is not an XDP program")]);
}

#[test]
fn errors_name_the_file_and_what_is_there_instead() {
    let error = complaint(&firewall(), &["--program", "fliter"]);
    assert!(error.contains("simple_firewall.bpf.c: there is no program `fliter`"), "{error}");
    assert!(error.contains("there are: filter"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage.o");
    std::fs::write(&garbage, [7; 100]).unwrap();
    assert!(complaint(&garbage, &[]).contains("garbage.o"));
    assert!(complaint(&folder.path().join("none.o"), &[]).contains("none.o"));
}

#[test]
fn what_keeps_a_program_from_being_compiled_code_is_told() {
    let programs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../programs/xdp");
    let reported = |name: &str| {
        let source = programs.join(format!("{name}.bpf.c"));
        let reported: Value = serde_json::from_str(&shown(&source, &["--json"])).unwrap();
        (reported["programs"][0]["not_lifted"].clone(), shown(&source, &[]))
    };
    let (reason, text) = reported("sampler");
    let reason = reason.as_str().expect("rings of records are no tables");
    assert!(reason.starts_with("not liftable, because of instruction"), "{reason}");
    assert!(text.contains(&format!("    not as compiled code: {reason}\n")), "{text}");
    let (reason, text) = reported("xdp1");
    assert!(reason.is_null() && !text.contains("not as compiled code"), "{text}");
}
