// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench kv` with the peers' own servers in the place of ours, and with ours for batches:
//! every reply is as expected, every line exists, and no file remains.

use freeport_testbed::{preload, skip};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const REDIS: &str = "redis-server --port {port} --save --appendonly no";
const MEMCACHED: &str = "memcached -l 127.0.0.1 -U 0 -p {memcached-port} -t 1 -u nobody";

/// Returns whether a program is missing, and counts that.
#[track_caller]
fn is_missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        skip(format_args!("{program} is not installed"));
    }
    is_missing
}

/// The lines for programs of a quick run, of our server or with another one in its place.
fn lines<'a>(case: &str, server: impl Into<Option<&'a str>>, more: &[&str]) -> Vec<Value> {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["bench", "kv", "--quick", "--json", "--memory", "64", "--window-ms", "100"]);
    command.args(["--case", case]).args(more);
    if let Some(server) = server.into() {
        command.args(["--server", server]);
    }
    command.env("TMPDIR", temporary.path()).env("FREEPORT_PRELOAD", preload::library());
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("JSON");
    assert!(remains(temporary.path()).is_empty(), "{:?}", remains(temporary.path()));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn remains(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is ours");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

/// The peers of a metric, each of which has figures.
fn peers<'a>(lines: &'a [Value], case: &str, metric: &str) -> Vec<&'a str> {
    let is_it = |line: &&Value| line["case"] == case && line["metric"] == metric;
    let of = |line: &'a Value| {
        let is_figure = |name: &str| line[name].as_f64().is_some_and(|value| value > 0.0);
        assert!(is_figure("value") && is_figure("peer_value"), "{line}");
        line["peer"].as_str().expect("a peer")
    };
    lines.iter().filter(is_it).map(of).collect()
}

#[test]
#[ignore = "long: needs redis-server and memcached"]
fn servers_have_a_line_for_each_figure_and_peer() {
    if ["redis-server", "memcached"].into_iter().any(is_missing) {
        return;
    }
    let workloads = ["a", "b", "c", "f"];
    let chosen = workloads.map(|workload| ["--workload", workload]).concat();
    for (case, server, peer) in [
        ("resp", REDIS, "redis"),
        ("memcached", MEMCACHED, "memcached"),
        ("memcached-meta", MEMCACHED, "memcached"),
    ] {
        let lines = lines(case, server, &[&chosen[..], &["--pipeline", "7"]].concat());
        for workload in workloads {
            let name = format!("{case}-ycsb-{workload}");
            for metric in ["ops", "latency_p50", "latency_p99"] {
                assert_eq!(peers(&lines, &name, metric), [peer, "limit: null server"]);
            }
        }
        let memory = format!("{case}-memory");
        assert_eq!(peers(&lines, &memory, "bytes_per_pair"), [peer]);
        let of_rates = lines.iter().filter(|line| line["metric"] != "bytes_per_pair");
        assert!(of_rates.into_iter().all(|line| line["pipeline"] == 7), "{lines:?}");
        assert!(lines.iter().all(|line| line["value_bytes"] == 92), "{lines:?}");
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn servers_that_keep_a_log_have_lines() {
    if is_missing("redis-server") {
        return;
    }
    for case in ["resp-everysec", "resp-always"] {
        let lines = lines(case, REDIS, &["--workload", "a"]);
        assert_eq!(peers(&lines, &format!("{case}-ycsb-a"), "ops")[0], "redis");
    }
}

#[test]
#[ignore = "long: needs redis-server and memcached"]
fn batches_have_lines_beside_both_peers() {
    if ["redis-server", "memcached"].into_iter().any(is_missing) {
        return;
    }
    let entrances = ["fabric", "batch-tcp", "batch-udp"];
    for (case, limit) in entrances.into_iter().zip([true, true, false]) {
        let workloads = ["--workload", "a", "--workload", "fetch-add"];
        let lines = lines(case, None, &workloads);
        for name in ["ycsb-a", "fetch-add"] {
            let mut expected = vec!["redis", "memcached"];
            expected.extend(limit.then_some("limit: null server"));
            assert_eq!(peers(&lines, &format!("{case}-{name}"), "ops"), expected);
        }
    }
}

#[test]
fn what_is_not_installed_is_said_with_what_to_install() {
    let empty = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["bench", "kv", "--quick", "--case", "memcached", "--memory", "16"]);
    command.args(["--server", "/bin/false"]).env("PATH", empty.path());
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    // Debian has the program in a folder for administrators, which needs no PATH.
    if !Path::new("/usr/sbin/memcached").exists() {
        assert!(text.contains("apt-get install memcached"), "{text}");
    }
    assert!(text.contains("limit: null server"), "{text}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("freeport has exited"), "{said}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (option, value) in [("--pipeline", "0"), ("--connections", "1001"), ("--workload", "d")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        let output = command.args(["bench", "kv", option, value]).output().expect("it runs");
        assert!(!output.status.success() && output.stdout.is_empty(), "{option}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(option), "{option}");
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn accelerated_servers_have_lines() {
    if is_missing("redis-server") {
        return;
    }
    let lines = lines("resp-exec", REDIS, &["--workload", "a"]);
    assert_eq!(peers(&lines, "resp-exec-ycsb-a", "ops"), ["redis"]);
    assert!(lines.iter().all(|line| line["note"].is_null()), "{lines:?}");
}
