// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Other processes control a running program while traffic flows.

use crate::running::Folder;

const PROGRAM: &str = "examples/capture.cnp";
const TRAFFIC: [&str; 4] = ["--in", "from_tor=gen:64@2000", "--out", "to_tor=count"];
const MACHINES: [[&str; 2]; 2] = [["--on", "native"], ["--on", "interpreter"]];

#[test]
fn counters_grow_and_variables_are_read_and_written_while_traffic_flows() {
    for machine in MACHINES {
        let folder = Folder::new();
        let mut running = folder.start("cap", &[&[PROGRAM][..], &TRAFFIC, &machine].concat());
        let first = running.frames_in();
        let frames = || {
            let reported = folder.reported(&["stats", "--to", "cap", "--json"]);
            let stats: serde_json::Value = serde_json::from_str(&reported).unwrap();
            stats["endpoints"][0]["frames"].as_u64().unwrap()
        };
        running.wait_until("frames come", || frames() > first + 100);
        let count = || -> u64 {
            let reported = folder.reported(&["get", "cnt.count"]);
            reported.trim().strip_prefix("cnt.count = ").unwrap().parse().unwrap()
        };
        running.reported(&["set", "cnt.count=0x1000000000"]);
        assert!((1 << 36..(1 << 36) + 1_000_000).contains(&count()));
        let answer = running.reported(&["signal", "cnt:0"]);
        let word: u64 = answer.split_whitespace().nth(2).unwrap().parse().unwrap();
        assert!(word >= 1 << 36, "{answer}");
        let text = running.reported(&["stats"]);
        assert!(text.contains("from_tor -> cnt.in"), "{text}");
        let prometheus = running.reported(&["stats", "--prometheus"]);
        assert!(prometheus.contains("freeport_frames_total{endpoint=\"from_tor\""), "{prometheus}");
        let list = folder.reported(&["ps"]);
        assert!(list.contains("cap: ") && list.contains("in from_tor=gen:64@2000"), "{list}");
        running.reported(&["stop"]);
        let ended = running.ended();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(folder.reported(&["ps"]), "");
    }
}

#[test]
fn a_signal_ends_a_program_in_good_order_and_then_its_last_counters_are_printed() {
    let folder = Folder::new();
    let arguments = [&[PROGRAM][..], &TRAFFIC, &["--stats", "json"]].concat();
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut running = folder.start("cap", &arguments);
        running.wait_until("frames come", || {
            folder.reported(&["get", "cnt.count"]) != "cnt.count = 0\n"
        });
        running.signal(signal);
        let ended = running.ended();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let stats: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        let [came, left] = [0, 1].map(|at| stats["endpoints"][at]["frames"].as_u64().unwrap());
        assert!(came > 0 && came == left, "{stats}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_name_is_taken_by_the_living_only() {
    let folder = Folder::new();
    let arguments = [&[PROGRAM][..], &TRAFFIC].concat();
    let running = folder.start("cap", &arguments);
    let complaint = folder.complaint(&[&["run", "--name", "cap"], &arguments[..]].concat());
    let living = format!("cap is already running as process {}", running.process());
    assert!(complaint.contains(&living), "{complaint}");
    running.signal(libc::SIGKILL);
    let socket = running.socket();
    running.ended();
    assert!(socket.exists(), "a killed program leaves its socket");
    let complaint = folder.complaint(&["stats"]);
    assert!(complaint.contains("no program is running"), "{complaint}");
    let complaint = folder.complaint(&["stats", "--to", "cap"]);
    assert!(complaint.contains("no program named cap is running"), "{complaint}");
    assert!(complaint.contains("`freeport ps`"), "{complaint}");
    assert_eq!(folder.reported(&["ps"]), "");
    let again = folder.start("cap", &arguments);
    let complaint = again.complaint(&["get", "cnt.kount"]);
    assert!(complaint.contains("there is no variable cnt.kount; there are count"), "{complaint}");
    let other = folder.start("other", &arguments);
    let complaint = folder.complaint(&["stats"]);
    assert!(complaint.contains("select one with --to: cap, other"), "{complaint}");
    let complaint = folder.complaint(&["stats", "--to", "third"]);
    assert!(
        complaint.contains("no program named third is running; there are cap, other"),
        "{complaint}"
    );
    drop((again, other));
}
