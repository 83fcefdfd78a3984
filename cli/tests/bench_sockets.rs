// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench sockets` with tiny settings: every row exists, missing programs are reported,
//! and no process or file remains.

use freeport_testbed::skip;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A command without acceleration.
const NOTHING: [&str; 2] = ["--with", "env"];

fn bench(arguments: &[&str], settings: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["bench", "sockets", "--rounds", "1", "--window-ms", "1"]).args(arguments);
    command.envs(settings.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines for programs.
fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", said(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a line has no figures because its program is not installed; that part is skipped.
#[track_caller]
fn is_missing(line: &Value) -> bool {
    let note = line["note"].as_str().unwrap_or_default();
    let is_missing = note.contains("not installed");
    if is_missing {
        skip(note);
    }
    is_missing
}

fn is_figure(value: &Value) -> bool {
    value.as_f64().is_some_and(|value| value > 0.0)
}

#[test]
fn pairs_have_a_line_for_each_figure_and_peer() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let cases = ["--case", "latency", "--case", "throughput", "--case", "connect", "--json"];
    let place = ["--size", "64", "--pairs", "2", "--placement", "same", "--out"];
    let arguments = [&NOTHING[..], &cases, &place, &[out.to_str().unwrap()]].concat();
    let lines = lines(&bench(&arguments, &[]));
    let names = |case: &str| -> Vec<&str> {
        let of_case = lines.iter().filter(|line| line["case"] == case);
        of_case.map(|line| line["peer"].as_str().unwrap()).collect()
    };
    let twice = |peers: &[&'static str]| peers.iter().flat_map(|it| [*it; 2]).collect::<Vec<_>>();
    assert_eq!(names("latency"), twice(&["TCP", "AF_UNIX stream", "pipe", "cache line (limit)"]));
    assert_eq!(names("throughput"), twice(&["TCP", "AF_UNIX stream", "pipe"]));
    assert_eq!((names("connect"), names("reconnect")), (vec!["TCP"], vec!["TCP"]));
    for line in &lines {
        assert!(is_figure(&line["value"]) && is_figure(&line["peer_value"]), "{line}");
        assert_eq!((&line["bench"], &line["placement"]), (&"sockets".into(), &"same".into()));
    }
    let rows = std::fs::read_to_string(out.join("sockets.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 5 + 4 + 2 + 2);
    let drawing = std::fs::read_to_string(out.join("sockets-latency.svg")).unwrap();
    assert!(drawing.contains("cache line") && drawing.contains("64 B"));
}

#[test]
fn applications_are_measured_and_nothing_is_left() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let cases = ["redis", "nginx", "memcached", "bulk"].map(|case| ["--case", case]).concat();
    let arguments = [&NOTHING[..], &cases, &["--quick", "--json", "--out", out]].concat();
    let output = bench(&arguments, &[("TMPDIR", temporary.path())]);
    let lines = lines(&output);
    for (case, figures) in [("redis-get", 5), ("nginx", 5), ("memcached", 5), ("bulk", 3)] {
        let of_case: Vec<&Value> = lines.iter().filter(|line| line["case"] == case).collect();
        assert_eq!(of_case.len(), figures, "{case}: {}", said(&output));
        for line in of_case {
            let is_measured = is_figure(&line["value"]) && is_figure(&line["peer_value"]);
            assert!(is_measured || is_missing(line), "{line}");
        }
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    let rows = std::fs::read_to_string(folder.path().join("sockets-applications.csv")).unwrap();
    assert!(rows.starts_with("bench,case,connections,"), "{rows}");
}

#[test]
fn idle_servers_are_told() {
    let lines = lines(&bench(&[&NOTHING[..], &["--case", "idle", "--json"]].concat(), &[]));
    assert_eq!(lines.len(), 3);
    let servers = lines.iter().find(|line| line["metric"] == "servers_cpu").unwrap();
    assert!(servers["peer_value"].as_f64().is_some_and(|value| value >= 0.0), "{servers}");
}

#[test]
fn what_is_not_installed_is_said_in_its_rows() {
    let empty = tempfile::tempdir().unwrap();
    let cases = ["--case", "redis", "--case", "nginx", "--case", "bulk", "--quick"];
    let nothing = ["--with", "/usr/bin/env"];
    let output = bench(&[&nothing[..], &cases, &["--json"]].concat(), &[("PATH", empty.path())]);
    let lines = lines(&output);
    assert_eq!(lines.len(), 5 + 5 + 3);
    for line in lines {
        assert_eq!((&line["value"], &line["ratio"]), (&Value::Null, &Value::Null));
        assert!(line["note"].as_str().unwrap().ends_with("is not installed"), "{line}");
    }
    let output = bench(&[&nothing[..], &cases].concat(), &[("PATH", empty.path())]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("redis-server is not installed"), "{text}");
}

#[test]
fn without_the_library_the_plain_half_is_measured() {
    let case = ["--case", "connect", "--case", "memcached", "--quick", "--json"];
    let output = bench(&case, &[("FREEPORT_PRELOAD", Path::new("/nowhere/library.so"))]);
    let reported = said(&output);
    assert!(
        reported.contains("nothing is accelerated") && reported.contains("/nowhere"),
        "{reported}"
    );
    for line in lines(&output) {
        assert_eq!(line["value"], Value::Null);
        assert!(is_figure(&line["peer_value"]) || is_missing(&line), "{line}");
    }
}

#[test]
fn a_server_that_cannot_begin_is_told_with_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("accelerate");
    std::fs::write(&script, "#!/bin/sh\necho no luck today >&2\nexit 7\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let with = ["--with", script.to_str().unwrap(), "--case", "memcached", "--quick"];
    let output = bench(&with, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("not installed") {
        return skip("memcached is not installed");
    }
    assert!(!output.status.success());
    assert!(text.contains("failed"), "{text}");
    assert!(said(&output).contains("no luck today"), "{}", said(&output));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let bad: [&[&str]; 6] = [
        &["--size", "7"],
        &["--pairs", "65"],
        &["--case", "apache"],
        &["--placement", "nowhere"],
        &["--seconds", "0"],
        &["--with", " ", "--case", "redis"],
    ];
    for arguments in bad {
        let output = bench(arguments, &[]);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!said(&output).is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}
