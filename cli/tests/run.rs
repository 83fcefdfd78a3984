// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands on the sample program and the sample capture, from the outside.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn freeport(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(arguments).current_dir(repository()).stdin(Stdio::null());
    command.output().unwrap()
}

fn standard_output(arguments: &[&str]) -> String {
    let output = freeport(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn complaint(arguments: &[&str]) -> String {
    let output = freeport(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

const PROGRAM: &str = "examples/capture.ir";
const TRACE: &str = "from_tor=examples/traces/sample.pcap";

#[test]
fn a_capture_goes_through_a_program_unchanged_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pcap");
    let out = format!("to_tor={}", file.display());
    let host = folder.path().join("host.pcapng");
    let record = format!("to_host={}", host.display());
    let arguments = ["run", PROGRAM, "--in", TRACE, "--out", &out, "--out", "to_host=count"];
    let arguments = [&arguments[..], &["--capture", &record, "--signal", "cnt:0"]].concat();
    assert_eq!(standard_output(&arguments), "signal cnt: 100 0 0 0 0 0 0\n");
    let sent = std::fs::read(repository().join("examples/traces/sample.pcap")).unwrap();
    assert!(std::fs::read(&file).unwrap() == sent, "the capture has changed");
    assert!(std::fs::metadata(&host).unwrap().len() > 35_000, "the record is too short");
}

#[test]
fn variables_are_set_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init.json");
    std::fs::write(&init, "{\"cnt\": {\"count\": 7}}").unwrap();
    let init = init.display().to_string();
    let count = |more: &[&str]| {
        let arguments = ["run", PROGRAM, "--in", "from_tor=gen:64x10", "--signal", "cnt:0"];
        standard_output(&[&arguments[..], more].concat())
    };
    assert_eq!(count(&[]), "signal cnt: 10 0 0 0 0 0 0\n");
    assert_eq!(count(&["--init", &init]), "signal cnt: 17 0 0 0 0 0 0\n");
    let both = ["--init", &init, "--set", "cnt.count=0x100"];
    assert_eq!(count(&both), "signal cnt: 266 0 0 0 0 0 0\n");
}

#[test]
fn counters_agree_in_every_format_and_whatever_the_order_of_firings() {
    let arguments = ["run", PROGRAM, "--in", "from_tor=gen:imixx300", "--out", "to_tor=count"];
    let stats = |more: &[&str]| {
        standard_output(&[&arguments[..], &["--out", "to_host=count"], more].concat())
    };
    let json: Value = serde_json::from_str(&stats(&["--stats", "json"])).unwrap();
    assert_eq!(json["endpoints"][0]["endpoint"], "from_tor");
    assert_eq!(json["endpoints"][0]["frames"], 300);
    assert_eq!(json["endpoints"][1]["frames"], 300);
    assert_eq!(json["endpoints"][1]["bytes"], json["endpoints"][0]["bytes"]);
    let firings = json["instances"][0]["firings"].as_u64().unwrap();
    assert!(firings > 600, "{json}");
    let prometheus = stats(&["--stats", "prometheus"]);
    let mut lines = prometheus.lines();
    let line = lines.find(|it| it.contains("firings") && it.contains("instance=\"cnt\""));
    assert!(line.is_some_and(|line| line.ends_with(&format!(" {firings}"))), "{prometheus}");
    let shuffled: Value =
        serde_json::from_str(&stats(&["--stats", "json", "--seed", "3", "--batch", "1"])).unwrap();
    assert_eq!(shuffled["instances"], json["instances"]);
}

#[test]
fn an_outer_end_without_a_port_drops_and_counts() {
    let arguments = ["run", PROGRAM, "--in", "from_tor=gen:64x25", "--stats", "json"];
    let json: Value = serde_json::from_str(&standard_output(&arguments)).unwrap();
    assert_eq!(json["endpoints"][1]["frames"], 0);
    assert_eq!(json["endpoints"][1]["dropped"], 25);
}

#[test]
fn mistakes_are_answered_with_what_there_is() {
    for (arguments, wanted) in [
        (["run", PROGRAM, "--signal", "foo:0"], "there are cnt, tee"),
        (["run", PROGRAM, "--set", "cnt.coun=1"], "there are count"),
        (["run", PROGRAM, "--set", "cnt.count=0x1ffffffffffffffff"], "fit"),
        (["run", PROGRAM, "--in", "from_tor=gone.pcap"], "gone.pcap: No such file"),
        (["run", PROGRAM, "--in", "from_nic=gen:64x1"], "from_tor"),
        (["run", PROGRAM, "--in", "from_tor=Cargo.toml"], "Cargo.toml"),
        (["run", PROGRAM, "--capture", "to_tor=x.pcapng"], "--out to_tor=count"),
        (["run", "Cargo.toml", "--seed", "1"], "Cargo.toml:"),
    ] {
        let told = complaint(&arguments);
        assert!(told.contains(wanted), "{arguments:?}: {told}");
        assert!(told.matches("No such file").count() <= 1, "{told}");
    }
}

#[test]
fn a_program_is_drawn() {
    let drawing = standard_output(&["graph", PROGRAM]);
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
    for name in [">cnt<", ">tee<", ">from_tor<", ">to_tor<", ">to_host<", "channel lossy"] {
        assert!(drawing.contains(name), "{name}");
    }
}

#[test]
fn a_machine_is_examined() {
    let told: Value = serde_json::from_str(&standard_output(&["doctor", "--json"])).unwrap();
    let names: Vec<&str> =
        told["checks"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    for name in ["compiler", "cores", "AF_XDP", "BPF", "namespaces", "memlock", "capabilities"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn syntax_errors_are_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.cnp");
    std::fs::write(&path, "Count :: cnt\nfrom_tor => cnt\n").unwrap();
    let path = path.display().to_string();
    assert!(complaint(&["check", &path]).contains("bad.cnp:2:"));
    let output = freeport(&["check", "--json", &path]);
    let first = String::from_utf8(output.stdout).unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!((&first["severity"], &first["line"]), (&"error".into(), &2.into()));
}
