// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp compile` on the programs of the repository, with bounds for the length and density
//! of their schedules.

use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::object::{Object, ProgramKind};
use freeport_vliw::report::{Effects, Report, Size};
use freeport_vliw::{Options, PASSES};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn source(name: &str) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/xdp");
    programs.join(name).with_extension("bpf.c")
}

fn compile(object: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["xdp", "compile"]).arg(object).args(more).output().unwrap()
}

fn reported(object: &Path, more: &[&str]) -> String {
    let output = compile(object, more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn reported_as_json(object: &Path, more: &[&str]) -> Value {
    let text = reported(object, &[more, &["--json"]].concat());
    serde_json::from_str(&text).unwrap()
}

fn complaint(object: &Path, more: &[&str]) -> String {
    let output = compile(object, more);
    assert!(!output.status.success(), "{more:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// An object with two programs, one of which calls a helper that the processor does not have.
fn two(folder: &Path) -> PathBuf {
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
        static long (*none)(void) = (void *)9999;\n\
        SEC(\"xdp\") int asks(struct xdp_md *context) { return none() & 1; }\n\
        SEC(\"xdp\") int passes(struct xdp_md *context) { return XDP_PASS; }\n\
        SEC(\"tc\") int other(struct __sk_buff *context) { return 0; }\n";
    let source = folder.join("two.bpf.c");
    std::fs::write(&source, text.replace("*context)", "*context __attribute__((unused)))"))
        .unwrap();
    source
}

#[test]
fn an_object_and_its_source_become_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("firewall.o");
    let firewall = source("simple_firewall");
    std::fs::write(&object, freeport_xdp::compile(&firewall).unwrap()).unwrap();
    let text = reported(&object, &[]);
    assert_eq!(text, reported(&firewall, &[]));
    assert!(text.starts_with("program `filter` for 4 lanes\n\neBPF instructions "), "{text}");
    let json = reported_as_json(&object, &[]);
    assert_eq!(json["refused"], json!([]));
    let program = &json["programs"][0];
    assert!(
        text.contains(&format!("\noperations {:>14}\n", program["operations"].as_u64().unwrap())),
        "{text}"
    );
    let kept = reported_as_json(&object, &["--keep-all"]);
    assert_eq!(kept["programs"][0]["operations"], kept["programs"][0]["instructions"]);
    assert_eq!((&program["effects"], &program["schedule"]), (&Value::Null, &Value::Null));
}

#[test]
fn rows_follow_their_source_lines() {
    let firewall = source("simple_firewall");
    let text = reported(&firewall, &["--rows"]);
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().position(|line| *line == "filter:").expect("a heading");
    assert!(lines[begin + 1].starts_with("      // "), "{text}");
    let json = reported_as_json(&firewall, &["--rows"]);
    let rows = json["programs"][0]["schedule"].as_array().unwrap();
    assert_eq!(json!(rows.len()), json["programs"][0]["rows"]);
    let numbered = lines[begin..].iter().filter(|line| !line.contains("// ")).skip(1);
    for (number, (line, row)) in numbered.zip(rows).enumerate() {
        assert!(line.starts_with(&format!("{number:4}  ")), "{line}");
        for slot in row.as_array().unwrap().iter().filter(|slot| !slot.is_null()) {
            assert!(line.contains(slot["operation"].as_str().unwrap()), "{line} {slot}");
        }
    }
    let lookup = lines.iter().position(|line| line.contains("call map_lookup_elem")).unwrap();
    let is_named = |line: &&str| line.contains("bpf_map_lookup_elem(&inside, &zero)");
    assert!(lines[..lookup].iter().rev().take(9).any(is_named), "{text}");
}

#[test]
fn passes_and_lanes_are_what_is_asked_for() {
    let program = source("xdp1");
    let size = |more: &[&str]| {
        let json = reported_as_json(&program, more);
        (json["programs"][0]["rows"].clone(), json["programs"][0]["operations"].clone())
    };
    let everything = PASSES.join(",");
    let plain = size(&["--without", &everything]);
    let (half, rest) = everything.split_once(",exits,").unwrap();
    assert_eq!(size(&["--without", half, "--without", rest, "--without", "exits"]), plain);
    assert_eq!(size(&["--keep-all", "--without", "code-motion,renaming"]), plain);
    assert_ne!(size(&[]), plain);
    let (rows, operations) = size(&["--lanes", "1"]);
    assert!(rows.as_u64() >= operations.as_u64(), "a lane has one operation a row");
    let text = reported(&program, &["--passes", "--lanes", "3"]);
    for pass in PASSES {
        assert!(text.contains(&format!("\nwithout {pass} ")), "{text}");
    }
    assert!(
        text.contains("\nevery instruction kept ") && text.contains("\nwith bounds "),
        "{text}"
    );
    assert!(text.contains("\nlanes: 3 * ") && text.contains("\nlanes: 8 "), "{text}");
    let json = reported_as_json(&program, &["--passes", "--lanes", "3"]);
    let program = &json["programs"][0];
    let all = &program["effects"]["cumulative"].as_array().unwrap().last().unwrap()["size"];
    assert_eq!(all["rows"], program["rows"]);
    assert_eq!(program["effects"]["lanes"][2], json!({ "lanes": 3, "size": all }));
}

#[test]
fn a_picture_has_a_box_for_each_operation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("firewall.svg");
    let firewall = source("simple_firewall");
    let json = reported_as_json(&firewall, &["--svg", file.to_str().unwrap()]);
    let svg = std::fs::read_to_string(&file).unwrap();
    let boxes = svg.matches("<g class=\"operation\"").count();
    assert_eq!(json!(boxes), json["programs"][0]["operations"]);
    assert!(svg.contains("simple_firewall.bpf.c:"), "tooltips name lines");
    let error = complaint(&firewall, &["--svg", "/proc/nonexistent/a.svg"]);
    assert!(error.contains("/proc/nonexistent/a.svg: cannot be written"), "{error}");
}

#[test]
fn errors_say_what_there_is_instead() {
    let firewall = source("simple_firewall");
    let error = complaint(&firewall, &["--program", "fliter"]);
    assert!(error.contains("there is no XDP program `fliter`; there are: filter"), "{error}");
    let error = complaint(&firewall, &["--without", "bounds,unroling"]);
    assert!(error.contains("there are: bounds, zeroing, "), "{error}");
    for lanes in ["0", "9"] {
        let error = complaint(&firewall, &["--lanes", lanes]);
        assert!(error.contains("1..=8"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = complaint(&folder.path().join("none.o"), &[]);
    assert!(error.contains("none.o: cannot be read"), "{error}");
}

#[test]
fn what_cannot_be_compiled_is_told_beside_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let two = two(folder.path());
    let output = compile(&two, &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reason = json!([{ "program": "asks", "slot": 0, "reason": "helper 9999 does not exist" }]);
    assert_eq!(json["refused"], reason);
    assert_eq!(json["programs"].as_array().unwrap().len(), 1);
    let error = complaint(&two, &[]);
    assert!(error.contains("two.bpf.c: the processor cannot run program `asks`, instruction 0: "));
    let error = complaint(&two, &["--svg", "two.svg"]);
    assert!(error.contains("--svg draws one program; choose one with --program"), "{error}");
    assert!(error.contains("there are: asks, passes"), "{error}");
    let error = complaint(&two, &["--program", "other"]);
    assert!(error.contains("there is no XDP program `other`"), "{error}");
    let text = reported(&two, &["--program", "passes"]);
    assert!(text.starts_with("program `passes` for 4 lanes"), "{text}");
}

/// The programs of an object for packets that are received.
fn measured(name: &str, mut check: impl FnMut(&dyn Fn(&Options) -> Report, &Effects)) {
    let object = freeport_testbed::object(&source(name), freeport_xdp::compiler());
    let object = Object::parse(&object).unwrap();
    for program in object.programs.iter().filter(|program| program.kind == ProgramKind::Xdp) {
        let analysis = Analysis::of(program, &object.maps).unwrap();
        let effects = Effects::of(program, &analysis, &Options::default()).unwrap();
        check(&|options| Report::of(program, &analysis, options).unwrap(), &effects);
    }
}

#[test]
fn schedules_are_as_full_and_as_short_as_those_of_the_publication() {
    for (name, least_per_row) in [
        ("simple_firewall", 1.9),
        ("xdp1", 1.4),
        ("xdp2", 1.6),
        ("redirect_map", 2.4),
        ("router_ipv4", 1.9),
        ("rxq_info", 1.9),
    ] {
        measured(name, |report, effects| {
            let kept = report(&Options::keeping_all());
            assert_eq!(kept.size, effects.keeping_all);
            let program = &kept.image.name;
            let per_row = kept.size.operations_per_row();
            assert!(per_row >= least_per_row, "{name} {program}: {per_row:.2} operations per row");
            let all = report(&Options::default()).size;
            let is_shorter = all.rows * 10 <= kept.size.rows * 7;
            assert!(is_shorter, "{name} {program}: {} of {} rows", all.rows, kept.size.rows);
        });
    }
}

#[test]
fn more_lanes_make_no_program_much_longer() {
    for name in [
        "adjust_tail",
        "load_balancer",
        "redirect_map",
        "router_ipv4",
        "rxq_info",
        "simple_firewall",
        "tx_ip_tunnel",
        "xdp1",
        "xdp2",
    ] {
        measured(name, |report, effects| {
            let lanes: Vec<Size> = effects.lanes.iter().map(|(_, size)| *size).collect();
            for (fewer, more) in lanes.iter().zip(&lanes[1..]) {
                assert!(more.rows * 10 <= fewer.rows * 11, "{name}: {:?}", effects.lanes);
            }
            for options in [Options::plain(), Options::keeping_all(), Options::default()] {
                let report = report(&options);
                assert!(report.critical_rows <= report.size.rows, "{name}: {report:?}");
            }
        });
    }
}
