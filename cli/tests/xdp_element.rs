// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of XDP objects as elements of a graph: the output is the same as when they run alone,
//! their maps are tables of the running graph, and errors are reported.

use crate::running::{Folder, repository};
use serde_json::Value;
use std::path::{Path, PathBuf};

const TRACE: &str = "examples/traces/sample.pcap";
const STATS: [&str; 4] = ["stats", "--json", "--to", "fw"];
const MACHINES: [&str; 2] = ["native", "interpreter"];

/// The object of a program of the repository, in a folder.
fn object(folder: &Path, name: &str) -> PathBuf {
    let source = repository().join(format!("programs/xdp/{name}.bpf.c"));
    let path = folder.join(format!("{name}.o"));
    let bytes = freeport_testbed::object(&source, freeport_xdp::compiler());
    std::fs::write(&path, bytes).expect("the folder is there");
    path
}

fn graph(folder: &Path, text: &str) -> String {
    let path = folder.join("graph.cnp");
    std::fs::write(&path, text).expect("the folder is there");
    path.display().to_string()
}

/// The frames of a capture, with times in any unit.
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("it was written");
    let (mut rest, mut frames) = (&bytes[24..], vec![]);
    while let Some((head, behind)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(head[8..12].try_into().expect("four bytes")) as usize;
        frames.push(behind[..length].to_vec());
        rest = &behind[length..];
    }
    frames
}

/// Every output goes to an element or an end.
const BACK: &str = "xdp \"minimal.o\" transmit :: back\nDiscard :: passed Discard :: sent\n\
                    from_tor -> back [tx] -> to_tor\nback [pass] -> passed\n\
                    back [redirect] -> sent\n";

#[test]
fn an_element_sends_what_its_program_sends() {
    let folder = Folder::new();
    let object = object(folder.path(), "minimal").display().to_string();
    let alone = folder.path().join("alone.pcap");
    let write = format!("tx={}", alone.display());
    folder.reported(&[
        "xdp",
        "run",
        &object,
        "--program",
        "transmit",
        "--trace",
        TRACE,
        "--write",
        &write,
    ]);
    let expected = frames(&alone);
    assert!(expected.len() > 50, "packets are sent back");
    let program = graph(folder.path(), BACK);
    for machine in MACHINES {
        let out = folder.path().join(format!("{machine}.pcap"));
        let [input, output] = [format!("from_tor={TRACE}"), format!("to_tor={}", out.display())];
        folder.reported(&["run", &program, "--in", &input, "--out", &output, "--on", machine]);
        assert!(frames(&out) == expected, "on {machine} other packets come out");
    }
}

#[test]
fn maps_of_an_element_are_tables_and_data_are_variables() {
    let folder = Folder::new();
    object(folder.path(), "stateful_firewall");
    let text = "xdp \"stateful_firewall.o\" :: fw\nDiscard :: passed Discard :: back\n\
                from_tor -> fw [redirect] -> to_tor\nfw [pass] -> passed\nfw [tx] -> back\n";
    let program = graph(folder.path(), text);
    for machine in MACHINES {
        let traffic = ["--in", "from_tor=gen:64@2000", "--out", "to_tor=count", "--on", machine];
        let running = folder.start("fw", &[&[program.as_str()][..], &traffic].concat());
        running.reported(&["table", "set", "fw.ways", "1", "2"]);
        assert_eq!(running.reported(&["table", "lookup", "fw.ways", "1"]), "2\n");
        let key = "{low: 1, high: 2, protocol: 17}";
        running.reported(&["table", "set", "fw.flows", key, "5"]);
        let entries = running.reported(&["table", "entries", "fw.flows"]);
        let entry = r#"{"high":2,"low":1,"protocol":17} = 5"#;
        assert!(entries.contains(entry), "{entries}");
        assert_eq!(running.reported(&["get", "fw.ingress_ifindex"]), "fw.ingress_ifindex = 1\n");
        running.reported(&["set", "fw.ingress_ifindex=2"]);
        let list = running.reported(&["table", "list"]);
        assert!(list.contains("fw.ways") && list.contains("fw.flows"), "{list}");
        running.reported(&["stop"]);
    }
}

/// A firewall between two devices: 1, which is inside, and 2.
const BETWEEN: &str = "xdp \"stateful_firewall.o\" <1, 2> :: fw\n\
                       Discard :: passed Discard :: elsewhere\n\
                       from_nic -> [in_1] fw [out_2] -> to_tor\n\
                       from_tor -> [in_2] fw [out_1] -> to_nic\n\
                       fw [pass] -> passed\nfw [redirect] -> elsewhere\n";

#[test]
fn an_element_between_devices_has_its_maps_in_common_for_all_of_them() {
    let folder = Folder::new();
    object(folder.path(), "stateful_firewall");
    let program = graph(folder.path(), BETWEEN);
    let inputs = ["--in", "from_nic=gen:64@2000", "--in", "from_tor=gen:64@2000"];
    let outputs = ["--out", "to_tor=count", "--out", "to_nic=count"];
    for machine in MACHINES {
        let on = [program.as_str(), "--on", machine];
        let mut running = folder.start("fw", &[&on[..], &inputs, &outputs].concat());
        let left = |name: &str| {
            let stats: Value = serde_json::from_str(&folder.reported(&STATS)).expect("it is JSON");
            let ends = stats["endpoints"].as_array().expect("there are some").clone();
            let end = ends.into_iter().find(|end| end["endpoint"] == name).expect("it is there");
            end["frames"].as_u64().expect("it is a number")
        };
        running.reported(&["table", "set", "fw.ways", "1", "2"]);
        running.wait_until("packets leave for device 2", || left("to_tor") > 0);
        assert_eq!(left("to_nic"), 0, "on {machine}, without a way to device 1");
        // This direction passes flows that the other one has created.
        running.reported(&["table", "set", "fw.ways", "2", "1"]);
        running.wait_until("packets leave for device 1", || left("to_nic") > 0);
        // The interface of packets no longer comes from a variable.
        let complaint = running.complaint(&["get", "fw.ingress_ifindex"]);
        assert!(complaint.contains("ingress_ifindex"), "{complaint}");
        running.reported(&["stop"]);
    }
}

#[test]
fn what_cannot_be_an_element_is_told_with_its_place() {
    let folder = Folder::new();
    object(folder.path(), "minimal");
    object(folder.path(), "sampler");
    let complaint = |line: &str| {
        let program = graph(folder.path(), &format!("{line}\nfrom_tor -> to_tor\n"));
        folder.complaint(&["check", &program])
    };
    let several = complaint("xdp \"minimal.o\" :: it");
    assert!(several.contains("E0520") && several.contains("drop, transmit, redirect"), "{several}");
    let none = complaint("xdp \"minimal.o\" nothing :: it");
    assert!(none.contains("no XDP program `nothing`"), "{none}");
    for (devices, reason) in [
        ("0", "0 is not a device"),
        ("2, 2", "2 is not a device, or is given twice"),
        ("uint8", "E0520"),
        ("device = 2", "no parameter `device`"),
    ] {
        let reported = complaint(&format!("xdp \"minimal.o\" transmit <{devices}> :: it"));
        assert!(reported.contains("E0520") && reported.contains(reason), "{reported}");
    }
    let refused = complaint("xdp \"sampler.o\" :: it");
    assert!(refused.contains("not liftable, because of instruction"), "{refused}");
    assert!(refused.contains("sampler.bpf.c:"), "{refused}");
}
