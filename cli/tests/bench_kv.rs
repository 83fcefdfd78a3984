// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench kv` with the peers' own servers in the place of ours: every reply is as expected,
//! every line exists, and no process or file remains.

use freeport_testbed::skip;
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

/// The lines for programs of a quick run with another server in the place of ours.
fn lines(case: &str, server: &str, more: &[&str]) -> Vec<Value> {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["bench", "kv", "--quick", "--json", "--memory", "64", "--window-ms", "100"]);
    command.args(["--case", case, "--server", server]).args(more).env("TMPDIR", temporary.path());
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
    for (case, server, peer) in [
        ("resp", REDIS, "redis"),
        ("memcached", MEMCACHED, "memcached"),
        ("memcached-meta", MEMCACHED, "memcached"),
    ] {
        for workload in ["a", "b", "c", "f"] {
            let lines = lines(case, server, &["--workload", workload, "--pipeline", "7"]);
            let name = format!("{case}-ycsb-{workload}");
            for metric in ["ops", "latency_p50", "latency_p99"] {
                assert_eq!(peers(&lines, &name, metric), [peer, "limit: null server"]);
            }
            let memory = format!("{case}-memory");
            assert_eq!(peers(&lines, &memory, "bytes_per_pair"), [peer]);
            let is_rate = |line: &&Value| line["metric"] != "bytes_per_pair";
            let pipelines = lines.iter().filter(is_rate).map(|line| &line["pipeline"]);
            assert!(pipelines.into_iter().all(|it| *it == 7), "{lines:?}");
            assert!(lines.iter().all(|line| line["value_bytes"] == 92), "{lines:?}");
        }
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
