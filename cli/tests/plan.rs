// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan` from the outside.

use serde_json::Value;
use std::process::Command;

/// Runs `freeport plan`, and returns its output, its errors, and whether it succeeded.
pub fn run(arguments: &[&str]) -> (String, String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    let output = command.arg("plan").args(arguments).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.success())
}

#[test]
fn an_estimate_has_latency_rate_and_limit() {
    let (text, _, is_good) =
        run(&["estimate", "--path", "1", "--operation", "read", "--size", "64"]);
    assert!(is_good && text.contains("(simulated)"), "{text}");
    assert!(text.contains("limited by  reads in flight to the host"), "{text}");
    let arguments =
        ["estimate", "--path", "3-s2h", "--operation", "read", "--size", "64", "--json"];
    let (text, ..) = run(&arguments);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["bottleneck"], "cores of the SoC");
    let rate = found["millions_per_second"].as_f64().expect("a rate");
    assert!((26.1..31.9).contains(&rate), "{rate} M/s beside 29 of the study");
    assert!(rate <= found["bound_millions_per_second"].as_f64().expect("a bound"));
    // Equal seeds give equal bytes.
    assert_eq!(text, run(&arguments).0);
}

#[test]
fn loads_disturb_each_other() {
    let (text, _, is_good) =
        run(&["mix", "--load", "1:read:64", "--load", "3-h2s:read:64", "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let of = |name: &str| found["loads"][0][name].as_f64().expect("a rate");
    assert!(
        is_good && of("millions_per_second") < 0.95 * of("alone_millions_per_second"),
        "{text}"
    );
    // Each load has a limit of its own.
    let (text, ..) = run(&["mix", "--load", "1:read:64", "--load", "3-s2h:read:64", "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["loads"][0]["bottleneck"], "reads in flight to the host");
    // The cores that post are those of the processor.
    let limit = found["loads"][1]["bottleneck"].as_str().expect("a text");
    assert!(["cores of the SoC", "posting by the requester"].contains(&limit), "{limit}");
    for (load, reason) in [
        ("1:read", "expected PATH:OPERATION:BYTES[:MILLIONS]"),
        ("4:read:64", "there is no path 4; the paths are rnic, 1, 2,"),
        ("1:look:64", "there is no operation look"),
        ("1:read:64:0", "expected millions of requests per second above 0"),
        ("dma-s2h:send:64", "path dma-s2h has no send"),
    ] {
        let (_, error, is_good) = run(&["mix", "--load", load]);
        assert!(!is_good && error.contains(reason), "{load}: {error}");
    }
}

#[test]
fn a_sweep_is_csv_and_a_drawing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("paths.svg");
    let svg = file.to_str().expect("a path");
    let arguments =
        ["sweep", "--operation", "read", "--size", "64", "--size", "4KiB", "--batch", "1"];
    let (csv, _, is_good) = run(&[&arguments[..], &["--svg", svg]].concat());
    // Seven paths, two sizes, and the names of the columns.
    assert!(is_good && csv.lines().count() == 15, "{csv}");
    let columns = csv.lines().next().expect("a line").split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() >= columns), "{csv}");
    let drawing = std::fs::read_to_string(&file).expect("a drawing");
    assert!(
        drawing.contains("path dma-h2s") && drawing.matches("stroke-width=\"2\"").count() == 14
    );
    let (_, error, is_good) = run(&["sweep", "--path", "dma-s2h", "--operation", "send"]);
    assert!(!is_good && error.contains("a DMA engine reads and writes"), "{error}");
}

#[test]
fn profiles_are_printed_changed_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.toml");
    let name = file.to_str().expect("a path");
    let (text, ..) = run(&["profile"]);
    let slower = text.replace("pass = { value = 300,", "pass = { value = 600,");
    std::fs::write(&file, &slower).expect("a file");
    let latency = |profile: &str| {
        let read = ["estimate", "--path", "1", "--operation", "read", "--size", "8", "--json"];
        let (text, ..) = run(&[&read[..], &["--profile", profile]].concat());
        let found: Value = serde_json::from_str(&text).expect("JSON");
        found["single_ns"].as_f64().expect("a latency")
    };
    let more = latency(name) - latency("bluefield2");
    assert!((599.0..601.0).contains(&more), "two passes of 300 ns more, and not {more}");
    let (text, _, is_good) = run(&["profile", "--profile", name, "--check"]);
    assert!(is_good && text.contains("parameters, of which"), "{text}");

    std::fs::write(&file, slower.replace("value = 600", "value = \"long\"")).expect("a file");
    let (_, error, is_good) = run(&["profile", "--profile", name, "--check"]);
    let line = 1 + slower.lines().position(|line| line.starts_with("pass =")).expect("a line");
    let expected = format!("{name}:{line}: switch.pass: it has to be a number");
    assert!(!is_good && error.contains(&expected), "{error}");
    let (_, error, is_good) = run(&["profile", "--profile", "bluefield9"]);
    assert!(!is_good && error.contains("built in are bluefield2 and bluefield3"), "{error}");
}

#[test]
fn a_profile_is_held_against_the_study() {
    let (text, _, is_good) = run(&["calibrate", "--json"]);
    // Two results of row 42 are missed.
    assert!(!is_good, "{text}");
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let missed = rows.iter().filter(|row| row["reached"] == false);
    assert_eq!(missed.map(|row| &row["row"]).collect::<Vec<_>>(), [30, 42, 42]);
    // Another device does not have the results of this one.
    let (text, _, is_good) = run(&["calibrate", "--profile", "bluefield3"]);
    assert!(!is_good && text.contains("missed"), "{text}");
}

