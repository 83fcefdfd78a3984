// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan study` from the outside.

use serde_json::Value;

fn run(arguments: &[&str]) -> (String, String, bool) {
    crate::plan::run(&[&["study"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    let (text, error, is_good) = run(&[arguments, &["--json"]].concat());
    assert!(is_good, "{error}");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn clients_get_from_the_store_in_several_ways() {
    let cached = json(&["key-value", "--gets", "A5:300"]);
    let split = json(&["key-value", "--gets", "A4"]);
    let both = json(&["key-value", "--gets", "A5:200", "--gets", "A4", "--skew", "0.9"]);
    let rate = |found: &Value| found["millions_per_second"].as_f64().expect("a rate");
    assert_eq!(cached["busiest"], "cores of the SoC");
    assert!(rate(&cached) < rate(&split) && rate(&split) < rate(&both), "{split} {both}");
    assert_eq!(both["gets"][1]["clients"], 856);
    let (text, ..) = run(&["key-value", "--gets", "A1:1"]);
    assert!(text.contains("1 clients get (simulated)") || text.contains("1 client gets"), "{text}");
}

#[test]
fn clients_write_files_to_a_backup() {
    let all = json(&["replication", "--writes", "a2:2", "--writes", "a3:2", "--ratio", "0.5"]);
    let saving = all["network_saving"].as_f64().expect("a share");
    assert!((0.15..0.35).contains(&saving), "{all}");
    let raw = json(&["replication", "--writes", "a3"]);
    assert_eq!(raw["network_saving"], 0.0);
    let (text, ..) = run(&["replication", "--writes", "a1"]);
    assert!(text.contains("1 client write") && text.contains("Gbit/s"), "{text}");
}

#[test]
fn impossible_runs_are_refused_with_the_reason() {
    for (arguments, reason) in [
        (&["key-value", "--gets", "A6"][..], "there is no alternative A6"),
        (&["key-value", "--gets", "A1:0"], "0 is no number of clients"),
        (&["key-value", "--gets", "A1:99999999999999999999"], "is no number of clients"),
        (&["key-value", "--gets", "A1:1057"], "the profile has 1056 clients"),
        (&["key-value", "--gets", "A1", "--gets", "A4"], "only one --gets"),
        (&["key-value", "--gets", "A1", "--skew", "1"], "the skew is 1; it has to be"),
        (&["key-value", "--gets", "A1", "--keys", "100000000", "--value", "1"], "keys is 1"),
        (&["key-value", "--gets", "A1", "--keys", "1", "--value", "16MiB"], "value"),
        (&["key-value", "--gets", "A1", "--keys", "0"], "keys is 0"),
        (&["replication", "--writes", "a4"], "there is no policy a4"),
        (&["replication", "--writes", "a1:65"], "there may be 64 clients at most"),
        (&["replication", "--writes", "a1", "--chunk", "1"], "--chunk has to be between"),
        (&["replication", "--writes", "a1", "--ratio", "0"], "--ratio has to be above 0"),
        (&["replication", "--writes", "a1:64", "--chunk", "16MiB", "--backups", "8"], "memory"),
    ] {
        let (_, error, is_good) = run(arguments);
        assert!(!is_good && error.contains(reason), "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
}
