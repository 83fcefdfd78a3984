// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unmodified client programs and libraries use `freeport kv serve`, with one worker and several.

use crate::kv_nodes::Cluster;
use crate::kv_server::{KvServer, run_with};
use freeport_testbed::{skip, wait_until};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Debian's own, for which its packages of libraries are.
const PYTHON: &str = "/usr/bin/python3";
const WORKERS: [&str; 2] = ["1", "3"];
/// Tests of `redis-benchmark` that have a line of figures each.
const BENCHMARKS: usize = 20;

/// Returns whether a program is missing, and counts that.
#[track_caller]
fn is_missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        skip(format_args!("{program} is not installed"));
    }
    is_missing
}

/// The output of a program that succeeds.
fn printed(command: Command, input: &str) -> String {
    let shown = format!("{command:?}");
    let output = run_with(command, input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn redis_cli(server: &KvServer, arguments: &[&str]) -> Command {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.port("resp")]).args(arguments);
    command
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "long: needs redis-cli"]
fn redis_cli_is_served() {
    if is_missing("redis-cli") {
        return;
    }
    for workers in WORKERS {
        let server = KvServer::start(&["--workers", workers]);
        let says = |arguments: &[&str], input: &str| printed(redis_cli(&server, arguments), input);
        assert_eq!(says(&["SET", "key", "value"], ""), "OK\n");
        assert_eq!(says(&["--no-raw", "GET", "key"], ""), "\"value\"\n");
        let lines = "MULTI\nINCR count\nRPUSH list a b\nEXEC\nHSET hash field 1\n";
        assert_eq!(says(&[], lines), "OK\nQUEUED\nQUEUED\n1\n2\n1\n");
        let map = says(&["-3", "--no-raw", "HGETALL", "hash"], "");
        assert_eq!(map, "1# \"field\" => \"1\"\n");

        let sets = (0..500).map(|key| format!("SET many:{key} {key}\n")).collect::<String>();
        assert_eq!(says(&[], &sets), "OK\n".repeat(500));
        let found = says(&["--scan", "--pattern", "many:*"], "");
        let mut found: Vec<_> = found.lines().collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 500);
        let biggest = says(&["--bigkeys"], "");
        assert!(biggest.contains("Sampled 504 keys"), "{biggest}");
        // Requests in bulk, as for a mass insertion.
        let piped = says(&["--pipe"], &"SET piped 1\r\n".repeat(2000));
        assert!(piped.contains("errors: 0, replies: 2000"), "{piped}");
    }
}

