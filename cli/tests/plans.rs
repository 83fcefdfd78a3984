// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan plan` and `freeport plan apply` from the outside.

use crate::plan::run;
use serde_json::Value;
use std::fs;

#[test]
fn a_plan_has_shares_reasons_and_a_simulation() {
    let (text, error, is_good) = run(&["plan", "key-value"]);
    assert!(is_good, "{error}");
    for part in ["ranked by   round-trips", "    A5  2", "  simulated   ", "    R7 A5"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let (text, ..) = run(&["plan", "key-value", "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["shares"][0]["alternative"], "A5");
    assert_eq!(found["shares"][1]["alternative"], "A4");
    let of = |value: &Value| value["millions_per_second"].as_f64().expect("a rate");
    assert!(of(&found) > of(&found["best_alone"]));
    let simulated = of(&found["simulated"]) / of(&found["clients"]);
    assert!((0.9..1.1).contains(&simulated), "{simulated}");
    // Equal seeds give equal bytes.
    assert_eq!(text, run(&["plan", "key-value", "--json"]).0);
}

#[test]
fn constraints_remove_alternatives_or_refuse() {
    let (text, _, is_good) = run(&["plan", "replication", "--constraint", "host-cores=0"]);
    assert!(is_good && text.contains("A3  host-cores=0 allows no time of the host"), "{text}");
    let memory = ["--constraint", "soc-memory=1MiB", "--constraint", "host-cores=0"];
    let (_, error, is_good) = run(&[&["plan", "replication"][..], &memory].concat());
    assert!(!is_good && error.contains("no alternative of replication is left"), "{error}");
    assert!(error.contains("A2: soc-memory=1048576 is less than 67108864 B"), "{error}");
    for (constraint, reason) in [
        ("host-cores", "expected NAME=VALUE, such as host-cores=0"),
        ("beauty=1", "there is no constraint beauty; the constraints are host-cores,"),
        ("host-cores=-1", "host-cores has to be a number from 0 to 4096"),
    ] {
        let (_, error, is_good) = run(&["plan", "key-value", "--constraint", constraint]);
        assert!(!is_good && error.contains(reason), "{constraint}: {error}");
    }
    let (_, error, is_good) = run(&["plan", "ledger"]);
    assert!(!is_good && error.contains("built in are replication and key-value"), "{error}");
    let (_, error, is_good) = run(&["plan", "replication", "--ratio", "2"]);
    assert!(!is_good && error.contains("from 0.01 to 1"), "{error}");
}

#[test]
fn a_function_is_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.toml");
    let name = file.to_str().expect("a path");
    let text = "name = \"look\"\nbytes = 64\ncriteria = [\"latency\"]\n[[alternatives]]\n\
                name = \"read\"\nsteps = [{ do = \"read\", path = \"2\", bytes = 64 }]\n";
    fs::write(&file, text).expect("a file");
    let (out, error, is_good) = run(&["plan", "--function", name, "--clients", "4"]);
    assert!(is_good && out.contains("read  100.0 % of calls"), "{out} {error}");
    let plan = folder.path().join("plan.toml");
    let plan = plan.to_str().expect("a path");
    let (_, error, is_good) = run(&["plan", "--function", name, "--out", plan]);
    assert!(!is_good && error.contains("look belongs to no service: put `service ="), "{error}");
    fs::write(&file, text.replace("bytes = 64 }", "bytes = 64, times = 0 }")).expect("a file");
    let (_, error, is_good) = run(&["plan", "--function", name]);
    let expected = format!("{name}:6: alternatives[1].steps[1].times: 0 is not between");
    assert!(!is_good && error.contains(&expected), "{error}");
}

#[test]
fn the_load_of_links_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    for (function, names) in [
        ("replication", ["PCIe0 up", "DMA", "other machine"]),
        ("key-value", ["PCIe1 up", "network out", "clients"]),
    ] {
        let file = folder.path().join(format!("{function}.svg"));
        let (_, error, is_good) = run(&["plan", function, "--svg", file.to_str().expect("a path")]);
        assert!(is_good, "{error}");
        let drawing = fs::read_to_string(&file).expect("a drawing");
        for name in names {
            assert!(drawing.contains(&format!(">{name}<")), "{name} is not in {drawing}");
        }
        assert!(drawing.contains("nothing is measured") && !drawing.contains("NaN"));
    }
}

#[test]
fn a_plan_becomes_a_placement() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (plan, placement) = (path("plan.toml"), path("placement.toml"));
    for function in ["replication", "key-value"] {
        let (_, error, is_good) = run(&["plan", function, "--out", &plan]);
        assert!(is_good, "{error}");
        let (text, error, is_good) = run(&["apply", &plan, "--to", &placement]);
        assert!(is_good && text.contains(&placement), "{text} {error}");
    }
    let text = fs::read_to_string(&placement).expect("a placement");
    assert!(text.contains("[[replication.shares]]") && text.contains("[[get.shares]]"), "{text}");
    let (printed, _, is_good) = run(&["apply", &plan, "--to", "-"]);
    assert!(is_good && printed.contains("[[get.shares]]") && !printed.contains("replication"));
    // A plan is not a placement, and stays.
    let before = fs::read_to_string(&plan).expect("a plan");
    let (_, error, is_good) = run(&["apply", &plan, "--to", &plan]);
    assert!(!is_good && error.contains("it has to be placement, and not plan"), "{error}");
    assert_eq!(fs::read_to_string(&plan).expect("a plan"), before);
    let (_, error, is_good) = run(&["apply", &placement, "--to", "-"]);
    assert!(!is_good && error.contains("it has to be plan, and not placement"), "{error}");
}
