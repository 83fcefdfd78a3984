// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv bench` with a server of ours and with others: each protocol, the line of JSON, how
//! it ends, and what it refuses.

use crate::kv_server::{KvServer, command, output_of};
use freeport_testbed::port::free_port;
use freeport_testbed::redis::RedisServer;
use freeport_testbed::{skip, wait_until};
use serde_json::Value;
use std::io::Read;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Output, Stdio};

/// Runs a load of few requests, on few keys unless they are given.
fn bench(options: &[&str]) -> Output {
    let small = ["kv", "bench", "--connections", "3", "--pipeline", "7", "--requests", "2000"];
    let keys = if options.contains(&"--keys") { &[][..] } else { &["--keys", "500"] };
    output_of(&[&small[..], keys, options].concat(), "")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The line of a load that succeeds.
fn line(options: &[&str]) -> Value {
    let output = bench(&[options, &["--json"]].concat());
    assert!(output.status.success(), "{options:?}: {}", said(&output));
    let line: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    let [requests, lost] = ["requests", "lost"].map(|name| line[name].as_u64().expect("a number"));
    assert!((2000..2007).contains(&(requests + lost)), "{line}");
    assert_eq!(line["errors"], 0, "{line}");
    // A datagram counts as lost when its reply is late, which depends on the machine.
    assert!(lost == 0 || options.contains(&"--udp"), "{line}");
    line
}

/// The complaint of a load that fails.
fn complaint(options: &[&str]) -> String {
    let output = bench(options);
    assert_eq!(output.status.code(), Some(1), "{options:?}: {output:?}");
    said(&output)
}

const MIXES: [&str; 8] = ["A", "b", "c", "f", "get", "put", "fetch-add", "a"];

#[test]
fn every_mix_runs_by_every_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let fabric = folder.path().join("fabric");
    let fabric = fabric.to_str().expect("text");
    let socket = folder.path().join("socket");
    let socket = socket.to_str().expect("text");
    let entrances = [
        "--batch-port",
        "0",
        "--batch-udp-port",
        "0",
        "--batch-fabric",
        fabric,
        "--socket",
        socket,
    ];
    let server = KvServer::start(&entrances);
    let [resp, memcached, batch, udp] = ["resp", "memcached", "batch", "batch_udp"]
        .map(|entrance| server.address(entrance).to_string());
    for (options, protocol) in [
        (["--address", &resp, "--protocol", "resp"], "resp"),
        (["--socket", socket, "--protocol", "resp"], "resp"),
        (["--address", &memcached, "--protocol", "memcached"], "memcached"),
        (["--address", &memcached, "--protocol", "memcached-meta"], "memcached-meta"),
        (["--address", &batch, "--protocol", "batch"], "batch"),
        (["--fabric", fabric, "--distribution", "uniform"], "batch"),
        (["--udp", &udp, "--seed", "3"], "batch"),
    ] {
        for mix in MIXES {
            let line = line(&[&options[..], &["--mix", mix]].concat());
            assert_eq!(line["protocol"], protocol);
        }
    }
    assert_eq!(server.reply(&["DBSIZE"]), "(integer) 500");
}