#[test]
#[ignore = "long: needs redis-cli"]
fn redis_cli_listens() {
    if is_missing("redis-cli") {
        return;
    }
    for workers in WORKERS {
        let server = KvServer::start(&["--workers", workers]);
        let mut command = redis_cli(&server, &["SUBSCRIBE", "news"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut listener = Ended(command.spawn().expect("it starts"));
        let output = listener.0.stdout.take().expect("it is piped");
        wait_until("it listens", || server.reply(&["PUBLISH", "news", "hello"]) == "(integer) 1");
        let mut lines = BufReader::new(output).lines().map(|line| line.expect("text"));
        let heard: Vec<_> = lines.by_ref().take(6).collect();
        assert_eq!(heard, ["subscribe", "news", "1", "message", "news", "hello"]);
        drop(listener);
        wait_until("it is gone", || server.reply(&["PUBLISH", "news", "hello"]) == "(integer) 0");
    }
}

#[test]
#[ignore = "long: needs redis-benchmark"]
fn every_test_of_redis_benchmark_passes() {
    if is_missing("redis-benchmark") {
        return;
    }
    for workers in WORKERS {
        let server = KvServer::start(&["--workers", workers]);
        for more in [&["-c", "1"][..], &["-c", "50"], &["-c", "50", "-P", "16", "--threads", "2"]] {
            let mut command = Command::new("redis-benchmark");
            command.args(["-p", &server.port("resp"), "-n", "1000", "--csv"]).args(more);
            let figures = printed(command, "");
            // The first line has the names of the columns.
            let tests = figures.lines().filter(|line| line.starts_with('"')).count() - 1;
            assert_eq!(tests, BENCHMARKS, "{figures}");
            assert!(!figures.contains("Error"), "{figures}");
        }
    }
}

#[test]
#[ignore = "long: needs python3-redis"]
fn redis_py_is_content() {
    python("redis", "with_redis.py", "resp");
}

#[test]
#[ignore = "long: needs python3-redis"]
fn redis_py_is_content_with_a_cluster() {
    if is_without("redis") {
        return;
    }
    let mut cluster = Cluster::start(6, "5000");
    cluster.done(&["create", "--nodes", "6", "--replicas", "1", "--wait"]);
    let mut command = Command::new(PYTHON);
    command.arg(script("with_redis_cluster.py")).arg(cluster.nodes[0].port("resp"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = Ended(command.spawn().expect("it starts"));
    let output = BufReader::new(client.0.stdout.take().expect("it is piped"));
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = rounds.clone();
    let reader = std::thread::spawn(move || {
        let lines = output.lines().map(|line| line.expect("text"));
        lines.inspect(|_| _ = counted.fetch_add(1, Ordering::Relaxed)).last()
    });
    // The second one has begun after the call.
    let write_more = || {
        let before = rounds.load(Ordering::Relaxed);
        wait_until("the client writes all keys twice", || {
            assert!(!reader.is_finished(), "the client has ended");
            rounds.load(Ordering::Relaxed) >= before + 2
        });
    };
    let shards = |cluster: &Cluster| -> Vec<String> {
        let status = cluster.status();
        let shards = status["shards"].as_array().expect("an array");
        shards.iter().map(|shard| shard["id"].as_str().expect("text").to_owned()).collect()
    };
    wait_until("the client begins", || {
        assert!(!reader.is_finished(), "the client has ended");
        rounds.load(Ordering::Relaxed) > 0
    });
    write_more();
    let shards = shards(&cluster);
    cluster.done(&["failover", &shards[0], "--timeout", "180"]);
    write_more();
    let [from, to] = [&shards[0], &shards[1]];
    cluster.done(&["move", "--count", "500", "--from", from, "--to", to, "--wait"]);
    write_more();

    // The first of a shard's nodes is its primary.
    let primary = |cluster: &Cluster| {
        let port = &cluster.status()["shards"][1]["nodes"][0]["address"]["port"];
        port.as_u64().expect("a number").to_string()
    };
    let lost = primary(&cluster);
    let number = (0..6).find(|node| cluster.nodes[*node].port("resp") == lost).expect("a node");
    cluster.nodes[number].signal(libc::SIGKILL);
    wait_until("its replica takes its place", || primary(&cluster) != lost);
    cluster.start_again(number);
    write_more();
    drop(client.0.stdin.take());
    let last = reader.join().expect("it does not panic");
    assert_eq!(last.as_deref(), Some("redis-py is content"));
    assert!(client.0.wait().expect("it is a child").success());
}

#[test]
#[ignore = "long: needs python3-pymemcache"]
fn pymemcache_is_content() {
    python("pymemcache", "with_memcached.py", "memcached");
}

/// Returns whether a library of Debian is missing, and counts that.
#[track_caller]
fn is_without(library: &str) -> bool {
    let import = Command::new(PYTHON).args(["-c", &format!("import {library}")]).output();
    let is_without = !import.is_ok_and(|output| output.status.success());
    if is_without {
        skip(format_args!("python3-{library} is not installed"));
    }
    is_without
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kv_clients").join(name)
}

/// Runs a script that uses a library of Debian.
#[track_caller]
fn python(library: &str, name: &str, protocol: &str) {
    if is_without(library) {
        return;
    }
    for workers in WORKERS {
        let server = KvServer::start(&["--workers", workers]);
        let mut command = Command::new(PYTHON);
        command.arg(script(name)).arg(server.port(protocol));
        let said = printed(command, "");
        assert!(said.contains("is content"), "{said}");
    }
}
