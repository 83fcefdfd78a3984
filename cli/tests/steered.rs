// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables, breakpoints, logs, counters over HTTP, and many or hostile clients: all while traffic
//! flows.

use crate::running::{Folder, PATIENCE};
use freeport_testbed::process::processor_time;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

const TRAFFIC: [&str; 4] = ["--in", "from_tor=gen:64@2000", "--out", "to_tor=count"];
const MACHINES: [[&str; 2]; 2] = [["--on", "native"], ["--on", "interpreter"]];

/// Drops packets whose length is in `limits`, and counts both kinds.
const POLICE: &str = "
typedef struct { ushort length; uchar kind; } size;
.element Police (flit in -> flit out) {
    .state {
        ulong passed; ulong dropped; bool is_dropping;
        table<size, uint> limits[16];
        lpm table<uint, ushort> zones[16];
    }
    .method bool drop(size key) { return limits.update(key, 1); }
    .handler {
        if (test_input_port(in)) {
            flit x = read_input_port(in);
            if (x.sop) {
                size key;
                key.length = 64;
                key.kind = 0;
                is_dropping = false;
                uint *found = limits.lookup(key);
                if (found) is_dropping = true;
                if (is_dropping) dropped++; else passed++;
            }
            if (!is_dropping) set_output_port(out, x);
        }
    }
}
Police :: police
from_tor -> police -> to_tor
";

