// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report for bug reports describes the machine, and does not identify the user.

use serde_json::Value;
use std::fs;
use std::process::Command;

/// The report for a user whose name is part of all folders.
fn report(more: &[&str]) -> String {
    let base = tempfile::tempdir().unwrap();
    let home = base.path().join("Some Person");
    fs::create_dir_all(home.join("lib")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["doctor", "--report"]).args(more).env("HOME", &home);
    command.env("FREEPORT_PRELOAD", home.join("lib/it.so"));
    command.env("FREEPORT_MONITOR", base.path().join("person-1000/monitor.sock"));
    command.env("FREEPORT_BPF_CLANG", home.join("no-clang"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let folder = base.path().display().to_string();
    for reported in ["Some Person", "person-1000", &folder, host.trim()] {
        assert!(!text.contains(reported), "{reported} is in\n{text}");
    }
    text
}

#[test]
fn a_report_describes_the_machine_and_not_the_user() {
    let text = report(&[]);
    for name in [
        "freeport",
        "features",
        "kernel",
        "distribution",
        "processor",
        "memory",
        "limit",
        "tool",
        "monitor",
        "check",
    ] {
        assert!(text.lines().any(|line| line.split(' ').next() == Some(name)), "{name}:\n{text}");
    }
    assert!(text.starts_with(&format!("freeport      {}, ", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.contains("monitor       not running\n"), "{text}");
}

#[test]
fn a_report_is_an_object_for_scripts() {
    let report: Value = serde_json::from_str(&report(&["--json"])).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["monitor"], "not running");
    assert!(report["limits"]["open_files"][0].is_u64(), "{report}");
    assert!(report["kernel"].as_str().unwrap().starts_with("Linux "), "{report}");
    assert!(report["processors"].as_u64().unwrap() > 0, "{report}");
    for tool in ["clang", "clang_for_objects", "verilator"] {
        assert!(report["tools"][tool].is_string(), "{report}");
    }
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["name"] == "AF_XDP"), "{report}");
}