#[test]
fn the_line_has_the_load_and_its_figures() {
    let server = KvServer::start(&["--batch-port", "0"]);
    let batch = server.address("batch").to_string();
    let options = ["--address", &batch, "--protocol", "batch", "--mix", "b", "--seed", "7"];
    let line = line(&[&options[..], &["--value", "33", "--key", "5"]].concat());
    for (name, expected) in [
        ("target", batch.into()),
        ("mix", "ycsb-b".into()),
        ("distribution", "zipf".into()),
        ("keys", Value::from(500)),
        ("key_bytes", 5.into()),
        ("value_bytes", 33.into()),
        ("connections", 3.into()),
        ("pipeline", 7.into()),
        ("seed", 7.into()),
        ("error", Value::Null),
    ] {
        assert_eq!(line[name], expected, "{name}: {line}");
    }
    let [rate, seconds, p50, p99, p999, max] = [
        "ops_per_s",
        "elapsed_s",
        "latency_p50_us",
        "latency_p99_us",
        "latency_p999_us",
        "latency_max_us",
    ]
    .map(|name| line[name].as_f64().expect("a number"));
    assert!(rate > 0.0 && seconds > 0.0 && p50 > 0.0, "{line}");
    assert!(p50 <= p99 && p99 <= p999 && p999 <= max, "{line}");
    assert_eq!(server.reply(&["STRLEN", "00042"]), "(integer) 33");

    let output = bench(&["--address", &server.address("resp").to_string()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["ycsb-a", "zipf", "500 keys of 8 + 64 B", "3 connections of 7", "errors: 0"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn counters_count_every_add() {
    let server = KvServer::start(&["--batch-port", "0"]);
    let batch = server.address("batch").to_string();
    let options = ["--address", &batch, "--protocol", "batch", "--mix", "fetch-add"];
    let line = line(&[&options[..], &["--keys", "1"]].concat());
    // A number of eight bytes, little-endian.
    let count = line["requests"].as_u64().expect("a number").to_le_bytes();
    let script = "local s = redis.call('GET', '00000000'); \
                  return string.byte(s, 1) + 256 * string.byte(s, 2)";
    let expected = u16::from_le_bytes([count[0], count[1]]);
    assert_eq!(server.reply(&["EVAL", script, "0"]), format!("(integer) {expected}"));
}

#[test]
fn redis_is_loaded_as_well() {
    let Some(redis) = RedisServer::start(&[]) else { return skip("redis-server is missing") };
    for mix in MIXES {
        line(&["--address", &redis.address().to_string(), "--mix", mix]);
    }
}

#[test]
fn a_server_that_is_missing_is_an_error_with_advice() {
    let nowhere = format!("127.0.0.1:{}", free_port());
    // Nothing answers there while the socket exists.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let silent = silent.local_addr().expect("an address").to_string();
    for options in [
        &["--address", &nowhere][..],
        &["--address", &nowhere, "--protocol", "batch"],
        &["--socket", "/nowhere/socket"],
        &["--fabric", "/nowhere/fabric"],
        &["--udp", &silent],
    ] {
        let said = complaint(options);
        assert!(said.contains("freeport kv serve") && said.contains(options[1]), "{said}");
    }
}

#[test]
fn the_wrong_protocol_is_noticed() {
    let server = KvServer::start(&["--batch-port", "0"]);
    let [resp, memcached, batch] =
        ["resp", "memcached", "batch"].map(|entrance| server.address(entrance).to_string());
    for (address, protocol) in [
        (&resp, "batch"),
        (&resp, "memcached"),
        (&memcached, "batch"),
        (&memcached, "resp"),
        (&batch, "resp"),
        (&batch, "memcached-meta"),
    ] {
        let said = complaint(&["--address", address, "--protocol", protocol]);
        assert!(said.contains(&format!("{address} does not answer")), "{protocol}: {said}");
        assert!(said.contains(protocol), "{said}");
    }
}

#[test]
fn keys_that_are_missing_end_the_load() {
    let server = KvServer::start(&[]);
    let resp = server.address("resp").to_string();
    let output = bench(&["--address", &resp, "--no-load", "--mix", "get", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("$-1"), "{}", said(&output));
    let line: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&line["errors"], &line["requests"]), (&1.into(), &0.into()), "{line}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for (options, reason) in [
        (&["--protocol", "batch"][..], "--address"),
        (&["--udp", "127.0.0.1:1", "--protocol", "resp"], "batched protocol only"),
        (&["--key", "2", "--address", "127.0.0.1:1"], "too short"),
        (&["--udp", "127.0.0.1:1", "--value", "2000"], "datagram"),
    ] {
        assert!(complaint(options).contains(reason), "{options:?}");
    }
    for options in
        [["--socket", "/a", "--address", "127.0.0.1:1"], ["--seconds", "0", "--mix", "a"]]
    {
        assert_eq!(bench(&options).status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn an_interrupt_prints_what_was_measured() {
    let server = KvServer::start(&[]);
    let resp = server.address("resp").to_string();
    let load = ["kv", "bench", "--keys", "100", "--requests", "1000000000000", "--json"];
    let mut child = command(&[&load[..], &["--address", &resp]].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Keys are stored without hits.
    wait_until("requests are answered", || {
        let stats = server.reply(&["--raw", "INFO", "stats"]);
        let hits = stats.lines().find_map(|line| line.strip_prefix("keyspace_hits:"));
        hits.and_then(|hits| hits.trim_end().parse::<u64>().ok()) > Some(10_000)
    });
    let pid = child.id().try_into().expect("a process number");
    // SAFETY: no memory is passed, and the process is a child that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let mut printed = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut printed).expect("text");
    assert!(child.wait().expect("it is a child").success());
    let line: Value = serde_json::from_str(&printed).expect("one line of JSON");
    assert!(line["requests"].as_u64() > Some(0), "{line}");
}