/// Operations and modes that parameters are fitted to.
const MEASURED: [(&str, &str); 5] = [
    ("read", "latency"),
    ("read", "rate"),
    ("write", "rate"),
    ("send", "rate"),
    ("fetch_add", "rate"),
];

#[test]
fn this_machine_is_probed_and_estimated() {
    let folder = tempfile::tempdir().expect("a folder");
    let [profile, table] = ["machine.toml", "points.csv"].map(|name| folder.path().join(name));
    let [profile, table] = [&profile, &table].map(|path| path.to_str().expect("a path"));
    let short = ["probe", "--seconds", "0.01", "--range", "4MiB"];
    let (text, error, is_good) = run(&[&short[..], &["--out", profile, "--csv", table]].concat());
    assert!(is_good && text.contains("points were measured"), "{text}{error}");
    let csv = std::fs::read_to_string(table).expect("a table");
    let head = csv.lines().next().expect("names of columns");
    assert!(head.starts_with("transport,operation,mode,bytes,"), "{csv}");
    assert!(head.contains(",quiet_median_ns,group_p99_ns,"), "{csv}");
    for (operation, mode) in MEASURED {
        assert!(csv.contains(&format!("shm,{operation},{mode},")), "{operation} {mode}: {csv}");
    }
    let (text, _, is_good) = run(&["profile", "--profile", profile, "--check"]);
    assert!(is_good && text.contains("parameters, of which"), "{text}");
    let (text, ..) = run(&["profile", "--profile", profile, "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["measured"]["range"]["value"], 4096.0);

    let with = |arguments: &[&str]| run(&[&["estimate", "--profile", profile], arguments].concat());
    let read = ["--operation", "read", "--size", "64"];
    let (text, _, is_good) = with(&[&["--path", "shm"], &read[..]].concat());
    assert!(is_good && text.contains("(modelled from measured parameters)"), "{text}");
    assert!(text.contains("latency") && text.contains("limited by"), "{text}");
    let send = ["--path", "shm", "--operation", "send", "--size", "8", "--batch", "4", "--json"];
    let (text, ..) = with(&send);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&found["path"], &found["bottleneck"]),
        (&"shm".into(), &"cores of both sides".into())
    );
    assert!(found["single_ns"].as_f64() > Some(0.0), "{text}");

    for (arguments, reason) in [
        (&["--path", "1"][..], "has no path 1; its path is shm"),
        (&["--path", "shm", "--range", "1GiB"], "between 64 and 4194304, and not 1073741824"),
        (&["--path", "shm", "--machines", "2"], "leave out --machines"),
        (&["--path", "shm", "--threads", "4000"], "the number of threads has to be between 1 and"),
        (&["--path", "4"], "soc-peer; shm in a profile of a machine"),
        (&["--path", "shm", "--profile", "bluefield2"], "cannot be used multiple times"),
    ] {
        let (_, error, is_good) = with(&[arguments, &read[..]].concat());
        assert!(!is_good && error.contains(reason), "{arguments:?}: {error}");
    }
    let (_, error, is_good) = run(&[&["estimate", "--path", "shm"], &read[..]].concat());
    assert!(
        !is_good && error.contains("BlueField-2 has no path shm; its paths are rnic"),
        "{error}"
    );
    let (_, error, is_good) = run(&["mix", "--profile", profile, "--load", "1:read:64"]);
    assert!(!is_good && error.contains("it is a profile of a machine, and a device"), "{error}");
}

#[test]
fn estimates_are_held_against_measurements() {
    let short = ["probe", "--seconds", "0.01", "--range", "4MiB", "--check"];
    // Whether estimates hold depends on what else the machine does.
    let (text, error, _) = run(&[&short[..], &["--json"]].concat());
    let points: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let checked: Vec<&Value> =
        points.iter().filter(|point| !point["estimated_ns"].is_null()).collect();
    for (operation, mode) in MEASURED.into_iter().chain([("compare_swap", "rate")]) {
        let is_there = |point: &Value| point["operation"] == operation && point["mode"] == mode;
        assert!(checked.iter().any(|point| is_there(point)), "{operation} {mode}: {text}{error}");
    }
    assert!(checked.len() < points.len(), "{text}{error}");
    for point in checked {
        let deviation = point["deviation"].as_f64().expect("a deviation");
        assert_eq!(point["is_within"], deviation.abs() <= 0.15, "{point}");
    }
    for (arguments, reason) in [
        (["--seconds", "0"], "the time has to be above 0"),
        (["--range", "4KiB"], "the largest range has to be between 4194304 and"),
    ] {
        let (_, error, is_good) = run(&[&["probe"], &arguments[..]].concat());
        assert!(!is_good && error.contains(reason), "{error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("machine.toml");
    let file = file.to_str().expect("a path");
    // A measurement that fails leaves no files.
    for (arguments, reason) in [
        (["--csv", file], "--out and --csv are the same file"),
        (["--seconds", "1e9"], "the time has to be above 0"),
    ] {
        let (_, error, is_good) = run(&[&["probe", "--out", file], &arguments[..]].concat());
        assert!(!is_good && error.contains(reason), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
    let out = ["--out", "/nowhere/machine.toml"];
    let (_, error, is_good) = run(&[&short[..5], &out[..]].concat());
    assert!(!is_good && error.contains("writing /nowhere/machine.toml"), "{error}");
}