/// Stops at each packet.
const HELD: &str = "
.element Held (flit in -> flit out) {
    .state { ulong packets; }
    .handler {
        if (test_input_port(in)) {
            flit x = read_input_port(in);
            if (x.sop) {
                packets++;
                printf(\"packet %u\\n\", packets);
                #pragma breakpoint \"here\"
            }
            set_output_port(out, x);
        }
    }
}
Held :: held
from_tor -> held -> to_tor
";

fn program(folder: &Folder, text: &str) -> String {
    let file: PathBuf = folder.path().join("program.cnp");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn value(folder: &Folder, path: &str) -> u64 {
    let reported = folder.reported(&["get", "--json", path]);
    serde_json::from_str::<Value>(&reported).unwrap()[path].as_u64().unwrap()
}

#[test]
fn a_rule_works_from_the_moment_it_is_there() {
    for machine in MACHINES {
        let folder = Folder::new();
        let file = program(&folder, POLICE);
        let mut running = folder.start("police", &[&[&file[..]][..], &TRAFFIC, &machine].concat());
        running.wait_until("packets pass", || value(&folder, "police.passed") > 50);
        assert_eq!(value(&folder, "police.dropped"), 0);
        assert_eq!(running.reported(&["call", "police.drop({length: 64})"]), "1\n");
        let passed = value(&folder, "police.passed");
        running.wait_until("packets are dropped", || value(&folder, "police.dropped") > 50);
        assert_eq!(value(&folder, "police.passed"), passed, "none passes any more");
        let list = running.reported(&["table", "list"]);
        let line = "police.limits: hash, 16 entries at most, {\"kind\":0,\"length\":0} = 0";
        assert!(list.contains(line), "{list}");
        let entries = running.reported(&["table", "entries", "police.limits"]);
        assert_eq!(entries, "{\"kind\":0,\"length\":64} = 1\n");
        running.reported(&["table", "delete", "police.limits", "{length: 64}"]);
        running.wait_until("packets pass again", || value(&folder, "police.passed") > passed);
        let gone = running.complaint(&["table", "delete", "police.limits", "{length: 64}"]);
        assert_eq!(gone, "there is no such entry\n");
        running.reported(&["table", "set", "police.zones", "10.1.0.0/16", "7"]);
        assert_eq!(running.reported(&["table", "lookup", "police.zones", "10.1.2.3"]), "7\n");
        let none = running.complaint(&["table", "lookup", "police.zones", "10.2.2.3"]);
        assert_eq!(none, "no entry matches\n");
    }
}

#[test]
fn a_program_is_replaced_while_traffic_flows_and_keeps_its_state() {
    for machine in MACHINES {
        let folder = Folder::new();
        let file = program(&folder, POLICE);
        let mut running = folder.start("police", &[&[&file[..]][..], &TRAFFIC, &machine].concat());
        running.wait_until("packets pass", || value(&folder, "police.passed") > 50);
        running.reported(&["set", "police.passed=0x100000000"]);
        running.reported(&["table", "set", "police.zones", "10.1.0.0/16", "7"]);
        // The other program counts by two.
        let other = folder.path().join("other.cnp");
        std::fs::write(&other, POLICE.replace("else passed++;", "else passed = passed + 2;"))
            .unwrap();
        let other = other.display().to_string();
        let reported = running.reported(&["replace", &other, "--json"]);
        let report: Value = serde_json::from_str(&reported).unwrap();
        assert!(reported.contains("police.passed"), "{report}");
        let passed = value(&folder, "police.passed");
        assert!(passed >= 1 << 32, "{passed}");
        running.wait_until("packets pass", || value(&folder, "police.passed") > passed + 50);
        assert_eq!(running.reported(&["table", "lookup", "police.zones", "10.1.2.3"]), "7\n");
        assert!(folder.reported(&["ps"]).contains("other.cnp"));
        std::fs::write(&other, "nonsense").unwrap();
        assert!(running.complaint(&["replace", &other]).contains("other.cnp:1:"));
        let gone = POLICE.replace("from_tor ->", "from_nic ->");
        std::fs::write(&other, gone).unwrap();
        let complaint = running.complaint(&["replace", &other]);
        assert!(complaint.contains("no port can be bound to from_tor"), "{complaint}");
        let frames = running.frames_in();
        let grows = || {
            let stats = folder.reported(&["stats", "--json"]);
            let stats: Value = serde_json::from_str(&stats).unwrap();
            stats["endpoints"][0]["frames"].as_u64().unwrap() > frames
        };
        running.wait_until("traffic goes on", grows);
    }
}

#[test]
fn many_calls_go_in_one_stream_and_each_wrong_one_is_told_with_its_line() {
    let folder = Folder::new();
    let file = program(&folder, POLICE);
    let running = folder.start("police", &[&[&file[..]][..], &TRAFFIC].concat());
    let calls = folder.path().join("calls");
    let lines = (0..20_000).map(|at| format!("police.zones.update(10.0.0.0, {}, {at})\n", at % 9));
    let text = format!("# zones\n\n{}police.zones.update(1)\n", lines.collect::<String>());
    std::fs::write(&calls, text).unwrap();
    let complaint = running.complaint(&["call", "--file", &calls.display().to_string()]);
    assert!(complaint.contains("calls:20003: "), "{complaint}");
    assert!(complaint.contains("1 calls of "), "{complaint}");
    let entries = running.reported(&["table", "entries", "police.zones", "--json"]);
    let of_16 = entries.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_16: Vec<Value> = of_16.filter(|entry| entry["length"] == 8).collect();
    // The last number below 20,000 that is 8 modulo 9.
    assert_eq!(of_16[0]["value"], json!(19_997 & 0xffff));
}

#[test]
fn calls_of_a_file_that_are_refused_are_told_and_the_others_carried_out() {
    let folder = Folder::new();
    let file = program(&folder, POLICE);
    let running = folder.start("police", &[&[&file[..]][..], &TRAFFIC].concat());
    let calls = folder.path().join("calls");
    // Sixteen fit, and the seventeenth does not; after one is removed, there is room again.
    let drops = (1..=17).map(|at| format!("police.drop({{length: {at}}})\n"));
    let text = drops.collect::<String>()
        + "police.limits.delete({length: 99})\npolice.drop(1, 2)\nnonsense\n\
           police.limits.delete({length: 1})\npolice.drop({length: 18})\n";
    std::fs::write(&calls, text).unwrap();
    let path = calls.display().to_string();
    let output = folder.freeport(&["call", "--file", &path, "--json", "--to", "police"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        report["results"],
        json!([
            {"method": "police.drop", "result": 1, "count": 17},
            {"method": "police.limits.delete", "result": true, "count": 1},
        ])
    );
    let complaint = String::from_utf8(output.stderr).unwrap();
    let failed = report["failed"].as_array().unwrap();
    let lines: Vec<&Value> = failed.iter().map(|failed| &failed["line"]).collect();
    assert_eq!(lines, [17, 18, 19, 20]);
    assert_eq!(failed[0]["call"], "police.drop({length: 17})");
    assert!(failed[0]["reason"].as_str().unwrap().starts_with("police.drop answers no"));
    for failed in failed {
        let line = format!("{path}:{}: {}\n", failed["line"], failed["reason"].as_str().unwrap());
        assert!(failed["file"] == path.as_str() && complaint.contains(&line), "{complaint}");
    }
    assert!(complaint.contains(&format!("4 calls of {path} failed")), "{complaint}");
    let entries = running.reported(&["table", "entries", "police.limits"]);
    assert_eq!(entries.lines().count(), 16);
    assert!(entries.contains("\"length\":18}"), "{entries}");
}

#[test]
fn an_instance_rests_at_its_breakpoint_until_it_is_told_to_go_on() {
    for machine in MACHINES {
        let folder = Folder::new();
        let file = program(&folder, HELD);
        let more = [&["--breakpoints"][..], &machine].concat();
        let mut running = folder.start("held", &[&[&file[..]][..], &TRAFFIC, &more].concat());
        for packet in 1..=3 {
            let rests = || {
                folder
                    .reported(&["ps"])
                    .contains("held is stopped at a breakpoint; `freeport resume held`")
            };
            running.wait_until("it rests", rests);
            assert_eq!(value(&folder, "held.packets"), packet);
            assert!(running.stats()["instances"][0]["firings"].as_u64().unwrap() >= packet);
            assert_eq!(running.reported(&["resume", "held"]), "held resumes\n");
        }
        running.wait_until("the fourth rests", || value(&folder, "held.packets") == 4);
        running.reported(&["set", "held.packets=100"]);
        assert_eq!(value(&folder, "held.packets"), 100);
        let reported = running.reported(&["logs"]);
        assert_eq!(running.reported(&["told"]), reported, "the name of earlier releases");
        assert!(
            reported.contains("held: packet 1\n") && reported.contains("held: packet 4\n"),
            "{reported}"
        );
        assert!(reported.contains("here"), "{reported}");
        running.reported(&["stop"]);
        assert!(running.ended().status.success());
    }
}

#[test]
fn a_hundred_clients_are_answered_at_once() {
    let folder = Folder::new();
    let file = program(&folder, POLICE);
    let running = folder.start("police", &[&[&file[..]][..], &TRAFFIC].concat());
    let socket = running.socket();
    let clients: Vec<UnixStream> = (0..100)
        .map(|_| {
            let client = UnixStream::connect(&socket).unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            client
        })
        .collect();
    for (number, mut client) in clients.iter().enumerate() {
        let set = format!("{{\"do\":\"get\",\"path\":\"police.passed\",\"id\":{number}}}\n");
        client.write_all(set.repeat(20).as_bytes()).unwrap();
    }
    for (number, client) in clients.iter().enumerate() {
        let mut answers = BufReader::new(client).lines();
        for _ in 0..20 {
            let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            assert_eq!(answer["id"], json!(number));
            assert!(answer["ok"].is_u64(), "{answer}");
        }
    }
}

#[test]
fn hostile_clients_harm_nobody_but_themselves() {
    let folder = Folder::new();
    let file = program(&folder, POLICE);
    let mut running = folder.start("police", &[&[&file[..]][..], &TRAFFIC].concat());
    let connect = || {
        let client = UnixStream::connect(running.socket()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    };
    let ask = |mut client: &UnixStream, text: &[u8]| {
        client.write_all(text).unwrap();
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        answer
    };
    let client = connect();
    for (text, reason) in [
        (&b"hello\n"[..], "not JSON"),
        (b"\xff\xfe\x00\n", "not JSON"),
        (b"{\"do\":\"fly\",\"id\":[1]}\n", "it may be call"),
        (b"{\"do\":\"call\",\"call\":\"police.drop({length: 70000})\"}\n", "does not fit 16 bits"),
        (b"{\"do\":\"get\",\"path\":\"\"}\n", "a variable is written"),
        (b"{\"do\":\"get\",\"path\":\"police.passed[18446744073709551616]\"}\n", "is written"),
    ] {
        let answer = ask(&client, text);
        assert!(answer.starts_with("{\"error\":") && answer.contains(reason), "{answer}");
    }
    // A client that disconnects within a request, one that never completes it, and one that never
    // reads.
    connect().write_all(b"{\"do\":\"st").unwrap();
    let unread = connect();
    unread.set_nonblocking(true).unwrap();
    let flood = "{\"do\":\"stats\"}\n".repeat(50_000);
    let mut sent = 0;
    while let Ok(count) = (&unread).write(&flood.as_bytes()[sent..]) {
        sent += count;
        if sent == flood.len() {
            break;
        }
    }
    let mut long = connect();
    let mut too_long = false;
    for _ in 0..80 {
        too_long |= long.write_all(&[b'['; 1 << 16]).is_err();
    }
    let mut answer = String::new();
    let read = long.read_to_string(&mut answer);
    let is_refused = read.is_err() || answer.contains("a request has at most");
    assert!(too_long || is_refused, "{answer}");
    // Other clients are still answered, and traffic flows.
    let frames = running.frames_in();
    running.wait_until("traffic goes on", || {
        let reported = folder.reported(&["stats", "--json"]);
        let stats: Value = serde_json::from_str(&reported).unwrap();
        stats["endpoints"][0]["frames"].as_u64().unwrap() > frames + 50
    });
    drop((unread, client));
    running.reported(&["stop"]);
    assert!(running.ended().status.success());
}

/// One frame per 50 ms needs hardly any processor time. A program that polled all the time would
/// use a whole processor, or its share of one.
#[test]
fn an_idle_program_leaves_the_processor_to_others() {
    const FRAMES: u64 = 20;
    let folder = Folder::new();
    let arguments = ["examples/capture.cnp", "--in", "from_tor=gen:64@20", "--out", "to_tor=count"];
    let mut running = folder.start("idle", &arguments);
    let pid = i32::try_from(running.process()).unwrap();
    let stats = |what: &str| {
        let reported = folder.reported(&["stats", "--to", "idle", "--json"]);
        let stats: Value = serde_json::from_str(&reported).unwrap();
        stats["endpoints"][0]["frames"].as_u64().unwrap_or_else(|| panic!("{what}: {reported}"))
    };
    let (before, first) = (processor_time(pid), stats("before"));
    running.wait_until("frames come", || stats("meanwhile") >= first + FRAMES);
    let each = (processor_time(pid) - before) / FRAMES as u32;
    assert!(each < Duration::from_millis(10), "{each:?} of processor time for each frame");
}

#[test]
fn counters_are_served_to_prometheus() {
    let folder = Folder::new();
    let file = program(&folder, POLICE);
    let arguments = [&[&file[..], "--metrics", "0", "--stats", "json"][..], &TRAFFIC].concat();
    let mut running = folder.start("police", &arguments);
    let address = running.announced("counters are at http://");
    let address = address.strip_suffix("/metrics").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("freeport_frames_total{endpoint=\"from_tor\",direction=\"in\"} "));
    let rates = running.reported(&["stats", "--watch", "0.2", "--times", "1"]);
    assert!(rates.contains("from_tor: ") && rates.contains("frames "), "{rates}");
}

#[test]
fn what_replaces_a_program_is_logged_too() {
    let folder = Folder::new();
    let file = program(&folder, "Count :: cnt\nfrom_tor -> cnt -> to_tor\n");
    let logs = ["--log", "from_tor -> cnt.in", "--log", "cnt.out->to_tor"];
    let mut running = folder.start("counts", &[&[&file[..]][..], &TRAFFIC, &logs].concat());
    let mut logged =
        |line: &str| running.wait_until(line, || folder.reported(&["logs"]).contains(line));
    logged("log2: cnt.out -> to_tor ");
    // In this program, only the other channel is logged.
    let text = "Count :: cnt\nCount :: before\nfrom_tor -> before -> cnt -> to_tor\n";
    folder.reported(&["replace", &program(&folder, text)]);
    logged("log1: cnt.out -> to_tor ");
    let gone = running.announced(&format!("{file} has no channel "));
    assert_eq!(gone, "from_tor -> cnt.in to log");
}

#[test]
fn channels_are_logged_alike_on_every_device() {
    let folder = Folder::new();
    let arguments = ["run", "examples/firewall.cnp", "--init", "examples/firewall.json", "--in"];
    let traffic = ["from_tor=gen:64x9", "--out", "to_tor=count", "--log", "all"];
    let lines = |machine: [&str; 2]| {
        let reported = folder.reported(&[&arguments[..], &traffic, &machine].concat());
        // The order of elements is undefined; the order within a channel is not.
        let mut lines: Vec<String> = reported.lines().map(str::to_owned).collect();
        lines.sort_by_key(|line| line.split(' ').next().unwrap().to_owned());
        lines
    };
    let [native, interpreted] = MACHINES.map(lines);
    assert_eq!(native, interpreted);
    let packets =
        native.iter().filter(|line| line.contains("from_tor -> firewall.parse.in 64 bytes"));
    assert_eq!(packets.count(), 9, "{native:#?}");
    let one = ["run", "examples/capture.cnp", "--in", "from_tor=gen:64x2", "--log"];
    let reported = folder.reported(&[&one[..], &["cnt.out -> tee.in"]].concat());
    assert_eq!(reported.lines().filter(|line| line.contains("sop=1 eop=0 pad=0 ")).count(), 2);
    assert_eq!(reported.lines().count(), 4, "{reported}");
    let complaint = folder.complaint(&[&one[..], &["cnt -> tee"]].concat());
    assert!(
        complaint.contains("there is no channel cnt -> tee; there are from_tor"),
        "{complaint}"
    );
}
